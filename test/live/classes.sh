#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Memory of every class: the bytes by class, each class alone, and the sums.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

borrow_huge_pages 3
start_workload classes
record_work -p "$pid"
expect_true_report
expect_check 0
total=$(jq .unfreed_bytes report.json)
expect_json '. as $report | all(.groups[]; ([.class_bytes[]] | add) == .unfreed_bytes)'
report_json --by class
cp report.json by-class.json
expect_json "([.groups[].unfreed_bytes] | add) == .unfreed_bytes and .unfreed_bytes == $total"

sum=0
while read -r _ name unfreed; do
	unfreed=${unfreed#unfreed=}
	sum=$((sum + unfreed))
	report_json --class "$name"
	got=$(jq .unfreed_bytes report.json)
	[ "$got" = "$unfreed" ] || fail "$name: expected $unfreed, got $got: $(jq -c '.groups | map({ name, unfreed_bytes })' by-class.json)"
	expect_json "all(.groups[]; .class_bytes | with_entries(select(.value > 0)) | keys - [\"$name\"] == [])"
	expect_json "[.groups[] | select(.name == \"$name\") | .unfreed_bytes] | (add // 0) == $unfreed" by-class.json
	# Its own committed bytes, whichever call made them accessible; and its own threads.
	expect_json "[.groups[] | select(.name == \"$name\")] |
		all(.committed_bytes + .reserved_bytes == .unfreed_bytes)" by-class.json
	expect_json "([.thread_totals[].unfreed_bytes] | add // 0) == $unfreed and
		([.thread_totals[].allocated_bytes] | add // 0) == .allocated_bytes and
		([.releases[].bytes] | add // 0) == .freed_bytes"
done < <(grep '^class ' workload.out)
[ $sum = "$total" ] || fail "the classes hold $sum of $total bytes"
if [ "$borrowed_huge_pages" -ge 3 ]; then
	report_json --class hugetlb
	expect_json '.unfreed_bytes == 2 * 2097152 and .allocated_bytes == 3 * 2097152 and .freed_bytes == 2097152'
else
	echo "huge pages left out: the system lends $borrowed_huge_pages of 3"
fi
report_json --class heap,shm
expect_json '[.groups[].class_bytes | .heap + .shm] | add == (11 + 19) * 4096'
