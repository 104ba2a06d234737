#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Programs that are replaced while they run, or deleted before the report, are kept in the recording.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
program=$directory/program

expect_names() {
	expect_true_report
	expect_workload_answer yes
	expect_json '.completeness.warnings == []'
}

# Replaced by another program after the start, as an update does; existing files are not copied.
cp "$workloads/jit-code" "$program"
start_command "$program"
cp "$workloads/noleak" "$directory/other"
mv "$directory/other" "$program"
record_work --raw -p "$pid"
expect_names
replaced=$(stat -c %s "$recording")

# All files, for another machine: libc is as large as all the others together.
cp "$workloads/jit-code" "$program"
start_command "$program"
start_recording --raw -p "$pid" --images all
let_work
stop_recording
let_end
rm "$program"
report_json
expect_names
[ "$(stat -c %s "$recording")" -gt $((replaced + 300000)) ] || fail "--images all copies no library"

# A program that is unchanged at its path is not copied.
start_workload jit-code
record_work --raw -p "$pid"
expect_names
[ "$(stat -c %s "$recording")" -lt "$replaced" ] || fail "a program was copied unnecessarily"
