#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Names of generated code are those of the program that wrote them, not of what runs under its number later or did before.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# record_programs NAME...: attach, let the programs run one after the other, stop.
record_programs() {
	local left
	start_workload jit-exec "$@"
	start_recording -p "$pid"
	for ((left = $#; left > 0; left--)); do
		go_on_until "begun-$left"
		let_recorder_catch_up
		go_on_until "written-$left"
		let_recorder_catch_up
	done
	let_work
	stop_recording
	report_json
	exec 3>&-
	wait "$pid" || fail "the workload ended with status $?"
	rm -f "/tmp/perf-$pid.map" "jit-$pid.dump"
	expect_true_report
}

# expect_names NAME...: of the code, by the order of the calls; null: none.
expect_names() {
	expect_json "[.groups | sort_by(.first_ns)[] | .frames[] | select(.kind == \"jit\") | .function] == $1"
}

# The later program writes no map: the one that it finds is not its own.
record_programs Old -
expect_names '["Old", null]'
# Each has its own.
record_programs Old New
expect_names '["Old", "New"]'
# The first one has none: what comes later is not its own.
record_programs - New
expect_names '[null, "New"]'
record_programs Old - New
expect_names '["Old", null, "New"]'

# The same with jitdumps, all of which are one file in turn.
record_programs +Old -
expect_names '["Old", null]'
record_programs +Old +New
expect_names '["Old", "New"]'
record_programs - +New
expect_names '[null, "New"]'
record_programs +Old - +New
expect_names '["Old", null, "New"]'
