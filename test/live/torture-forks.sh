#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Random memory calls of processes that fork at random moments: at every checkpoint the model equals the kernel's maps.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/torture.bash" || exit 2

need_perf
torture_case forks 1 30 2000
