#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: node:nodejs perf:linux-perf
# JIT code with a jitdump: names by time, source lines, moved code, and stacks unwound with the runtime's own unwind rows.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# Names that only the jitdump has.
expect_jitdump() {
	expect_json '[.groups[] | select(any(.frames[]; .function == "native_allocate"))] | length == 3 and all(.stack_end == "entry")'
	expect_json '[.groups[].frames[] | select(.function // "" | test("Inner$|Outer$|Moved$"))] | length == 6 and all(.kind == "jit" and .source_file == "/nowhere/source.js" and (.doubtful | not))'
	expect_json '[.groups[].frames[] | select(.function == "Moved" and .source_line == 14)] | length == 1'
	expect_json '[.groups[].frames[] | select(.function == "LaterInner" and .source_line == 12)] | length == 2'
	expect_json '.completeness.warnings | length == 1 and (.[0] | test("ends within a record: code that its last 16 bytes"))'
}

attach_case jitdump
expect_jitdump
command_case jitdump
expect_jitdump

# expect_left_out WHY COMMAND...: the command damages the jitdump; the recorder omits it and reports why.
expect_left_out() {
	local why=$1
	shift
	start_workload jitdump
	"$@" || fail "$*"
	record_work -p "$pid"
	expect_true_report
	expect_json '[.groups[].frames[] | select(.function // "" | test("Inner$|Outer$|Moved$"))] | length == 0'
	[ "$(grep -c 'jit-.*dump' record.log)" = 1 ] || fail "$why: not reported exactly once: $(cat record.log)"
	grep -q "jit-.*dump.*$why" record.log || fail "no message about $why: $(cat record.log)"
}

to_other_name() { mv "jit-$pid.dump" jit-1.dump; }
to_other_owner() { chown 65534 "jit-$pid.dump"; }
expect_left_out 'named after another process' to_other_name
[ "$(id -u)" != 0 ] || expect_left_out 'another user' to_other_owner

# A jitdump that was removed earlier is still mapped.
start_workload jitdump
rm "jit-$pid.dump"
record_work -p "$pid"
expect_json '[.groups[].frames[] | select(.function // "" | test("Inner$|Outer$|Moved$"))] | length == 6'

# The lost part is counted and reported: records shorter than their fields, and a truncated one at the end. A packed
# recording reports the same.
start_workload jitdump
start_recording -p "$pid"
let_work
lying_load='\0\0\0\0\x18\0\0\0\1\0\0\0\0\0\0\0abcdefgh'
head -c 1000 /dev/zero >>"jit-$pid.dump" # makes the workload's last record whole
printf "$lying_load$lying_load"'\1\0\0\0\xff\xff' >>"jit-$pid.dump"
stop_recording
let_end
for pack in false true; do
	! $pack || "$MMTRACE" pack -q "$recording" || fail "pack ended with status $?"
	report_json
	expect_json '[.completeness.warnings[] | select(test("2 records of the jitdump of process"))] | length == 1'
	expect_json '[.completeness.warnings[] | select(test("ends within a record: code that its last 6 bytes"))] | length == 1'
	expect_json '[.groups[].frames[] | select(.function // "" | test("Inner$|Outer$|Moved$"))] | length == 6'
done

# A real runtime.
command -v node >/dev/null || {
	echo "node is not installed"
	exit 0
}
record_command_for 300 -q -m 32M -- node --perf-prof --interpreted-frames-native-stack \
	"$SOURCE/test/workload/runtimes/churn.js" >node.out
report_json
expect_true_report
expect_json '[.groups[].frames[] | select(.kind == "jit" and (.function // "" | test("churn.js")))] | length > 0'
