#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Memory that is mapped at once and touched later has the rate at which the kernel's resident pages grow, in an attached
# process and in a command; what is full does not grow. The rates of the rows add up to that of the process.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
[ -r /proc/self/pagemap ] || skip "/proc/PID/pagemap cannot be read here"
seconds=12

# read_kernel: NANOSECONDS RSS of the process, and RSS of the block of malloc, the only large mapping with a header.
read_kernel() {
	awk -v now="$(date +%s%N)" '/-[0-9a-f]+ / { next } $1 == "Size:" { size = $2 } $1 == "Rss:" { all += $2
		if (size > 520000 && size < 530000) block = $2 } END { print now, all * 1024, block * 1024 }' "/proc/$pid/smaps"
}

# expect_rates KERNEL_RATE BLOCK_RATE: in bytes per minute.
expect_rates() {
	report_json
	expect_json ".growth.bytes_per_minute / $1 | . > 0.8 and . < 1.25"
	jq -e --argjson block "$2" --argjson all "$1" "def rate(\$name): [.groups[] |
		select(any(.frames[]; .function == \$name)).bytes_per_minute] | add;
		(rate(\"get_block\") / \$block | . > 0.75 and . < 1.33) and
		(rate(\"map_slowly\") / (\$all - \$block) | . > 0.75 and . < 1.33) and
		(rate(\"map_full\") | fabs) < \$all / 10 and
		(([.groups[].bytes_per_minute] | add) / \$all | . > 0.8 and . < 1.25)" report.json >/dev/null ||
		fail "rates: $(jq -c '[.growth.bytes_per_minute, (.groups[] | [.bytes_per_minute, .verdict])]' report.json), kernel $1, $2"
	expect_json '[.groups[] | select(.memory_bytes > 33554432)] |
		length == 2 and all(.verdict == "leak")'
	expect_json '[.groups[] | select(any(.frames[]; .function == "map_full"))] | length == 1 and all(.verdict == "cache")'
	"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
	grep -qE '^ +1 .* GROWING +anon' report.txt || fail "not said to grow: $(cat report.txt)"
}

rates() {
	read -r first_ns first first_block <<<"$1"
	read -r last_ns last last_block <<<"$2"
	all_rate=$(((last - first) * 60000 / ((last_ns - first_ns) / 1000000)))
	block_rate=$(((last_block - first_block) * 60000 / ((last_ns - first_ns) / 1000000)))
}

start_workload late-touch "$seconds"
start_recording -p "$pid"
echo >&3 # it works
sleep $((seconds / 2))
middle=$(read_kernel)
sleep $((seconds / 2 - 1))
rates "$middle" "$(read_kernel)"
stop_recording
wait_until "the end of the work" workload_printed 'done'
let_end
expect_rates "$all_rate" "$block_rate"

# The command ends by itself: its last readings are earlier.
"$MMTRACE" record -q -o "$recording" -- "$workloads/late-touch" --exit "$seconds" >/dev/null || fail "record: status $?"
expect_rates "$all_rate" "$block_rate"

# A buffer that is full early grows no further, although nothing happens between then and the end.
start_workload late-touch "$seconds" full-only
start_recording -p "$pid"
echo >&3
wait_until "the end of the work" workload_printed 'done'
stop_recording
let_end
report_json
expect_json '.growth.verdict == "plateau"'
expect_json '[.groups[] | select(any(.frames[]; .function == "map_full"))] |
	length == 1 and all(.verdict == "cache" and (.bytes_per_minute | fabs) < 4194304)'
