#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A process that is inside fork() nearly all the time is attached to: a child that the recording knows has all its calls
# in it, also one whose birth was on its way when the events were opened.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/forks.bash" || exit 2

need_perf
fork_rounds 5
