#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# -t records the requested threads and those that they start, and reports that other threads were not recorded.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# expect_mapped FUNCTION COUNT: this many calls through it.
expect_mapped() {
	expect_json "[.groups[] | select(any(.frames[]; .function == \"$1\")) | .allocated_count] | add // 0 | . == $2"
}

# record_threads OPTION...: while an idle thread, a new one and a child each map something.
record_threads() {
	start_recording "$@"
	let_work
	stop_recording
	report_json
	expect_json '.completeness.lost_events == 0'
	let_end
}

# The thread that will map something.
start_workload many-idle 100
record_threads -t "$(sed -n 's/^maps //p' workload.out)"
expect_mapped map_in_thread 1
expect_mapped map_in_new_thread 0
expect_json '.completeness.missed_threads == 100'
expect_json '.processes | length == 1'
grep -q '100 threads were missed' record.log || fail "the summary does not mention the others"
expect_check 1

# The thread that starts others.
start_workload many-idle 100
record_threads -t "$pid,$pid"
expect_mapped map_in_thread 0
expect_mapped map_in_new_thread 2
expect_json '.completeness.missed_threads == 100'
expect_json '.processes | length == 2'

# With -p of its process too: all threads, each once.
start_workload many-idle 100
record_threads -p "$pid" -t "$pid"
expect_mapped map_in_thread 1
expect_mapped map_in_new_thread 2
expect_json '.completeness.missed_threads == 0'
expect_check 0

"$MMTRACE" record -o no.data -t 1 --scope cpus 2>wrong.log
[ $? = 2 ] || fail "-t with per-CPU events is not refused"
sleep 0 &
wait $!
"$MMTRACE" record -o no.data -t $! 2>wrong.log
[ $? = 2 ] && grep -q "no thread $!" wrong.log || fail "a thread that is gone: $(cat wrong.log)"
