#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The heap: every growth is born at its call, shrinkage takes from the top.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-brk
command_case leak-brk
