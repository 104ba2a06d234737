#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Following the report's hint gives names to precompiled .NET code.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v dotnet >/dev/null || skip "no dotnet is installed"
dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.' || skip "no .NET 10 runtime is installed"
build_program "$SOURCE/test/workload/dotnet/build" "$directory/program" "$stack_sources/dotnet/Stacks.csproj"
build_native_library
# all_sleep PROCESS: each of its threads sleeps.
all_sleep() {
	! sed 's/.*) //' "/proc/$1"/task/*/stat | grep -qv '^S'
}
# dotnet_case [VARIABLE=VALUE]...: the runtime makes a method callable before it writes the method's line to the map, and
# optimises methods in a separate thread. When all threads sleep, each line is written.
dotnet_case() {
	start_command env DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$directory" "$@" \
		dotnet "$directory/program/bin/Release/net10.0/Stacks.dll" 20 wait
	start_recording -q -m 256M -g "dwarf,$stack_bytes" -p "$pid"
	let_work
	wait_until "all threads of the program to sleep" all_sleep "$pid"
	stop_recording
	report_json
	let_end
	expect_json '.completeness.lost_events == 0 and .completeness.lost_stack_dumps == 0'
}
precompiled='[.groups[].frames[] | select(.function == null and (.module // "" | test("[.]dll$")))] | length'
dotnet_case DOTNET_PerfMapEnabled=3
expect_hint '(.NET) has no names: start it with DOTNET_ReadyToRun=0 in its environment'
expect_json "($precompiled) > 0"
# By function, too, if a row is such code: as in mmtrace-report(1), the largest frame is the one that it names.
"$MMTRACE" report --by function --json -i "$recording" >by-function.json || fail "--by function: status $?"
jq -e '([.groups[] | .memory_bytes] | add) as $all |
	([.groups[] | select((.name | test("[.]dll[+]0x")) and .memory_bytes >= $all / 100)] | length > 0) ==
	(.completeness.warning_codes | index("precompiled-code-unnamed") != null)' by-function.json >/dev/null ||
	fail "--by function: $(jq -c '[.groups[].name], .completeness.warning_codes' by-function.json)"
dotnet_case DOTNET_PerfMapEnabled=3 DOTNET_ReadyToRun=0
expect_no_hint 'DOTNET_ReadyToRun=0'
expect_json "($precompiled) == 0"
expect_json '.completeness | .jit_frames_without_name == 0 and .frames > 1000'
