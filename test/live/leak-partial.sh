#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# munmap of parts of a mapping, and across several mappings.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-partial
command_case leak-partial
