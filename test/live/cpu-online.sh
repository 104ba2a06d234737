#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A CPU that comes online while recording. Events of threads were waiting for it, whether it was there before or not. Events
# on CPUs are opened when it is seen, and what was done there before is said to be missing.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
cpu=/sys/devices/system/cpu/cpu1
[ "$(cat $cpu/online 2>/dev/null)" = 1 ] || skip "there is no CPU 1 that can be switched off"
# It comes back whatever becomes of this test.
setsid bash -c "sleep 60; echo 1 >$cpu/online" </dev/null >/dev/null 2>&1 3>&- &
guard=$!
trap 'echo 1 >$cpu/online; kill "$guard" 2>/dev/null; end_everything' EXIT
switch() {
	echo "$1" 2>/dev/null >$cpu/online || skip "CPU 1 cannot be switched"
}

# expect_missed COUNT STATUS: in the report; what the check of it ends with.
expect_missed() {
	report_json
	expect_json ".completeness.missed_cpus == $1 and .completeness.missed_threads == 0"
	expect_check "$2"
}

# work_there: calls made on CPU 1 alone.
work_there() {
	taskset -a -p -c 1 "$pid" >/dev/null || fail "nothing can run on CPU 1"
	let_work
	stop_recording
}
# All that the workload did is in it, and was done there.
expect_calls() {
	report_json -p "$pid"
	expect_true_report
	expect_workload_answer yes
	"$MMTRACE" dump -i "$recording" >dump.txt 2>dump.log || fail "dump: $(cat dump.log)"
	grep -q "^[0-9.]* $pid/[0-9]* \[001\] call event=syscalls:sys_exit_mmap " dump.txt || fail "nothing was seen on CPU 1"
	[ -z "$(command -v perf)" ] || perf script -i "$recording" >script.txt 2>script.log ||
		fail "perf does not read it: $(cat script.log)"
}
is_seen() {
	grep -q 'CPU 1 came online' record.log
}

# It was offline at the start.
start_workload leak-anon
switch 0
start_recording -p "$pid"
switch 1
work_there
expect_missed 0 0
expect_calls
let_end

# It goes and comes back.
start_workload leak-anon
start_recording -p "$pid"
switch 0
sleep 0.3
switch 1
work_there
expect_missed 0 0
expect_calls
let_end

# The same with events on CPUs, which are opened anew; twice, the second time for everybody.
for scope in cpus -a; do
	start_workload leak-anon
	[ "$scope" != -a ] || switch 0
	[ "$scope" = -a ] && start_recording -a || start_recording --scope cpus -p "$pid"
	[ "$scope" = -a ] || switch 0
	sleep 1.5
	switch 1
	wait_until "the CPU to be seen" is_seen
	work_there
	grep -q '1 CPU came online' record.log || fail "the summary does not say it: $(cat record.log)"
	expect_missed 1 1
	expect_calls
	let_end
done
