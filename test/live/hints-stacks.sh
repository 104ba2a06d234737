#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# The report's hints on truncated stacks help: larger dumps, and call graphs if none were recorded.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
build_program gcc -o program "${stack_options[@]}" "$stack_sources/program.c" "$stage_source" -pthread
# shown_after OPTIONS...: report a recording made with these options; the second time its stacks are complete.
shown_after() {
	"$MMTRACE" record -q -m 64M "$@" -o "$recording" -- ./program --exit 10 >workload.out || fail "record $* ended with status $?"
	report_json
	"$MMTRACE" report --no-pager --stacks all --limit 0 -i "$recording" >shown.txt || fail "report"
}
expect_advice() {
	grep -qF -e "$1" shown.txt || fail "not advised: $1: $(tail -5 shown.txt)"
}
shown_after -g dwarf,256
expect_advice 'dump exhausted: record with --call-graph dwarf,65280'
shown_after -g fp
expect_advice 'record with --call-graph dwarf.'
shown_after -g none
expect_advice 'no stack: record with a call graph (--call-graph auto).'
shown_after -g dwarf,65280
expect_json '.completeness | .truncated_stacks == 0 and .doubtful_stacks == 0'
grep -q 'record with' shown.txt && fail "advised: $(grep 'record with' shown.txt)"
exit 0
