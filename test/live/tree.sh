#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# An idle supervisor whose child leaks: without --tree, recorder and report warn that the child is missing, and the report
# does not say "no leak"; with --tree, or with the child's command name, the child's leak is found.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# start_supervisor: bash with a workload, $worker, which reads this script's pipe.
start_supervisor() {
	start_command bash -c '"$0" "${@}" <&0 & wait' "$workloads/leak-anon"
	worker=$(child_of "$pid")
	processes+=("$worker")
}

let_worker_end() {
	echo >&3
	wait "$pid" || fail "the supervisor ended with status $?"
}

start_supervisor
start_recording -p "$pid"
let_work
let_recorder_catch_up
stop_recording
expect_unrecorded_children "$pid" 1
grep -q "process $pid had 1 child when recording began, which is not in the recording: record with --tree" report.txt ||
	fail "the report does not say that the child is missing: $(cat report.txt)"
grep -q 'no memory call was recorded' report.txt || fail "nothing about an idle supervisor: $(cat report.txt)"
"$MMTRACE" pack -q -o packed.data "$recording" || fail "pack failed"
"$MMTRACE" report --json -i packed.data >packed.json || fail "the packed recording has no report"
expect_json '.completeness.warning_codes | index("unrecorded-children")' packed.json
let_worker_end

# With the child, which was attached to like the supervisor.
start_supervisor
start_recording --tree -p "$pid"
let_work
stop_recording
grep -q "^mmtrace record: --tree: 1 child process: $worker (leak-anon)\$" record.log || fail "no list of children: $(cat record.log)"
expect_all_children "$pid" "$worker"
expect_json ".processes | all(.checked) and any(.pid == $worker and .unfreed_bytes > 0)"
expect_workload_answer yes
let_worker_end

# By the command name only; an unknown name is refused, and so is an empty list from pidof.
start_supervisor
cp "$workloads/leak-anon" a-name-of-more-than-15-bytes
let_work
let_worker_end
start_command ./a-name-of-more-than-15-bytes
start_recording --comm a-name-of-more-than-15-bytes
let_work
stop_recording
grep -q "^mmtrace record: recording a-name-of-more- (pid $pid); Ctrl-C stops\$" record.log || fail "the process is not named: $(cat record.log)"
report_json
expect_true_report
expect_workload_answer yes
let_end
"$MMTRACE" record -o "$recording" --comm a-name-of-more-than-15-bytes 2>err.txt
[ $? = 2 ] && grep -q "no process has the command name 'a-name-of-more-than-15-bytes'" err.txt || fail "not refused: $(cat err.txt)"
"$MMTRACE" record -o "$recording" -p "" 2>err.txt
[ $? = 2 ] && grep -q 'the list is empty' err.txt || fail "an empty list is not refused: $(cat err.txt)"

# Two PIDs separated by a blank, as pidof prints them.
start_workload leak-anon
first=$pid
exec 4>&3
start_workload leak-anon
start_recording -p "$first $pid"
let_work
stop_recording
report_json
expect_json "[.processes[].pid] | sort == ([$first, $pid] | sort)"
let_end
exec 4>&-
