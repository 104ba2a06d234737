#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# Memory that is swapped out belongs to its row, private or shared; guard pages, which the pagemap shows as swapped
# out, do not.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
swap_file=$directory/swap
dd if=/dev/zero of="$swap_file" bs=1M count=96 status=none && chmod 600 "$swap_file" && mkswap "$swap_file" >/dev/null 2>&1 &&
	swapon "$swap_file" 2>/dev/null || skip "no swap file can be used here"
trap 'swapoff "$swap_file"; end_everything' EXIT

# row FUNCTION FIELD: the sum over the stacks of this function.
row() {
	echo "([.groups[] | select(any(.frames[]; .function == \"$1\")) | .$2] | add // 0)"
}

start_workload growth swap
start_recording -p "$pid"
let_work
let_recorder_catch_up
swapped_shared=$(awk '/^[0-9a-f]+-/ { shared = $2 ~ /s/ } /^Swap:/ && shared { sum += $2 } END { print sum * 1024 }' "/proc/$pid/smaps")
stop_recording
let_end
swapped=$(sed -n 's/^swapped //p' "$directory/workload.out")
[ "$swapped" -gt 0 ] || skip "the kernel swapped nothing out"
report_json
expect_true_report
# The kernel may swap in neighbours of pages that it reads.
expect_json "$(row map_swapped swapped_bytes) - $swapped | fabs <= 1048576"
expect_json "$(row map_swapped memory_bytes) - 41943040 | fabs <= 65536"
expect_json "$(row map_shared swapped_bytes) - $swapped_shared | fabs <= 1048576"
expect_json "$(row map_guarded swapped_bytes) == 0 and $(row map_guarded resident_bytes) == 10485760"
expect_json '.groups[0] | any(.frames[]; .function == "map_swapped")'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
grep -qE '^ 1 +40.00 MiB (resident or )?swapped out' report.txt || fail "no swapped row: $(cat report.txt)"
grep -q 'address space without memory' report.txt && fail "memory is missing: $(cat report.txt)"
exit 0
