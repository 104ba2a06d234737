# SPDX-License-Identifier: LGPL-2.1-or-later
# Attaches repeatedly to a process that calls fork() nearly all the time. Source after recording.bash.

# One line per child: the address of its calls without the zeros at the end, how many calls it has made, and its PID.
made_calls() {
	od -A n -t u4 -v -w8 "$directory/children" | awk '$1 { printf "0x%x %d %d\n", 1048576 + NR - 1, $2, $1 }'
}

have_made() {
	[ "$(made_calls | awk '{ sum += $2 } END { print sum + 0 }')" -ge "$1" ]
}

# fork_rounds COUNT [OPTION...]: every child in the recording has all its calls there, once. With $every_child the recording
# contains every child that made calls meanwhile.
fork_rounds() {
	local rounds=$1 round missing twice
	shift
	for ((round = 1; round <= rounds; round++)); do
		start_workload fork-slowly "$directory/children" 20000
		wait_until "some children" eval '[ "$(made_calls | wc -l)" -ge 2 ]'
		start_recording -m 32M -g none "$@" -p "$pid"
		made_calls >"$directory/first"
		wait_until "calls while recording" have_made $(($(awk '{ sum += $2 } END { print sum + 0 }' "$directory/first") + 200))
		made_calls >"$directory/last" # a call is counted when it has been made
		stop_recording
		kill -9 "$pid" && wait "$pid" 2>/dev/null
		report_json
		expect_true_report
		expect_json '.completeness.missed_threads == 0'
		"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
		# For every recorded process, the numbers of its calls after those between the two readings.
		sed -n "s|^.* munmap(\(0x10[0-9a-f]\{4\}\)000000, \(0x[0-9a-f]*\)) = .*|\1 \2|p" "$directory/dump.out" \
			>"$directory/recorded"
		sed -n "s|^[0-9.]* \([0-9]*\)/.*|\1|p" "$directory/dump.out" | sort -u >"$directory/processes"
		if [ "${every_child:-}" ]; then
			awk 'FILENAME == ARGV[1] { first[$1] = $2 } FILENAME == ARGV[2] && $1 in first && $2 > first[$1] + 1 { print $3 }' \
				"$directory/first" "$directory/last" | sort -u >"$directory/working"
			missing=$(comm -23 "$directory/working" "$directory/processes" | wc -l)
			[ "$missing" = 0 ] || fail "round $round: $missing of $(wc -l <"$directory/working") children are not recorded"
		fi
		# The first call of an existing child may have been made before recording, and only counted afterwards.
		awk 'FILENAME == ARGV[1] { recorded[$1] }
			FILENAME == ARGV[2] { first[$1] = $2 }
			FILENAME == ARGV[3] && $3 in recorded {
				for (call = ($1 in first ? first[$1] : -1) + 2; call <= $2; call++)
					printf "%s 0x%x000\n", $1, call # pages of 4 KiB
			}' "$directory/processes" "$directory/first" "$directory/last" >"$directory/expected"
		[ -s "$directory/expected" ] || fail "no child made calls while recording"
		missing=$(sort "$directory/recorded" | comm -13 - <(sort "$directory/expected") | wc -l)
		twice=$(sort "$directory/recorded" | uniq -d | wc -l)
		[ "$missing $twice" = "0 0" ] ||
			fail "round $round: $missing of $(wc -l <"$directory/expected") calls are missing, $twice came twice"
	done
}
