#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# CMake refuses 32-bit targets and old libraries, each with one line that names them. test/setup finds what is installed.
set -u
export LC_ALL=C.UTF-8
unset CFLAGS CC

directory=$(mktemp -d "${TMPDIR:-/tmp}/mmtrace-test.XXXXXX") || exit 1
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1

# expect_refusal LINE COMMAND...: the only error of cmake is this line.
expect_refusal() {
	local line=$1
	shift
	rm -rf build
	if "$@" -S "${SOURCE:?}" -B build >output 2>errors; then
		echo "not refused: $*" >&2
	elif [ "$(sed '/^CMake Error at CMakeLists.txt:/d; /^ *$/d; s/^ *//' errors)" = "$line" ]; then
		return
	else
		{ echo "instead of '$line':" && cat output errors; } >&2
	fi
	exit 1
}

# pretend LIBRARY=VERSION...: pkg-config finds these first.
pretend() {
	local library
	rm -rf pkgconfig && mkdir pkgconfig
	for library; do
		printf 'Name: %s\nDescription: test\nVersion: %s\n' "${library%=*}" "${library#*=}" \
			>"pkgconfig/${library%=*}.pc"
	done
}

refusal="mmtrace supports 64-bit targets only: remove -m32 from the compiler options"
expect_refusal "$refusal" cmake -DCMAKE_C_FLAGS=-m32
expect_refusal "$refusal" env CFLAGS="-O2 -m32" cmake
expect_refusal "$refusal" env CC="gcc -m32" cmake
expect_refusal "${refusal/-m32/-mx32}" cmake -DCMAKE_C_FLAGS="-mx32 -g"

# A compiler for such a target: this machine's, which claims to be one.
cat >toolchain.cmake <<'END'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
set(CMAKE_C_COMPILER_WORKS ON)
set(CMAKE_C_ABI_COMPILED ON)
set(CMAKE_SIZEOF_VOID_P 4)
END
compiler=$(command -v cc)
expect_refusal "mmtrace supports 64-bit targets only: $compiler does not compile for one" \
	cmake -DCMAKE_TOOLCHAIN_FILE="$directory/toolchain.cmake"

hint="on Debian, test/setup build installs the libraries"
pretend libdw=0.187 libelf=0.187 libzstd=1.5.0 capstone=3.0.5 libxxhash=0.7.4
expect_refusal "mmtrace needs libdw>=0.188 (found 0.187), libelf>=0.188 (found 0.187), libzstd>=1.5.1 (found 1.5.0), \
capstone>=4 (found 3.0.5), libxxhash>=0.8 (found 0.7.4); $hint" \
	env PKG_CONFIG_PATH="$directory/pkgconfig" cmake
pretend libdw=0.188 libelf=0.188 libzstd=1.5.1 capstone=4.0 libxxhash=0.8.0
expect_refusal "mmtrace needs zlib (not found); $hint" \
	env PKG_CONFIG_LIBDIR="$directory/pkgconfig" PKG_CONFIG_PATH= cmake

expect_refusal "mmtrace needs pkg-config (not found); on Debian, test/setup build installs it" \
	cmake -DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON
pretend libdw=0.188 libelf=0.188 libzstd=1.5.1 zlib=1.2 capstone=4.0 libxxhash=0.8.0
expect_refusal "The tests need the library check>=0.11 (not found); on Debian, test/setup installs it" \
	env PKG_CONFIG_LIBDIR="$directory/pkgconfig" PKG_CONFIG_PATH= cmake -DMMTRACE_TESTS=ON

# test/setup: packages of a second architecture are listed, too, and need not be complete.
mkdir "$directory/commands"
printf '#!/bin/sh\nexit 1\n' >"$directory/commands/apt-get"
printf '#!/bin/sh\necho amd64\n' >"$directory/commands/dpkg"
# expect_setup STATUS LINES: what dpkg-query prints of each package.
expect_setup() {
	printf '#!/bin/sh\nprintf "%s"\n' "$2" >"$directory/commands/dpkg-query"
	chmod +x "$directory/commands"/*
	PATH=$directory/commands:$PATH "$SOURCE/test/setup" build >"$directory/setup.log" 2>&1
	[ $? = "$1" ] || {
		echo "test/setup ended with another status than $1 where dpkg-query prints $2:" >&2
		cat "$directory/setup.log" >&2
		exit 1
	}
	rm -f "$(sed -n 's/.*the log is //p' "$directory/setup.log")"
}
expect_setup 0 'amd64 installed\\n'
expect_setup 0 'arm64 installed\\namd64 installed\\n'
expect_setup 0 'arm64 half-configured\\nall installed\\n'
expect_setup 1 'arm64 installed\\namd64 not-installed\\n'
expect_setup 1 'arm64 installed\\n'
