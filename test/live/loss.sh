#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# With tiny rings events are lost, and every command says so and says how many.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/losses.bash" || exit 2

need_perf
# Another process keeps the CPU busy, so that the rings overflow.
lose_events() {
	start_workload noleak 300000
	start_recording -m 8K -p "$pid"
	stop_recorder
	let_work
	kill -CONT "$recorder"
	stop_recording
	let_end
}

lose_events
grep -qiE '\b[1-9][0-9,]* (events )?lost|lost [1-9]' "$directory/record.log" || {
	cat "$directory/record.log" >&2
	fail "record does not say that events were lost"
}
report_json
expect_json '.completeness.lost_events > 0'
"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report ended with status $?"
head -15 "$directory/report.txt" | grep -i lost | grep -vq '\b0 lost' || {
	head -15 "$directory/report.txt" >&2
	fail "the first screen does not say that events were lost"
}
# As many as the kernel counted; a recording that lost calls fails the check, whatever was reconciled.
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
expect_json ".completeness.lost_events == $(all_lost)"
"$MMTRACE" report --check --no-pager -i "$recording" >/dev/null 2>&1
status=$?
[ $status = 1 ] || fail "--check of a recording with losses: status $status"

# What was lost is known in advance: how many calls, and what they left mapped or released.
record_overflow 20000 -m 8K
for call in mmap munmap; do
	made=made_$call
	lost=$(attribute_lost "syscalls:sys_exit_$call" syscall)
	[ "$lost" -gt 1000 ] || fail "only $lost $call events were lost"
	[ $(($(recorded $call) + lost)) = "${!made}" ] ||
		fail "$call: $(recorded $call) recorded and $lost lost are not the ${!made} calls that were made"
done
expect_json ".completeness.lost_events == $(all_lost)"
tr -d , <"$directory/record.log" | grep -q " $(all_lost) lost" || {
	cat "$directory/record.log" >&2
	fail "the summary does not say that $(all_lost) events were lost"
}

# The final state is the kernel's, and the report says what it was based on; memory with no known mapping call is
# unattributed. (If the ring had room for the MMAP2 record of a mapping but not for the call, the page is known from that,
# until it is released.)
count_churn() {
	grep -c "$1" "$directory/dump.out"
}
recorded_only_by_kernel=$(($(count_churn ' mapping .*start=0x100000000000 length=0x1000 ') - $(count_churn ' call .* mmap(0x100000000000, 0x1000')))
[ "$recorded_only_by_kernel" = 0 ] || [ "$recorded_only_by_kernel" = 1 ] || fail "$recorded_only_by_kernel calls of the churn are known from the kernel's records alone"
expect_json ".processes | all(.checked and .mismatch_bytes == $((unseen + released)))"
expect_json ".completeness.reconciled_by_loss and .completeness.reconciled_bytes == $((unseen + released + 4096 * recorded_only_by_kernel))"
expect_json "[.groups[] | select(.lost) | .unfreed_bytes] | add == $unseen"
expect_workload_answer yes
"$MMTRACE" report --json --class anon -i "$recording" >"$directory/anon.json" || fail "report ended with status $?"
[ "$(jq '[.groups[] | select(.lost) | .unfreed_bytes] | add' "$directory/anon.json")" = "$unseen" ] ||
	fail "anonymous memory found in the maps is not in its class"
"$MMTRACE" report --json --class file,heap -i "$recording" >"$directory/other.json" || fail "report ended with status $?"
[ "$(jq '[.groups[] | select(.lost)] | length' "$directory/other.json")" = 0 ] ||
	fail "anonymous memory found in the maps is in another class"
expect_json "[.groups[] | select(.lost | not)
	| select([.frames[].function] | index(\"map_first\") or index(\"map_last\") | not) | .unfreed_bytes] | add // 0 | . == 0"
expect_check 1
let_end
