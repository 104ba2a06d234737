#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# With every page fault recorded, the model's touched pages are those that the kernel has, in random programs: page by page,
# after memory was given back, unmapped, moved, read without being written and copied by a child, and in huge pages.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
[ -r /proc/self/pagemap ] || skip "/proc/PID/pagemap cannot be read here"
compared=0
for seed in {1..8}; do
	start_workload touch pages "$seed"
	record_work --raw --faults=all -p "$pid"
	expect_true_report
	if grep -q 'page faults lost' "$directory/record.log"; then
		echo "seed $seed: $(grep 'page faults lost' "$directory/record.log")"
		continue
	fi
	"$BUILD/test/touched-pages" "$recording" >"$directory/all" || fail "touched-pages: status $?"
	sed -n 's/^page [a-z]* //p' "$directory/workload.out" | sort >"$directory/kernel"
	awk 'NR == FNR { if ($1 == "area") area[$2]; next } $3 in area { print $2, $3 }' "$directory/workload.out" \
		"$directory/all" | sort >"$directory/model"
	[ "$(wc -l <"$directory/kernel")" -gt 400 ] && [ "$(cut -d' ' -f1 "$directory/kernel" | sort -u | wc -l)" = 2 ] ||
		fail "seed $seed: the workload touched too little"
	diff "$directory/kernel" "$directory/model" >"$directory/difference" ||
		fail "seed $seed: the kernel (<) and the model (>) differ: $(head -20 "$directory/difference")"
	compared=$((compared + 1))
done
[ $compared -ge 4 ] || skip "page faults were lost in $((8 - compared)) of 8 recordings"
