#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: perf:linux-perf
# A file of plain perf record gives the right bytes and a message about what it is missing.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
need_own_mounts
command -v perf >/dev/null || skip "no perf is installed"
export BUILD directory
unshare -m bash -c '
	[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing || exit 99
	events=syscalls:sys_enter_mmap,syscalls:sys_exit_mmap,syscalls:sys_enter_munmap,syscalls:sys_exit_munmap
	perf record -q -g -e "$events" -o "$directory/mmtrace.data" -- "$BUILD/test/workload/leak-partial" --exit
' >workload.out 2>perf.log
status=$?
[ $status != 99 ] || skip "tracefs cannot be mounted: $(cat perf.log)"
[ $status = 0 ] || fail "perf record ended with status $status: $(cat perf.log)"

report_json
# Without CFI the stacks of the workload contain only mmap; those of the loader stay in the loader.
expected=$(sed -n 's/^expect total=//p' workload.out)
expect_json "[.groups[] | select(any(.frames[]; .function == \"mmap\" and (.module | startswith(\"libc\"))))] |
	map(.unfreed_bytes) | add == $expected"
expect_json '.recorded_by | startswith("perf ")'
expect_json '.events.mmap > 5 and .events.munmap > 5'
expect_json '[.completeness.warnings[] | select(test("mremap"))] | length > 0'
expect_json '[.completeness.warnings[] | select(test("brk"))] | length > 0'
expect_json '.processes | all(.checked | not)'
"$MMTRACE" report --no-pager -i "$recording" >report.txt 2>&1 || fail "report ended with status $?"
grep -q mremap report.txt || fail "the text does not say what is missing"
"$MMTRACE" dump -i "$recording" >dump.txt || fail "dump ended with status $?"
[ "$(grep -c sys_enter_munmap dump.txt)" -gt 5 ] || fail "dump shows no munmap"

# Without munmap events nothing can be reliably called unfreed: the report says so.
unshare -m bash -c '
	[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
	perf record -q -g -e syscalls:sys_enter_mmap,syscalls:sys_exit_mmap -o "$directory/mmtrace.data" -- \
		"$BUILD/test/workload/leak-partial" --exit' >/dev/null 2>&1
report_json
expect_json '[.completeness.warnings[] | select(test("munmap"))] | length > 0'
