#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# With tiny rings events are lost; every place says so, and says how many.
source "$SOURCE/test/live/support/recording.bash"

need_perf
# Somebody keeps the processor from the recorder, so that the rings run over.
lose_events() {
	start_workload noleak 300000
	start_recording -m 8K -p "$pid"
	kill -STOP "$recorder"
	let_work
	kill -CONT "$recorder"
	stop_recording
	let_end
}

lose_events
grep -qiE '\b[1-9][0-9,]* (events )?lost|lost [1-9]' "$directory/record.log" || {
	cat "$directory/record.log" >&2
	fail "record does not say that events were lost"
}
report_json
expect_json '.completeness.lost_events > 0'
"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report ended with status $?"
head -15 "$directory/report.txt" | grep -i lost | grep -vq '\b0 lost' || {
	head -15 "$directory/report.txt" >&2
	fail "the first screen does not say that events were lost"
}
# As many as the kernel counted; a recording that lost calls does not pass the check, whatever was repaired.
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
lost=$(awk '/^# attribute/ && / role (truth|new-task|side-band|lock),/ { sum += $NF } END { print sum }' "$directory/dump.out")
expect_json ".completeness.lost_events == $lost"
"$MMTRACE" report --check --no-pager -i "$recording" >/dev/null 2>&1
status=$?
[ $status = 1 ] || fail "--check of a recording with losses: status $status"
