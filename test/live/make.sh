#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# record -- make -j: hundreds of short processes that each execute a program. Each process is in the report with every call
# it made, with per-thread and per-CPU events.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v make >/dev/null || skip "make is not installed"
jobs=300

# Calls that mapped through a function of the program.
mapping_calls() {
	jq '[.groups[] | select(any(.frames[]; .function == "map_block")) | .allocated_count] | add' "$directory/report.json"
}

command_case leak-partial
calls=$(mapping_calls)
[ "$calls" -gt 0 ] || fail "the program alone maps nothing"

# Each recipe is a shell that starts a program.
cat >Makefile <<END
all: $(seq -s ' ' -f 'job-%.0f' $jobs)
job-%:
	@true; $workloads/leak-partial --exit >$directory/\$@.out
END
use_own_group
for scope in threads "${cpu_scopes[@]}"; do
	"$MMTRACE" record --scope $scope -g fp -m 64M -o "$recording" -- make -j4 -f Makefile >make.out 2>record.log ||
		fail "record -- make ended with status $?: $(cat record.log)"
	[ "$(cat job-*.out | grep -c '^done')" = $jobs ] || fail "make has not done its jobs"
	rm -f job-*.out
	report_json
	expect_true_report
	expect_json '.completeness.missed_threads == 0'
	expect_json '.processes | map(select(.name == "make")) | length == 1'
	expect_json ".processes | map(select(.name == \"leak-partial\")) | length == $jobs and all(.ended)"
	# They all did the same.
	expect_json '.processes | map(select(.name == "leak-partial") | .unfreed_bytes) | unique | length == 1 and .[0] > 0'
	[ "$(mapping_calls)" = $((jobs * calls)) ] ||
		fail "--scope $scope: $(mapping_calls) calls instead of $jobs times $calls"
done
