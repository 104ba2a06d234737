#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Programs with separated segments, in new and existing processes: vfork, posix_spawn, and exec from a thread that is not
# the first.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for kind in vfork posix-spawn exec-thread; do
	echo "$kind"
	attach_case images $kind
	expect_check 0
	# The kernel reported the program's whole address range, but not that the loader unmapped the gaps between its
	# segments.
	"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
	grep -qE ' mapping .* length=0x[0-9a-f]{6,} .*/images"' "$directory/dump.out" || fail "a program without gaps"
done
