#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Like causes.sh, for memory files and shared memory.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf

cause memfd 'memory files (memfd) mapped and not unmapped'
cause shared 'shared memory mapped and not unmapped'
cause shm 'shmdt() ends it'
