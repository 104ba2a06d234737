#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# Successful calls of madvise are counted, the released bytes are added up and stay mapped, and the dump names the advice.
# With --no-madvise only the advice that affects fork is recorded.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# record_advice OPTION...: a recording of the workload, its answer, a report and a dump.
record_advice() {
	start_workload madvise
	start_recording "$@" -p "$pid"
	let_work
	stop_recording
	read -r calls dontneeds bytes < <(sed -n 's/^advised \([0-9]*\) dontneed \([0-9]*\) given_back \([0-9]*\)$/\1 \2 \3/p' workload.out)
	[ -n "${bytes-}" ] || fail "the workload did not print its advice"
	report_json
	expect_true_report
	expect_workload_answer yes
	let_end
	"$MMTRACE" dump -i "$recording" >dump.out || fail "dump failed"
}

# Across a hole the call fails, but the mapped part was released: that call counts.
record_advice
expect_json ".events.madvise == $calls and .events.process_madvise == 0"
expect_json ".processes | length == 1 and .[0].given_back_bytes == $bytes"
"$MMTRACE" report -i "$recording" | grep -q " $calls madvise" || fail "the report does not count $calls calls"
[ "$(grep -c ' madvise(0x[0-9a-f]*, 0x[0-9a-f]*, MADV_DONTNEED) = 0' dump.out)" = "$dontneeds" ] ||
	fail "the dump has other than $dontneeds calls with MADV_DONTNEED"

"$MMTRACE" pack -q -o packed.data "$recording" || fail "pack failed"
"$MMTRACE" report --json -i packed.data >packed.json || fail "the packed recording has no report"
jq -e ".events.madvise == $calls and .processes[0].given_back_bytes == $bytes" packed.json >/dev/null ||
	fail "the packed recording has other calls of madvise"

record_advice --no-madvise
expect_json '.events.madvise == 2 and .events.process_madvise == 0 and .processes[0].given_back_bytes == 0'
[ "$(grep -c ' madvise(0x[0-9a-f]*, 0x[0-9a-f]*, MADV_DO[A-Z]*FORK) = 0' dump.out)" = 2 ] ||
	fail "the dump has other calls than the two that a fork depends on"
