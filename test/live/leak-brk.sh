#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Heap growth (brk) is attributed to the call that grew it; shrinking takes from the top.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-brk
command_case leak-brk
