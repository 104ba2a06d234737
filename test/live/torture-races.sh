#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Threads change the same addresses without synchronization, recorded in exact order: at every checkpoint the model equals
# the kernel's maps.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/torture.bash" || exit 2

need_perf
torture_case races 1 30 2000
