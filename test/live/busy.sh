#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Attaching to and detaching from a process under full load: the model agrees with the kernel, and stacks of calls made
# before the first snapshot are as complete as the others.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
start_workload busy

mapped_kib() {
	awk '/^VmSize:/ { print $2 }' "/proc/$pid/status"
}
has_mapped() {
	[ "$(mapped_kib)" -ge "$1" ]
}

for round in 1 2 3 4 5; do
	begin_recording -q -p "$pid"
	# The handed-over buffers hold at most (64 + 8) * 16 KiB: anything beyond that is dozens of leaked pages.
	wait_until "enough leaks" has_mapped $(($(mapped_kib) + 1152 + 400))
	let_run "$pid" 10
	stop_recording
	report_json
	expect_true_report
	expect_json '.processes | length == 1 and .[0].checked and .[0].mismatch_bytes == 0'
	expect_json '.events.mmap > 100 and .events.munmap > 100'
	# No stack is incomplete because its code was not known yet. (A stack dump may be lost on a slow machine.)
	expect_json '.completeness.stacks_by_end | .no_unwind_data == 0 and .invalid == 0'
	# (If the dump was lost, the frame above start_thread is missing: a separate group.)
	expect_json '[.groups[] | select(.frames | any(.function == "leak_steadily"))] | length >= 1 and
		all(.stack_end == "entry") and (map(.unfreed_count) | add) > 10'
	# The buffers that threads hand to each other do not grow beyond the slots and what was in flight.
	expect_json '[.groups[] | select(.frames | any(.function == "exchange_blocks")) | .unfreed_count] | add <= 64 + 8'
done
kill -9 "$pid"
