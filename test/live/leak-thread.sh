#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# Leaks of threads created after the recorder attached, and memory that other threads free.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-thread
command_case leak-thread
