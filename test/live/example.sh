#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# The program of mmtrace(3) compiles against the installed library, shared and static, and finds a leak.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
DESTDIR= cmake --install "$BUILD" --prefix "$directory/installed" >"$directory/install.log" 2>&1 ||
	fail "install: $(cat "$directory/install.log")"
PKG_CONFIG_LIBDIR=$(dirname "$(find "$directory/installed" -name mmtrace.pc)"):$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR
libraries=$(pkg-config --variable=libdir mmtrace)
cat >leak.c <<'END'
#include <sys/mman.h>

__attribute__((noinline)) void *map_block(void);

void *map_block(void)
{
	void *volatile block = mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return block;
}

int main(void)
{
	int failed = 0;

	for (int i = 0; i < 64; i++)
		failed |= map_block() == MAP_FAILED;
	return failed;
}
END
gcc -O2 -D_GNU_SOURCE -o leak leak.c >build.log 2>&1 || fail "leak.c: $(cat build.log)"

sanitizers=()
grep -q '^MMTRACE_SANITIZE:BOOL=ON' "$BUILD/CMakeCache.txt" && sanitizers=(-fsanitize=address,undefined)
# build NAME SOURCE LIBRARY...
build() {
	local name=$1 source=$SOURCE/test/example/$2
	shift 2
	gcc -std=c11 -Wall -Wextra -pedantic -Werror "${sanitizers[@]}" $(pkg-config --cflags mmtrace) -o "$name" \
		"$source" "$@" >build.log 2>&1 || fail "$name does not build: $(cat build.log)"
}
build shared record-and-report.c $(pkg-config --libs mmtrace)
build static record-and-report.c -L"$libraries" -Wl,-Bstatic -lmmtrace -Wl,-Bdynamic $(pkg-config --static --libs mmtrace | sed 's/-lmmtrace//')

for program in shared static; do
	LD_LIBRARY_PATH=$libraries "./$program" ./leak >out 2>&1 || fail "$program ended with status $?: $(cat out)"
	tr -d '\n' <out | grep -qE '^64\.00 MiB in 64 mappings( +[A-Za-z_0-9]*mmap[0-9]*)+    map_block    main    ' ||
		fail "$program does not begin with the leak: $(cat out)"
	LD_LIBRARY_PATH=$libraries "./$program" ./no-such-program >out 2>&1
	[ $? = 1 ] && grep -qF no-such-program out || fail "$program, of a command that is not there: $(cat out)"
done
