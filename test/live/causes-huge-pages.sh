#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A program writes one byte in each of its huge pages. The report says how much of them was never written and what helps,
# also for memory from before the recording. It says nothing if the pages are full, without
# huge pages, or in a recording that reads no memory of the process.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf
setting=$(cat /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null)
[[ $setting == *"[always]"* || $setting == *"[madvise]"* ]] || skip "this system has no transparent huge pages"
mib=$((1 << 20))

# expect_sparse FILTER: of about 64 MiB almost nothing was written.
expect_sparse() {
	expect_json "$1 | .bytes >= 60 * $mib and .bytes <= 72 * $mib and .zero_bytes > .bytes * 0.9 and .zero_bytes <= .bytes"
}

record_cause "$workloads/causes" huge-pages
if [ "$(jq '.huge_pages' report.json)" = null ]; then
	skip "this kernel does not show which pages are huge (before Linux 6.7)"
fi
expect_sparse '.huge_pages'
expect_cause 'prctl(PR_SET_THP_DISABLE)'
grep -qE 'MiB in huge pages, about 6[0-9.]+ MiB of it never written \(all zero; sample: [0-9.]+ MiB\)' report.txt ||
	fail "no figure: $(cat report.txt)"
"$MMTRACE" pack -q -i "$recording" -o packed.data || fail "pack ended with status $?"
"$MMTRACE" report --json -i packed.data | jq .huge_pages >packed.json
jq .huge_pages report.json | cmp - packed.json || fail "packed: $(cat packed.json)"

record_cause "$workloads/causes" huge-pages fixed
expect_no_cause
expect_json ".huge_pages | .bytes <= 8 * $mib and .hint == null"

record_cause "$workloads/causes" old-huge-pages
expect_sparse '.huge_pages'
expect_cause 'prctl(PR_SET_THP_DISABLE)'

record_cause "$workloads/causes" full-huge-pages
expect_no_cause 'huge page'
expect_json ".huge_pages | .bytes >= 60 * $mib and .zero_bytes <= 4 * $mib"

# Without stacks and most other data: no memory of the process is read.
start_command "$workloads/causes" huge-pages
start_recording -q -p "$pid" -g none
go_on_until 'done'
let_recorder_catch_up
stop_recording
report_json
expect_json ".huge_pages | .bytes >= 60 * $mib and .zero_bytes == null and .hint == null"
