#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: perf:linux-perf python3:python3
# Features for long recordings: a size limit, a status line, and the resident size over time.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# The size limit ends the recording cleanly; the data written at the end comes in addition.
start_workload noleak 1000000000
echo >&3
timeout 100 "$MMTRACE" record --raw -o "$recording" --max-size 300K --code none --images none -p "$pid" 2>record.log ||
	fail "record --max-size ended with status $?: $(cat record.log)"
grep -q 'maximum size reached' record.log || fail "the summary does not say why it ended: $(cat record.log)"
size=$(stat -c %s "$recording")
[ "$size" -ge $((300 << 10)) ] || fail "it ended at $size bytes"
report_json
expect_true_report
expect_json '[.events[]] | add > 1000'

# On a terminal the status is one line, rewritten in place and gone before the summary; there is none elsewhere, or with -q.
# Before two seconds it has no rate.
grep -q 'lost  .* written' record.log && fail "progress is written into a file: $(cat record.log)"
command -v python3 >/dev/null || skip "python3 is not installed"
python3 "$support/in-terminal.py" terminal.out ' events:\x03' "$MMTRACE" record -o "$recording" -p "$pid" ||
	fail "record on a terminal failed: $(cat terminal.out)"
tr '\r' '\n' <terminal.out | sed 's/\x1b\[K//' >lines.out
size='[0-9.]+ ([KMG]i)?B' change='[-+]?[0-9.]+ ([KMG]i)?B'
[ "$(grep -cE "^[0-9.]+ s  RSS $size  $change  ($change/min  )?[A-Z]+  [0-9,]+ events  [0-9,]+ lost  $size written" lines.out)" -ge 1 ] ||
	fail "no progress: $(cat -v terminal.out)"
grep -qE '  [1-9][0-9,]* events  ' lines.out || fail "no events in it: $(cat -v terminal.out)"
grep -qP '\r\x1b\[Krecorded ' terminal.out || fail "the line is not cleared: $(cat -v terminal.out)"
python3 "$support/in-terminal.py" terminal.out "" "$MMTRACE" record -q -o "$recording" --duration 1500ms -p "$pid" ||
	fail "record -q on a terminal failed: $(cat terminal.out)"
grep -q 'RSS' terminal.out && fail "-q shows progress"
{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null

# A growing process: by how much, and a verdict when there is enough data; a narrow terminal shows the first columns, in one
# row.
start_workload growth steadily
echo >&3
python3 "$support/in-terminal.py" terminal.out 'GROWING:\x03' "$MMTRACE" record -o "$recording" -p "$pid" ||
	fail "no verdict of a process that grows: $(cat -v terminal.out)"
tr '\r' '\n' <terminal.out | sed 's/\x1b\[K//' >lines.out
grep -qE "^[0-9.]+ s  RSS $size  \+$size  \+$size/min  GROWING  " lines.out || fail "no growth: $(cat -v terminal.out)"
grep -qE "^[0-9.]+ s  RSS $size  $change  ($change/min  )?UNDECIDED  " lines.out || fail "a verdict at once: $(cat -v terminal.out)"
python3 "$support/in-terminal.py" terminal.out '/min:\x03' sh -c 'until [ "$(stty size)" = "40 120" ]; do sleep 0.01; done; stty cols 52 && exec "$0" record -o "$1" -p "$2"' \
	"$MMTRACE" "$recording" "$pid" || fail "record on a narrow terminal failed: $(cat -v terminal.out)"
tr '\r' '\n' <terminal.out | sed 's/\x1b\[K//' >lines.out
grep -E '^[0-9.]+ s  RSS' lines.out >status.out && ! grep -qE 'events|^.{52}' status.out || fail "not one row: $(cat -v terminal.out)"
{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null

# The resident size is read at every interval.
start_workload windows
start_recording -v --snapshot-interval 200ms -p "$pid"
let_work
# One at the start, and one in between.
has_readings() {
	[ "$("$MMTRACE" dump -i "$recording" 2>/dev/null | grep -c ' resident .*bytes=')" -ge 2 ]
}
wait_until "the resident size to be read again" has_readings
stop_recording
let_end
report_json
expect_true_report
expect_json '.resident_readings | length >= 3 and all(.resident_bytes > 0) and (map(.time_ns) | sort == . and unique == .)'
# Each step has the last resident size read before its end, as the dump shows.
"$MMTRACE" dump -i "$recording" | sed -n 's/^\([0-9]*\)\.\([0-9]*\) .* resident .*bytes=\([0-9]*\).*/\1\2 \3/p' >readings.txt
report_json --every 70ms
while read -r to bytes; do
	[ "$bytes" = "$(awk -v to="$to" '$1 < to + 0 { last = $2 } END { print last ? last : "null" }' readings.txt)" ] ||
		fail "the step at $to has $bytes in memory: $(cat readings.txt)"
done < <(jq -r '.steps[] | "\(.to_ns) \(.process_resident_bytes)"' report.json)
expect_json '.steps | map(.process_resident_bytes | numbers) | length >= 3 and all(. > 0)'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report failed"
grep -qE 's   RSS [0-9.]+ [KM]iB (at start|after [0-9.]+ s), [0-9.]+ [KM]iB at end   ' report.txt ||
	fail "no resident size: $(head -15 report.txt)"

# So many mappings fit into less than 5 MB.
"$MMTRACE" record -q -m 64M -o many.data -- python3 -c 'if True:
	import ctypes
	mmap = ctypes.CDLL(None).mmap
	for i in range(320000):
		mmap(None, 4096, 3, 0x22, -1, 0)' 2>record.log || fail "$(cat record.log)"
recording=many.data report_json
expect_json '[.groups[].unfreed_count] | add >= 320000'
command -v perf >/dev/null || exit 0
perf script -i "$recording" >script.txt 2>script.log || fail "perf does not read it: $(cat script.log)"
