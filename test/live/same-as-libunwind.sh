#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Locks: dotnet-program
# Packages: g++:g++
# libunwind finds the same frames from the registers and stack bytes of a recording: for a C++ program, to the entry of its
# threads; for .NET, in the native part of its stacks, up to JIT code.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
[ "$(uname -m)" = x86_64 ] || skip "the comparing program is for x86-64"

# expect_same SAMPLES FRAMES: at least SAMPLES samples with FRAMES frames.
expect_same() {
	local found samples frames
	found=$("$BUILD/test/unwind-check" "$recording" 2>differences) ||
		fail "frames differ from libunwind's: $found: $(head -60 differences)"
	echo "$found"
	read -r samples _ frames _ <<<"$found"
	[ "$samples" -ge "$1" ] && [ "$frames" -ge "$2" ] || fail "only $found, not $1 and $2"
}

command -v g++ >/dev/null || skip "no g++ is installed"
rounds=10 raw_stacks=yes
build_program gcc -c "${stack_options[@]}" -o stage.o "$stage_source"
build_program g++ -std=c++20 "${stack_options[@]}" -o exceptions "$stack_sources/exceptions.cc" stage.o -pthread
record_stacks ./exceptions --exit $rounds
expect_same $((7 * 3 * rounds)) $((7 * 3 * rounds * 8))

command -v dotnet >/dev/null && dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.' || {
	echo "no .NET 10 runtime is installed"
	exit 0
}
build_program "$SOURCE/test/workload/dotnet/build" "$directory/program" "$stack_sources/dotnet/Stacks.csproj"
build_native_library
stack_bytes=65280
record_stacks DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$directory" \
	dotnet "$directory/program/bin/Release/net10.0/Stacks.dll" $rounds
expect_same 300 1200
