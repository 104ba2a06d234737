#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Each step of --every shows what --to that time shows, to the byte, in sums and stacks; the last step is the whole report.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# expect_steps OPTION...: of $recording, in 13 steps and a remainder.
expect_steps() {
	local start end every count=0 to figures
	report_json "$@"
	start=$(jq .from_ns report.json) end=$(jq .to_ns report.json)
	expect_json 'has("steps") | not'
	every=$(((end - start) * 10 / 135))
	[ $every -gt 0 ] || fail "the recording has no time"
	report_json --every "$(awk "BEGIN { printf \"%.6fms\", $every / 1000000 }")" "$@"
	mv report.json every.json
	jq -e "(.steps | length) == 14 and .every_ns == $every and .steps[13].to_ns == $end" every.json >/dev/null ||
		fail "$*: the steps are others: $(jq -c '[.every_ns, [.steps[].to_ns]]' every.json), every $every to $end"
	jq -e '.steps[-1] as $last | [$last.unfreed_bytes, $last.committed_bytes, $last.reserved_bytes, $last.resident_bytes] ==
		[.unfreed_bytes, .committed_bytes, .reserved_bytes, .resident_bytes]' every.json >/dev/null ||
		fail "$*: the last step is not the report"
	jq -e 'all(.groups[]; .step_bytes[-1] == .unfreed_bytes and (.step_bytes | length) == 14)' every.json >/dev/null ||
		fail "$*: the last step of a stack is not its figure"
	while read -r to figures; do
		[ "$to" = $((start + every * (count + 1))) ] || fail "$*: step $count is at $to"
		report_json --to "@$to" "$@"
		jq -r '"\(.unfreed_bytes) \(.committed_bytes) \(.reserved_bytes)"' report.json >at.txt
		[ "$figures" = "$(cat at.txt)" ] || fail "$*: step $count has $figures, --to has $(cat at.txt)"
		# A stack is identified by its frames; the same frames have different addresses only in different processes.
		jq -c '[.groups[] | select(.unfreed_bytes > 0) | [(.frames | map([.function, .module_offset])), .unfreed_bytes]] |
			sort' report.json >at-groups.json
		jq -c "[.groups[] | select(.step_bytes[$count] > 0) |
			[(.frames | map([.function, .module_offset])), .step_bytes[$count]]] | sort" every.json >groups.json
		cmp -s at-groups.json groups.json || fail "$*: the stacks of step $count: $(cat groups.json), --to: $(cat at-groups.json)"
		count=$((count + 1))
	done < <(jq -r '.steps[:-1][] | "\(.to_ns) \(.unfreed_bytes) \(.committed_bytes) \(.reserved_bytes)"' every.json)
	[ $count = 13 ] || fail "$*: $count steps"
}

start_workload windows
start_recording -p "$pid"
let_work
stop_recording
let_end
expect_steps
[ "$(jq '[.steps[].unfreed_bytes] | unique | length' every.json)" -gt 2 ] || fail "nothing developed"
expect_steps --class anon
expect_steps --from "@$(awk '/^timestamp 1 / { print $3 }' workload.out)"
to=$(awk '/^timestamp 4 / { print $3 }' workload.out)
report_json --every 1ms --to "@$to"
expect_json ".steps[-1].to_ns == $to and (.steps[-1].unfreed_bytes == .unfreed_bytes)"

start_workload reserve-commit
record_work -p "$pid"
[ "$(jq .reserved_bytes report.json)" -gt 0 ] || fail "the workload reserved nothing"
expect_steps

# Children end before their parent, which waits in between: ended processes no longer count.
"$MMTRACE" record -q -o "$recording" -- bash -c 'for i in 1 2 3 4; do "$0" >/dev/null; sleep 0.1; done; :' \
	"$workloads/leak-anon" </dev/null || fail "record"
expect_steps
[ "$(jq '[.steps[].unfreed_bytes] | max == .[-1]' every.json)" = true ] || fail "all have ended: each counts in the last step"
jq -e 'all(.steps[]; .unfreed_bytes == .committed_bytes + .reserved_bytes)' every.json >/dev/null ||
	fail "the columns of a step are of different states: $(jq -c .steps every.json)"
pid=$(jq '.processes[] | select(.parent_pid == null).pid' report.json)
expect_steps --pid "$pid"

"$MMTRACE" report --every 1us -i "$recording" >refused.txt 2>&1 && fail "any number of steps is taken"
grep -q 'more than 10,\?000 steps' refused.txt || fail "too many steps are not reported: $(cat refused.txt)"
"$MMTRACE" report --every 0 -i "$recording" >refused.txt 2>&1 && fail "steps of length 0 are accepted"
grep -q 'longer than 0' refused.txt || fail "steps of length 0 are not reported: $(cat refused.txt)"
