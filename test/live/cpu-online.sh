#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A CPU that comes online while recording has no events: that is said. One that goes and comes back has its events, where
# they are those of threads.
source "$SOURCE/test/live/support/recording.bash"

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

start_workload leak-anon
switch 0
start_recording -p "$pid"
switch 1
stop_recording
grep -q '1 CPU came online' record.log || fail "the summary does not say it: $(cat record.log)"
expect_missed 1 1

start_recording --scope cpus -p "$pid"
switch 0
sleep 1.5 # it is looked at once a second
switch 1
stop_recording
expect_missed 1 1

start_recording -p "$pid"
switch 0
sleep 1.5
switch 1
taskset -a -p -c 1 "$pid" >/dev/null
let_work
stop_recording
let_end
expect_missed 0 0
expect_workload_answer yes
