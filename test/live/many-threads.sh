#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# 1,500 threads: their stacks belong to the callers of pthread_create; those kept after the threads' end too.
source "$SOURCE/test/live/support/recording.bash"

need_perf
for joined in "" joined; do
	attach_case many-threads 1500 $joined
	expect_check 0
	# Under pthread_create, one mapping a thread.
	expect_json '[.groups[] | select(any(.frames[]; .function == "start_even" or .function == "start_odd"))] |
		length > 0 and all(any(.frames[]; .function // "" | contains("pthread_create")))'
done
# Some were kept, most were not.
expect_json '[.groups[] | select(.frames | any(.function == "start_even")) | .unfreed_count] | add | . > 0 and . < 300'
