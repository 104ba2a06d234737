#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# --no-inherit leaves out children, but no thread of the requested processes, and figures stay correct.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
"$MMTRACE" record --no-inherit -o "$recording" -- "$workloads/leak-fork" --exit \
	>"$directory/workload.out" 2>"$directory/record.log" || fail "$(cat "$directory/record.log")"
report_json
expect_true_report
expect_json '.processes | length == 1'
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
grep -q ' fork event=' "$directory/dump.out" && fail "the recording reports children"
[ "$(awk '/ call event=/ { print $2 }' "$directory/dump.out" | sort -u | wc -l)" = 1 ] || fail "children were recorded"
# The same program with its children: without the option they are recorded.
command_case leak-fork
expect_json '.processes | length > 1'

start_workload leak-thread
record_work --no-inherit -p "$pid"
expect_true_report
expect_json '.processes | length == 1 and all(.checked)'
expect_workload_answer yes
