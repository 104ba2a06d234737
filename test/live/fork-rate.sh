#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A process that forks hundreds of times a second, even while recording stops: every living process in the report has a
# final map, and the check passes. The recorder does not read the maps of children as those of a process that was there,
# without a budget: recording would begin minutes late.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for milliseconds in 1 300; do
	for round in 1 2 3; do
		start_workload fork-rate $milliseconds
		start_recording -p "$pid"
		let_work
		stop_recording
		report_json
		expect_true_report
		expect_json '.processes | length > 20'
		expect_json '.processes | all(.checked or .ended)'
		expect_check 0
		late=$("$MMTRACE" dump -i "$recording" | awk '{ split($2, ids, "/") }
			$4 == "fork" { sub("pid=", "", $6); forked[$6] = $1 }
			$4 == "snapshot-begin" && /snapshot=start/ { first = first ? first : $1; begun[ids[1]] = 1 }
			END { for (pid in begun) { late += forked[pid] > first; count++ }; print late + 0 " of " count }')
		[[ $late == "0 of "[1-9]* ]] || fail "first snapshots of children: $late"
		kill -9 "$pid"
	done
done
