#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Memory that processes share counts once. Three workers read a pool of shared memory that their parent has filled: their
# RSS grows, the memory of all does not. Then they write to private memory that they have from the parent, and get copies:
# RSS stays as it is, and the memory grows. At the end, they fill shared memory that was empty: the report names it.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v python3 >/dev/null || skip "python3 is not installed"
[ -r /proc/self/smaps_rollup ] || skip "this kernel has no smaps_rollup"

cat >pools.py <<'END'
import mmap, os, sys

SIZE = 32 << 20

def fill(memory):
    for offset in range(0, SIZE, 4096):
        memory[offset] = 1

def pool(flags):
    memory = mmap.mmap(-1, SIZE, flags=flags | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory

shared, private, empty = pool(mmap.MAP_SHARED), pool(mmap.MAP_PRIVATE), pool(mmap.MAP_SHARED)
fill(shared)
fill(private)
pipes = []
for i in range(3):
    go, answer = os.pipe(), os.pipe()
    if os.fork() == 0:
        while os.read(go[0], 1) == b"r":
            for offset in range(0, SIZE, 4096):
                shared[offset]
            os.write(answer[1], b"d")
            os.read(go[0], 1)
            for offset in range(0, SIZE, 4096):
                private[offset] = 2
            os.write(answer[1], b"d")
            os.read(go[0], 1)
            fill(empty)
            os.write(answer[1], b"d")
        os._exit(0)
    pipes.append((go[1], answer[0]))
print("ready", flush=True)
for step, word in ((b"r", "touched"), (b"w", "written"), (b"f", "filled")):
    sys.stdin.readline()
    for go, answer in pipes:
        os.write(go, step)
        os.read(answer, 1)
    print(word, flush=True)
sys.stdin.readline()
for go, answer in pipes:
    os.write(go, b"e")
END

# record_step WORD MEASURE: records until the workload prints it. The parts are of this.
record_step() {
	start_recording --tree -p "$pid"
	let_recorder_catch_up # the first sizes are read after the first snapshots
	go_on_until "$1"
	stop_recording
	report_json
	expect_true_report
	"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
	expect_json '.processes | length == 4'
	expect_json '.growth.measure == "pss" and .growth.end_pss_bytes > 0'
	expect_json ".growth.parts_measure == \"$2\""
	expect_json ".growth | (.changing_bytes | fabs) + (.unexplained_bytes | fabs) < $near"
	head -1 report.txt | grep -qE "   Pss [0-9.]* MiB (at start|after [0-9.]+ s), [0-9.]* MiB at end" || fail "no Pss: $(cat report.txt)"
}

size=$((32 << 20))
near=$((8 << 20)) # programs and libraries, which other processes share
start_command python3 pools.py
record_step touched private
expect_json ".growth | .end_bytes - .start_bytes > 3 * $size - $near"
expect_json ".growth | .end_pss_bytes - .start_pss_bytes - .outside_bytes | fabs < $near"
expect_json '.growth.verdict != "growing"'
expect_json '[.processes[] | select(.grows)] == []'
expect_json "[.growth.parts[] | select(.place == \"before\" and .class == \"shm\") | .bytes] | add | . + $size | fabs < $near"

record_step written private
expect_json ".growth | .end_bytes - .start_bytes | fabs < $near"
expect_json ".growth | .end_pss_bytes - .start_pss_bytes - .outside_bytes - 3 * $size | fabs < $near"
expect_json "[.growth.parts[] | select(.place == \"before\" and .class == \"anon\") | .bytes] | add | . - 4 * $size | fabs < $near"
expect_json ".processes | map(select(.growth_bytes > $size - $near)) | length == 3"
grep -q idle report.txt && fail "processes that wrote 96 MiB were not idle: $(cat report.txt)"

record_step filled rss
expect_json ".growth | .end_pss_bytes - .start_pss_bytes - .outside_bytes - $size | fabs < $near"
expect_json "[.growth.parts[] | select(.place == \"before\" and .class == \"shm\") | .bytes] | add | . - 3 * $size | fabs < $near"
grep -qE '^ +\+(9[0-9]|10[0-9])\.[0-9]* MiB  touched in shared memory, mapped before' report.txt ||
	fail "not said which memory grew: $(cat report.txt)"
let_end
