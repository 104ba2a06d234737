#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Locks: dotnet-program
# A realistic case: a .NET program that leaks through P/Invoke is attached to while it waits.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v dotnet >/dev/null || skip "no dotnet is installed"
dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.' || skip "no .NET 10 runtime is installed"

program=$BUILD/dotnet-program
"$SOURCE/test/workload/dotnet/build" "$program" >"$directory/build.log" 2>&1 || fail "build: $(cat "$directory/build.log")"
start_command env DOTNET_PerfMapEnabled=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$workloads" \
	dotnet "$program/bin/Release/net10.0/MyConsoleApp.dll"
record_work -p "$pid"

expect_true_report
expect_json '.processes | length == 1 and .[0].checked and .[0].mismatch_bytes == 0'
# The first group, whatever its stack: exactly the leak, resident to within one percent.
expect_json '.groups[0] | .unfreed_bytes == 1073741824 and .unfreed_count == 256 and .freed_count == 0'
expect_json '.groups[0] | .resident_bytes > 1073741824 * 0.99 and .resident_bytes <= 1073741824 * 1.01'
expect_json '.groups[0] | .smallest_bytes == 4194304 and .largest_bytes == 4194304'
expect_frame() {
	expect_json "[.groups[0].frames[] | select(.inlined | not)][$1] | $2"
}
# Its stack, in this order, with no frame in between.
expect_frame 0 '.function == "mmap"'
expect_frame 1 '.function == "mmap_allocation" and .module == "Example.so" and
	(.source_file | endswith("Example.c")) and .source_line > 0'
expect_frame 2 '.kind == "jit" and (.function | contains("IL_STUB_PInvoke"))'
expect_frame 3 '.kind == "jit" and (.function | contains("MyConsoleApp.Program::MyTest"))'
expect_frame 4 '.kind == "jit" and (.function | contains("MyConsoleApp.Program::Main"))'
# The remaining frames to the last; libc's first functions have names if its symbols are installed.
expect_list 256 'mmap<mmap_allocation</IL_STUB_PInvoke/<MyConsoleApp.Program::MyTest()<MyConsoleApp.Program::Main(string[])<?libcoreclr.so<coreclr_execute_assembly<?libhostpolicy.so<corehost_main<?libhostfxr.so<hostfxr_main_startupinfo<?dotnet</^(__libc_start_call_main|[?]libc[.]so[.]6)$/<__libc_start_main*<?dotnet'
# Precompiled code without names is only in stacks that hold nothing.
expect_json '.completeness.warning_codes | index("precompiled-code-unnamed") == null'
expect_json '[.groups[].frames[] | select(.function == null and (.module // "" | endswith(".dll")))] != []'
# To the thread's entry, with no guessed frame.
expect_json '.groups[0].stack_end == "entry" and
	any(.groups[0].frames[]; .function // "" | startswith("__libc_start_main"))'
expect_json '.groups[0].frames | all(.doubtful | not)'

# The text report.
"$MMTRACE" report --no-pager --limit 1 -i "$recording" >"$directory/report.txt" || fail "report ended with status $?"
tr '\n' ' ' <"$directory/report.txt" |
	grep -q '1\.00 GiB.*256.*mmap .*mmap_allocation .*Example\.c:[0-9].*IL_STUB_PInvoke.*MyTest.*Main' || {
	cat "$directory/report.txt" >&2
	fail "the text does not show the leak"
}

# Recorded from its start, by class: the heap's address range, code written in one mapping and run in another, stacks of the
# runtime's threads.
mkfifo start.in
exec 4<>start.in
LD_LIBRARY_PATH="$workloads" begin_recording -q -m 32M -- dotnet "$program/bin/Release/net10.0/MyConsoleApp.dll" \
	<start.in >start.out
wait_until "the program to be ready" grep -q '^ready' start.out
processes+=("$(child_of "$recorder")") # it may outlive its recorder for a moment
stop_recording
report_json --by class
expect_true_report
expect_check 0
unfreed_of() {
	echo "([.groups[] | select(.name == \"$1\") | .unfreed_bytes] | add // 0)"
}
expect_json "$(unfreed_of gc-reserve) > 1073741824"
expect_json "$(unfreed_of jit) > 262144"
expect_json "$(unfreed_of thread-stack) > 4 * 1048576"
# Address space only: little of the heap is used.
expect_json '.groups[] | select(.name == "gc-reserve") | .committed_bytes < 268435456 and .reserved_bytes > .committed_bytes'
