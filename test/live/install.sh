#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# cmake --install installs everything: a program builds against it, shared and static.
source "$SOURCE/test/live/support/recording.bash" || exit 2

root=$directory/root
DESTDIR=$root cmake --install "$BUILD" >"$directory/install.log" 2>&1 || fail "install: $(cat "$directory/install.log")"
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$BUILD/CMakeCache.txt")
installed=$root$prefix

for file in bin/mmtrace include/mmtrace/{diff,error,machine,output,pack,progress,record,report,version}.h \
	share/man/man1/mmtrace.1 share/man/man1/mmtrace-{record,report,top,trace,watch,export,diff,dump,pack,check,setup}.1 share/man/man3/mmtrace.3 \
	share/man/man5/mmtrace-{file,json}.5 share/man/man7/mmtrace-{causes,containers,internals}.7 share/bash-completion/completions/mmtrace \
	share/zsh/site-functions/_mmtrace share/fish/vendor_completions.d/mmtrace.fish; do
	[ -s "$installed/$file" ] || fail "$file is not installed"
done
"$installed/bin/mmtrace" --version | grep -q '^mmtrace [0-9]' || fail "the installed tool does not print its version"
ldd "$installed/bin/mmtrace" | grep libmmtrace && fail "the installed tool needs the shared library"
grep -qx "prefix=$prefix" "$(find "$root" -name mmtrace.pc)" || fail "mmtrace.pc: $(cat "$(find "$root" -name mmtrace.pc)")"

# A prefix other than the configured one.
other=$directory/other
DESTDIR= cmake --install "$BUILD" --prefix "$other" >"$directory/install.log" 2>&1 ||
	fail "install --prefix: $(cat "$directory/install.log")"
PKG_CONFIG_LIBDIR=$(dirname "$(find "$other" -name mmtrace.pc)"):$(pkg-config --variable pc_path pkg-config)
export PKG_CONFIG_LIBDIR
libraries=$(pkg-config --variable=libdir mmtrace)
[ -e "$libraries/libmmtrace.so" ] || fail "mmtrace.pc names $libraries, where the library is not"
[ -e "$(pkg-config --variable=includedir mmtrace)/mmtrace/record.h" ] || fail "mmtrace.pc: $(pkg-config --cflags mmtrace)"

# What is installed can be removed, and nothing else is.
prefix=$directory/removed
other_page=$prefix/share/man/man1/other.1
manifest=$BUILD/install_manifest.txt
uninstall() {
	DESTDIR= cmake -DMANIFEST="$directory/manifest" -P "$SOURCE/lib/uninstall.cmake" >uninstall.log 2>&1
}
uninstall && fail "uninstall without an installation ended well"
grep -q 'Nothing was installed from this build directory' uninstall.log || fail "no reason: $(cat uninstall.log)"
DESTDIR= cmake --install "$BUILD" --prefix "$prefix" >install.log 2>&1 || fail "install: $(cat install.log)"
mv "$manifest" "$directory/manifest"
touch "$other_page"
uninstall || fail "uninstall: $(cat uninstall.log)"
[ "$(find "$prefix" ! -type d)" = "$other_page" ] || fail "left, or removed too much: $(find "$prefix" ! -type d)"
[ ! -e "$prefix/include/mmtrace" ] || fail "an empty directory is left"
uninstall && fail "a second uninstall ended well"
cmake --build "$BUILD" --target help | grep -q uninstall || fail "there is no target uninstall"

# If nothing was built, nothing can be installed, and the message says what to do.
cmake -S "$SOURCE" -B "$directory/empty" -DMMTRACE_TESTS=OFF >configure.log 2>&1 || fail "configure: $(cat configure.log)"
cmake --install "$directory/empty" --prefix "$directory/none" >install.log 2>&1 && fail "installed what was not built"
grep -qF "cmake --build $directory/empty" install.log || fail "no message about what to do first: $(cat install.log)"
[ ! -e "$directory/none" ] || fail "installed some of it: $(find "$directory/none")"

cat >program.c <<'END'
#include <stdio.h>
#include <mmtrace/diff.h>
#include <mmtrace/error.h>
#include <mmtrace/machine.h>
#include <mmtrace/output.h>
#include <mmtrace/pack.h>
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
	printf("%s: %s\n", mmt_version(), error ? error->message : "no error");
	mmt_error_destroy(error);
	return !error;
}
END
sanitizers=()
grep -q '^MMTRACE_SANITIZE:BOOL=ON' "$BUILD/CMakeCache.txt" && sanitizers=(-fsanitize=address,undefined)

# build NAME SOURCE FLAG...: with the installed headers and no others of ours.
build() {
	local name=$1
	shift
	gcc -std=c11 -Wall -Wextra -pedantic -Werror "${sanitizers[@]}" $(pkg-config --cflags mmtrace) -o "$name" \
		"$@" >build.log 2>&1 || fail "$name does not build: $(cat build.log)"
}

programs=(shared static)
shared_flags=$(pkg-config --libs mmtrace)
static_flags="-L$libraries -Wl,-Bstatic -lmmtrace -Wl,-Bdynamic $(pkg-config --static --libs mmtrace | sed 's/-lmmtrace//')"
build shared program.c $shared_flags
build static program.c $static_flags
ldd static | grep -q libmmtrace && fail "the static program needs the shared library"
# Statically linked, if all libraries allow it: sanitizers do not, nor does libdw of elfutils 0.192, whose archives are
# missing functions.
echo 'char dwfl_report_module(void); int main(void) { return dwfl_report_module(); }' >probe.c
if [ ${#sanitizers[@]} = 0 ] && gcc -static -o probe probe.c $(pkg-config --static --libs libdw) >probe.log 2>&1; then
	programs+=(all-static)
	build all-static program.c -static $(pkg-config --static --libs mmtrace)
fi
for program in "${programs[@]}"; do
	LD_LIBRARY_PATH=$libraries "./$program" >out 2>&1 || fail "$program ended with status $?: $(cat out)"
	grep -q '^[0-9.]*: .*/nonexistent' out || fail "$program: $(cat out)"
done
unexpected=$(nm -D --defined-only "$libraries/libmmtrace.so" | awk '$3 !~ /^mmt_/ { print $3 }')
[ -z "$unexpected" ] || [ ${#sanitizers[@]} -gt 0 ] || fail "exported without our prefix: $unexpected"
unexpected=$(nm -g --defined-only "$libraries/libmmtrace.a" | awk 'NF == 3 && $3 !~ /^mmt_/ { print $3 }')
[ -z "$unexpected" ] || [ ${#sanitizers[@]} -gt 0 ] || fail "libmmtrace.a has names without our prefix: $unexpected"
# Objects compiled at link time (LTO) work with one compiler version only.
sections=$(readelf -SW "$libraries/libmmtrace.a") || fail "readelf cannot read libmmtrace.a"
grep -qF .text <<<"$sections" || fail "libmmtrace.a has no code"
! grep -F .gnu.lto_ <<<"$sections" >lto.txt || fail "libmmtrace.a has code that only this compiler reads: $(head -3 lto.txt)"
