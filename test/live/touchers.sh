#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Growth in memory that was mapped before names the function that touched it, sampled figures with their error; a malloc heap
# names none, because the function that needs the next page is not the one that keeps it.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/golden/first-screen.bash" || exit 2

need_perf
pool=$((64 << 20))
others=$((16 << 20))
anonymous='(.growth.parts[] | select(.place == "before" and .class == "anon"))'
# record_all_beside: every fault is recorded, too, by another recorder.
record_all_beside() {
	"$MMTRACE" record --faults=all -o "$directory/beside.data" -p "$pid" 2>"$directory/beside.log" 3>&- &
	processes+=("$!")
	wait_until "the other recorder to attach" grep -q 'Ctrl-C stops' "$directory/beside.log"
}
beside=
# record_faults OPTION WORKLOAD...: again where another process filled the ring of a CPU.
record_faults() {
	local attempt
	for attempt in 1 2 3 4 5; do
		start_workload "${@:2}"
		$beside
		record_work "$1" -p "$pid"
		! "$MMTRACE" report --json -i "$recording" | jq -e '.completeness.lost_faults > 0' >/dev/null || continue
		return
	done
	skip "samples of page faults were lost $attempt times"
}
# expect_touchers ALLOWED: each size is within so many times its stated error, which 95 of 100 are within once.
expect_touchers() {
	expect_true_report
	expect_json ".growth.faults_recorded and .completeness.lost_faults == 0"
	expect_json "$anonymous | .bytes >= $pool + $others and .touched_bytes <= .bytes and (.touchers | length) >= 2"
	expect_json "$anonymous.touchers | (.[0].function | startswith(\"fill_pool \")) and
		(.[1].function | startswith(\"fill_others \")) and
		(.[0].bytes - $pool | fabs) <= $1 * .[0].error_bytes and (.[1].bytes - $others | fabs) <= $1 * .[1].error_bytes"
	# Without frame pointers, a stack is only complete with its dump, which would cost more than a fault.
	[ "$1" = 0 ] || expect_json "$anonymous.touchers | all(.[:2][]; .stack_end == \"entry\" and
		any(.frames[]; .function == \"main\"))"
	"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report: status $?"
	grep -qE "by fill_pool \(touch\): [0-9.]+ MiB$2; fill_others \(touch\): [0-9.]+ MiB" "$directory/report.txt" &&
		! grep -q 'which code touches' "$directory/report.txt" || {
		cat "$directory/report.txt" >&2
		fail "the text does not say who touched the memory"
	}
	# The stack is on the first screen.
	expect_first_screen
	grep -E '^(touched|trust): ' "$directory/screen.txt" | head -1 | grep -q '^touched: ' ||
		fail "no stack of touched memory stands above the line on trust: $(cat "$directory/screen.txt")"
}
# expect_rows ALLOWED: the same as rows by touch, the program's function first in the text.
expect_rows() {
	"$MMTRACE" report --by touch --json -i "$recording" >"$directory/rows.json" || fail "--by touch: status $?"
	jq -e "[.groups[] | select(.pattern == null)] | .[0] as \$a | .[1] as \$b |
		(\$a.frames | any(.[]; .function == \"fill_pool\")) and (\$b.frames | any(.[]; .function == \"fill_others\")) and
		(\$a.memory_bytes - $pool | fabs) <= $1 * \$a.touched_error_bytes and
		(\$b.memory_bytes - $others | fabs) <= $1 * \$b.touched_error_bytes and
		all(.[]; .verdict == \"unknown\")" "$directory/rows.json" >/dev/null ||
		fail "other rows by touch: $(jq -c '.groups[:3]' "$directory/rows.json")"
	"$MMTRACE" report --by touch --no-pager -i "$recording" | grep -qE '^ 1  +6[0-9.]+ MiB touched' ||
		fail "the text does not show what was touched"
}
# expect_exports: formats of stacks have the same figures, and those of times refuse.
expect_exports() {
	local bytes
	bytes=$(jq '[.groups[].memory_bytes] | add' "$directory/rows.json")
	"$MMTRACE" export --by touch -f folded -i "$recording" >"$directory/touched.folded" || fail "folded: status $?"
	awk -v all="$bytes" '{ sum += $NF } /;main;.*fill_pool / { pool = 1 } END { exit !(pool && sum <= all && sum > all - NR - 8) }' \
		"$directory/touched.folded" || fail "folded stacks of $bytes bytes: $(cat "$directory/touched.folded")"
	"$MMTRACE" export --by touch -f pprof -i "$recording" >"$directory/touched.pb.gz" || fail "pprof: status $?"
	zcat "$directory/touched.pb.gz" | grep -qa fill_pool || fail "pprof does not name fill_pool"
	"$MMTRACE" report --by touch --html - -i "$recording" >"$directory/touched.html" || fail "html: status $?"
	grep -q '"touched":true' "$directory/touched.html" || fail "the page does not say that it shows what was touched"
	"$MMTRACE" export --by touch -f firefox -i "$recording" >"$directory/report.txt" 2>&1 && fail "firefox shows no times of touches"
	grep -q 'use folded, pprof, rows or html' "$directory/report.txt" || fail "firefox: $(cat "$directory/report.txt")"
}
record_faults --faults=auto touch
expect_touchers 3 ' \(\+- [0-9]+ %\)'
expect_rows 3
# The kernel gives both recorders the same sample, with the identifier and the small stack dump of one of them.
beside=record_all_beside
record_faults --faults=auto touch
expect_json "$anonymous.touchers[0] | (.function | startswith(\"fill_pool \")) and
	(.bytes - $pool | fabs) <= 3 * .error_bytes"
beside=
record_faults --faults=all touch
expect_touchers 0 ''
expect_rows 0
expect_exports
# A page that is read before it is written has two faults. Only a privileged user sees that the first maps the zero page.
record_faults --faults=sampled touch read
expect_json "$anonymous.touchers | [.[] | {(.function | split(\" \")[0]): .}] | add |
	(.fill_pool.bytes - $pool | fabs) <= 3 * .fill_pool.error_bytes and
	(.read_pool == null or .read_pool.bytes <= 3 * .read_pool.error_bytes)"
# A read of a file maps pages around it, too.
for faults in sampled all; do
	record_faults --faults=$faults touch file
	expect_json ".growth.parts[] | select(.place == \"before\" and .class == \"file\" and .bytes >= $pool / 2) |
		.bytes as \$grown | .touchers[0] | (.function | startswith(\"read_pool \")) and
		(.bytes - \$grown | fabs) <= 3 * .error_bytes + \$grown / 20"
done
# What was written in a private mapping of a file is no page cache.
record_faults --faults=all touch private
expect_json ".growth.parts[] | select(.place == \"before\" and .class == \"file\" and .bytes >= $pool / 2) |
	(.touchers[0].function | startswith(\"fill_pool \")) and (.hint | test(\"memory of its own\")) and (.hint | test(\"not a leak\") | not)"
# Beside causes that hold less, it is the first one.
record_faults --faults=all touch map
expect_true_report
"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report: status $?"
grep -qE 'before, touched by fill_pool \(touch\), 64\.0[0-9]* MiB of [0-9.]+ MiB' "$directory/report.txt" || {
	cat "$directory/report.txt" >&2
	fail "the causes do not say who touched the memory"
}
# Without page faults, the report says how to record them.
start_workload touch
record_work --faults=none -p "$pid"
"$MMTRACE" report --by touch -i "$recording" >"$directory/report.txt" 2>&1 && fail "--by touch: no error without page faults"
grep -q 'contains no page faults' "$directory/report.txt" || fail "--by touch: $(cat "$directory/report.txt")"
expect_json ".growth.faults_recorded == false and $anonymous.touchers == [] and ($anonymous.hint | test(\"--faults=sampled\"))"

# end_recorded OPTION...: a recording of a process that ends by itself, three seconds after its work.
end_recorded() {
	start_workload touch
	begin_recording --faults=sampled "$@" -p "$pid"
	let_work
	sleep 3
	let_end
	wait "$recorder" || fail "record: status $?: $(cat "$directory/record.log")"
	report_json
	"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report: status $?"
}
end_recorded
grep -q 'Page faults were recorded, but not which of the pages stayed' "$directory/report.txt" ||
	fail "the report does not say why nobody is named: $(cat "$directory/report.txt")"
# The last reading counts if it is recent.
for attempt in 1 2 3 4 5; do
	end_recorded --snapshot-interval 100ms
	! grep -q 'by fill_pool (touch): ' "$directory/report.txt" || break
done
grep -q 'by fill_pool (touch): ' "$directory/report.txt" ||
	fail "nobody is named after $attempt recordings: $(cat "$directory/report.txt")"

record_faults --faults=all churn
expect_true_report
expect_json '.growth.faults_recorded and all(.growth.parts[] | select(.class == "heap" or .arena); .touchers == [])'
expect_json 'all(.causes[] | select(.verdict == "leak"); .name // "" | test("^(temp|batch|fill) ") | not)'
# By touch, those that needed a page stand as such.
"$MMTRACE" report --by touch --limit 0 --no-pager -i "$recording" >"$directory/report.txt" || fail "--by touch: status $?"
grep -q 'needed new pages: in a heap' "$directory/report.txt" &&
	! grep -qE '^ +[0-9]+ .*(LEAK|GROWING)' "$directory/report.txt" || fail "--by touch has verdicts: $(cat "$directory/report.txt")"
awk '/^ *[0-9]+ .* (touched|of new pages needed)/ { touched = / touched/ } /^ +(temp|batch) / && touched { bad = 1 } END { exit bad }' \
	"$directory/report.txt" || fail "--by touch: who needed a page touched it: $(cat "$directory/report.txt")"
for options in '' '--limit 0' '--by touch' '--by touch --limit 0'; do
	# shellcheck disable=SC2086
	"$MMTRACE" report --no-pager $options -i "$recording" >"$directory/report.txt" || fail "report $options: status $?"
	! grep -E '(touched|by|LEAK).* (temp|batch|fill) \(' "$directory/report.txt" || fail "the report blames who needed a page"
done
