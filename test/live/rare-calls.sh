#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# Rare calls: each one made by the requested processes is recorded once, including those of new threads, of children that
# make them first and exit, and of a process whose main thread has exited. Other processes that make them leave no record
# and no byte of their stacks, and do not fill the rings.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/losses.bash" || exit 2

need_perf
use_own_group

# Other processes that make the same calls, with a secret on the stack, and have children.
(while "$workloads/rare-calls" --exit strange && "$workloads/rare-calls" --exit; do
	sleep 0.05
done) >strange.out &
processes+=($!)
wait_until "the other process to make its calls" grep -q 'made 200 strange' strange.out

# expect_calls: each call that was made, once.
expect_calls() {
	local number=0 place count
	"$MMTRACE" dump -i "$recording" >dump.out || fail "dump failed"
	for place in own child executed strange; do
		number=$((number + 1))
		count=$(sed -n "s/^made \([0-9]*\) $place$/\1/p" workload.out)
		grep -o " call event=syscalls:sys_exit_shmdt shmdt(0x${number}00[0-9a-f]\{8\}[,)]" dump.out | sort >recorded
		[ "$(uniq -d recorded | wc -l)" = 0 ] || fail "$place: calls are in the recording twice"
		[ "$(wc -l <recorded)" = "${count:-0}" ] ||
			fail "$place: $(wc -l <recorded) calls are in the recording, of ${count:-0} that were made"
	done
	[ "$("$BUILD/test/find-bytes" "$recording" 'S3cr3t#!')" = 0 ] || fail "a stack of another process is in the recording"
	grep -q 'call event=syscalls:sys_exit_remap_file_pages' dump.out && fail "a call of another process is in the recording"
	report_json
	expect_true_report
	expect_json '.completeness.missed_threads == 0 and .completeness.missed_cpus == 0'
}

for options in "" --lean "${cpu_scopes[@]/#/--scope }"; do
	start_workload rare-calls
	start_recording $options -p "$pid"
	let_work
	stop_recording
	let_end
	expect_calls
done

start_workload rare-calls outlive
start_recording -p "$pid"
let_work
stop_recording
let_end
expect_calls

"$MMTRACE" record -o "$recording" -- "$workloads/rare-calls" --exit >workload.out 2>record.log ||
	fail "record ended with status $?: $(cat record.log)"
expect_calls

# Other processes make more of these calls than the rings have room for while the recorder is stopped: with per-thread
# events no call of the target is lost or reported as lost.
for options in "" --lean; do
	start_workload rare-calls
	start_recording $options -m 2M -p "$pid"
	stop_recorder
	for _ in {1..40}; do
		"$workloads/rare-calls" --exit strange >/dev/null
	done
	kill -CONT "$recorder"
	let_work
	stop_recording
	let_end
	expect_calls
	expect_json '.completeness.lost_events == 0'
done
