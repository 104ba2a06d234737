#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# Packages: g++:g++
# Censuses of malloc heaps: C++ types of a stripped program, fragmentation, packing, --no-census, other allocators.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v g++ >/dev/null || skip "no g++ is installed"
cat >types.cc <<'END'
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>
#include <vector>

struct Base {
	virtual ~Base() {}
};
namespace app
{
struct Session : Base {
	char data[900];
};
struct Request : Base {
	char data[300];
};
template <class T> struct Cache : Base {
	T value[20];
};
}
static std::vector<Base *> kept;

int main(int count, char **arguments)
{
	std::vector<char *> blocks;

	kept.reserve(40000);
	for (int i = 0; i < 300000; i++) {
		delete new app::Request;
		if (i % 10 == 0)
			kept.push_back(new app::Session);
		if (i % 50 == 0)
			kept.push_back(new app::Cache<long>);
	}
	for (int i = 0; count > 1 && i < 100000; i++)
		blocks.push_back((char *)memset(malloc(500), 1, 500));
	for (size_t i = 0; i < blocks.size(); i++)
		if (i % 100)
			free(blocks[i]);
	puts("ready");
	fflush(stdout);
	pause();
}
END
g++ -O1 -s -o types types.cc || fail "types.cc does not compile"

# census [OPTION...]: records the process, and writes the last census to heap.out, a field per line, and its groups to
# groups.out. One that is given up because the machine is busy is taken again.
census() {
	local tries
	for ((tries = 0; tries < 20; tries++)); do
		take_census "$@"
		[[ $(field result) = ended || $(field result) = sampled ]] || break
	done
}

take_census() {
	"$MMTRACE" record -q "$@" -p "$pid" --duration 100ms -o "$recording" || fail "record: status $?"
	"$MMTRACE" dump -i "$recording" >dump.out || fail "dump: status $?"
	grep '^# heap ' dump.out | tail -1 | tr ' ' '\n' >heap.out
	tac dump.out | sed -n '/^# heap-group /p; /^# heap /q' >groups.out
}

field() {
	sed -n "s/^$1=//p" heap.out
}

start_command "$PWD/types"
census
[ "$(field result)" = complete ] && [ "$(field when)" = stop ] || fail "no complete census at the end: $(cat heap.out)"
grep -q 'content=type smallest_bytes=928 largest_bytes=928 count=\(29999\|30000\|2999[0-9]\) .* name="N3app7SessionE"' groups.out ||
	fail "not 30,000 sessions: $(head groups.out)"
grep -q 'content=type smallest_bytes=176 largest_bytes=176 count=\(6000\|599[0-9]\) .* name="N3app5CacheIlEE"' groups.out ||
	fail "not 6,000 caches: $(head groups.out)"
! grep -q Request groups.out || fail "freed blocks count as in use"
[ "$(field free_bytes)" -lt 1000000 ] || fail "$(field free_bytes) bytes are free"
"$MMTRACE" pack -q -o packed.data "$recording" || fail "pack: status $?"
"$MMTRACE" dump -i packed.data | grep '^# heap' | cmp - <(grep '^# heap' dump.out) || fail "the packed recording has another census"
cp "$recording" plain.data

# The kinds are rows without an id in CSV, steps have sums, and the page has the table.
"$MMTRACE" report --csv plain.data >rows.csv || fail "report --csv: status $?"
grep -Eq '^,"malloc heap of [0-9]+: app::Session",.*,928,928,' rows.csv || fail "no sessions in CSV: $(tail -5 rows.csv)"
"$MMTRACE" report --json --every 50ms plain.data >steps.json || fail "report --every: status $?"
expect_json '.steps[-1] | .heap_in_use_bytes > 27000000 and .heap_free_bytes < 1000000' steps.json
"$MMTRACE" report --html page.html plain.data || fail "report --html: status $?"
grep -q 'blocks in use in the malloc heap' page.html && grep -q 'app::Session' page.html || fail "no blocks on the page"
census --no-census
[ ! -s heap.out ] || fail "a census in spite of --no-census"
kill "$pid"

# Without type information, the vtable has a symbol.
g++ -O1 -fno-rtti -o typeless types.cc || fail "types.cc does not compile"
start_command "$PWD/typeless"
census
"$MMTRACE" report --json "$recording" >typeless.json || fail "report: status $?"
expect_json '.heaps[0].kinds | any(.name == "app::Session" and .content == "type" and .end_count > 29900)' typeless.json
kill "$pid"

start_command "$PWD/types" fragmented
census
[ "$(field result)" = complete ] || fail "no complete census at the end: $(cat heap.out)"
[ "$(field free_bytes)" -gt 47500000 ] && [ "$(field trimmable_bytes)" -gt 37500000 ] &&
	[ "$(field trimmable_bytes)" -lt "$(field free_bytes)" ] || fail "the free memory is not fragmented: $(cat heap.out)"
read -r count bytes < <(sed -n 's/.*smallest_bytes=512 .* after_free_count=\([0-9]*\) after_free_bytes=\([0-9]*\) .*/\1 \2/p' groups.out)
[ "$count" -ge 990 ] && [ "$count" -le 1000 ] && [ "$bytes" -gt 47500000 ] ||
	fail "$count blocks of 512 bytes keep $bytes bytes apart"
kill "$pid"

# Between the two programs, free memory and the blocks of 512 bytes are new.
"$MMTRACE" diff --json plain.data "$recording" >diff.json || fail "diff: status $?"
expect_json '.heaps | length == 1 and (.[0] | .end.free_bytes - .start.free_bytes > 47000000 and .end.in_use_low > .start.in_use_low)' diff.json
expect_json '.heaps[0].kinds | any(.name == "app::Session" and .start_count == .end_count)' diff.json
expect_json '.heaps[0].kinds | any(.smallest_bytes <= 512 and .largest_bytes >= 512 and .end_count - .start_count >= 990)' diff.json
"$MMTRACE" diff --no-pager plain.data "$recording" >diff.txt || fail "diff: status $?"
grep -Eq 'malloc heap \+[0-9.]+ MiB from the last reading of the first recording to that of the second: in use \+.*: fragmentation' diff.txt ||
	fail "diff does not compare the heaps: $(head -20 diff.txt)"

# The other way round, it says what is gone.
"$MMTRACE" diff --no-pager "$recording" plain.data >diff.txt || fail "diff: status $?"
grep -Eq 'malloc heap -[0-9.]+ MiB from .*: in use -[^;]*: [0-9,]+ fewer blocks of ' diff.txt ||
	fail "diff does not say what is gone: $(head -20 diff.txt)"

# An allocator that is recognised by its library is not walked.
gcc -shared -o libjemalloc.so.2 -x c /dev/null || fail "the library cannot be built"
LD_PRELOAD=$PWD/libjemalloc.so.2 start_command "$PWD/types"
census
[ "$(field allocator)" = '"jemalloc"' ] && [ "$(field result)" = not-walked ] && [ "$(field walked_bytes)" = 0 ] ||
	fail "jemalloc is walked: $(cat heap.out)"
kill "$pid"

# Static programs, heaps in huge pages, and other libraries of C.
cat >blocks.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile kept[20000];

int main(void)
{
	for (int i = 0; i < 20000; i++)
		kept[i] = memset(malloc(3000), 1, 3000);
	puts("ready");
	fflush(stdout);
	pause();
}
END
gcc -O1 -o blocks blocks.c && gcc -O1 -static -o blocks-static blocks.c || fail "blocks.c does not compile"
for tunables in glibc.malloc.hugetlb=0 glibc.malloc.hugetlb=1 glibc.malloc.mxfast=0:glibc.malloc.tcache_count=0; do
	for program in blocks blocks-static; do
		GLIBC_TUNABLES=$tunables start_command "$PWD/$program"
		census
		[ "$(field result)" = complete ] && grep -q 'smallest_bytes=3008 largest_bytes=3008 count=20000 ' groups.out ||
			fail "$program with $tunables: not 20,000 blocks: $(cat heap.out; head -3 groups.out)"
		kill "$pid"
	done
done
if command -v musl-gcc >/dev/null; then
	for option in -static -O1; do
		musl-gcc "$option" -o blocks-musl blocks.c || fail "blocks.c does not compile for musl"
		start_command "$PWD/blocks-musl"
		census
		[ "$(field result)" = not-walked ] && [ "$(field walked_bytes)" = 0 ] || fail "musl is walked: $(cat heap.out)"
		kill "$pid"
	done
fi
