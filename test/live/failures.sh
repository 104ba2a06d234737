#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Failed calls add no bytes; they are counted by stack, with the requested size.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case failures
expect_check 0
expect_json '.failed_calls == 570 and ([.failures[].count] | add) == 570'
expect_json '[.failures[].count] | . == (sort | reverse)'
expect_json '[.failures[] | select(.limit) | [.limit, .count]] | sort == [["MemTotal+SwapTotal", 300], ["RLIMIT_AS", 200]]'
expect_json '. as $report | all(.failures[]; .first_ns <= .last_ns and .first_ns >= $report.start_ns and .last_ns <= $report.end_ns)'
"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report ended with status $?"
grep -q ENOMEM "$directory/report.txt" || {
	cat "$directory/report.txt" >&2
	fail "the text does not show the failures"
}
attach_case map-fixed
expect_json '.failures == []'
