#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# With --snapshot-interval a busy process is checked during recording, and a process that ends normally is checked too.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
dump_and_count() {
	"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
	readings=$(grep -c " snapshot-begin .*snapshot=interval" "$directory/dump.out")
	ends=$(grep -c " snapshot-end .*snapshot=interval" "$directory/dump.out")
}

# Request a check during recording. A dump of all that a busy process has done meanwhile would take longer each time.
has_readings() {
	[ "$("$MMTRACE" dump -i "$recording" | grep -m "$1" -c " snapshot-end .*snapshot=interval")" -ge "$1" ]
}

start_workload busy
# Packing would compete with four busy threads.
begin_recording --raw -q -m 64M --snapshot-interval 100ms -p "$pid"
wait_until "readings during recording" has_readings 2
stop_recording
report_json
expect_true_report
# A check during recording must not reconcile a call that was still in flight.
expect_json '.processes[0] | .checked and .reconciled_bytes == 0'
dump_and_count
# No more snapshots than requested; fewer on a loaded machine.
milliseconds=$(jq '(.end_ns - .start_ns) / 1000000 | floor' report.json)
[ "$readings" -ge 2 ] && [ "$readings" -le $((milliseconds / 100)) ] ||
	fail "$readings readings in $milliseconds ms, one each 100 ms"
[ "$readings" = "$ends" ] || fail "$readings readings, but $ends ends of such"
# The recording's clock advances between them, because the recorder reads calls between snapshots.
"$MMTRACE" record --raw -q --snapshot-interval 0 --duration 300ms -p "$pid" -o "$recording" || fail "record: status $?"
dump_and_count
[ "$readings" = 0 ] || fail "$readings readings although none were asked for"
kill -9 "$pid"

# The process ends normally: its last snapshot serves as the check.
start_workload leak-anon
start_recording --snapshot-interval 50ms -p "$pid"
let_work
wait_until "readings before it ends" has_readings 2
let_end
wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
dump_and_count
[ "$ends" -ge 2 ] || fail "only $ends readings before it ended"
report_json
expect_true_report
expect_json '.processes | length == 1 and .[0].ended'
expect_workload_answer no
"$MMTRACE" report --check -i "$recording" >/dev/null 2>"$directory/check.log" ||
	fail "the check of a process that ended: status $?: $(cat "$directory/check.log")"
expect_json '.start_ns as $began | .end_ns as $stopped | .processes[0] |
	.checked and .mismatch_bytes == 0 and .checked_ns > $began and .checked_ns < $stopped'
"$MMTRACE" report --no-pager -i "$recording" | grep -q "after the start, .* before it ended: " ||
	fail "the text does not say when the process was checked"
