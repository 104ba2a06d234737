#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A program changes the user or group ID of its thread: the kernel ends the thread's events, which mmtrace reports; per-CPU
# events continue.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
use_own_group
[ "$(id -u)" = 0 ] || skip "only root can make a set-user-ID program"
chmod 755 "$directory"
cp "$workloads/leak-anon" others-rights
chmod 4755 others-rights
as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
! findmnt -n -o OPTIONS -T "$directory" | grep -qw nosuid ||
	skip "programs in $directory do not get the rights of others"

# record_program SCOPE
record_program() {
	"$MMTRACE" record --scope "$1" -o "$recording" -- "${as_user[@]}" ./others-rights --exit >workload.out 2>record.log ||
		fail "record ended with status $?: $(cat record.log)"
	report_json
}
record_program threads
expect_json '.completeness.warnings | map(select(contains("others-rights") and contains("--scope cpus"))) | length == 1'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report"
grep -q 'note: the calls of program others-rights are not in the recording' report.txt || fail "not reported: $(cat report.txt)"

for scope in "${cpu_scopes[@]}"; do
	record_program $scope
	expect_json '.completeness.warnings | all(contains("others-rights") | not)'
	expect_true_report
	expect_workload_answer no
done

# A change of the group is enough.
chgrp 1 others-rights && chmod 2755 others-rights || fail "no set-group-ID program"
record_program threads
expect_json '.completeness.warnings | map(select(contains("others-rights") and contains("set-group-ID"))) | length == 1'
record_program cpus
expect_json '.completeness.warnings | all(contains("others-rights") | not)'
expect_workload_answer no

# A set-user-ID exec that changes no ID is recorded in both ways.
chmod 755 others-rights
record_program threads
expect_json '.completeness.warnings | all(contains("others-rights") | not)'
expect_workload_answer no
