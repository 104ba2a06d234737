#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# If some of the requested processes have ended, the others are recorded, with a warning.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
use_own_group
sleep 0 &
gone=$!
wait "$gone"
sleep 0 &
gone_too=$!
wait "$gone_too"
start_parent_of_zombie

# expect_left_out PATTERN OPTION...: the workload is recorded to its end, and one warning names the missing processes.
expect_left_out() {
	local pattern=$1
	shift
	start_workload leak-thread
	start_recording "${@//PID/$pid}"
	let_work
	stop_recording
	let_end
	[ "$(grep -c warning record.log)" = 1 ] && grep -q "warning: $pattern: only the others are recorded" record.log ||
		fail "no warning of '$pattern', or more than that: $(cat record.log)"
	grep -q ', 1 process;' record.log || fail "not one process is recorded: $(cat record.log)"
	report_json
	expect_true_report
	expect_json ".processes | length == 1 and .[0].pid == $pid and .[0].checked"
	expect_check 0
	expect_workload_answer yes
}
expect_left_out "no process $gone" -p "$gone,PID"
for scope in "${cpu_scopes[@]}"; do
	expect_left_out "no process $gone" -p PID -p "$gone" --scope $scope
done
expect_left_out "process $zombie has ended already (zombie)" -p "PID,$zombie"
expect_left_out "no process $gone, nor 2 more of the requested ones" -p "$gone,$zombie,PID,$gone_too"
# The root process of a tree may have ended too.
expect_left_out "no process $gone" --tree -p "$gone,PID"
expect_left_out "process $zombie has ended already (zombie)" --tree -p "PID,$zombie"

# If none is left, the recording is refused, as for a single PID.
for options in "-p $gone" "-p $gone,$gone_too" \
	"${cpu_scopes[@]/#/-p $gone,$gone_too --scope }" "--tree -p $gone,$gone_too"; do
	# shellcheck disable=SC2086
	expect_refusal 2 "no process $gone$" "$MMTRACE" record -o "$directory/none.data" $options
done
# Invalid targets are refused even if others exist.
expect_refusal 2 'is the recorder itself' bash -c 'exec "$0" record -o none.data -p $1,$$' "$MMTRACE" "$parent"
[ ! -e none.data ] || fail "a recording of nothing is left"

# A terminal shows only the living ones.
script -qec "'$MMTRACE' record -o terminal.data -p $gone,$parent --duration 100ms" /dev/null >terminal.log 2>&1 ||
	fail "record on a terminal: $(cat terminal.log)"
grep -q "recording sleep (pid $parent); Ctrl-C stops" terminal.log || fail "on a terminal: $(cat terminal.log)"
