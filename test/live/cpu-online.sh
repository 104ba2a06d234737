#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# Packages: perf:linux-perf
# A CPU comes online during recording. Per-thread events follow the threads there, whether or not the CPU existed at the
# start. Per-CPU events are opened again when the recorder sees the CPU, and the recording says that earlier events of that
# CPU are missing.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/losses.bash" || exit 2

need_perf
cpu=/sys/devices/system/cpu/cpu1
[ "$(cat $cpu/online 2>/dev/null)" = 1 ] || skip "there is no CPU 1 that can be switched off"
# The CPU is brought online again even if this test fails.
setsid bash -c "sleep 600; echo 1 >$cpu/online" </dev/null >/dev/null 2>&1 3>&- &
guard=$!
trap 'echo 1 >$cpu/online; kill -- "-$guard" 2>/dev/null; end_everything' EXIT
switch() {
	echo "$1" 2>/dev/null >$cpu/online || skip "CPU 1 cannot be switched"
}

# expect_missed COUNT STATUS: the count in the report, and the exit status of its check.
expect_missed() {
	report_json
	expect_json ".completeness.missed_cpus == $1 and .completeness.missed_threads == 0"
	expect_check "$2"
}

# work_there: make calls on CPU 1 only.
work_there() {
	taskset -a -p -c 1 "$pid" >/dev/null || fail "nothing can run on CPU 1"
	let_work
	stop_recording
}
# Everything that the workload did is recorded, and ran on that CPU.
expect_calls() {
	report_json -p "$pid"
	expect_true_report
	expect_workload_answer yes
	"$MMTRACE" dump -i "$recording" >dump.txt 2>dump.log || fail "dump: $(cat dump.log)"
	grep -q "^[0-9.]* $pid/[0-9]* \[001\] call event=syscalls:sys_exit_mmap " dump.txt || fail "nothing was seen on CPU 1"
	[ -z "$(command -v perf)" ] || perf script -i "$recording" >script.txt 2>script.log ||
		fail "perf does not read it: $(cat script.log)"
}
# Descriptors of perf events.
count_descriptors() {
	find "/proc/$recorder/fd" -lname '*perf_event*' 2>/dev/null | wc -l
}
# expect_descriptors COUNT: once the recorder has reported that the CPU is back.
expect_descriptors() {
	local count
	count=$(count_descriptors)
	[ "$count" = "$1" ] || fail "$count perf events are open instead of the $1 before the CPU went"
}
is_seen() {
	grep -q 'CPU 1 came online' record.log && return
	kill -0 "$recorder" || given_up="record ended early: $(cat record.log)"
	[ $SECONDS -lt $seen_by ] || [ "$(recorder_sleeps)" -lt $sleeps ] ||
		given_up="the recorder went on for 20 seconds without noticing that CPU 1 had been away: $(cat record.log)"
	return 1
}
# The recorder looks for counters that stand still once a second.
expect_seen() {
	seen_by=$((SECONDS + 20)) sleeps=$(($(recorder_sleeps) + 1000))
	wait_until "the recorder to see the CPU" is_seen
}
# The CPU is back before anybody looks: the recorder is stopped meanwhile, as during suspend to RAM.
flicker() {
	switch 0
	switch 1
}

# The CPU was offline at the start.
start_workload leak-anon
switch 0
start_recording -p "$pid"
switch 1
work_there
expect_missed 0 0
expect_calls
let_end

# The CPU goes offline and comes back.
start_workload leak-anon
start_recording -p "$pid"
switch 0
sleep 0.3
switch 1
work_there
expect_missed 0 0
expect_calls
let_end

# The same with per-CPU events, which are reopened; at last with -a.
use_own_group
for scope in "${cpu_scopes[@]}" -a; do
	start_workload leak-anon
	[ "$scope" != -a ] || switch 0
	[ "$scope" = -a ] && start_recording -a || start_recording --scope $scope -p "$pid"
	[ "$scope" = -a ] || begin=$(count_descriptors)
	[ "$scope" = -a ] || switch 0
	sleep 1.5
	switch 1
	expect_seen
	[ "$scope" = -a ] || expect_descriptors "$begin"
	work_there
	grep -q '1 CPU came online' record.log || fail "the summary does not say so: $(cat record.log)"
	expect_missed 1 1
	expect_calls
	let_end
done

# The CPU goes offline for a moment.
start_workload leak-anon
start_recording --scope cpus -p "$pid"
begin=$(count_descriptors)
stop_recorder
flicker
kill -CONT "$recorder"
expect_seen
expect_descriptors "$begin"
work_there
expect_missed 1 1
expect_calls
let_end

# The same just before the end.
start_workload leak-anon
start_recording --scope cpus -p "$pid"
stop_recorder
flicker
kill -INT "$recorder"
stop_recording CONT
expect_missed 1 1
expect_json '.completeness.lost_events == 0'
let_work
let_end

# Events lost there before it went offline still count, although their counters are closed.
start_workload overflow 20000
start_recording --scope cpus -m 8K -p "$pid"
begin=$(count_descriptors)
go_on_until first
taskset -a -p -c 1 "$pid" >/dev/null || fail "nothing can run on CPU 1"
let_recorder_catch_up
stop_recorder
go_on_until over
flicker
kill -CONT "$recorder"
expect_seen
expect_descriptors "$begin"
let_recorder_catch_up # there is room in the rings again
go_on_until 'done'
stop_recording
made_mmap=$(awk '/^made/ { print $3 }' workload.out)
report_json
"$MMTRACE" dump -i "$recording" >dump.out || fail "dump failed"
# Calls of other processes count too.
lost=$(attribute_lost syscalls:sys_exit_mmap syscall)
[ $(($(recorded mmap) + lost)) -ge "$made_mmap" ] ||
	fail "$(recorded mmap) recorded and $lost lost calls of mmap are fewer than the $made_mmap that were made"
expect_json ".completeness.lost_events == $(all_lost)"
expect_missed 1 1
let_end
