#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: javac:default-jdk-headless
# The report explains growth of Java, outside and inside its heap.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf
command -v javac >/dev/null || skip "no javac is installed"
javac -d "$directory" "$SOURCE/test/workload/causes/Grow.java" >build.log 2>&1 || fail "javac: $(cat build.log)"
java=(java -Xmx512m -XX:+UseSerialGC -cp "$directory")

record_cause "${java[@]}" Grow direct
expect_cause '-XX:MaxDirectMemorySize limits them'
expect_next "jcmd $pid GC.class_histogram"
expect_json '[.groups[] | select(.pattern == "direct-buffer") | .unfreed_bytes] | add >= 64 * 1048576'
expect_json '[.causes[] | select(.pattern == "direct-buffer") | .memory_bytes] | add >= 64 * 1048576'
expect_no_cause 'heap of Java'
# After following the hint.
record_cause "${java[@]}" -XX:MaxDirectMemorySize=512k Grow direct
expect_no_cause 'MaxDirectMemorySize'

# The pages touched in the range that Java had made accessible earlier, at any address: the heap is too large for compressed
# pointers. test-growth-parts.c has the layouts of other collectors and runtimes.
record_cause "${java[@]}" -Xms512m -Xmx40g Grow heap
expect_cause 'heap of Java'
expect_next "jcmd $pid GC.class_histogram"
expect_no_cause 'MaxDirectMemorySize'
"$MMTRACE" report --no-pager -i "$recording" | grep -qE '^ +\+[0-9.]+ MiB  touched in the heap of Java' ||
	! jq -e '.growth.pages_end_bytes' report.json || fail "the growth is not that of Java's heap: $(cat report.txt)"
record_cause "${java[@]}" -Xms512m -Xmx40g -XX:+AlwaysPreTouch Grow heap
expect_no_cause 'heap of Java'
