#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Nearly all heap blocks are freed but nothing returns to the kernel: the report names the malloc heap as the cause.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case retained-heap
expect_check 0
expect_json '[.groups[] | select(any(.frames[]; .function == "allocate_block"))] |
	length > 0 and all(.pattern == "heap" and .class_bytes.heap == .unfreed_bytes) and
	(map(.unfreed_bytes) | add) >= 63 * 61440'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
grep -qE '^  malloc heap \+.*, free \+3\.[0-9]+ MiB: fragmentation; .*malloc_trim\(0\) gives back at most 3\.' report.txt &&
	grep -q 'malloc heap: grew in calls from this stack' report.txt || {
	cat report.txt >&2
	fail "the text does not explain the growth of the heap"
}
