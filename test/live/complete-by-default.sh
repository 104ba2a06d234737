#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: rustc:rustc php:php-cli
# By default 99 of 100 stacks are complete in languages with stacks larger than a small stack dump: C without frame
# pointers, Rust with panics, PHP, .NET with exceptions.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
stack_graph=auto
rounds=10

# expect_complete CALLS: of at least CALLS; calls whose large dump was lost because the recorder got no CPU do not count.
expect_complete() {
	! grep -q 'no large stack dumps' "$directory/record.log" || skip "the kernel does not grant rings for large dumps"
	jq -c '.completeness | [.stacks_by_end, .lost_large_stack_dumps]' "$directory/report.json"
	expect_json ".completeness | (.stacks_by_end | add) as \$all |
		\$all >= $1 and (\$all - .stacks_by_end.entry) * 100 <= \$all + 100 * .lost_large_stack_dumps"
}

echo C
build_program gcc "${stack_options[@]}" -o deep "$SOURCE/test/workload/deep-stack.c" "$stage_source"
record_stacks ./deep --exit 150
expect_complete 10
expect_json '[.groups[] | select(any(.frames[]; .function == "leak_at_bottom"))] | length > 0 and
	all(.stack_end == "entry" and ([.frames[] | select(.function == "descend")] | length == 150))'

if command -v rustc >/dev/null; then
	echo Rust
	build_program rustc -O -g -o panics "$stack_sources/program.rs"
	record_stacks ./panics $rounds
	expect_complete $((8 * rounds))
fi

if command -v php >/dev/null; then
	echo PHP
	record_stacks php "$stack_sources/program.php" $rounds
	expect_complete $((4 * rounds))
fi

if command -v dotnet >/dev/null && dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.'; then
	echo .NET
	build_program "$SOURCE/test/workload/dotnet/build" "$directory/program" "$stack_sources/dotnet/Stacks.csproj"
	build_native_library
	record_living_stacks DOTNET_PerfMapEnabled=3 DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$directory" \
		dotnet "$directory/program/bin/Release/net10.0/Stacks.dll" $rounds wait
	expect_complete $((12 * rounds))
fi
