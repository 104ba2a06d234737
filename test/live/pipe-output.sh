#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: perf:linux-perf python3:python3
# A recording written to a pipe: perf reads all of it, and errors are reported.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
perf version >/dev/null 2>&1 || skip "no perf"

# The command's own output is not mixed into it.
set -o pipefail
"$MMTRACE" record -v -o - -- sh -c 'echo said; exec "$0" --exit 20 4096' "$workloads/leak-anon" 2>record.log | cat >piped ||
	fail "record -o - ended with status $?: $(cat record.log)"
grep -q '^said$' record.log || fail "the command's output is not on standard error: $(cat record.log)"
grep -q '^standard output: ' record.log && ! grep -q '^next:\|pack' record.log || fail "the summary: $(cat record.log)"
perf script -F comm,pid,time,event -i - <piped >script.txt 2>script.log || fail "perf script: $(cat script.log)"
summary_count() {
	grep -oE "[0-9,]+ $1" record.log | tr -d ', a-z' | head -1
}
for call in mmap brk mprotect; do
	[ "$(grep -c "syscalls:sys_exit_$call: *$" script.txt)" -ge "$(summary_count $call)" ] ||
		fail "perf does not show the $(summary_count $call) calls of $call"
done
[ "$(grep -c 'leak-anon.*syscalls:sys_exit_mmap' script.txt)" -ge 40 ] || fail "perf does not show what the workload did"
[ "$(perf script -F ip,sym -i - <piped 2>/dev/null | grep -c mmap)" -gt 0 ] || fail "perf does not name the callers"
# Complete, in the order that the manual gives, to the end.
python3 - piped <<'PYTHON' || fail "the stream does not follow mmtrace-file(5)"
import struct, sys
data = open(sys.argv[1], "rb").read()
assert data[:16] == b"PERFILE2" + struct.pack("<Q", 16)
offset, kinds, sections = 16, [], {}
while offset < len(data):
    kind, _, size = struct.unpack_from("<IHH", data, offset)
    assert size >= 8 and size % 8 == 0 and offset + size <= len(data)
    if kind == 66:
        size += struct.unpack_from("<I", data, offset + 8)[0]
    elif kind == 65:
        magic, feature, zero, whole, at, count, pad = struct.unpack_from("<8sIIQQII", data, offset + 8)
        assert magic == b"MTTRSEC0" and zero == pad == 0 and size == 48 + (count + 7) // 8 * 8
        known = sections.setdefault(feature, [whole, 0])
        assert known == [whole, at]
        known[1] += count
    kinds.append(kind)
    offset += size
assert all(whole == have for whole, have in sections.values())
assert {224, 225, 2, 21, 12} <= set(sections), sections
first_data = next(i for i, kind in enumerate(kinds) if kind in (81, 68) or kind < 64)
assert kinds.index(64) == 0 and kinds.index(66) < first_data and 80 not in kinds[first_data:] and 81 in kinds
PYTHON

# A reader that exits after recording has started ends the recording with status 1; SIGPIPE does not kill the command.
start_workload leak-anon
: >record.log
{ timeout 60 "$MMTRACE" record -v -o - -p "$pid" 2>record.log 3>&-; echo $? >status; } | python3 -c '
import os, time
os.set_blocking(0, False)
while "mmtrace record: recording" not in open("record.log").read():
    try:
        if not os.read(0, 65536):
            break
    except BlockingIOError:
        time.sleep(0.01)'
[ "$(cat status)" = 1 ] || fail "the reader ended, and the status is $(cat status): $(cat record.log)"
grep -q 'cannot write standard output: Broken pipe' record.log && ! grep -q 'kept' record.log ||
	fail "no message about the closed pipe, or more: $(cat record.log)"
let_work
let_end

# Nothing more is written to the pipe.
is_full() {
	python3 -c 'import select; poll = select.poll(); poll.register(4, select.POLLOUT); raise SystemExit(len(poll.poll(0)))'
}
has_given_up() {
	[ ! -e "/proc/$recorder" ] || grep -q '^State:.Z' "/proc/$recorder/status"
}
# A reader that stops reading: recording ends on request, or when its time is over.
"$workloads/fork-rate" 300 </dev/null >/dev/null &
busy=$!
processes+=("$busy")
for end in TERM duration; do
	rm -f stalled
	mkfifo stalled
	exec 4<>stalled
	arguments=(-o - -p "$busy")
	[ $end = TERM ] || arguments+=(--duration 1)
	"$MMTRACE" record "${arguments[@]}" 2>record.log >stalled 4>&- &
	recorder=$!
	processes+=("$recorder")
	wait_until "the pipe to be full" is_full
	[ $end = duration ] || kill -TERM "$recorder"
	wait_until "record to notice that its reader is gone" has_given_up
	wait "$recorder"
	[ $? = 1 ] || fail "the reader stalled until $end, and the status is $?: $(cat record.log)"
	grep -q 'cannot write standard output: Connection timed out' record.log || fail "no message about it: $(cat record.log)"
	exec 4>&-
done
kill -9 "$busy"

expect_refusal 2 'standard output: Bad file descriptor' sh -c 'exec "$0" record -o - -- touch started >&-' "$MMTRACE"
[ ! -e started ] || fail "the command ran without a place for the recording"
# A terminal gets no binary data.
script -qec "$MMTRACE record -o - -- touch started" /dev/null >terminal.out 2>&1
grep -q 'is a terminal: pipe it' terminal.out && [ ! -e started ] || fail "into a terminal: $(head -c 500 terminal.out)"
"$MMTRACE" record -q -o ./- -- true && [ -s ./- ] || fail "a file that is called - cannot be written"
