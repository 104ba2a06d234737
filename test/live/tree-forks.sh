#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A process is attached to with its existing children while it is inside fork() nearly all the time: every child that lives
# is recorded, whenever it was started, and all its calls are, once.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/forks.bash" || exit 2

need_perf

every_child=1 fork_rounds 2 --tree
