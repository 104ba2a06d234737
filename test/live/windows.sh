#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Windows of a recording with a known answer, given in every form: in each, allocated - freed = unfreed, in total, for each
# stack and for each thread.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
start_workload windows
start_recording -p "$pid"
let_work
stop_recording
let_end

timestamps=()
while read -r _ number ns; do
	timestamps[number]=$ns
done < <(grep '^timestamp ' workload.out)
[ ${#timestamps[@]} = 6 ] || fail "the workload did not print its timestamps"
report_json
start=$(jq .start_ns report.json) end=$(jq .end_ns report.json)
[ "$start" -lt "${timestamps[0]}" ] && [ "$end" -gt "${timestamps[5]}" ] || fail "the timestamps do not lie in the recording"

expect_agreement() {
	expect_json '.allocated_bytes - .freed_bytes - .unfreed_bytes == 0'
	expect_json 'all(.groups[]; .allocated_bytes - .freed_bytes - .unfreed_bytes == 0)'
	expect_json 'all(.thread_totals[];
		.allocated_bytes - .freed_by_itself_bytes - .freed_by_others_bytes - .unfreed_bytes == 0)'
	expect_json '([.groups[].unfreed_bytes] | add // 0) == .unfreed_bytes and
		([.thread_totals[].unfreed_bytes] | add // 0) == .unfreed_bytes'
	expect_json '.peak_bytes >= .unfreed_bytes and .peak_ns >= .from_ns and .peak_ns <= .to_ns'
}

# expect_window "KEY=VALUE..." OPTION...
expect_window() {
	local wanted=$1 word key
	shift
	report_json --sort allocated "$@"
	for word in $wanted; do
		case ${word%%=*} in
		allocated | freed | unfreed | peak) key=.${word%%=*}_bytes ;;
		count) key='([.groups[].unfreed_count] | add // 0)' ;;
		esac
		jq -e "$key == ${word#*=}" report.json >/dev/null ||
			fail "$*: $key: expected ${word#*=}, got $(jq "$key" report.json)"
	done
	expect_agreement
}

# milliseconds NS
milliseconds() {
	awk "BEGIN { printf \"%.6fms\", $1 / 1000000 }"
}

windows=0
while read -r kind from to rest; do
	windows=$((windows + 1))
	from=${timestamps[from]} to=${timestamps[to]}
	if [ "$kind" = window ]; then
		expect_window "$rest" --from "@$from" --to "@$to"
		[ $((windows % 3)) = 0 ] || continue
		expect_window "$rest" --from "$(milliseconds $((from - start)))" --to "$(milliseconds $((to - start)))"
		expect_window "$rest" --from="-$(milliseconds $((end - from)))" --to="-$(milliseconds $((end - to)))"
	else
		until=${timestamps[${rest%% *}]} rest=${rest#* }
		expect_window "$rest" --from "@$from" --to "@$to" --min-age "$(milliseconds $((to - until)))"
	fi
done < <(grep -E '^(window|young) ' workload.out)
[ $windows = 35 ] || fail "$windows windows instead of 35"

# A window is not a separate recording: older mappings are distinguished, and so are too recent ones.
report_json --from "@${timestamps[2]}" --to "@${timestamps[4]}" --min-age "$(milliseconds $((timestamps[4] - timestamps[3])))"
expect_json '.windowed and .too_recent_bytes > 0 and .before_bytes > 0'
report_json
expect_json '.windowed | not'
expect_agreement
