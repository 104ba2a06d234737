#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# With --check-exit every process of a command is checked when it exits, however short its life, and behaves as it does
# without the option.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
case_options=(--check-exit)
for workload in leak-anon leak-thread leak-fork leak-exec thread-exit; do
	command_case $workload
	expect_json '.processes | length >= 1 and all(.ended and .checked and .mismatch_bytes == 0)'
	expect_json '.processes[0] | .checked_before_exec | not'
	expect_check 0
done
command_case leak-anon
expect_json '.processes[0] | .unfreed_bytes + .before_bytes + .kernel_bytes == .compared_bytes and .unverifiable_bytes == 0'

# Children of a shell, each of which ends at once.
"$MMTRACE" record -q --check-exit -o "$recording" -- sh -c 'for i in 1 2 3; do ls / | sort; done >/dev/null; exit 3'
status=$?
[ $status = 3 ] || fail "the command's status is 3, not $status"
report_json
expect_json '.processes | length >= 7 and all(.ended and .checked and .mismatch_bytes == 0)'

# Signals are delivered: fatal ones, handled ones and stopping ones.
"$MMTRACE" record -q --check-exit -o "$recording" -- bash -c 'trap "exit 5" USR1; (kill -STOP $$; kill -CONT $$; kill -USR1 $$) & wait'
status=$?
[ $status = 5 ] || fail "a caught signal: status $status"
report_json
expect_json '.processes | all(.ended)'
"$MMTRACE" record -q --check-exit -o "$recording" -- sh -c 'kill -TERM $$'
status=$?
[ $status = 143 ] || fail "a signal that ends it: status $status"

# A recorder that stops detaches from all processes; a program that cannot be executed has no process.
begin_command --check-exit -- "$workloads/leak-anon"
wait_until "the command to be ready" workload_printed ready
let_work
stop_recording
report_json
expect_true_report
expect_check 0
"$MMTRACE" record -q --check-exit -o "$recording" -- "$directory/nothing" 2>"$directory/err" && fail "nothing was run"
[ "$(wc -l <"$directory/err")" = 1 ] || fail "not one line: $(cat "$directory/err")"
"$MMTRACE" record -q --check-exit -o "$recording" -p $$ 2>"$directory/err"
status=$?
[ $status = 2 ] || fail "--check-exit without a command: status $status"
