#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Reserved memory is made accessible by mprotect and by a mapping over it.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case reserve-commit
command_case reserve-commit
