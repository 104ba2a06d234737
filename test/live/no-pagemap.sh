#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder may not read which pages of a process are resident: it says so once, and the report says that its answer is
# based on RSS and committed bytes.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
preload guarded-maps
start_workload growth mmap
rm -f "$recording"
NO_PAGEMAP=$pid "${preload[@]}" env --default-signal=INT "$MMTRACE" record -o "$recording" -p "$pid" 2>record.log 3>&- &
recorder=$!
processes+=("$recorder")
wait_until "mmtrace record to attach" recorder_attached
wait_for_first_snapshots
let_work
let_recorder_catch_up
stop_recording
let_end
grep -q "warning: cannot read which pages of process $pid are resident (/proc/$pid/pagemap: permission denied): the report uses" record.log ||
	fail "no warning: $(cat record.log)"
[ "$(grep -c 'which pages of' record.log)" = 1 ] || fail "not one warning: $(cat record.log)"
report_json
expect_true_report
expect_json '.growth | .end_bytes - .start_bytes >= 40 * 1048576 and .pages_end_bytes == null'
expect_json ".committed_bytes >= 40 * 1048576 and (.processes | all(.resident_bytes == null))"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
grep -q 'resident pages were not recorded' report.txt ||
	fail "the report does not say what it is based on: $(head -5 report.txt)"
grep -q 'no leak' report.txt && fail "no leak, of a process that grew"

# If they can be read, there is no message.
start_workload growth mmap
start_recording -p "$pid"
let_work
stop_recording
let_end
grep -q 'which pages of' record.log && fail "unexpected warning: $(cat record.log)"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
grep -q 'resident pages were not recorded' report.txt && fail "it was recorded: $(head -5 report.txt)"
exit 0
