#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: python3:python3
# A program maps a library whose tables are invalid. The report finishes after little work, says once what it could not use,
# and shows stacks outside the library as it does with a valid library.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
rounds=20
# CPU time: a finite report takes a tenth of a second, and a few seconds with sanitizers.
seconds_at_most=60
build_native_library
cp libnative.so real.so
build_program gcc -o libraries "${stack_options[@]}" "$stack_sources/libraries.c" "$stage_source" -ldl

# others: the stacks outside the library, and their bytes.
others() {
	jq -r '.groups[] | select(any(.frames[]; .module == "libnative.so") | not) |
		[.allocated_count, .unfreed, .stack_end, (.frames[] | .function)] | @tsv' report.json | sort
}

# record_library: record a program that maps through libnative.so.
record_library() {
	"$MMTRACE" record -q --raw -g dwarf,16384 -o "$recording" -- ./libraries --exit "$directory/libnative.so" $rounds \
		>workload.out 2>record.log || fail "record: $(cat workload.out record.log)"
}

# expect_bounded_report KIND WARNINGS: this many lines of it name the library.
expect_bounded_report() {
	(
		ulimit -t $seconds_at_most
		exec "$MMTRACE" report --json --limit 0 -i "$recording" >report.json 2>report.log
	) || fail "$1: report ended with status $?: $(cat report.log)"
	expect_json '.completeness.lost_events == 0 and (.completeness.damaged or .completeness.incomplete | not)'
	expect_json "[.completeness.warnings[] | select(contains(\"libnative.so\"))] | length == $2"
	expect_json ".completeness.warnings | length <= 2 * $2" # what to do about it
	others | cmp - others.txt || fail "$1: other stacks are not as with the real library: $(others | diff others.txt -)"
}

# expect_calls COUNT FILTER: stacks through the library for which the filter is true.
expect_calls() {
	expect_json "[.groups[] | select(any(.frames[]; .module == \"libnative.so\")) | select($2) | .allocated_count] | add == $1"
}

record_library
report_json
others >others.txt
[ "$(wc -l <others.txt)" -ge 5 ] || fail "few other stacks: $(cat others.txt)"
whole='.stack_end == "entry" and any(.frames[]; .function == "one_round") and any(.frames[]; .function == "native_leak")'
expect_calls $((3 * rounds)) "$whole"

# expect_poor_names: one warning, however often the debug information was read.
expect_poor_names() {
	expect_json '.completeness.warnings | length == 1 and (.[0] | contains("debug information") and contains("libnative.so"))'
}

# The unwind rows come from the code itself, and the names from the symbols that the running program needs.
for damage in section-sizes:1 looped-table:0 debug-information:1 debug-entries:1 debug-units:1 line-tables:1; do
	kind=${damage%:*}
	cp real.so libnative.so
	python3 "$support/damage-program.py" libnative.so $kind || fail "damage-program.py $kind"
	record_library
	expect_bounded_report $kind "${damage#*:}"
	[ "${damage#*:}" = 0 ] || expect_poor_names
	expect_calls $((3 * rounds)) "$whole"
done

# References in a cycle, ranges shared by all functions, a million lines.
build_program gcc -shared -fPIC -O2 -fomit-frame-pointer -D_GNU_SOURCE -I"$SOURCE/test/workload" -o libnative.so \
	"$stack_sources/native.c" "$stack_sources/endless.s"
record_library
expect_bounded_report endless 1
expect_poor_names
expect_calls $((3 * rounds)) "$whole"

# Well-formed but wrong unwind rows: the stacks end there, and the summary says how many.
cp real.so libnative.so
python3 "$support/damage-program.py" libnative.so still-rows || fail "damage-program.py still-rows"
record_library
expect_bounded_report still-rows 0
expect_calls $((3 * rounds)) '.stack_end == "invalid" and .frames[-1].function == "native_leak"'
expect_json ".completeness.stacks_by_end.invalid == 3 * $rounds"
"$MMTRACE" report --no-pager -i "$recording" >shown.txt || fail "report"
[ "$(grep -c '^  .*call stacks' shown.txt)" = 1 ] || fail "not reported exactly once that stacks are truncated: $(cat shown.txt)"

# A file that is no longer an ELF file is named.
cp real.so libnative.so
record_library
python3 "$support/damage-program.py" libnative.so program-headers || fail "damage-program.py program-headers"
expect_bounded_report program-headers 1
expect_json '.completeness.warnings[0] | contains("libnative.so is not a valid ELF file")'
