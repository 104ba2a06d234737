#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A process that executes another program while recording ends: the pages of the new program never count for the memory of
# the old one, whose resident pages are then unknown. A program that makes no call has its final check all the same.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for attempt in 1 2 3 4; do
	"$MMTRACE" record -q --duration 200ms -o "$recording" -- "$workloads/exec-often" 2>record.log || [ $? -gt 128 ] ||
		fail "record: $(cat record.log)"
	report_json
	expect_json '[.groups[] | select(.unfreed_bytes == 16777216)] |
		all(.resident_bytes == null or .resident_bytes == .unfreed_bytes)'
	expect_json '.resident_bytes != null or all(.groups[]; .resident_bytes == null)'
done

start_command bash -c 'echo ready; read -r _; exec "$0"' "$workloads/no-calls"
start_recording -p "$pid"
echo >&3
runs_no_calls() {
	[ "$(cat "/proc/$pid/comm")" = no-calls ]
}
wait_until "the exec" runs_no_calls
stop_recording
report_json
expect_true_report
expect_json ".processes | length == 1 and all(.pid == $pid and .name == \"no-calls\" and .checked)"
kill -9 "$pid"
