#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A process with many threads is recorded completely with events of groups and of CPUs. They need as many descriptors for any
# number of threads, and the rings of all CPUs take at most 240 MiB. test/vm runs it with VM_CPUS=64.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
use_own_group
cpus=$(nproc)
threads=300

# expect_mapped FUNCTION COUNT: this many calls through it.
expect_mapped() {
	expect_json "[.groups[] | select(any(.frames[]; .function == \"$1\")) | .allocated_count] | add // 0 | . == $2"
}

for scope in "${cpu_scopes[@]}"; do
	start_workload many-idle $threads
	start_recording -v --raw --scope $scope -p "$pid"
	descriptors=$(find "/proc/$recorder/fd" -lname '*perf_event*' | wc -l)
	ring_bytes=0
	while IFS=- read -r begin end; do
		ring_bytes=$((ring_bytes + 0x$end - 0x$begin))
	done < <(sed -n 's/ .*anon_inode:\[perf_event\]$//p' "/proc/$recorder/maps")
	let_work
	stop_recording
	let_end
	report_json
	expect_true_report
	expect_json '.completeness | .lost_events == 0 and .lost_stack_dumps == 0 and .missed_threads == 0 and .missed_cpus == 0'
	expect_mapped map_in_thread $((threads / 100))
	expect_mapped map_in_new_thread 2
	expect_check 0
	echo "$cpus CPUs, $threads threads, --scope $scope: $descriptors descriptors, rings of $((ring_bytes >> 10)) KiB," \
		"$(grep -oE 'in [0-9.,]+ m?s' record.log | head -1)"
	[ "$descriptors" -le $((36 * (cpus + 1))) ] || fail "$descriptors descriptors"
	[ "$ring_bytes" -le $(((240 << 20) + 3 * cpus * 4096)) ] || fail "rings of $ring_bytes bytes"
done
