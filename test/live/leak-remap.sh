#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# mremap: growth, moves and shrinkage keep the births apart.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-remap
command_case leak-remap
