#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# 200 threads that map all the time occupy every CPU and hold the mmap_lock that the recorder needs to read maps. The
# recorder runs before them, reads the rings meanwhile, and reports its scheduling priority.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
start_workload crowd 200

# scheduling PROCESS: policy and real-time priority, see proc(5).
scheduling() {
	local state fields
	read -r state <"/proc/$1/stat"
	read -r -a fields <<<"${state##*) }"
	echo "${fields[38]} ${fields[37]} ${fields[16]}"
}

before=$(scheduling "$pid")
begin_recording -v -p "$pid"
let_run "$pid" 50
read -r policy realtime nice < <(scheduling "$recorder")
if chrt --rr 1 true 2>/dev/null; then
	# Real-time priority is taken and given back with the rings: see unit-scheduling-priority.
	[ "$policy $realtime" = "2 1" ] || [ "$policy $nice" = "0 -20" ] || fail "the recorder has policy $policy, priority $realtime, nice $nice"
	expected='nice -20, and real-time priority while a ring fills up'
elif nice -n -20 true 2>/dev/null; then
	[ "$policy" = 0 ] && [ "$nice" = -20 ] || fail "the recorder has policy $policy and nice $nice"
	expected='nice -20'
else
	[ "$policy" = 0 ] && [ "$realtime" = 0 ] || fail "the recorder has policy $policy and priority $realtime"
	expected='ordinary priority'
fi
grep -q "the recorder runs with $expected" record.log || fail "not reported as $expected: $(cat record.log)"
# The scheduling of the target's threads is unchanged.
[ "$(scheduling "$pid")" = "$before" ] || fail "the target has another scheduling policy now: $(scheduling "$pid")"
stop_recording
grep -q "of rings; $expected" record.log || fail "the summary does not say $expected: $(cat record.log)"
report_json
expect_json '.processes | length == 1'
expect_json '.events.mmap > 1000 and .events.munmap > 1000'
kill -9 "$pid"
