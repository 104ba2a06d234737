#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Stacks without frame pointers are complete if they fit into the dump, and otherwise reported as truncated.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# complete_stacks FILTER: of every leak of the workload.
every_leak() {
	expect_json "[.groups[] | select(any(.frames[]; .function == \"leak_at_bottom\")) | $1] | length > 0 and all"
}

attach_case deep-stack 12
every_leak '.stack_end == "entry" and ([.frames[] | select(.function == "descend")] | length == 12)'
every_leak '[.frames[] | select(.inlined | not) | .function] | index("main") == 14'

# About 300 bytes a frame: much larger than the default dump.
case_options=(-v)
attach_case deep-stack 400
every_leak '.stack_end != "entry" and ([.frames[] | select(.function == "main")] | length == 0)'

# No larger dump helps, and the report does not say so.
"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt"
tr -s ' \n' '  ' <"$directory/report.txt" | grep -qF 'or behind a larger array or alloca(3) of one function' ||
	fail "the report does not say what lies beyond the largest dump: $(cat "$directory/report.txt")"

grep -qE '[0-9]+ stack dumps?; 0 lost; [1-9][0-9,]* of stacks larger than a dump' "$directory/record.log" ||
	fail "the summary does not mention stacks larger than their dump"

# ... but not larger than the largest dump.
start_workload deep-stack 100
record_work -v -p "$pid" --call-graph dwarf,65280
expect_true_report
expect_workload_answer yes
every_leak '.stack_end == "entry" and ([.frames[] | select(.function == "descend")] | length == 100)'
! grep -q 'larger than a dump' "$directory/record.log" || fail "the summary reports larger stacks, but there are none"

# Without stacks, the figures are still reported.
start_workload deep-stack 12
record_work -p "$pid" --call-graph none
expect_true_report
expect_json '.unfreed_bytes == 49152 and all(.groups[]; .stack_end != "entry" and all(.frames[]; .function != "main"))'
