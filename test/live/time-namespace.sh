#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# In a time namespace the kernel's events use the machine's clock, whatever the recorder's clock. Times that would be wrong
# are refused; a time namespace of the target makes no difference.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
moved=(unshare --time --fork --monotonic 1000000)
"${moved[@]}" true 2>/dev/null || skip "no time namespaces can be made here"
expect_refusal 2 'clock of this time namespace' "${moved[@]}" "$MMTRACE" record -o "$recording" -- touch started
[ ! -e started ] && [ ! -e "$recording" ] || fail "the command ran, or a file is left"
"${moved[@]}" "$MMTRACE" check >check.txt && fail "check says that something can be recorded: $(cat check.txt)"
grep -q '^MISSING  namespaces .*time namespace' check.txt || fail "check does not say why: $(cat check.txt)"

# Clocks without an offset are the machine's.
unshare --time --fork "$MMTRACE" record -q -o "$recording" -- "$workloads/leak-anon" --exit >workload.out 2>record.log ||
	fail "record in a time namespace of the same time: $(cat record.log)"
report_json
expect_true_report
expect_workload_answer no

# Only the target's clock differs.
start_command "${moved[@]}" "$workloads/leak-anon"
pid=$(child_of "$pid")
start_recording -p "$pid"
let_work
stop_recording
report_json
expect_true_report
expect_json '.processes | length == 1 and all(.checked)'
expect_workload_answer yes
