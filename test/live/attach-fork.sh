#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Attaching to a process that calls fork() nearly all the time: every child that is in the recording has all its calls, even
# a child whose fork was in progress when the events were opened.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/forks.bash" || exit 2

need_perf
fork_rounds 5
