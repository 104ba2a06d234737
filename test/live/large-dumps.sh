#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# By default, deep stacks are complete while the call rate is low. At full speed the recorder takes no large dumps, and
# loses nothing else because of them; afterwards it takes them again.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/losses.bash" || exit 2

need_perf
# let_make WORK: the workload does it once more, and the recorder has read it.
declare -A made=([fast]=0 [deep]=0)
has_made() {
	[ "$(grep -c "^$1$" "$directory/workload.out")" -ge "$2" ]
}
let_make() {
	made[$1]=$((${made[$1]} + 1))
	echo "$1" >&3
	wait_until "the workload to do its work" has_made "$1" "${made[$1]}"
	let_recorder_catch_up
}
# now: on the clock of the recording, to 10 ms; nothing is done meanwhile.
now() {
	sleep 0.05
	cut -d ' ' -f 1 /proc/uptime
}
reported() {
	[ "$(grep -c "large stack dumps are $1" "$directory/record.log")" -ge "$2" ]
}

start_workload call-rates
echo >&3
# The rings have room for the small dumps of all calls of a round, however late the recorder reads them.
start_recording --raw -v -m 64M -p "$pid"
! grep -qE 'kernel grants|no large stack dumps' "$directory/record.log" || skip "the kernel does not grant such rings"
let_make deep
let_make deep
# On a machine of any speed: sooner or later there are too many calls.
for ((round = 0; round < 50; round++)); do
	let_make fast
	! reported off 1 || break
done
wait_until "large dumps to be switched off" reported off 1
from=$(now)
let_make fast
to=$(now)
wait_until "large dumps to be switched on" reported 'on again' 1
let_make deep
let_make deep
let_work
stop_recording
report_json
let_end
expect_true_report
expect_workload_answer yes
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"

deep='[.groups[] | select(any(.frames[]; .function == "leak_deep"))]'
expect_json "$deep | length > 0 and all(.stack_end == \"entry\" and ([.frames[] | select(.function == \"descend\")] | length == 51))"
expect_json '.completeness.large_dumps_off_ns > 0 and .completeness.lost_events == 0 and .completeness.lost_stack_dumps == 0'
# A small dump for each call; no large one while they are off, and few at full speed.
calls=$(grep -cE ' call event=syscalls:sys_exit_(mmap|mremap|brk|mprotect) ' "$directory/dump.out")
small=$(grep -cE ' stack-dump event=syscalls:sys_exit_[a-z]+/stack-dump ' "$directory/dump.out")
large=$(grep -cE ' stack-dump event=syscalls:sys_exit_[a-z]+/large-stack-dump ' "$directory/dump.out")
[ "$calls" = "$small" ] || fail "$small small stack dumps of $calls calls"
lost=$(awk '/^# attribute/ && / role large-stack-dump,/ { sum += $NF } END { print sum + 0 }' "$directory/dump.out")
expect_json ".completeness.lost_large_stack_dumps == $lost"
[ "$large" -ge 200 ] || fail "only $large large dumps"
[ $((large + lost)) -lt "$calls" ] || fail "$large large dumps and $lost lost ones of $calls calls"
between=$(awk -v from="$from" -v to="$to" '{ inside = $1 >= from && $1 <= to }
	inside && / call event=syscalls:sys_exit_mmap / { calls++ }
	inside && /large-stack-dump / { large++ } END { print calls + 0, large + 0 }' "$directory/dump.out")
[ "$between" = "3000 0" ] || fail "calls and large dumps while they are off: $between, not 3000 and 0"
# The recording and the summary mention it.
switched=$(awk '/ large-dumps event=/ { printf "%s ", $NF }' "$directory/dump.out")
[[ $switched == "on=no on=yes "* ]] || fail "the recording has these switches of large dumps: $switched"
times=$(wc -w <<<"$switched")
tr -d , <"$directory/record.log" | grep -q "$large large stack dumps.*off for .* switched $times times" || {
	cat "$directory/record.log" >&2
	fail "the summary does not mention $large large dumps, switched $times times"
}
"$MMTRACE" report --no-pager -i "$recording" | grep -q 'large dumps off for' || fail "the report does not say that they were off"
# The file contains only the bytes of a stack that were copied.
grep 'large-stack-dump ' "$directory/dump.out" | grep -oE 'stack_bytes=[0-9]+/[0-9]+' |
	awk -F '[=/]' '$3 > $2 + 8 { exit 1 }' || fail "a stack dump with its unused part is in the file"

# With a fixed dump size nothing is switched.
for graph in dwarf,8192 fp; do
	start_workload call-rates
	start_recording -m 64M -g "$graph" -p "$pid"
	echo >&3
	made=([fast]=0 [deep]=0)
	let_make deep
	let_work
	stop_recording
	let_end
	! grep -q 'large stack dump' "$directory/record.log" || fail "$graph: there are large dumps"
done
