#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A recorder that was killed leaves a file that reports what it holds and says that it is incomplete.
source "$SOURCE/test/live/support/recording.bash"

need_perf
start_workload leak-anon 200 4096
start_recording -p "$pid"
let_work
sleep 1
{ kill -9 "$recorder" && wait "$recorder"; } 2>/dev/null
let_end
report_json
expect_json '.completeness.incomplete'
expect_json '.completeness.lost_events == 0'
expect_workload_answer no
"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" 2>&1 || fail "report ended with status $?"
grep -qi incomplete "$directory/report.txt" || fail "the report does not say that it is incomplete"
"$MMTRACE" dump -i "$recording" >"$directory/dump.txt" 2>"$directory/dump.log" || fail "dump: $(cat "$directory/dump.log")"
[ "$(grep -c ' call event=syscalls:sys_exit_mmap ' "$directory/dump.txt")" = 200 ] || fail "dump does not show the 200 calls"
