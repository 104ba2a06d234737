#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A perf map full of garbage costs names, nothing else.
source "$SOURCE/test/live/support/recording.bash"
source "$SOURCE/test/live/support/refusal.bash"

need_perf
# answer_with_map: attach to the JIT workload and replace its perf map by stdin before recording stops.
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

head -c 100000 /dev/urandom | answer_with_map
expect_json '[.groups[].frames[] | select(.function // "" | test("Inner|Outer"))] | length == 0'
{
	printf 'ffffffffffffffff ffffffffffffffff everything\n'
	printf '0 ffffffffffffffff everything\n'
	printf '10000000000000000000000000000000 1 too-long\n'
	printf -- '-1 -1 negative\n\n \n1\n1 2\n1 2 \nzz zz zz\n'
	printf '1000 10 escape \033[31m\007\r\n'
	head -c 300000 /dev/zero | tr '\0' 'x'
} | answer_with_map
: | answer_with_map

# Not a regular file: neither a hang nor a read through it.
start_workload jit-code
rm -f "/tmp/perf-$pid.map"
mkfifo "/tmp/perf-$pid.map"
start_recording -p "$pid"
let_work
stop_recording
report_json
let_end
expect_true_report
