#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Leaked AIO contexts are attributed to the stack that called io_setup. The totals include what the kernel maps by itself
# and stacks that grow, and equal the kernel's maps.
source "$SOURCE/test/live/support/recording.bash" || exit 2

# Checked processes only.
expect_all_in_sums() {
	expect_json '[.processes[] | select(.checked)] | length >= 1 and
		all(.unfreed_bytes + .before_bytes + .kernel_bytes == .compared_bytes)'
}

need_perf
attach_case leak-aio
expect_all_in_sums
expect_json '.processes[0].kernel_bytes > 900000'

begin_command -q -g none -- "$workloads/leak-aio"
wait_until "the command to be ready" workload_printed ready
let_work
let_recorder_catch_up
stop_recording
report_json
expect_true_report
expect_all_in_sums
expect_json '.kernel_bytes > 900000 and .before_bytes == 0'
"$MMTRACE" report --no-pager -i "$recording" | grep -q '^mapped by the kernel  *[0-9.]* MiB ' || fail "no row for the kernel's mappings"
