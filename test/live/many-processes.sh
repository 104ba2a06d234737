#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# Tens of thousands of processes start and end: the recorder keeps nothing of ended ones.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# In the sanitizer build, freed memory is reused at once.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0
# When all are forgotten: the recorder looks for ended processes once a second, and keeps them for one second more. Private
# memory only: before Linux 6.14 used ring pages count as resident.
memory_kib() {
	let_recorder_catch_up
	sleep 2.2
	let_recorder_catch_up
	awk '/^RssAnon:/ { print $2 }' "/proc/$recorder/status"
}
rounds=4
start_workload forks 5000 $rounds
start_recording -m 16M -g none --images none --code none -p "$pid"
sizes=() least=
for ((round = 1; round <= rounds; round++)); do
	go_on_until "round $round"
	size=$(memory_kib) || exit 1
	sizes+=("$size")
	((round == 1)) || least=$(printf '%d\n' $least $((sizes[round - 1] - sizes[round - 2])) | sort -n | head -1)
done
go_on_until 'done'
stop_recording
let_end
report_json
echo "$(jq '.processes | length' report.json) processes in the report; recorder: ${sizes[*]} KiB after each round"
# If the recorder kept data of each process, it would grow by 1920 KiB in every round. Tables that reach their final size
# and buffers filled for the first time do not grow in every round.
[ "$least" -lt 512 ] || fail "the recorder grew in every round: ${sizes[*]} KiB"
expect_json '.completeness.lost_events == 0'
expect_json '.events.mmap >= 20000'
