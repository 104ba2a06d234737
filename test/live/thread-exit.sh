#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Threads exit, also the first one; the process continues, is checked, and keeps their mappings.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case thread-exit
expect_check 0
command_case thread-exit
