#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Page faults are sampled with their stacks, for a whole process and for single threads, on CPUs and per thread; every fault
# is recorded if that is asked for. perf reads them, and a packed recording keeps their stacks.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
pages=$(((64 + 16) * 1048576 / $(getconf PAGE_SIZE)))
left_out=0
# expect_faults LEAST MOST: this many faults fewer or more than pages were touched.
expect_faults() {
	"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
	! grep -q 'page faults lost' "$directory/record.log" || {
		left_out=$((left_out + 1))
		return
	}
	awk -v pages="$pages" -v least="$1" -v most="$2" '/ fault event=minor-faults/ {
		match($0, /weight=[0-9]+/)
		sum += substr($0, RSTART + 7, RLENGTH - 7)
	}
	END { print sum, "faults of", pages, "pages"; exit !(sum >= pages - least && sum <= pages + most) }' \
		"$directory/dump.out" || fail "$options: another number of page faults"
}
for options in --faults=sampled --faults=all '--faults=sampled --scope=threads' '--faults=sampled --scope=cpus' '--faults=sampled --lean'; do
	start_workload touch
	read -r -a words <<<"$options -p $pid"
	record_work --raw "${words[@]}"
	expect_true_report
	# Other processes have faults on the same CPU: six standard deviations of so many samples. The program has some
	# hundred other faults, too.
	if [ "$options" = --faults=all ]; then
		expect_faults 0 1500
	else
		expect_faults 8500 10000
	fi
done
[ "$left_out" -lt 5 ] || skip "samples were lost in each recording"
start_workload touch
record_work --raw --no-compress --faults=sampled -p "$pid"
if command -v perf >/dev/null && perf script -i "$recording" >"$directory/script.out" 2>/dev/null; then
	grep -q 'minor-faults' "$directory/script.out" && grep -q 'fill_pool+' "$directory/script.out" ||
		fail "perf does not show the page faults"
fi
"$MMTRACE" pack -o "$directory/packed.data" "$recording" 2>"$directory/pack.log" || fail "pack: $(cat "$directory/pack.log")"
# The kernel's callchain misses the direct caller where there are no frame pointers; the packed one is complete.
if command -v perf >/dev/null && perf script -i "$directory/packed.data" >"$directory/script.out" 2>/dev/null; then
	awk '/minor-faults/ { samples++ } /fill_pool\+/ { filled++ } / main\+/ { main++ } END {
		print samples, filled, main
		exit !(filled > samples / 2 && main > samples / 2) }' "$directory/script.out" ||
		fail "the stacks of page faults are not in the packed recording"
fi
grep -c ' fault event=minor-faults' <("$MMTRACE" dump -i "$directory/packed.data") >"$directory/packed.count"
grep -c ' fault event=minor-faults' <("$MMTRACE" dump -i "$recording") | cmp - "$directory/packed.count" ||
	fail "the packed recording lacks page faults"
