#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Precompiled code of .NET: what the report advises names it.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v dotnet >/dev/null || skip "no dotnet is installed"
dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.' || skip "no .NET 10 runtime is installed"
build_program "$SOURCE/test/workload/dotnet/build" "$directory/program" "$stack_sources/dotnet/Stacks.csproj"
build_native_library
# dotnet_case [VARIABLE=VALUE]...
dotnet_case() {
	record_stacks DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$directory" "$@" \
		dotnet "$directory/program/bin/Release/net10.0/Stacks.dll" 20
}
precompiled='[.groups[].frames[] | select(.function == null and (.module // "" | test("[.]dll$")))] | length'
dotnet_case DOTNET_PerfMapEnabled=3
expect_hint '(.NET) has no names: start it with DOTNET_ReadyToRun=0 in its environment'
expect_json "($precompiled) > 0"
dotnet_case DOTNET_PerfMapEnabled=3 DOTNET_ReadyToRun=0
expect_no_hint 'DOTNET_ReadyToRun=0'
expect_json "($precompiled) == 0"
# The runtime writes the line of a method after other threads can call it, and may end before that.
expect_json '.completeness | .jit_frames_without_name * 1000 <= .frames'
