#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Leaks of System V shared memory and shared anonymous memory.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-shm
command_case leak-shm
