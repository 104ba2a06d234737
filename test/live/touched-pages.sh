#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# With every page fault recorded, the model's touched pages are those that the kernel has: page by page, after memory was
# given back, unmapped, moved and copied by a child.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
[ -r /proc/self/pagemap ] || skip "/proc/PID/pagemap cannot be read here"
start_workload touch pages
record_work --raw --faults=all -p "$pid"
expect_true_report
! grep -q 'page faults lost' "$directory/record.log" || fail "page faults were lost: $(cat "$directory/record.log")"
"$BUILD/test/touched-pages" "$recording" >"$directory/all" || fail "touched-pages: status $?"
sed -n 's/^page [a-z]* //p' "$directory/workload.out" | sort >"$directory/kernel"
awk 'NR == FNR { if ($1 == "area") area[$2]; next } $3 in area { print $2, $3 }' "$directory/workload.out" \
	"$directory/all" | sort >"$directory/model"
[ "$(wc -l <"$directory/kernel")" -gt 400 ] && [ "$(cut -d' ' -f1 "$directory/kernel" | sort -u | wc -l)" = 2 ] ||
	fail "the workload touched too little"
diff "$directory/kernel" "$directory/model" >"$directory/difference" ||
	fail "the kernel (<) and the model (>) differ: $(head -20 "$directory/difference")"
