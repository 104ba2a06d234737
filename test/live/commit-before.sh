#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Memory made accessible during recording counts for the call that did it, separately if the memory was reserved before.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case commit-before
expect_check 0
# A call that only makes memory accessible has a stack too: five times five, and one more.
expect_json '.completeness | .complete_stacks + .doubtful_stacks + .truncated_stacks == (.stacks_by_end | add)'
expect_json '(.completeness.stacks_by_end | add) == ([.groups[].allocated_count] | add) + 11'
# The call that makes memory accessible points to the call that reserved it, if known.
expect_json '(.groups[] | select(any(.frames[]; .function == "reserve_area")) | .id) as $reserved |
	[.groups[] | select(any(.frames[]; .function == "commit_piece") and .committed_bytes > 0)] | length == 1 and .[0].reserved_by == $reserved'
# It maps nothing itself, so it has no threads, but it names its process.
expect_json "[.groups[] | select(.committed_bytes + .committed_before_bytes > 0 and .unfreed_count == 0)] |
	length > 0 and all(.threads == [] and .pids == [$pid])"
# Formats that show only what was mapped in the recording name the bytes that they leave out.
left_out=$(jq .committed_before_bytes "$directory/report.json")
for format in firefox perfetto; do
	"$MMTRACE" export -f "$format" "$recording" >"$directory/export" 2>"$directory/export.log" || fail "export -f $format"
	said=$(sed -n 's/.*: it leaves out \([0-9.]*\) MiB that was mapped earlier.*/\1/p' "$directory/export.log")
	# A hundredth of a MiB is lost to rounding.
	jq -en --argjson said "${said:-0}" --argjson bytes "$left_out" '$said * 1048576 - $bytes | fabs <= 10486' >/dev/null ||
		{ cat "$directory/export.log"; fail "export -f $format does not say that it leaves out $left_out bytes"; }
done
"$MMTRACE" export -f pprof -o "$directory/export.gz" "$recording" 2>"$directory/export.log"
[ ! -s "$directory/export.log" ] || fail "export -f pprof warns"
