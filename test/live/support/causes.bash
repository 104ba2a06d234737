# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/live/causes*.sh: the report names the cause of growth, on its first screen, and no other.

# record_cause COMMAND...: attach when it is ready, and record what it does until it is done.
record_cause() {
	start_command "$@"
	start_recording -q -m 32M -p "$pid"
	go_on_until 'done'
	let_recorder_catch_up
	stop_recording
	report_json
	exec 3>&-
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	expect_true_report
	"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report ended with status $?"
}

# The hints of rows, of growth and of huge pages, one a line.
list_hints() {
	jq -r '[.groups[].hint, .growth.parts[].hint, .huge_pages?.hint, .groups[].huge_pages?.hint] | unique[] | select(. != null)' "$directory/report.json"
}

# expect_cause WORDS: a hint of the first 60 lines has them, a command or setting that helps among them.
expect_cause() {
	list_hints | grep -qF -e "$1" || {
		cat "$directory/report.txt" >&2
		fail "no hint with the words: $1"
	}
	head -60 "$directory/report.txt" | tr -s ' \n' ' ' | grep -qF -e "$1" || {
		cat "$directory/report.txt" >&2
		fail "the first screens do not show: $1"
	}
}

# expect_no_cause [WORDS]: no hint has them; without words, there is none.
expect_no_cause() {
	local hints
	hints=$(list_hints | grep -F -e "${1:-}") && fail "unexpected hint: $hints"
	return 0
}

# cause KIND WORDS: of the workload; fixed, it has none.
cause() {
	record_cause "$workloads/causes" "$1"
	expect_cause "$2"
	expect_json '[.groups[] | select(.hint)] | length == 1'
	record_cause "$workloads/causes" "$1" fixed
	expect_no_cause
}
