#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A perf map full of garbage costs names and nothing else.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
# answer_with_map: attach to the JIT workload and replace its perf map with stdin before recording stops.
answer_with_map() {
	start_workload jit-code
	start_recording -p "$pid"
	let_work
	cat >"/tmp/perf-$pid.map"
	stop_recording
	report_json
	let_end
	expect_true_report
	expect_json '.unfreed_bytes == 327680'
	expect_json '[.groups[] | select(any(.frames[]; .function == "native_allocate"))] | map(.unfreed_bytes) | add == 327680'
}

answer_with_map < <(head -c 100000 /dev/urandom)
expect_json '[.groups[].frames[] | select(.function // "" | test("Inner|Outer"))] | length == 0'
answer_with_map < <(
	printf 'ffffffffffffffff ffffffffffffffff everything\n'
	printf '0 ffffffffffffffff everything\n'
	printf '10000000000000000000000000000000 1 too-long\n'
	printf -- '-1 -1 negative\n\n \n1\n1 2\n1 2 \nzz zz zz\n'
	printf '1000 10 escape \033[31m\007\r\n'
	head -c 300000 /dev/zero | tr '\0' 'x'
)
answer_with_map </dev/null

# Not a regular file: the recorder neither hangs nor reads it.
start_workload jit-code
rm -f "/tmp/perf-$pid.map"
mkfifo "/tmp/perf-$pid.map"
record_work -p "$pid"
expect_true_report

# expect_refused WHY COMMAND...: the command changes the map, its names are not used, and the recorder says why, once.
expect_refused() {
	local why=$1
	shift
	start_workload jit-code
	"$@" || fail "$*"
	record_work -p "$pid"
	rm -f "/tmp/perf-$pid.map"
	expect_true_report
	expect_json '[.groups[].frames[] | select(.function // "" | test("Inner|Outer"))] | length == 0'
	[ "$(grep -c "perf-$pid.map" record.log)" = 1 ] || fail "$why: not reported exactly once: $(cat record.log)"
	grep -q "perf-$pid.map.*$why" record.log || fail "no message about $why: $(cat record.log)"
}

to_link() { mv "/tmp/perf-$pid.map" map && ln -s "$directory/map" "/tmp/perf-$pid.map"; }
to_fifo() { rm "/tmp/perf-$pid.map" && mkfifo "/tmp/perf-$pid.map"; }
to_old() { touch -d '1 hour ago' "/tmp/perf-$pid.map"; }
to_huge() { truncate -s 1G "/tmp/perf-$pid.map"; }
to_other_owner() { chown 65534 "/tmp/perf-$pid.map"; }
expect_refused 'symbolic link' to_link
expect_refused 'not a regular file' to_fifo
expect_refused 'older than the process' to_old
expect_refused 'MiB' to_huge
[ "$(id -u)" != 0 ] || expect_refused 'another user' to_other_owner

# Names with control characters are used.
start_workload jit-code
sed -i 's/AnonymousInner/Anonymous\x1b[31m\x07Inner\x9b\r/' "/tmp/perf-$pid.map"
record_work -p "$pid"
expect_json '[.groups[].frames[] | select(.function // "" | test("Anonymous.+Inner"))] | length == 1'
for command in "report --no-pager" "report --json" "dump" "report --no-pager --by function"; do
	"$MMTRACE" $command -i "$recording" >shown.txt || fail "$command"
	! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f\x9b]' shown.txt || fail "$command shows control characters"
done

# A map enlarged without writing (sparse): the hole costs no memory, and the names before it are used.
start_workload jit-code
start_recording -v -p "$pid"
let_work
truncate -s 255M "/tmp/perf-$pid.map" || fail truncate
stop_recording
report_json
let_end
rm -f "/tmp/perf-$pid.map"
expect_true_report
expect_json '[.groups[].frames[] | select(.function // "" | test("Inner|Outer"))] | length > 0'
memory=$(sed -nE 's/.* ([0-9]+)[.0-9]* MiB of memory.*/\1/p' record.log)
[ -n "$memory" ] || fail "no message about the recorder's memory: $(cat record.log)"
[ "$memory" -lt 200 ] || fail "a sparse perf map costs $memory MiB"
