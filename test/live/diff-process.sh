#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Two recordings of one process: diff shows what it holds now and did not hold when the first recording ended.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
block=16384

start_workload owners
start_recording -p "$pid"
go_on_until round
stop_recording
mv "$recording" first.data
go_on_until unmapped
start_recording -p "$pid"
let_work
stop_recording
mv "$recording" second.data
let_end

"$MMTRACE" diff --json first.data second.data >diff.json || fail "diff --json"
expect_json '.relation == "same-process" and .between_ns == .after.start_ns - .before.end_ns and
	(.before.processes[0].start_boot_ns > 0) and .before.processes[0].start_boot_ns == .after.processes[0].start_boot_ns' diff.json
# The second round is growth although the first one mapped as much; one block was unmapped between them.
expect_json ".bytes == .after.unfreed_bytes and all(.entries[]; .change == \"grown\" or .change == \"new\")" diff.json
expect_json "[.entries[] | select(any(.after.frames[]; .function == \"keep_file\")) | .bytes] == [$((13 * block))]" diff.json
expect_json ".mapped_after_bytes - .mapped_before_bytes == .after.unfreed_bytes - $block" diff.json
"$MMTRACE" diff --no-pager first.data second.data >diff.txt || fail "diff"
grep -q '^One process in both recordings: the second began' diff.txt && grep -q -- '-16.00 KiB by calls between' diff.txt ||
	fail "the text does not identify the process: $(cat diff.txt)"
grep -q 'RSS: .* when the first ended, .* when the second began' diff.txt || fail "no RSS: $(cat diff.txt)"
"$MMTRACE" diff --fail-above $((13 * block)) first.data second.data >/dev/null 2>above.log
[ $? = 1 ] && grep -q 'functions that grew hold' above.log || fail "--fail-above: $(cat above.log)"

# The order of the two matters; a packed recording still identifies its process.
"$MMTRACE" diff --json second.data first.data >diff.json || fail "diff --json"
expect_json '.relation == "runs" and .between_ns == null and .mapped_before_bytes == null' diff.json
"$MMTRACE" pack -q -o packed.data first.data && "$MMTRACE" diff --json packed.data second.data >diff.json || fail "pack"
expect_json '.relation == "same-process"' diff.json

# Growth while nothing was recorded, by kind of memory; the parts add up to the growth of RSS.
start_workload growth kinds
start_recording -p "$pid"
go_on_until round
let_recorder_catch_up
stop_recording
mv "$recording" kinds-1.data
go_on_until grown
start_recording -p "$pid"
stop_recording
let_work
let_end
read -r bytes stacks arenas < <(sed -n 's/^touched //p' "$directory/workload.out")
"$MMTRACE" diff --json kinds-1.data "$recording" >diff.json || fail "diff --json"
expect_json '([.between_parts[].bytes] | add) + .between_unexplained_bytes == .between_bytes and
	.between_bytes == .after.growth.start_bytes - .before.growth.end_bytes' diff.json
expect_json '.between_unexplained_bytes | fabs <= 1048576' diff.json
# expect_kind BYTES FILTER: within 1 MiB.
expect_kind() {
	expect_json "[.between_parts[] | select($2).bytes] | add - $1 | fabs <= 1048576" diff.json
}
expect_kind "$bytes" '.class == "heap"'
expect_kind "$bytes" '.class == "anon" and (.arena | not)'
expect_kind "$arenas" .arena
expect_kind "$stacks" '.class == "thread-stack"'
expect_kind "$bytes" '.class == "shm"'
expect_kind "$bytes" '.class == "file" and .name == "/memfd:growth"'
expect_kind "$bytes" '.class == "file" and (.name | contains("/memfd:") or endswith(".so") or contains(".so.") | not)'
"$MMTRACE" diff --no-pager kinds-1.data "$recording" >diff.txt || fail "diff"
grep -qE '^ +\+(39|4[0-2])\.[0-9]+ MiB  malloc arenas$' diff.txt && grep -qE '^ +\+40\.[0-9]+ MiB  the heap \(brk\)$' diff.txt ||
	fail "the text does not name what grew: $(cat diff.txt)"

# RSS covers all memory: it decides unless memory is selected. How much of the selected memory is older is unknown.
"$MMTRACE" diff --fail-above 50M kinds-1.data "$recording" >/dev/null 2>above.log
[ $? = 1 ] && grep -Eq 'RSS (and swap )?grew by' above.log || fail "--fail-above ignores RSS: $(cat above.log)"
"$MMTRACE" diff --fail-above 50M --focus class=heap kinds-1.data "$recording" >/dev/null 2>above.log ||
	fail "--fail-above with --focus compares RSS: $(cat above.log)"
"$MMTRACE" diff --json --ignore class=heap kinds-1.data "$recording" >diff.json || fail "diff --ignore"
expect_json '.relation == "same-process" and .mapped_before_bytes == null and .mapped_after_bytes == null' diff.json

# A second run is not the same process, and another program causes a warning.
start_workload owners
start_recording -p "$pid"
go_on_until round
stop_recording
go_on_until unmapped
let_work
let_end
mv "$recording" other-run.data
"$MMTRACE" diff --json first.data other-run.data >diff.json || fail "diff --json"
expect_json '.relation == "runs"' diff.json
attach_case leak-anon
"$MMTRACE" diff --json first.data "$recording" >diff.json 2>warning.txt || fail "diff --json"
expect_json '.relation == "other-program"' diff.json
grep -q 'warning: the recordings are of different programs' warning.txt || fail "no warning: $(cat warning.txt)"
"$MMTRACE" diff --no-pager first.data "$recording" | grep -q '^warning: the recordings are of different programs (owners and leak-anon)' ||
	fail "the text has no warning"
exit 0
