#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A target is killed, by a signal or by the OOM killer: what it held just before is reported.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
expect_recorded_end() {
	wait_until "record to end with its target" eval "! kill -0 $recorder"
	wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
	report_json
	expect_true_report
	expect_json ".processes | length == 1 and .[0].pid == $pid and .[0].ended"
	expect_workload_answer no
}

start_workload ends
start_recording -p "$pid"
let_work
{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null
expect_recorded_end

# The report begins with the signal, as long as the parent of the target does not wait for it, and since Linux 6.15 later, too.
(sleep 600 & exec sleep 600) &
parent=$!
processes+=("$parent")
has_child() {
	pid=$(child_of "$parent")
}
wait_until "the target to be there" has_child
start_recording -p "$pid"
kill -SEGV "$pid"
wait_until "record to end with its target" eval "! kill -0 $recorder"
wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
grep -q '; target was killed by SIGSEGV (Segmentation fault)$' record.log || fail "not how it ended: $(cat record.log)"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
sed -n 1p report.txt | grep -qE "^KILLED: sleep \\(pid $pid\\) was killed by SIGSEGV \\(Segmentation fault\\)" ||
	fail "the report does not begin with the target's end: $(head -3 report.txt)"
report_json
expect_json ".command_end | .pid == $pid and .signal == 11"

# Immediately, in a recording started by mmtrace: the command is killed, and the recorder says so.
"$MMTRACE" record -q -o "$recording" -- sh -c 'kill -9 $$'
[ $? = 137 ] || fail "the exit status of record does not show that the command was killed"

# A memory limit, if one can be set here: cgroup v2 or v1.
group= tries=0
make_group() {
	local parent
	for parent in /sys/fs/cgroup /sys/fs/cgroup/unified; do
		grep -qw memory "$parent/cgroup.subtree_control" 2>/dev/null || continue
		group=$parent/mmtrace-test-$$
		mkdir "$group" 2>/dev/null && echo 64M >"$group/memory.max" && return
	done
	[ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ] || return
	group=/sys/fs/cgroup/memory/mmtrace-test-$$
	mkdir "$group" 2>/dev/null && echo 64M >"$group/memory.limit_in_bytes"
}
trap 'end_everything; [ ! -d "$group" ] || until rmdir "$group" 2>/dev/null || ((++tries == 100)); do sleep 0.1; done' EXIT
make_group || skip "no control group with a memory limit can be made here: running out of memory is not tested"
[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
start_command sh -c 'echo $$ >"$1" && exec "$2" 1' sh "$group/cgroup.procs" "$workloads/ends"
start_recording -p "$pid"
let_work
echo >&3
wait "$pid" 2>/dev/null
[ $? = 137 ] || fail "the workload was not killed at its memory limit"
expect_recorded_end
