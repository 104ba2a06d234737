#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# Packages: perf:linux-perf
# With --exact-order every successful call has a lock record of its thread between the preceding call and its own exit;
# figures are those of any recording, and perf reads the file.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
start_workload busy
begin_recording -q -m 32M --exact-order -p "$pid"
let_run "$pid" 10
stop_recording
kill -9 "$pid"
report_json
expect_true_report
expect_json '.processes | length == 1 and .[0].checked'
expect_json '.events.mmap > 100 and .events.munmap > 100'
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
grep -q '^# attribute .*mmap_lock:mmap_lock_acquire_returned.* role lock' "$directory/dump.out" || fail "no lock attribute"
# Calls in flight when recording started have theirs before it: one for each thread.
awk '$4 == "lock" { locked[$2] = 1 }
	$4 == "call" && / = (0|0x[0-9a-f]+)( |$)/ { if (!locked[$2]) without++; else with++; locked[$2] = 0 }
	END { exit !(with > 200 && without <= 6) }' "$directory/dump.out" || fail "calls without a lock of their own"
[ "$(grep -o ' lock event=.* space=0x[0-9a-f]*' "$directory/dump.out" | sed 's/.*space=//' | sort -u | wc -l)" = 1 ] ||
	fail "one process, but not one address space"
# Without the option there are no such records.
command_case leak-anon
"$MMTRACE" dump -i "$recording" | grep -q ' lock event=' && fail "locks that were not asked for"
exit 0
