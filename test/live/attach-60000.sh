#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A process with 60,000 mappings that it changes as fast as it can is attached to and left at random moments, with
# per-thread and per-CPU events. The model equals the kernel's maps, and pages that neither snapshot saw are counted.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
limit=$(cat /proc/sys/vm/max_map_count)
[ "$limit" -ge 65530 ] || skip "vm.max_map_count is $limit"
use_own_group
start_workload attach-many
# Packing would compete with the busy process.
for scope in threads threads threads "${cpu_scopes[@]}"; do
	begin_recording --raw -q -m 64M -g fp --scope $scope -p "$pid"
	let_run "$pid" 100
	stop_recording
	report_json
	expect_true_report
	expect_json '.processes | length == 1 and .[0].checked and .[0].checked_mappings > 55000'
	expect_json '.processes[0].reconciled_bytes == 0'
	expect_json '.events | .mmap > 1000 and .munmap > 1000 and .mremap > 100 and .mprotect > 100'
	# Few pages move from a part that the first snapshot had not read yet to a part that it had, and stay unseen in the
	# second one.
	expect_json '.processes[0].unknown_bytes <= 64 * 4096'
	expect_check 0
done
kill -9 "$pid"
