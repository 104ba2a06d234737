#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The options of a command that ends before the recorder can read them from /proc are those with which it was executed.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# JIT code without frame pointers, which the report takes for Java's.
cp "$workloads/jit-frameless" "$directory/java" && gcc -shared -o "$directory/libjvm.so" -x c /dev/null || fail "no stub of Java"

# record_stub VARIABLE=VALUE... -- ARGUMENT...
record_stub() {
	local variables=()
	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	env "${variables[@]}" LD_PRELOAD="$directory/libjvm.so" "$MMTRACE" record -q --code none -o "$recording" -- \
		"$directory/java" "${@:2}" >workload.out 2>record.log || fail "record: $(cat record.log)"
	report_json
	remove_recorded_traces
	expect_json '.processes | length == 1 and .[0].runtime == "java" and .[0].ended'
}

for ((i = 0; i < 5; i++)); do
	record_stub A=B -- --exit
	expect_json 'any(.completeness.warnings[]; contains("(Java) was started without -XX:+PreserveFramePointer"))'
done
for option in JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS; do
	record_stub $option='-Xint -XX:+PreserveFramePointer' -- --exit
	expect_json 'all(.completeness.warnings[]; contains("PreserveFramePointer") | not)'
done
# Of several values, the one in the arguments counts, although the command line of mmtrace has the other one, too.
record_stub JDK_JAVA_OPTIONS=-XX:+PreserveFramePointer -- --exit -XX:+PreserveFramePointer -XX:-PreserveFramePointer
expect_json 'any(.completeness.warnings[]; contains("(Java) was started without -XX:+PreserveFramePointer"))'
