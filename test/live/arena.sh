#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# In a glibc arena, the 64 MiB of address space count as reserved, the accessible memory belongs to the callers of malloc,
# and the report names the arena.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case arena
expect_check 0
reserver='(.groups[] | select(.unfreed_bytes == 67108864))'
expect_json "$reserver | .pattern == \"arena\" and .committed_bytes == 0"
# Most memory became accessible through malloc's requests; each group points to the call that reserved it.
expect_json "$reserver.id as \$arena | [.groups[] | select(any(.frames[]; .function == \"allocate_piece\") and
	.committed_bytes > 0)] | length > 0 and all(.reserved_by == \$arena) and
	(map(.committed_bytes) | add) > 150 * 60000"
# Both halves have one cause with one hint; a call that only reserves has no row of its own.
expect_json "$reserver.joined_to != null"
expect_json "$reserver.id as \$arena | [.causes[] | select(.pattern == \"arena\")] | length == 1 and
	(.[0] | .committed_bytes > 150 * 60000 and .unfreed_bytes == 67108864 and any(.groups[]; . == \$arena))"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
grep -qE '^ +[0-9]+ +[0-9.]+ MiB .* malloc arenas, ([0-9]+ % )?grew in calls from allocate_piece .*, of 64\.00 MiB mapped, [0-9,]+ stacks' report.txt &&
	[ "$(grep -cE '^ +malloc (arena|heap): grew in calls from this stack' report.txt)" = 1 ] && ! grep -q 'MiB mapped .* reserved' report.txt || {
	cat report.txt >&2
	fail "the text does not say that it is an arena"
}
