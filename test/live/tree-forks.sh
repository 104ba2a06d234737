#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Attaching with --tree to a process that calls fork() nearly all the time: every living child is recorded, whenever it was
# started, and each of its calls is recorded once.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/forks.bash" || exit 2

need_perf

every_child=1 fork_rounds 2 --tree
