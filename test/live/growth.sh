#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The report says where a process grew: in an arena that malloc had reserved before, in a new mapping, in the heap, in files
# and shared memory, in memory that it released, in children, or not at all. The parts add up to what the kernel reports,
# with less than 1 % unexplained, and a report of a growing process never says that there is no leak.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
allowance=$((1 << 20)) # what the kernel's count, which is not exact on all kernels, and the stack may differ by

# record_growth KIND: writes report.json and report.txt; sets $touched, and $attributed if resident pages could be read.
record_growth() {
	start_workload growth "$1"
	start_recording -p "$pid"
	let_work
	let_recorder_catch_up
	stop_recording
	let_end
	touched=$(sed -n 's/^touched //p' "$directory/workload.out")
	report_json
	expect_true_report
	"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
	attributed=$(jq '.growth.pages_end_bytes != null' report.json)
	expect_json ".growth | .start_bytes > 0 and .peak_bytes >= .end_bytes and .peak_bytes >= .start_bytes"
	expect_json ".growth | (.end_bytes - .start_bytes - $touched) | fabs <= $allowance"
}

# expect_part FILTER: this part contains what was touched, and the parts add up to the growth of RSS.
expect_part() {
	$attributed || return 0
	expect_json "[.growth.parts[] | select($1).bytes] | add - $touched | fabs <= $allowance"
	expect_json '.growth | ([.parts[].bytes] | add) + .changing_bytes + .unexplained_bytes == .end_bytes - .start_bytes'
	expect_json ".growth | .changing_bytes | fabs <= $allowance"
	expect_json ".growth | (.unexplained_bytes | fabs) <= ((.pages_end_bytes - .pages_start_bytes) | fabs) / 100"
}

record_growth arena
expect_part '.place == "before" and .arena'
grep -q 'no leak' report.txt && fail "a process that grew has no leak: $(cat report.txt)"
grep -qE '^(LEAK|GROWING|PLATEAU|UNDECIDED|STEADY): RSS ' report.txt || fail "no verdict: $(cat report.txt)"
$attributed && { grep -qE '^ +\+3[0-9.]+ MiB  touched in malloc arenas, mapped before' report.txt || fail "no arenas: $(cat report.txt)"; }

record_growth mmap
expect_part '.place == "made"'

record_growth brk
expect_part '.place == "made"'

record_growth protect
expect_part '.place == "committed"'

# Its pages stay: no part is large.
record_growth forbid
expect_part 'true'
$attributed && expect_json "[.growth.parts[].bytes | fabs] | max // 0 | . <= $allowance"

record_growth file
expect_part '.place == "before" and .class == "file" and (.name | contains("libc") | not)'

record_growth memfd
expect_part '.place == "made"'

record_growth shared
expect_part '.place == "before" and .class == "shm"'

record_growth huge
expect_part '.place == "before" and .class == "anon"'

record_growth dontneed
expect_part '.place == "before" and .class == "anon"'

# Three processes started during recording, with their copies of everything.
record_growth children
expect_part 'true'
expect_json '.processes | length == 4'

record_growth give-back
expect_part '.place == "unmapped"'

# The kernel does not count these huge pages in RSS. The machine may have none.
if borrow_huge_pages 4; then
	record_growth hugetlb
	expect_part 'true'
	$attributed && expect_json '.growth.hugetlb_bytes == 8 * 1048576'
	$attributed && expect_json ".processes[0].resident_bytes - .growth.end_bytes | fabs <= $allowance"
	$attributed && { grep -qE '^ +\+8.00 MiB  in huge pages of hugetlbfs' report.txt || fail "no line: $(cat report.txt)"; }
fi

record_growth idle
$attributed && expect_json ".growth | .unexplained_bytes | fabs <= $allowance"
expect_json '.growth.verdict | . == "steady" or . == "too-short"'

# A process that never pauses grows while its pages are read: this is neither part of the recording nor unexplained.
start_workload growth steadily
"$MMTRACE" record -q -p "$pid" --duration 2s -o "$recording" || fail "record ended with status $?"
report_json
if $attributed; then
	expect_json '.growth | ([.parts[].bytes] | add) + .changing_bytes + .unexplained_bytes == .end_bytes - .start_bytes'
	expect_json ".growth | .unexplained_bytes | fabs <= $allowance"
fi

# What short-lived children had of their own is in the peak, which record and report both say.
child='x=$(head -c 30000000 /dev/zero | tr "\0" x); sleep 0.1; :'
for attempt in 1 2 3; do
	CHILD=$child "$MMTRACE" record -o "$recording" -- \
		sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sh -c "$CHILD"; sleep 0.4; done' 2>record.log ||
		fail "record ended with status $?: $(cat record.log)"
	"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
	grep -q 'peak .* with short-lived processes' report.txt && break
done
grep -q 'peak .* with short-lived processes' report.txt || fail "no peak after $attempt recordings: $(cat report.txt)"
grep -q 'peak .* with short-lived processes; ' record.log || fail "record does not say what the peak has: $(cat record.log)"
