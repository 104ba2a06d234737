#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# A report of a packed recording shows better names than the recording has, if debug information with the build-id of the
# program appears later, and only then.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v gcc >/dev/null || skip "no gcc is installed"
[ -d /usr/lib/debug ] && unshare -m true 2>/dev/null || skip "no mount namespace for a debug directory"
mkdir bin debug

cat >program.c <<-'END'
	#include <sys/mman.h>
	__attribute__((noinline, noclone)) static void *keep_pages(void)
	{
		void *volatile pages = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return pages;
	}
	int main(void)
	{
		for (volatile int i = 0; i < 8; i++)
			keep_pages();
		return 0;
	}
END
gcc -O1 -g -Wl,--build-id -o program program.c || fail "gcc"
strip -o bin/program program || fail "strip"
id=$(readelf -n program | sed -n 's/ *Build ID: //p')
recording=$directory/packed
"$MMTRACE" record -q -o "$recording" -- bin/program || fail "record ended with status $?"

cat >report_with_debug <<-END
	#!/bin/bash
	exec unshare -m bash -c 'mount --bind "$directory/debug" /usr/lib/debug && exec "$MMTRACE" "\$@"' - "\$@"
END
chmod +x report_with_debug
named='[.groups[] | select(any(.frames[]; .function == "keep_pages" and .source_line == 4) and
	any(.frames[]; .function == "main" and .source_line == 10))] | map(.unfreed_count) | add == 8'

# expect_names yes|no WHAT [RECORDING]: whether a report with the debug directory names the functions and lines.
expect_names() {
	MMTRACE=$PWD/report_with_debug recording=${3:-$recording} report_json
	expect_true_report
	if [ "$1" = yes ]; then
		expect_json "$named"
	else
		expect_json 'all(.groups[].frames[]; .function != "keep_pages" and .function != "main")'
	fi || fail "names: $2"
}

expect_names no "the program is stripped"
mkdir -p "debug/.build-id/${id:0:2}"
objcopy --only-keep-debug program "debug/.build-id/${id:0:2}/${id:2}.debug" || fail "objcopy"
expect_names yes "its debug file appeared"
rm bin/program
expect_names yes "the program is gone, its debug file is there"
./report_with_debug pack -q -o again "$recording" || fail "pack ended with status $?"
mv debug/.build-id aside
expect_names yes "the recording was packed again with the debug file" "$directory/again"
expect_names no "there is neither program nor debug file"
cp program bin/program
expect_names yes "the program with debug information is there"

# Another program of that name, with other functions, and a debug file with the name of its build-id.
sed 's/keep_pages/hold_pages/' program.c >other.c
gcc -O1 -g -Wl,--build-id -o bin/program other.c || fail "gcc"
mkdir -p "debug/.build-id/${id:0:2}"
cp bin/program "debug/.build-id/${id:0:2}/${id:2}.debug"
expect_names no "another program and its debug file"
