#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: python3:python3
# A recorder is killed 200 times at random moments. What it has written is readable without gaps, the report says that the
# recording is incomplete, and an earlier recording is never damaged.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
"$MMTRACE" record -q -o earlier.data -- true || fail "record ended with status $?"
# Another recorder runs all the time: the kernel takes long to enable and disable its tracepoints.
sleep 600 &
processes+=($!)
"$MMTRACE" record -q -o other.data -p $! &
processes+=($!)
wait_until "the other recorder to begin" test -s other.data
seed=${SEED:-$$}
RANDOM=$seed
none=0 cut=0 whole=0 kept_calls=0
mkdir calls
cpu=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*\([0-9]*\).*/\1/p' /proc/self/status)

# keep_calls WHEN: the lengths of the workload's mappings, in hexadecimal, for check_calls.
keep_calls() {
	"$MMTRACE" dump -i "$recording" >dump.txt 2>dump.log || fail "$1: dump: $(cat dump.log)"
	{
		echo "$1"
		sed -nE "s/.* call event=syscalls:sys_exit_mmap mmap\(0, 0x([0-9a-f]+), 0, 0x4022, .*/\1/p" dump.txt
	} >"calls/$((kept_calls++))"
}

# check_calls: sets `calls`, the number of all calls. From the first length on, each call is present and in order: the
# workload runs on one CPU, so none of them is in a ring that is read later.
check_calls() {
	calls=$(python3 - calls/* <<'END'
import resource, sys
calls = 0
for name in sys.argv[1:]:
    when, *lengths = open(name).read().splitlines()
    numbers = [int(length, 16) // resource.getpagesize() for length in lengths]
    gaps = [pair for pair in zip(numbers, numbers[1:]) if pair[1] != pair[0] + 1]
    if gaps:
        sys.exit(f"{when}: gaps: {gaps[:3]}")
    calls += len(numbers)
print(calls)
END
	) 2>calls.log || fail "$(cat calls.log)"
}

# look_at_recording WHEN END: END is "cut" if it cannot be complete.
look_at_recording() {
	# The earlier recording gets its second name just before the new one takes the first.
	if [ ! -e "$recording.old" ] || [ "$recording" -ef "$recording.old" ]; then
		cmp earlier.data "$recording" || fail "$1: the earlier recording is not as it was"
		none=$((none + 1))
		return
	fi
	cmp earlier.data "$recording.old" || fail "$1: the earlier recording is not as it was"
	[ -e "$recording" ] || fail "$1: there is no recording"
	report_json
	case $(jq -r '.completeness | "\(.damaged) \(.incomplete)"' report.json) in
	'false true') cut=$((cut + 1)) ;;
	'false false')
		[ "$2" != cut ] || fail "$1: the report does not say that it is incomplete"
		whole=$((whole + 1))
		;;
	*) fail "$1: the report says that the recording is damaged: $(jq .completeness report.json)" ;;
	esac
	keep_calls "$1"
}

wait_milliseconds() {
	local seconds
	printf -v seconds '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
	sleep "$seconds"
}

begin_one() {
	cp earlier.data "$recording"
	rm -f "$recording.old" "$recording".new-*
	env --default-signal=INT "$MMTRACE" record -q -o "$recording" "$@" >record.out 2>record.log 3>&- &
	recorder=$!
	processes+=($recorder)
}
kill_it() {
	{ kill -9 $recorder && wait $recorder; } 2>/dev/null
	processes=("${processes[@]:0:kept}")
}

# wait_some_time: of ten rounds one is killed immediately and one when recording has just started; the others at times up to
# twice as late as the latter.
wait_some_time() {
	local started=${EPOCHREALTIME/./}
	if ((i % 10 == 0)); then
		until [ -e "$recording.old" ] && [ -e "$recording" ]; do kill -0 $recorder || fail "record ended: $(cat record.log)"; done
		milliseconds=$(((${EPOCHREALTIME/./} - started) / 1000))
		span=$((2 * milliseconds + 50))
	else
		milliseconds=$((i % 10 > 1 ? RANDOM % span : 0))
		wait_milliseconds $milliseconds
	fi
}

# The recorder ends when its command does, much later.
for ((i = 0; i < 80; i++)); do
	kept=${#processes[@]}
	rm -f pid
	begin_one -- taskset -c "$cpu" sh -c 'echo $$ >pid && exec "$0" --exit 20000' "$workloads/counting"
	wait_some_time
	kill_it
	[ ! -s pid ] || kill -9 "$(cat pid)"
	look_at_recording "seed $seed, killed $milliseconds ms after a command was started" cut
done

start_command taskset -c "$cpu" "$workloads/counting" 600000
echo >&3
for ((i = 0; i < 70; i++)); do
	kept=${#processes[@]}
	begin_one -p "$pid"
	wait_some_time
	kill_it
	look_at_recording "seed $seed, killed $milliseconds ms after it began to attach" cut
done
for ((i = 0; i < 50; i++)); do
	kept=${#processes[@]}
	begin_one -p "$pid"
	wait_until "record to begin" test -e "$recording.old"
	kill -INT $recorder
	milliseconds=$((RANDOM % 80))
	wait_milliseconds $milliseconds
	kill_it
	look_at_recording "seed $seed, killed $milliseconds ms after the request to stop" any
done
{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null

check_calls
echo "seed $seed: $none before the start, $cut truncated, $whole complete; $calls calls"
# All kinds of moments must have occurred.
[ $none -gt 0 ] && [ $cut -gt 50 ] && [ $calls -gt 1000 ] || fail "too few rounds of some kind"
