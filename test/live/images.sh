#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Other programs in old and new processes: vfork, posix_spawn, exec from a thread that is not the first. Their segments lie
# apart.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for kind in vfork posix-spawn exec-thread; do
	echo "$kind"
	attach_case images $kind
	expect_check 0
	# The kernel told of the whole span of the program, but not that the loader unmapped what its segments leave free.
	"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
	grep -qE ' mapping .* length=0x[0-9a-f]{6,} .*/images"' "$directory/dump.out" || fail "a program without gaps"
done
