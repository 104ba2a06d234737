# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/live/causes*.sh: the report names the cause of growth, and no other, on its first screen.
source "$SOURCE/test/golden/first-screen.bash" || exit 2

# record_cause COMMAND...: attach when it is ready, and record until it has finished its work.
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
	expect_first_screen
}

# The hints of rows, of growth and of huge pages, one a line.
list_hints() {
	jq -r '[.groups[].hint, .growth.parts[].hint, .huge_pages?.hint] | unique[] | select(. != null)' "$directory/report.json"
}

# expect_cause WORDS: a hint in the first 60 lines contains them, including a command or setting that helps.
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

# expect_next COMMAND: the first screen ends with it.
expect_next() {
	head -40 "$directory/report.txt" | grep -qF "next: \`$1\`" || fail "not next: $1: $(cat "$directory/report.txt")"
}

# expect_no_cause [WORDS]: no hint contains them; without words, there is no hint.
expect_no_cause() {
	local hints
	hints=$(list_hints | grep -F -e "${1:-}") && fail "unexpected hint: $hints"
	return 0
}

# cause KIND WORDS: the workload has this cause; its fixed variant has none.
cause() {
	record_cause "$workloads/causes" "$1"
	expect_cause "$2"
	expect_json '[.groups[] | select(.hint)] | length == 1'
	record_cause "$workloads/causes" "$1" fixed
	expect_no_cause
}
