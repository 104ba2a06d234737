#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Another build replaces a program between two recordings, as a deployment does: both recordings have the names of their own
# build, and a diff finds the same stacks.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v gcc >/dev/null || skip "no gcc is installed"
mkdir bin

# record_build NAME SOURCE: build the program, and record it.
record_build() {
	gcc -O1 -g -x c -o bin/service - <<<"$2" || fail "gcc"
	"$MMTRACE" record -q -o "$1" -- bin/service || fail "record $1 ended with status $?"
}
program='#include <sys/mman.h>
__attribute__((noinline, noclone)) void *keep_pages(void)
{
	void *volatile pages = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return pages;
}
int main(void)
{
	for (volatile int i = 0; i < 8; i++)
		keep_pages();
	return 0;
}'
record_build one "$program"
# Its code and its line numbers move.
record_build two "// a comment
__attribute__((used)) static int other(volatile int x) { return x * x / 3; }
$program"
for build in one two; do
	recording=$build report_json
	expect_true_report
	expect_json '[.groups[] | select(any(.frames[]; .function == "keep_pages") and any(.frames[]; .function == "main"))] | map(.unfreed_count) | add == 8'
	expect_json '.completeness.warnings == []'
done
"$MMTRACE" diff --json --fail-above 1M one two >diff.json || fail "diff ended with status $?"
jq -e '.entries == [] and .same_count > 0' diff.json >/dev/null || fail "stacks differ: $(jq .entries diff.json)"

# A raw recording has no names once its program is replaced.
"$MMTRACE" record -q --raw -o raw -- bin/service || fail "record --raw ended with status $?"
gcc -O1 -x c -o bin/service - <<<"$program"
recording=raw report_json
expect_json 'all(.groups[].frames[]; .function != "keep_pages")'
