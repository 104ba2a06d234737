#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# What cmake --install puts in place is complete: a program builds against it, shared and static.
source "$SOURCE/test/live/support/recording.bash" || exit 2

root=$directory/root
DESTDIR=$root cmake --install "$BUILD" >"$directory/install.log" 2>&1 || fail "install: $(cat "$directory/install.log")"
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$BUILD/CMakeCache.txt")
installed=$root$prefix

for file in bin/mmtrace include/mmtrace/{diff,error,machine,output,record,report,version}.h share/man/man1/mmtrace.1 \
	share/man/man1/mmtrace-{record,report,diff,dump,check,setup}.1 share/man/man5/mmtrace-file.5 \
	share/man/man7/mmtrace-internals.7 share/bash-completion/completions/mmtrace; do
	[ -s "$installed/$file" ] || fail "$file is not installed"
done
"$installed/bin/mmtrace" --version | grep -q '^mmtrace [0-9]' || fail "the installed tool does not say its version"

PKG_CONFIG_LIBDIR=$(dirname "$(find "$root" -name mmtrace.pc)"):$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR
libraries=$root$(pkg-config --variable=libdir mmtrace)
cat >program.c <<'END'
#include <stdio.h>
#include <mmtrace/diff.h>
#include <mmtrace/error.h>
#include <mmtrace/machine.h>
#include <mmtrace/output.h>
#include <mmtrace/record.h>
#include <mmtrace/report.h>
#include <mmtrace/version.h>

int main(void)
{
	struct mmt_report_options options;
	struct mmt_report *report;
	struct mmt_error *error;

	mmt_report_options_init(&options);
	options.input = "/nonexistent";
	error = mmt_report_create(&options, &report);
	printf("%s: %s\n", mmt_version(), error ? mmt_error_get_message(error) : "no error");
	mmt_error_destroy(error);
	return !error;
}
END
sanitizers=()
grep -q '^MMTRACE_SANITIZE:BOOL=ON' "$BUILD/CMakeCache.txt" && sanitizers=(-fsanitize=address,undefined)

# build NAME FLAG...: with the installed headers and nothing else of ours.
build() {
	local name=$1
	shift
	gcc -std=c11 -Wall -Wextra -pedantic -Werror "${sanitizers[@]}" -I"$installed/include" -o "$name" program.c \
		-L"$libraries" "$@" >build.log 2>&1 || fail "$name does not build: $(cat build.log)"
}

build shared $(pkg-config --libs mmtrace)
build static -Wl,-Bstatic -lmmtrace -Wl,-Bdynamic $(pkg-config --static --libs mmtrace | sed 's/-lmmtrace//')
ldd static | grep -q libmmtrace && fail "the static program needs the shared library"
for program in shared static; do
	LD_LIBRARY_PATH=$libraries "./$program" >out 2>&1 || fail "$program ended with status $?: $(cat out)"
	grep -q '^[0-9.]*: .*/nonexistent' out || fail "$program: $(cat out)"
done
unexpected=$(nm -D --defined-only "$libraries/libmmtrace.so" | awk '$3 !~ /^mmt_/ { print $3 }')
[ -z "$unexpected" ] || [ ${#sanitizers[@]} -gt 0 ] || fail "exported without our prefix: $unexpected"
# Code that is compiled where it is linked is for one version of one compiler.
sections=$(readelf -SW "$libraries/libmmtrace.a") || fail "readelf cannot read libmmtrace.a"
grep -qF .text <<<"$sections" || fail "libmmtrace.a has no code"
! grep -F .gnu.lto_ <<<"$sections" >lto.txt || fail "libmmtrace.a has code that only this compiler reads: $(head -3 lto.txt)"
