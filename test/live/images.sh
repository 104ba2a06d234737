#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Other programs in old and new processes: vfork, posix_spawn, exec from a thread that is not the first.
source "$SOURCE/test/live/support/recording.bash"

need_perf
for kind in vfork posix-spawn exec-thread; do
	echo "$kind"
	attach_case images $kind
	expect_check 0
done
