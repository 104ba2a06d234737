#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Locks: dotnet-program
# Stacks of .NET are complete: native code, IL stubs, precompiled code and JIT code of every tier, with and without W^X.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v dotnet >/dev/null || skip "no dotnet is installed"
dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.' || skip "no .NET 10 runtime is installed"

build_program "$SOURCE/test/workload/dotnet/build" "$directory/program" "$stack_sources/dotnet/Stacks.csproj"
build_native_library
stack_entries+="|^[?]@dotnet$"
# The compiler's stack is deep when it optimises everything.
stack_bytes=65280
rounds=60

# dotnet_case TITLE [VARIABLE=VALUE]...: a program that is alive when recording ends, and one that is not. An optimised
# method that does little more than one call has no frame pointer of its own. "..." after one of our methods stands for code
# of the runtime, which has no names.
dotnet_case() {
	local program
	for program in living ending; do
		echo "$1, $program"
		"record_${program}_stacks" DOTNET_PerfMapEnabled=3 DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$directory" \
			"${@:2}" dotnet "$directory/program/bin/Release/net10.0/Stacks.dll" $rounds wait
		expect_dotnet_stacks
	done
}
expect_dotnet_stacks() {
	local stub='mmap<native_leak<IL_STUB_PInvoke(native uint)<Stacks.Program::LeakByStub()'
	local round='Stacks.Program::OneRound()'
	local outer="$round<Stacks.Program::Main(string[])<...<coreclr_execute_assembly<...<?dotnet"
	expect_complete_stacks $((12 * rounds))
	expect_stack $rounds "$stub<$outer"
	expect_stack $rounds "mmap<native_leak<Stacks.Program::LeakDirectly()<$outer"
	expect_stack $rounds "mmap<...<malloc<...<Stacks.Program::LeakByMarshal()<$outer"
	expect_stack $rounds "$stub<Stacks.Program::CalledBack(int32)<native_call<...<Stacks.Program::ByCallback()<$outer"
	expect_stack $rounds "$stub</OneRound>b__/<Stacks.Program::ByDelegate(*<$outer"
	expect_stack $rounds "$stub<Stacks.Program::Reflected()<...<Stacks.Program::ByReflection()<$outer"
	expect_stack $rounds "$stub</Circle::Draw/<Stacks.Program::ByVirtual(*<$outer"
	expect_stack $((2 * rounds)) "$stub<Stacks.Program::ByException()<...<$outer"
	expect_stack $rounds "$stub<Stacks.Program::Filter()<Stacks.Program::ByException()<...<Stacks.Program::ByException()<$outer"
	# Before it first waits, and afterwards in a pool thread, where another first half was started too.
	expect_stack $rounds "$stub</ByAsync>d__.*::MoveNext/<...<Stacks.Program::ByAsync()<$outer"
	expect_stack $((rounds + 2)) "$stub</ByAsync>d__.*::MoveNext/<...<start_thread<*"
	# In its own thread.
	expect_stack 1 "$stub<$round<...<start_thread<*"
	expect_stack 1 "$stub</OneRound>b__/<Stacks.Program::ByDelegate(*<$round<...<start_thread<*"
}

dotnet_case 'W^X, tiers'
dotnet_case 'tiers' DOTNET_EnableWriteXorExecute=0
dotnet_case 'W^X, optimised at once' DOTNET_TieredCompilation=0
