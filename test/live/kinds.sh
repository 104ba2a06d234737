#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# One short recording of every kind finds the same leak, to show whether recording works on a kernel.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

use_own_group
for kind in "" "${cpu_scopes[@]/#/--scope }"; do
	read -r -a case_options <<<"$kind"
	attach_case leak-thread
	command_case leak-thread
done
case_options=()

# expect_leak COUNT: this many calls of the leak have not been released.
expect_leak() {
	expect_json "[.groups[] | select(any(.frames[]; .function == \"leak_inner\")) | .unfreed_count] | add == $1"
}

# The packed recording gives the same report without the ELF files.
command_case leak-anon
expect_leak 10
"$MMTRACE" pack -q -i "$recording" -o packed.data || fail "pack ended with status $?"
mv packed.data "$recording"
report_json
expect_leak 10

"$MMTRACE" record -q -o - -- sh -c 'exec "$0" --exit >/dev/null' "$workloads/leak-anon" |
	"$MMTRACE" report --json -i - >report.json || fail "record -o - | report -i - ended with status $?"
expect_leak 10

start_workload leak-anon
record_work --lean -p "$pid"
expect_true_report
expect_workload_answer yes

for stacks in fp none; do
	"$MMTRACE" record -q -g $stacks -o "$recording" -- "$workloads/leak-anon" --exit >/dev/null ||
		fail "record -g $stacks ended with status $?"
	report_json
	expect_true_report
	expect_json '.unfreed_bytes >= 40960'
done

start_workload leak-anon
start_recording -a -m 64M
let_work
stop_recording
report_json -p "$pid"
let_end
expect_workload_answer yes

unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$unified/mmtrace-kinds-$$
mkdir "$group" 2>/dev/null || skip "no control group can be made here (all other kinds passed)"
remove_group() {
	wait_until "the control group to be empty" rmdir "$group"
}
trap 'end_everything; remove_group' EXIT
start_workload leak-anon
echo "$pid" >"$group/cgroup.procs" || fail "a process cannot be put into a control group"
record_work --cgroup "$group"
expect_true_report
expect_workload_answer yes
