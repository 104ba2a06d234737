#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What long recordings need: a limit of size and a word on how it goes.
source "$SOURCE/test/live/support/recording.bash"

need_perf
# The limit ends it cleanly; what belongs to the end comes on top.
start_workload noleak 1000000000
echo >&3
timeout 100 "$MMTRACE" record -o "$recording" --max-size 300K --code none --images none -p "$pid" 2>record.log ||
	fail "record --max-size ended with status $?: $(cat record.log)"
grep -q 'maximum size reached' record.log || fail "the summary does not say why it ended: $(cat record.log)"
size=$(stat -c %s "$recording")
[ "$size" -ge $((300 << 10)) ] || fail "it ended at $size bytes"
report_json
expect_true_report
expect_json '[.events[]] | add > 1000'

# On a terminal: a line that is written anew, and gone when the summary comes; not elsewhere, nor when nothing is wanted.
grep -q 'events/s' record.log && fail "progress is written into a file: $(cat record.log)"
record_on_terminal() {
	script -qec "$MMTRACE record -o $recording --duration 2500ms $* -p $pid" /dev/null >terminal.out </dev/null
}
record_on_terminal || fail "record on a terminal failed: $(cat terminal.out)"
tr '\r' '\n' <terminal.out | sed 's/\x1b\[K//' >lines.out
[ "$(grep -cE '^[0-9.]+ s  [0-9,]+ events/s  [0-9.]+ [KM]iB written  [0-9,]+ lost' lines.out)" -ge 1 ] ||
	fail "no progress: $(cat -v terminal.out)"
grep -qE '^[0-9.]+ s  [1-9][0-9,]* events/s' lines.out || fail "no events in it: $(cat -v terminal.out)"
grep -qP '\r\x1b\[K/.*mmtrace.data: ' terminal.out || fail "the line is not cleared: $(cat -v terminal.out)"
record_on_terminal -q
grep -q 'events/s' terminal.out && fail "-q shows progress"
{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null || true
