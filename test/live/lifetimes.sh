#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The lifetimes of a stack's mappings distinguish a leak, a cache and temporary memory.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
start_workload lifetimes
start_recording -p "$pid"
let_work
let_recorder_catch_up
stop_recording
let_end
report_json
expect_true_report

# expect_verdict FUNCTION VERDICT
expect_verdict() {
	expect_json "[.groups[] | select(any(.frames[]; .function == \"$1\")).verdict] == [\"$2\"]"
}
expect_verdict leak_some leak
expect_verdict fill_cache cache
expect_verdict serve_request traffic
expect_verdict collect traffic
# The leak is a twentieth of what was mapped. The lifetime of each mapping depends on the load of the machine.
expect_json '.groups[] | select(any(.frames[]; .function == "leak_some")) |
	.unfreed_count == 100 and .freed_count == 1900 and .outlived_ns > 0 and .survivor_trend[31] == .unfreed_bytes'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
for words in '   LEAK   ' '   cache   ' '   short-lived   '; do
	grep -qF -- "$words" report.txt || fail "no '$words': $(cat report.txt)"
done

# The leak is the first cause, separate from what else its wrapper maps.
expect_json '(.causes[0] | .verdict == "leak" and .unfreed_count >= 100 and (.groups | length) == 1) and
	([.causes[] | select(.verdict == "leak")] | length) == 1 and
	.causes[0].groups[0] == (.groups[] | select(any(.frames[]; .function == "leak_some")).id)'
grep -qE '^ +[0-9]+ +[0-9.]+ MiB +\+[0-9.]+ MiB  LEAK .* leak_some ' report.txt || fail "no cause leaks: $(cat report.txt)"

# The kernel's limit on mappings, and how close the process is to it.
expect_json ".mapping_limit == $(cat /proc/sys/vm/max_map_count) and .processes[0].mapping_count > 0"
"$MMTRACE" report --no-pager --sort mappings -i "$recording" >mappings.txt || fail "report ended with status $?"
grep -qE '^mappings at the end +[0-9,]+ of [0-9,]+ \(vm\.max_map_count\)$' mappings.txt || fail "no limit: $(cat mappings.txt)"
"$MMTRACE" pack -i "$recording" -o packed.data || fail "pack ended with status $?"
[ "$("$MMTRACE" report --json -i packed.data | jq .mapping_limit)" = "$(cat /proc/sys/vm/max_map_count)" ] ||
	fail "pack lost the limit"
