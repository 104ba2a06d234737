#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A process that forks hundreds of times a second, even while recording stops: every living process in the report has a
# final map, and the check passes. Children that are forked while recording begins wait for their first snapshot, for which
# there is a time budget: without it recording would begin minutes late.
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
			END { for (pid in forked) { later += forked[pid] > first; late += pid in begun && forked[pid] > first }
				print late + 0 " of " later }')
		[[ $late == "0 of "[1-9]* ]] || fail "children that were read as if they had been there: $late"
		kill -9 "$pid"
	done
done
