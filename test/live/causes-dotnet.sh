#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The report explains growth of .NET's garbage-collected heap.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf
command -v dotnet >/dev/null || skip "no dotnet is installed"
dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.' || skip "no .NET 10 runtime is installed"
"$SOURCE/test/workload/dotnet/build" "$directory/program" "$SOURCE/test/workload/causes/dotnet/Grow.csproj" >build.log 2>&1 ||
	fail "build: $(cat build.log)"

record_cause env DOTNET_CLI_TELEMETRY_OPTOUT=1 dotnet "$directory/program/bin/Release/net10.0/Grow.dll"
expect_cause 'dotnet-gcdump report'
expect_next "dotnet-gcdump report -p $pid"
expect_json '[.groups[] | select(.pattern == "gc-heap") | .memory_bytes] | add > 60000000'
