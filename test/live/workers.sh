#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# A supervisor has four workers of the same name, of which one grows: half in memory that it had mapped before, which no
# stack explains, half in new mappings. The first lines name that worker, and the table of processes and the rows start with
# it.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v python3 >/dev/null || skip "python3 is not installed"

cat >prefork.py <<'END'
import mmap, os, sys

SIZE = 24 << 20

def block():
    return mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

def touch(memory):
    for offset in range(0, SIZE, 4096):
        memory[offset] = 120

def work(go, answer):
    before, kept = block(), []
    os.write(answer, b"r")
    while os.read(go, 1):
        touch(before)
        kept.append(block())
        touch(kept[-1])
        os.write(answer, b"d")
    os._exit(0)

workers = []
for i in range(4):
    go, answer = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(go[1])
        for other in workers:
            os.close(other[1])
        work(go[0], answer[1])
    os.close(go[0])
    workers.append((pid, go[1], answer[0]))
for worker in workers:
    os.read(worker[2], 1)
print("worker", workers[2][0], flush=True)
print("ready", flush=True)
sys.stdin.readline()
os.write(workers[2][1], b"g")
os.read(workers[2][2], 1)
print("done", flush=True)
sys.stdin.readline()
END

start_command python3 prefork.py
worker=$(sed -n 's/^worker //p' workload.out)
read -ra workers < <(cat /proc/"$pid"/task/*/children | xargs)
[ ${#workers[@]} = 4 ] || fail "there are ${#workers[@]} workers"
start_recording --tree -p "$pid"
let_work
stop_recording
expect_all_children "$pid" "${workers[@]}"
size=$((24 << 20))
expect_json "[.processes[] | select(.pid == $worker) | .end_resident_bytes - .start_resident_bytes] | .[0] >= $((2 * size))"
expect_json ".processes | all(.pid == $worker or .end_resident_bytes - .start_resident_bytes < $((size / 2)))"
expect_json ".groups[0].pids == [$worker] and .groups[0].resident_bytes >= $size"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
name=$(cat "/proc/$worker/comm")
head -1 report.txt | grep -q "^5 processes: $name x 5, " || fail "equal names are not grouped: $(head -3 report.txt)"
head -4 report.txt | grep -qE "^ +\+(4[89]|5[0-9])\.[0-9]* MiB  $name \(pid $worker\)" ||
	fail "the first lines do not name the worker that grew: $(head -6 report.txt)"
grep -A 1 '^  process ' report.txt | grep -qE "^  $name \($worker\) +\+[45][0-9]\.[0-9]* MiB" ||
	fail "the table does not begin with the worker that grew: $(cat report.txt)"
grep -A 4 "^ 1 " report.txt | grep -q "pid $worker" || fail "the first row does not name the worker: $(cat report.txt)"
let_end
