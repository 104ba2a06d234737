#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# diff matches the stacks of two builds: moved code, a renamed file, stripped, inlined. --fail-above counts the net.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
block=65536

# SESSION: the attribute of the functions that another build may inline. MOVED: functions before the others.
cat >service.c <<'END'
#include <stdlib.h>
#include <sys/mman.h>
#ifdef MOVED
__attribute__((noinline)) int moved(int number)
{
	return number > 1 ? moved(number - 1) + moved(number - 2) : number;
}
#else
#define moved(number) (number)
#endif
SESSION static void *buffer_new(void)
{
	void *buffer = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	__asm__ volatile("" : "+r"(buffer)); /* no tail call */
	return buffer;
}
SESSION static void *session_open(void)
{
	void *buffer = buffer_new();

	__asm__ volatile("" : "+r"(buffer));
	return buffer;
}
SESSION static void *cache_fill(void)
{
	void *buffer = buffer_new();

	__asm__ volatile("" : "+r"(buffer));
	return buffer;
}
int main(int argc, char **argv)
{
	int sessions = atoi(argv[1]);
	void *other;

	for (int i = 0; i < sessions; i++)
		session_open();
	for (volatile int i = 0; i < moved(6); i++)
		cache_fill();
	/* The other lines of one function. */
	other = session_open();
	__asm__ volatile("" : "+r"(other));
	return argc != 2;
}
END
apart='-DSESSION=__attribute__((noinline))' inlined='-DSESSION=inline __attribute__((always_inline))'

# build NAME SESSIONS FLAG...: and record it, with this many sessions.
build() {
	local name=$1 sessions=$2
	shift 2
	mkdir -p "$name"
	gcc -o "$name/service" "$@" || fail "gcc"
	(cd "$name" && exec "$MMTRACE" record -q -o "../$name.data" -- ./service "$sessions") 2>record.log || fail "record: $(cat record.log)"
}

# compare BEFORE AFTER STATUS [OPTION...]: above two blocks, of the program alone.
compare() {
	local status
	"$MMTRACE" diff --json --focus module=service --fail-above $((2 * block)) "${@:4}" "$1.data" "$2.data" >diff.json 2>diff.log
	status=$?
	[ $status = "$3" ] || fail "diff of $1 and $2 ended with status $status: $(cat diff.log; jq -c '.entries[] | [.change, .bytes]' diff.json)"
}

build base 10 -O1 -g "$apart" service.c
{
	echo "/* One line more. */"
	cat service.c
} >renamed.c
build moved 9 -O1 -g -DMOVED "$apart" renamed.c
build more 12 -O1 -g -DMOVED "$apart" renamed.c
compare base moved 0
expect_json ".uncertain_count == 0 and ([.entries[] | [.change, .bytes]] == [[\"grown\", 2 * $block], [\"shrunk\", -$block]])" diff.json
expect_json ".growth_bytes == 2 * $block and .bytes == $block" diff.json
expect_json '[.entries[1].before, .entries[1].after | .lines_differ] == [true, true] and
	.entries[1].before.identity == .entries[1].after.identity and .entries[0].after.identity != .entries[1].after.identity' diff.json
compare base more 1
expect_json ".growth_bytes == 4 * $block" diff.json
grep -q 'functions that grew hold' diff.log || fail "the message does not name functions: $(cat diff.log)"
# With lines, a report has two rows where a diff has one.
recording=base.data report_json --focus function=session_open
expect_json "[.groups[] | .unfreed_bytes] == [10 * $block, $block] and ([.groups[].identity] | unique | length) == 1" report.json

build inlined 10 -O1 -g "$inlined" service.c
compare base inlined 0
expect_json ".entries == [] and .uncertain_count == 0" diff.json

# Without debug information, one stack includes all.
build nameless 10 -O1 "$inlined" service.c
compare base nameless 0
expect_json ".growth_bytes == 0 and .bytes == 0 and .uncertain_count == 2" diff.json
expect_json '[.entries[] | [.change, .differing_frames > 0, .part_of != null]] == [["grown", true, false], ["gone", true, true]]' diff.json
"$MMTRACE" diff --no-pager --focus module=service base.data nameless.data >diff.txt || fail "diff"
grep -q '^2 matches are uncertain' diff.txt && grep -q 'uncertain: .* of the second recording that may include this one' diff.txt ||
	fail "the text does not say what is uncertain: $(cat diff.txt)"

build stripped 10 -O1 -s "$apart" service.c
build other 11 -O1 -s -DMOVED "$apart" renamed.c
compare stripped other 1
expect_json "[.entries[] | [.change, .bytes, .differing_frames > 0]] == [[\"grown\", 2 * $block, true], [\"grown\", $block, true]]" diff.json
compare base other 1
expect_json ".uncertain_count == 2 and .growth_bytes == 3 * $block" diff.json

# By the keys of a report.
compare base moved 0 --by function
expect_json ".growth_bytes == $block" diff.json
"$MMTRACE" diff --json --focus module=service --by function,thread base.data moved.data >diff.json || fail "diff --by"
expect_json "[.entries[] | [(.after.name | sub(\" / .*\"; \"\")), .bytes]] == [[\"buffer_new (service)\", $block]]" diff.json
exit 0
