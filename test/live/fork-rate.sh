#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A process that forks hundreds of times a second, even while recording stops: every living process in the report has a
# final map, and the check passes.
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
		kill -9 "$pid"
	done
done
