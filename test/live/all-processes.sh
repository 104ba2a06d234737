#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# -a records every process, --cgroup those of a control group: existing ones, those that join, and children.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/losses.bash" || exit 2

need_perf

# The workload's process is in the report, with its final check, and so are others.
expect_among_others() {
	report_json -p "$pid"
	expect_json '.processes | length == 1 and all(.checked and .mismatch_bytes == 0)'
	expect_workload_answer yes
	report_json
	expect_json ".processes | length > 1 and (map(.pid == $pid) | any) and (map(.pid == $recorder) | any | not)"
}

start_workload leak-thread
start_recording -a -m 64M
let_work
stop_recording
let_end
expect_json '.completeness.lost_events == 0' <("$MMTRACE" report --json -i "$recording")
expect_among_others
"$MMTRACE" report --no-pager --by process --limit 0 -i "$recording" >by-process.txt || fail "no report by process"
grep -q leak-thread by-process.txt || fail "the workload is not in the report by process"

# With a command: records while it runs, passes on its status, and includes a process that existed before.
start_workload sleepers 1
"$MMTRACE" record -a -m 64M -o "$recording" -- bash -c "$workloads/leak-anon --exit; exit 7" >workload.out 2>record.log
[ $? = 7 ] || fail "record -a -- COMMAND did not end with the command's status: $(cat record.log)"
report_json
expect_json ".processes | (map(.pid == $pid) | any) and (map(.name == \"bash\" and .ended) | any)"
kill -9 "$pid"

# A process that the shell started before it became the recorder is not a helper of the recorder.
bash -c '"$0" 600 >/dev/null 2>&1 & echo "$!"; exec "$1" record -a -m 64M -o "$2" --duration 200ms 2>record.log' \
	"$(command -v sleep)" "$MMTRACE" "$recording" >child.out || fail "record -a failed: $(cat record.log)"
pid=$(cat child.out)
processes+=("$pid")
report_json
expect_json ".processes | map(.pid == $pid) | any"
kill -9 "$pid"

# A control group: one process in it that forks, one that joins later and executes a program there, and one outside.
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=mmtrace-test-$$
mkdir "$unified/$group" "$unified/$group/below" 2>/dev/null || skip "no control group can be made here (-a passed)"
# A killed process stays in the group for a moment.
remove_group() {
	local i
	for ((i = 0; i < 100; i++)); do
		rmdir "$unified/$group/"{other,below,short-lived} "$unified/$group" 2>/dev/null
		[ -e "$unified/$group" ] || return
		sleep 0.1
	done
}
trap 'end_everything; remove_group' EXIT

"$workloads/fork-rate" 300 </dev/null >outside.out &
outside=$!
processes+=("$outside")
start_workload leak-fork
echo "$pid" >"$unified/$group/below/cgroup.procs" || fail "a process cannot be put into a control group"
for by in "$unified/$group" "0::/$group" "$group"; do
	start_recording --cgroup "$by"
	[ "$by" != "$group" ] || let_work
	(echo "$BASHPID" >"$unified/$group/cgroup.procs" && exec "$workloads/leak-anon" --exit) >/dev/null
	stop_recording
	report_json
	expect_true_report
	expect_json ".processes | (map(.pid == $pid and .checked) | any) and (map(.pid == $outside) | any | not)"
	expect_json '.processes | map(select(.name == "leak-anon" and .ended)) | length == 1'
	expect_json '.processes | all(.name != "fork-rate")'
done
report_json -p "$(jq -r '[.processes[] | select(.name == "leak-fork") | .pid] | join(",")' report.json)"
let_end
expect_workload_answer yes

# A process that joins the group, or calls exec there, while the last snapshots are taken is in the report completely or not
# at all.
(
	while :; do
		(echo "$BASHPID" >"$unified/$group/below/cgroup.procs" && exec sleep 1) &
		sleep 0.005
	done
) &
joiners=$!
processes+=("$joiners")
have_joined() {
	[ "$(wc -l <"$unified/$group/below/cgroup.procs")" -gt 5 ]
}
for round in 1 2 3; do
	wait_until "some processes to join" have_joined
	start_recording --cgroup "$group"
	stop_recording
	report_json
	expect_true_report
	expect_json '.processes | length > 5 and all(.ended or (.checked and .name != ""))'
	expect_check 0
done
{ kill -9 "$joiners" && wait "$joiners"; } 2>/dev/null
wait_until "the processes that joined to end" eval "! grep -q . '$unified/$group/below/cgroup.procs'"

# With a command outside the group, which decides when and how recording ends; it joins the group if it wants to be
# recorded.
"$MMTRACE" record --cgroup "$group" -o "$recording" -- "$workloads/leak-anon" --exit >workload.out 2>record.log ||
	fail "record --cgroup -- COMMAND ended with $?: $(cat record.log)"
report_json
expect_json '.processes | all(.name != "leak-anon")'
expect_true_report
"$MMTRACE" record --cgroup "$group" -o "$recording" -- \
	bash -c 'echo $$ >"$0/cgroup.procs"; "$1" --exit; exit 7' "$unified/$group/below" "$workloads/leak-anon" \
	>workload.out 2>record.log
[ $? = 7 ] || fail "record --cgroup -- COMMAND did not end with the command's status: $(cat record.log)"
report_json
expect_json '.processes | map(select(.name == "leak-anon" and .ended)) | length == 1'
expect_true_report

# The recorder reports processes that leave the group. A process that exits has not left.
start_workload sleepers 1
echo "$pid" >"$unified/$group/cgroup.procs"
start_recording --cgroup "$group"
"$workloads/leak-anon" --exit >/dev/null
stop_recording
report_json
expect_json '.completeness.left_processes == 0'
expect_check 0
start_recording --cgroup "$group"
echo "$pid" >"$unified/cgroup.procs"
stop_recording
grep -q '1 process left the control group' record.log || fail "the summary does not say which process left: $(cat record.log)"
report_json
expect_json '.completeness.left_processes == 1'
expect_check 1
kill -9 "$pid"

# Recording ends when the group is removed: another one of this name would not be recorded.
mkdir "$unified/$group/short-lived" || fail "no control group that will be removed"
start_recording --cgroup "$group/short-lived"
rmdir "$unified/$group/short-lived" || fail "the group is still in use"
wait_until "the recorder to end" eval '! lives "$recorder"'
wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
grep -q 'target ended' record.log || fail "the summary does not say why it ended: $(cat record.log)"

# With --scope cgroup, a target that is moved is recorded in its new group or, if that contains the first one, on every CPU.
# Each call after that is recorded once.
mkdir "$unified/$group/other" || fail "no other control group"
for to in other .; do
	start_workload leak-anon
	echo "$pid" >"$unified/$group/below/cgroup.procs"
	start_recording --scope cgroup -p "$pid"
	echo "$pid" >"$unified/$group/$to/cgroup.procs"
	now="in 2 control groups"
	[ $to = other ] || now="on every CPU, which slows down other processes"
	wait_until "the recorder to follow to $to" grep -q "process $pid left the control group: .*; events are now $now" record.log
	let_work
	stop_recording
	report_json
	let_end
	expect_workload_answer yes
	expect_json ".completeness.left_processes == 1 and (.processes | length == 1 and .[0].pid == $pid)"
	expect_true_report
done
# A child that it forks before the recorder sees the move is recorded from then on, but no child of a child that is not
# recorded. The old group may be gone by then.
mkdir "$unified/$group/short-lived" || fail "no control group that will be removed"
start_command bash -c '{ until [ -e go ]; do sleep 0.01; done; sleep 601; :; } &
	echo ready; read -r _; sleep 600 & echo child; read -r _; kill $!'
before=$(pgrep -P "$pid")
echo "$pid" >"$unified/$group/short-lived/cgroup.procs"
start_recording --scope cgroup -p "$pid"
stop_recorder
touch go
wait_until "the unrecorded child to fork" pgrep -P "$before" -f 'sleep 601'
go_on_until child
moved=$(cat "$unified/$group/short-lived/cgroup.procs")
for process in $moved; do
	echo "$process" >"$unified/$group/other/cgroup.procs"
done
rmdir "$unified/$group/short-lived" || fail "the group is still in use"
kill -CONT "$recorder"
wait_until "the recorder to follow" grep -q "process $pid left the control group" record.log
let_recorder_catch_up
stop_recording
report_json
expect_json ".processes | length == 2 and all(.checked) and all(.pid != $(pgrep -P "$before"))"
pkill -P "$before"
let_end

# The groups of several targets may contain one another.
sleep 600 &
inner=$!
sleep 600 &
outer=$!
processes+=("$inner" "$outer")
echo "$inner" >"$unified/$group/below/cgroup.procs"
echo "$outer" >"$unified/$group/cgroup.procs"
for pids in "$inner,$outer" "$outer,$inner"; do
	"$MMTRACE" record -q -o "$recording" --scope cgroup --duration 100ms -p "$pids" 2>record.log ||
		fail "groups in one another, -p $pids: $(cat record.log)"
	report_json
	expect_json '.processes | length == 2 and all(.checked)'
done
kill -9 "$inner" "$outer"

# The root group is refused. Other groups have this file.
if [ ! -e "$unified/cgroup.events" ]; then
	start_workload sleepers 1
	echo "$pid" >"$unified/cgroup.procs"
	"$MMTRACE" record -o no.data --scope cgroup -p "$pid" 2>wrong.log
	[ $? = 2 ] && grep -q "process $pid is in the control group /, which has every process: use --scope cpus" wrong.log ||
		fail "the root group: $(cat wrong.log)"
	kill -9 "$pid"
fi

# Invalid combinations.
for wrong in "-a -p $pid" "--cgroup $group -a" "-a --scope threads" "-a --scope cgroup"; do
	# shellcheck disable=SC2086
	"$MMTRACE" record -o no.data $wrong 2>wrong.log
	[ $? = 2 ] || fail "record $wrong is not refused"
done
"$MMTRACE" record -o no.data --cgroup no/such/group 2>wrong.log
[ $? = 2 ] && grep -q "no control group no/such/group: there is no cgroup.procs in no/such/group, .*$unified/no/such/group" wrong.log ||
	fail "an unknown group: $(cat wrong.log)"
# Perf events do not know the groups of version 1, except those of perf_event.
first_version=$(awk '$3 == "cgroup" && $4 !~ /perf_event/ { print $2; exit }' /proc/mounts)
if [ -n "$first_version" ] && mkdir "$first_version/$group-1"; then
	for wrong in "$first_version/$group-1" "/$group-1"; do
		"$MMTRACE" record -o no.data --cgroup "$wrong" 2>wrong.log
		[ $? = 2 ] && grep -qF "$first_version/$group-1 is of a version 1 hierarchy that perf events cannot use" wrong.log &&
			grep -qF -- "-p \"\$(paste -sd, $first_version/$group-1/cgroup.procs)\"" wrong.log || fail "$wrong: $(cat wrong.log)"
	done
	rmdir "$first_version/$group-1"
fi
