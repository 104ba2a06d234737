#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Three generations of processes are forked within a moment on different CPUs, hundreds of times: the call of each
# grandchild is recorded, whatever the order in which the rings are read, with per-thread and per-CPU events.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
use_own_group
families=300
for scope in threads "${cpu_scopes[@]}"; do
	start_workload generations $families
	record_work --scope $scope -m 64M -g fp --images none --code none -p "$pid"
	expect_true_report
	expect_json '.completeness.missed_threads == 0'
	expect_json ".processes | length == $((1 + 3 * families))"
	expect_json "[.groups[] | select(any(.frames[]; .function == \"map_as_the_youngest\")) | .allocated_count] | add == $families"
	expect_check 0
done
