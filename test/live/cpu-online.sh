#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# Packages: perf:linux-perf
# A CPU comes online during recording. Per-thread events follow the threads there if it was online at the start. If not, the
# recording says that its events are missing. The kernel closes per-CPU events of a CPU that goes offline, with the same result.
source "$SOURCE/test/live/support/recording.bash" || exit 2

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
# The CPU was offline at the start.
start_workload leak-anon
switch 0
start_recording -p "$pid"
switch 1
wait_until "the recorder to see the CPU" grep -q 'CPU 1 came online' record.log
work_there
expect_missed 1 1
let_end

# The CPU goes offline and comes back.
start_workload leak-anon
start_recording -p "$pid"
switch 0
let_recorder_catch_up
switch 1
wait_until "the recorder to see the CPU" grep -q 'CPU 1 came online during recording: its page faults are' record.log
work_there
expect_missed 0 0
expect_calls
let_end

# The same with per-CPU events; at last with -a.
use_own_group
for scope in "${cpu_scopes[@]}" -a; do
	start_workload leak-anon
	[ "$scope" != -a ] || switch 0
	[ "$scope" = -a ] && start_recording -a || start_recording --scope $scope -p "$pid"
	[ "$scope" = -a ] || switch 0
	let_recorder_catch_up
	switch 1
	wait_until "the recorder to see the CPU" grep -q 'CPU 1 came online' record.log
	work_there
	grep -q '1 CPU came online' record.log || fail "the summary does not say so: $(cat record.log)"
	expect_missed 1 1
	let_end
done
