#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# JIT code without frame pointers: its callers are found by instruction analysis of the code that the recording contains.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case jit-frameless
expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] == ["Second", "First", "Outer"]'
expect_json '[.groups[].frames[] | select(.doubtful)] == []'

# Without the code, the frame-pointer chain skips the callers: the recorded code made the difference.
start_workload jit-frameless
record_work -p "$pid" --code none
expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] == ["Second"]'

# Java's conventions.
attach_case jit-frameless java
expect_json '[.groups[] | select(any(.frames[]; .kind == "jit")) | .stack_end, (.frames[] | .doubtful)] |
	all(. == "entry" or . == false)'

# Code of Java without a name whose rule cannot be deduced: the frame-pointer chain skips its caller.
cp "$workloads/jit-frameless" "$directory/java" && gcc -shared -o "$directory/libjvm.so" -x c /dev/null || fail "no stub of Java"
start_command env LD_PRELOAD="$directory/libjvm.so" "$directory/java" unknown
record_work -p "$pid"
expect_json '.processes[0].runtime == "java" and .completeness.doubtful_stacks == 10'
expect_json '.groups[] | select(.unfreed_count == 10) | [.frames[] | select(.kind == "jit" or .doubtful)] |
	length == 3 and .[2].function == "main"'
