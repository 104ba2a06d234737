#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A command that exits by itself is checked against maps read during its life, and the report says how old they were;
# --check passes unless something differs or nothing could be checked.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
has_readings() {
	"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || return
	[ "$(grep -c ' snapshot-end .*snapshot=interval' "$directory/dump.out")" -ge 2 ]
}

begin_command -q -- "$workloads/leak-anon"
wait_until "the command to be ready" workload_printed ready
let_work
wait_until "readings of its maps" has_readings
end_command
expect_true_report
expect_workload_answer no
expect_json '.processes | length == 1 and .[0].ended and .[0].checked and (.[0].checked_before_exec | not)'
expect_json '.end_ns as $stopped | .processes[0] | .check_age_ns > 0 and .checked_ns + .check_age_ns <= $stopped'
expect_check 0
grep -q "  checked against the kernel's map .* after the start, .* before it ended: .* all match" "$directory/check.txt" ||
	fail "the text does not say how old the maps were"

# A process may end before its maps could be read: nothing differs, but nothing is known either.
"$MMTRACE" record -q -o "$recording" -- true || fail "record -- true: status $?"
report_json
expect_check "$(jq 'if .processes[0].checked then 0 else 2 end' report.json)"

# Children that execute programs all the time, even while recording stops.
for round in 1 2 3; do
	: >"$directory/go"
	begin_recording -q -g none -- bash -c 'while [ -e "$0" ]; do (exec sh -c "exec true"); done' "$directory/go"
	wait_until "the command to start" child_of "$recorder"
	processes+=("$(child_of "$recorder")")
	let_recorder_catch_up
	stop_recording
	rm -f "$directory/go"
	report_json
	expect_true_report
	expect_json '.processes | any(.checked)'
	expect_check 0
done
