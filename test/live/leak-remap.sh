#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# mremap that grows, moves and shrinks keeps the call that mapped each part.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-remap
command_case leak-remap
