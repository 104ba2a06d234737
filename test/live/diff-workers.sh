#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# diff --fail-above is about memory that stays: not about which of a server's short-lived copies RSS was read of, nor how
# many ran one after another, nor about workers that took the places of others.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v python3 >/dev/null || skip "python3 is not installed"

cat >block.py <<'END'
import mmap

def block(mebibytes):
    if not mebibytes:
        return None
    memory = mmap.mmap(-1, mebibytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for offset in range(0, mebibytes << 20, 4096):
        memory[offset] = 120
    return memory
END
cat >server.py <<'END'
import os, sys, time
from block import block

kept = block(10 + int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    if os.fork() == 0:
        time.sleep(2)
        os._exit(0)
for i in range(24):
    time.sleep(0.05)
    pid = os.fork()
    if pid == 0:
        request = block(40)
        os._exit(0)
    os.waitpid(pid, 0)
END
for run in 1 2 3 4; do
	"$MMTRACE" record -q -o same-$run.data -- python3 server.py 0 0 || fail "record"
done
"$MMTRACE" record -q -o more.data -- python3 server.py 20 0 || fail "record"
for run in 2 3 4; do
	for pair in "1 $run" "$run 1"; do
		read -r first second <<<"$pair"
		"$MMTRACE" diff --no-pager --fail-above 8M same-"$first".data same-"$second".data >diff.txt 2>diff.log ||
			fail "run $second has grown: $(cat diff.log diff.txt)"
	done
	"$MMTRACE" diff --fail-above 16M same-$run.data more.data >/dev/null 2>diff.log
	[ $? = 1 ] && grep -qE 'RSS grew by (19|2[0-2])\.' diff.log || fail "the growth of RSS is not seen: $(cat diff.log)"
done

# In the time of a test, more commands may run, one after another. Those that run at once hold more memory at once.
cat >commands.sh <<'END'
i=0
while [ $i -lt $1 ]; do
	dd if=/dev/zero of=/dev/null bs=10M count=1 2>/dev/null
	i=$((i + 1))
done
sleep 1
rm -f go written.*
i=0
while [ $i -lt $2 ]; do
	{ echo; until [ -e go ]; do sleep 0.05; done; } | dd of=written.$i bs=10M 2>/dev/null &
	i=$((i + 1))
done
# With its block, each writes the first byte.
while [ $i -gt 0 ]; do
	i=$((i - 1))
	until [ -s written.$i ]; do sleep 0.05; done
done
touch go
wait
END
for counts in "10 0" "16 0" "10 2" "10 8"; do
	read -r one all <<<"$counts"
	"$MMTRACE" record -q -o commands-$one-$all.data -- bash commands.sh $one $all || fail "record"
done
"$MMTRACE" diff --no-pager --fail-above 8M commands-10-0.data commands-16-0.data >diff.txt 2>diff.log ||
	fail "more commands count as growth: $(cat diff.log diff.txt)"
grep -qE '^(6[0-9]|[7-9][0-9]|1[0-4][0-9])\.[0-9]* MiB are in additional processes that ran one after another' diff.txt ||
	fail "$(cat diff.txt)"
"$MMTRACE" diff --fail-above 50M commands-10-2.data commands-10-8.data >/dev/null 2>diff.log
[ $? = 1 ] && grep -qE 'functions that grew hold (6[0-9]|[7-9][0-9]|1[0-4][0-9])\.' diff.log ||
	fail "commands at once are not seen: $(cat diff.log)"

# What workers share with their parent counts once.
for more in 0 20; do
	"$MMTRACE" record -q -o shared-$more.data -- python3 server.py $more 6 || fail "record"
done
"$MMTRACE" diff --fail-above 8M shared-0.data shared-20.data >/dev/null 2>diff.log
[ $? = 1 ] && grep -qE 'RSS grew by (1[89]|2[0-6])\.' diff.log || fail "shared memory is not counted once: $(cat diff.log)"

cat >pool.py <<'END'
import os, sys
from block import block

workers = []

def replace(mebibytes):
    while workers:
        pid, end = workers.pop()
        os.close(end)
        os.waitpid(pid, 0)
    for i in range(4 if mebibytes else 0):
        go, answer = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            for other in workers:
                os.close(other[1])
            os.close(go[1])
            kept = block(mebibytes)
            os.write(answer[1], b"r")
            os.read(go[0], 1)
            os._exit(0)
        os.read(answer[0], 1)
        for end in go[0], answer[0], answer[1]:
            os.close(end)
        workers.append((pid, go[1]))

replace(10)
print("ready", flush=True)
for word, mebibytes in ("first", 10), ("second", 10), ("third", 20):
    sys.stdin.readline()
    replace(mebibytes)
    print(word, flush=True)
sys.stdin.readline()
replace(0)
END
start_command python3 pool.py
for word in first second third; do
	start_recording --tree -p "$pid"
	go_on_until $word
	stop_recording
	mv "$recording" $word.data
done
let_end
"$MMTRACE" diff --no-pager --fail-above 8M first.data second.data >diff.txt 2>diff.log ||
	fail "workers that were replaced count as growth: $(cat diff.log diff.txt)"
grep -qE '; 4[0-4]\.[0-9]* MiB in new ones replace as much in others that ended\.$' diff.txt || fail "$(cat diff.txt)"
"$MMTRACE" diff --json first.data second.data >diff.json || fail "diff --json"
expect_json ".relation == \"same-process\" and .bytes >= $((40 << 20)) and .growth_bytes <= $((8 << 20)) and
	.replaced_bytes >= $((40 << 20))" diff.json
"$MMTRACE" diff --fail-above 32M second.data third.data >/dev/null 2>diff.log
[ $? = 1 ] && grep -qE 'functions that grew hold (3[2-9]|4[0-4])\.' diff.log ||
	fail "what replaced workers grew is not seen: $(cat diff.log)"

# A supervisor may end its workers by SIGKILL. If it is killed itself, the figures are unreliable.
start_command python3 -c 'import os, sys, time
child = os.fork()
if not child:
    time.sleep(1000)
print("ready", flush=True)
sys.stdin.readline()
os.kill(child, 9)
os.wait()
print("done", flush=True)
time.sleep(1000)'
start_recording --tree -p "$pid"
let_work
stop_recording
"$MMTRACE" diff --fail-above 1G "$recording" "$recording" >diff.txt 2>&1 || fail "a killed worker: $(cat diff.txt)"
start_recording -p "$pid"
kill -9 "$pid"
wait_for_recording
"$MMTRACE" diff --fail-above 1G "$recording" "$recording" >diff.txt 2>&1
status=$?
# Linux before 6.15 knows it only until the parent has waited.
if [ "$(printf '%s\n' 6.15 "$(uname -r)" | sort -V | head -1)" = 6.15 ] || grep -q 'target was killed' "$directory/record.log"; then
	[ $status = 2 ] && grep -q 'was killed by a signal' diff.txt || fail "a killed supervisor: $(cat diff.txt)"
fi
