#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# The cheapest recording has correct figures; stacks of ordinary programs reach the leaking function, and truncated stacks
# are marked.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# record_lean WORKLOAD [ARGUMENT]...: attach to it while it works.
record_lean() {
	start_workload "$@"
	start_recording --raw --lean -p "$pid"
	let_work
	stop_recording
	report_json
	expect_json '.processes | all(.checked)'
	expect_json '.completeness.lost_events == 0'
	# A stack ends at the thread's entry or with the dump; nothing extends it.
	expect_json '.completeness.stacks_by_end | .entry + .dump_exhausted > 0 and .callchain_end == 0 and .invalid == 0'
}

record_lean leak-anon
expect_true_report
expect_workload_answer yes
let_end
expect_json '[.groups[] | select(any(.frames[]; .function == "leak_inner"))] | length >= 1 and
	all(.stack_end == "entry" or .stack_end == "dump_exhausted")'
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
! grep -q callchain= "$directory/dump.out" || fail "a lean recording has callchains"
grep -q 'stack_bytes=1024/1024' "$directory/dump.out" || fail "a lean recording has no dumps of 1024 bytes"

for workload in leak-partial leak-remap leak-brk leak-file leak-thread; do
	record_lean $workload
	expect_true_report
	expect_workload_answer yes
	let_end
done

# Only MMAP2 records of data mappings tell how much shmat() attaches: memory found only at the end is marked as such.
record_lean leak-shm
let_end
expect_json '.processes | all(.mismatch_bytes > 0 and .mismatch_bytes == .reconciled_bytes)'
expect_check 1

# Deeper than the dump: truncated, and marked so.
start_workload deep-stack
record_work --lean -p "$pid"
expect_json '.completeness.stacks_by_end.dump_exhausted > 0'

# A larger dump, and none.
"$MMTRACE" record -q --raw --lean -g dwarf,16384 -o "$recording" -- "$workloads/leak-anon" --exit >/dev/null ||
	fail "record --lean -g dwarf,16384 ended with status $?"
report_json
expect_json '[.groups[] | select(any(.frames[]; .function == "leak_inner"))] | length == 1 and all(.stack_end == "entry")'
"$MMTRACE" record -q --lean -g none -o "$recording" -- "$workloads/leak-anon" --exit >/dev/null ||
	fail "record --lean -g none ended with status $?"
report_json
expect_json '.completeness.stacks_by_end | add == .not_recorded'

"$MMTRACE" record --lean -g fp -o refused.data -- true 2>"$directory/record.log"
status=$?
[ $status = 2 ] && grep -q -- '--lean' "$directory/record.log" || fail "--lean -g fp: status $status: $(cat "$directory/record.log")"
[ ! -e refused.data ] || fail "a refused recording has left a file"
