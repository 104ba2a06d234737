#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# A heap that grows while mmtrace attaches was there before, whether calls return before the first snapshot shows it or
# while its lines are read.
source "$SOURCE/test/live/support/recording.bash" || exit 2

# mapped_bytes: what the process has mapped now. It never unmaps anything.
mapped_bytes() {
	local pages rest
	read -r pages rest <"/proc/$pid/statm"
	echo $((pages * $(getconf PAGE_SIZE)))
}

need_perf
for pieces in 1 2000; do
	start_workload growing-heap "$pieces"
	for attempt in 1 2; do
		before=$(mapped_bytes)
		"$MMTRACE" record -q -p "$pid" --duration 200ms -o "$recording" || fail "record: status $?"
		after=$(mapped_bytes)
		"$MMTRACE" report --check --json -i "$recording" >report.json || fail "report --check: status $?"
		expect_true_report
		expect_json ".processes[0] | .before_bytes + .kernel_bytes >= $before and
			.before_bytes + .kernel_bytes + .unfreed_bytes <= $after"
	done
	kill -9 "$pid"
done
