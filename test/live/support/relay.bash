# SPDX-License-Identifier: LGPL-2.1-or-later
# Attaches repeatedly to a process whose threads create threads all the time. Source after recording.bash.

# As they are in the workload's file.
next_number() {
	od -A n -t u8 -N 8 "$directory/numbers" | tr -d ' '
}

has_reached() {
	[ "$(next_number)" -ge "$1" ]
}

# The process with the preceding number has made its call.
calls_are_made() {
	od -A n -t u8 -v -w8 -j 8 -N 32 "$directory/numbers" | awk -v last="$1" '$1 + 0 < last + 0 { early = 1 } END { exit early }'
}

# relay_rounds COUNT [OPTION...]: each call made after recording started is recorded once.
relay_rounds() {
	local rounds=$1 round first last twice missing base=$((0x100000000000)) # of the numbered addresses
	shift
	start_workload attach-relay "$directory/numbers"
	for ((round = 1; round <= rounds; round++)); do
		start_recording -m 32M -g none "$@" -p "$pid"
		first=$(next_number)
		wait_until "5000 calls" has_reached $((first + 5000))
		last=$(next_number)
		wait_until "all calls to be made" calls_are_made "$last"
		stop_recording
		report_json
		expect_true_report
		expect_json '.completeness.missed_threads == 0'
		"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
		grep -o ' call event=syscalls:sys_exit_munmap munmap(0x10[0-9a-f]\{10\},' "$directory/dump.out" |
			sed 's/.*(\(.*\),/\1/' | sort >"$directory/recorded"
		# shellcheck disable=SC2046
		printf '0x%x\n' $(seq -f %.0f $((base + first * 4096)) 4096 $((base + (last - 1) * 4096))) |
			sort >"$directory/made"
		twice=$(uniq -d "$directory/recorded" | wc -l)
		missing=$(comm -13 "$directory/recorded" "$directory/made" | wc -l)
		[ "$missing $twice" = "0 0" ] ||
			fail "round $round: $missing of $((last - first)) calls are missing, $twice came twice"
	done
	kill -9 "$pid"
}
