#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# With -a, the maps of one process may not be read: the recorder warns once during recording, and again in the summary.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
preload guarded-maps
# record_guarded OPTION...: record with the library until the recorder has reported the process.
record_guarded() {
	rm -f "$recording"
	GUARDED=$pid "${preload[@]}" env --default-signal=INT "$MMTRACE" record -o "$recording" "$@" 2>record.log &
	recorder=$!
	processes+=("$recorder")
	wait_until "the warning, while recording" grep -q 'warning: cannot read the mappings of' record.log
	kill -0 "$recorder" || fail "record ended early: $(cat record.log)"
	wait_for_first_snapshots
}
for options in "-a -m 64M" "-a -q -m 64M"; do
	start_workload leak-anon
	# shellcheck disable=SC2086
	record_guarded $options
	let_work
	stop_recording
	let_end
	[ "$(grep -c 'cannot read the mappings of .*: permission denied; ' record.log)" = 1 ] ||
		fail "not one warning: $(cat record.log)"
	case $options in
	*-q*) ! grep -q 'could not be read' record.log || fail "a summary in spite of -q: $(cat record.log)" ;;
	*) grep -qE '^  the mappings of [0-9,]+ process(es)? could not be read' record.log ||
		fail "no message about it in the summary: $(cat record.log)" ;;
	esac
	# The calls of that process are recorded; the report does not claim that they were checked.
	report_json -p "$pid"
	expect_json '.processes | length == 1 and all(.checked | not) and all(.unfreed_bytes > 0)'
done
# No message if all maps can be read.
start_workload leak-anon
start_recording -p "$pid"
let_work
stop_recording
let_end
! grep -qE 'can ?not be read|could not be read' record.log || fail "a message about maps that were read: $(cat record.log)"
