#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# Two recordings of one program: diff shows new, freed, grown and shrunk memory, and its exit status can be used in CI.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
block=16384

attach_case leak-several 10 8 6 0
mv "$recording" "$directory/before.data"
attach_case leak-several 30 3 0 7
mv "$recording" "$directory/after.data"

# change_of FUNCTION CHANGE BLOCKS
expect_change() {
	jq -e --arg function "$1" --arg change "$2" --argjson bytes $(($3 * block)) \
		'[.entries[] | select([(.after // .before).frames[] | select(.inlined | not) | .function][2] == $function)] |
		 length == 1 and .[0].change == $change and .[0].bytes == $bytes' "$directory/diff.json" >/dev/null || {
		jq . "$directory/diff.json" >&2
		fail "$1 is not $2 by $3 blocks"
	}
}

"$MMTRACE" diff --json before.data after.data >"$directory/diff.json" || fail "diff --json ended with status $?"
expect_change leak_first grown 20
expect_change leak_second shrunk -5
expect_change leak_third gone -6
expect_change leak_fourth new 7
expect_json ".entries | length == 4" "$directory/diff.json"
expect_json ".same_count >= 1 and .bytes == $((16 * block))" "$directory/diff.json"
# Rows below --min are omitted; the totals do not change.
for least in 7 8; do
	"$MMTRACE" diff --json --min-bytes $((least * block)) before.data after.data >least.json || fail "diff --min-bytes failed"
	expect_json "(.entries | map(.bytes / $block) | sort) == [[-5, -6, 7, 20][] | select(fabs >= $least)] and .bytes == $((16 * block))" least.json
done
recording=before.data report_json --min-bytes $((8 * block))
expect_json "(.groups | map(.unfreed_bytes / $block) | sort) == [8, 10] and .unfreed_bytes >= $((24 * block))"

# Rates of short recordings mean nothing.
expect_json '.relation == "runs" and all(.entries[]; .before_bytes_per_second == null and .after_bytes_per_second == null)' \
	"$directory/diff.json"
grep -q 'per second' <("$MMTRACE" diff --no-pager before.data after.data) && fail "the rate of a short recording is shown"

"$MMTRACE" diff --no-pager before.data after.data >"$directory/diff.txt" || fail "diff ended with status $?"
for words in "new.*leak_fourth" "gone.*leak_third" "grown.*leak_first" "shrunk.*leak_second"; do
	tr '\n' ' ' <"$directory/diff.txt" | grep -q "$words" || {
		cat "$directory/diff.txt" >&2
		fail "the text does not say: $words"
	}
done
grep -q leak_steadily "$directory/diff.txt" && fail "the text shows what did not change"

expect_status() {
	local expected=$1 status
	shift
	"$@" >/dev/null 2>"$directory/status.log"
	status=$?
	[ $status = "$expected" ] || fail "status $status instead of $expected: $* $(cat "$directory/status.log")"
}
# How long commands take that end by themselves does not matter.
command_case leak-several 10 8 6 0
mv "$recording" "$directory/before.data"
command_case leak-several 30 3 0 7
mv "$recording" "$directory/after.data"
# New and grown stacks together hold 27 more blocks.
expect_status 1 "$MMTRACE" diff --fail-above $((27 * block - 1)) before.data after.data
expect_status 0 "$MMTRACE" diff --fail-above $((27 * block)) before.data after.data
expect_status 0 "$MMTRACE" diff --fail-above 0 before.data before.data
expect_status 1 "$MMTRACE" diff --fail-above 0 --json before.data after.data

# A shell runs programs one after the other, one of which leaks more in the second recording.
for leak in 8 24; do
	# shellcheck disable=SC2016 # for the inner shell
	"$MMTRACE" record -q -o suite$leak.data -- \
		sh -c 'for blocks in 8 8 "$1" 8 8; do "$0" --exit "$blocks" 0 0 0 >/dev/null || exit; done' "$workloads/leak-several" $leak ||
		fail "record ended with status $?"
done
expect_status 1 "$MMTRACE" diff --fail-above $((16 * block - 1)) suite8.data suite24.data
expect_status 0 "$MMTRACE" diff --fail-above $((16 * block)) suite8.data suite24.data
# Another suite leaks 8 MiB, and leaves a daemon running. It and its parent count, too: less than 4 MiB.
# shellcheck disable=SC2016 # for the inner shell
"$MMTRACE" record -q -o daemon.data -- sh -c 'sleep 1000 & echo $! >daemon.pid
	for blocks in 8 8 512 8 8; do "$0" --exit "$blocks" 0 0 0 >/dev/null || exit; done' "$workloads/leak-several" ||
	failed=$?
processes+=("$(cat daemon.pid)")
[ ! "${failed:-}" ] || fail "record ended with status $failed"
expect_status 1 "$MMTRACE" diff --fail-above 6M suite8.data daemon.data
# Of a command that still ran, processes that ended do not count.
# shellcheck disable=SC2016 # for the inner shell
begin_recording -q -- sh -c '"$0" --exit 512 0 0 0 >/dev/null; : >ended; exec sleep 1000' "$workloads/leak-several"
wait_until "a program of the command to end" test -e ended
processes+=("$(child_of "$recorder")")
stop_recording
expect_status 2 "$MMTRACE" diff --fail-above 6M suite8.data "$recording"
grep -q 'cannot decide: the second recording is not of a command that ended' status.log || fail "no reason: $(cat status.log)"
expect_status 2 "$MMTRACE" diff --fail-above 6M "$recording" suite8.data
recording=suite24.data report_json
expect_json '[.processes[].released] | (map(select(.)) | length == 4) and (last | not)'

# Sizes grow with time: two processes that run on, and one of them recorded for much longer.
for name in short long; do
	sleep 1000 &
	processes+=($!)
	"$MMTRACE" record -q -p $! --duration "${milliseconds:-200}ms" -o $name.data || fail "record ended with status $?"
	milliseconds=$(("$("$MMTRACE" report --json $name.data | jq '.end_ns - .start_ns')" / 500000))
done
expect_status 2 "$MMTRACE" diff --fail-above 1G short.data long.data
grep -q 'cannot decide: the first recording is too short to compare$' status.log || fail "no reason: $(cat status.log)"
expect_status 2 "$MMTRACE" diff --json --fail-above 1G long.data short.data
grep -q 'cannot decide: the second recording is too short to compare$' status.log || fail "no reason: $(cat status.log)"
grep -q '^The second recording is too short to compare' <("$MMTRACE" diff --no-pager long.data short.data) || fail "the text gives no reason"
expect_json '.incomparable' <("$MMTRACE" diff --json long.data short.data)
