#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# A killed recorder leaves a usable file, and the report says that it is incomplete.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
has_calls() {
	"$MMTRACE" dump -i "$recording" >"$directory/dump.txt" 2>"$directory/dump.log" &&
		[ "$(grep -c ' call event=syscalls:sys_exit_mmap ' "$directory/dump.txt")" = "$1" ]
}

start_workload leak-anon 200
start_recording -p "$pid"
let_work
wait_until "the calls to be written" has_calls 200
{ kill -9 "$recorder" && wait "$recorder"; } 2>/dev/null
let_end
report_json
expect_json '.completeness.incomplete'
expect_json '.completeness.lost_events == 0'
expect_workload_answer no
"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" 2>&1 || fail "report ended with status $?"
grep -qi incomplete "$directory/report.txt" || fail "the report does not say that it is incomplete"
has_calls 200 || fail "dump does not show the 200 calls: $(cat "$directory/dump.log")"

# Names survive too: perf map, jitdump and build IDs are written to the data once a second.
killed_case() {
	start_workload "$1"
	start_recording -p "$pid"
	let_work
	wait_until "the names to be written" has_names
	{ kill -9 "$recorder" && wait "$recorder"; } 2>/dev/null
	let_end
	rm -f "/tmp/perf-$pid.map" "jit-$pid.dump"
	report_json
	expect_json '.completeness.incomplete and (.completeness.damaged | not)'
	expect_workload_answer no
	expect_json '[.groups[].frames[] | select(.function // "" | test("Inner$"))] | length >= 2'
}

# All calls are in the file, with the names up to the last second.
has_names() {
	"$MMTRACE" report --json --limit 0 -i "$recording" 2>/dev/null |
		jq -e '[.groups[] | select(any(.frames[]; .function // "" | test("Inner$")))] |
			(map(.allocated_count) | add) == '"$calls"' and
			(map(.frames[] | select(.function // "" | test("Inner$|Moved$"))) | length >= '"$names"')'
}
# Incremental metadata with the build ID of each module: the program's may be the last.
has_build_ids() {
	local pieces modules
	pieces=$("$MMTRACE" dump -i "$recording" 2>/dev/null | grep -c ' 0/0 .* record=TEXT_POKE .* size=[1-9][0-9][0-9]$')
	modules=$(awk '$2 ~ /^r.x/ { print $6 }' "/proc/$pid/maps" | sort -u | grep -c .)
	[ "$modules" -gt 1 ] && [ "$pieces" -ge "$modules" ]
}

names=2 calls=20 killed_case jit-code
[ "$(uname -m)" != x86_64 ] || names=4 calls=30 killed_case jitdump # which has code of this architecture

# Another build at the program's path is not treated as the recorded one.
cp "$workloads/leak-anon" program
start_command ./program 20
start_recording -p "$pid"
let_work
wait_until "the build-ids to be written" has_build_ids
{ kill -9 "$recorder" && wait "$recorder"; } 2>/dev/null
let_end
cp "$workloads/noleak" program
report_json
expect_json '.completeness.incomplete and (.completeness.warnings | any(test("/program is not the build that was recorded")))'
