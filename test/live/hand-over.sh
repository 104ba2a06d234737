#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Memory that one thread maps and another releases: the table by thread, and which thread released whose memory.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case hand-over
expect_json '.releases | length == 4'
expect_json '([.thread_totals[].released_bytes] | add) == .freed_bytes and ([.releases[].bytes] | add) == .freed_bytes'
"$MMTRACE" report --no-pager --by thread -i "$recording" >report.txt || fail "report --by thread ended with status $?"
grep -q producer report.txt && grep -q consumer report.txt || {
	cat report.txt >&2
	fail "the text does not name the threads"
}

# In every grouping the rows add up to the total.
for by in stack function module file class process thread; do
	report_json --by $by
	expect_json '([.groups[].unfreed_bytes] | add) == .unfreed_bytes and .unfreed_bytes == 163840'
	case $by in
	stack | thread) ;;
	*) expect_json '.groups | all(.name | length > 0) and all(.frames == [])' ;;
	esac
done
report_json --by class
expect_json '.groups | length == 1 and .[0].name == "anon"'
report_json --by function
expect_json '.groups | length == 1 and .[0].name == "map_block (hand-over)"'
report_json --by module
expect_json '.groups | length == 1 and .[0].name == "hand-over"'
report_json --by file
expect_json '.groups | length == 1 and .[0].name == "[anon]"'
command_case hand-over
