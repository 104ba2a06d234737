#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A process with 60,000 mappings that changes them as fast as it can is attached to and left at any moment: the model has
# what the kernel has, and pages that nobody has seen are counted.
# With events of its threads, and with events on CPUs.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
limit=$(cat /proc/sys/vm/max_map_count)
[ "$limit" -ge 65530 ] || skip "vm.max_map_count is $limit"
start_workload attach-many
for scope in threads threads threads cpus cpus; do
	begin_recording -q -m 64M -g fp --scope $scope -p "$pid"
	let_run "$pid" 100
	stop_recording
	report_json
	expect_true_report
	expect_json '.processes | length == 1 and .[0].checked and .[0].checked_mappings > 55000'
	expect_json '.processes[0].reconciled_bytes == 0'
	expect_json '.events | .mmap > 1000 and .munmap > 1000 and .mremap > 100 and .mprotect > 100'
	# Few pages move from where the first snapshot had not been to where it had and stay unseen in the second.
	expect_json '.processes[0].unknown_bytes <= 64 * 4096'
	expect_check 0
done
kill -9 "$pid"
