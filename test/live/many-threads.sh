#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# 1,500 threads: their stacks belong to the callers of pthread_create, also those that glibc caches after the threads have
# ended.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# Room for the stacks of all their calls if the recorder does not run for a while.
case_options=(-m 64M)
for joined in "" joined; do
	attach_case many-threads 1500 $joined
	expect_check 0
	# Under pthread_create, one mapping for each thread.
	expect_json '[.groups[] | select(any(.frames[]; .function == "start_even" or .function == "start_odd"))] |
		length > 0 and all(any(.frames[]; .function // "" | contains("pthread_create")))'
	# The report calls them thread stacks and says why they stay; glibc also needs a few bytes of heap.
	expect_json '[.groups[] | select(.class_bytes.heap == 0) |
		select(any(.frames[]; .function == "start_even" or .function == "start_odd"))] |
		all(.pattern == "thread-stack" and .class_bytes["thread-stack"] == .unfreed_bytes) and
		([.[].unfreed_bytes] | add > 0)'
done
# Some were cached, most were not.
expect_json '[.groups[] | select(.frames | any(.function == "start_even")) | .unfreed_count] | add | . > 0 and . < 300'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
grep -q "thread stacks: glibc caches" report.txt || {
	cat report.txt >&2
	fail "the text does not say what caches the stacks"
}
