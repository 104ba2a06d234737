#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: mono:mono-runtime mcs:mono-mcs
# Stacks of Mono, which keeps frame pointers with an option, are complete.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v mono >/dev/null && command -v mcs >/dev/null || skip "no mono or mcs is installed"
build_native_library
build_program mcs -out:"$directory/program.exe" "$stack_sources/mono/Program.cs"
rounds=100
record_stacks MONO_DEBUG=disable_omit_fp LD_LIBRARY_PATH="$directory" mono --jitmap "$directory/program.exe" $rounds
expect_complete_stacks $((2 * 6 * rounds))
# In the program's first thread and in one more.
expect_mono_stack() {
	local leaf='mmap<native_leak<(wrapper managed-to-native) Program:Leak (uintptr)<Program:LeakBlock ()'
	local outer='Program:OneRound ()<Program:Rounds (int)'
	expect_stack "$1" "$leaf<$2<$outer<Program:Main (string[])<...<mono_main<...<_start"
	expect_stack "$1" "$leaf<$2<$outer<...<start_thread<*"
}
expect_mono_stack $rounds 'Program/Circle:Draw*'
expect_mono_stack $rounds '/Program:.OneRound>m__/<Program:ByDelegate*'
expect_mono_stack $((2 * rounds)) 'Program:ByException ()'
expect_mono_stack $rounds 'Program:CalledBack (int)<(wrapper native-to-managed)*<native_call<(wrapper managed-to-native) Program:Call*'
