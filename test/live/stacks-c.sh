#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Whole stacks of C without frame pointers, however it is linked.
source "$SOURCE/test/live/support/recording.bash"
source "$SOURCE/test/live/support/stacks.bash"

need_perf
rounds=100
sources=("$stack_sources/program.c" "$stage_source")

# Every path of program.c, with the calls that come through it in one round and in its thread.
expect_c_stacks() {
	local mapped='mmap<leak_mmap' allocated='mmap<...</malloc$/<leak_malloc' outer='one_round<main<...<_start'
	expect_stack $rounds "...<leak_syscall<$outer"
	expect_stack $rounds "leak_instruction<$outer"
	expect_stack $rounds "$allocated<$outer"
	expect_stack $rounds "$mapped<$outer"
	expect_stack $rounds "$mapped<with_alloca<$outer"
	expect_stack $rounds "$mapped<with_alignment<$outer"
	expect_stack $rounds "$allocated<with_alignment_and_alloca<$outer"
	expect_stack $rounds "$mapped<with_large_frame<$outer"
	expect_stack $rounds "$mapped<with_arguments<$outer"
	expect_stack $rounds "$mapped<compare<...<by_callback<$outer"
	expect_stack $rounds "$mapped<by_inlined<$outer"
	expect_stack $rounds "$mapped<by_recursion<by_recursion<by_recursion<by_recursion<by_recursion<by_recursion<$outer"
	expect_stack 1 "$mapped<thread<start_thread<*"
	expect_stack 1 "$mapped<leave_thread<by_last_call<thread<start_thread<*"
}

# c_case NAME COMPILER OPTION...
c_case() {
	local name=$1
	shift
	echo "$name"
	build_program "$@" -o "$name" "${stack_options[@]}" "${sources[@]}" -pthread
	record_stacks "./$name" --exit $rounds
	expect_whole_stacks $((12 * rounds))
	expect_c_stacks
}

shapes() {
	ask_stacks -c 'include "stacks"; [.groups[] | [.allocated_count, (functions | length)]] | sort'
}

c_case dynamic gcc
dynamic_shapes=$(shapes)
c_case static-pie gcc -static-pie
c_case static gcc -static

# Without symbols there are fewer names, and every frame all the same.
echo stripped
strip -o stripped dynamic || fail "strip ended with status $?"
record_stacks ./stripped --exit $rounds
stack_entries+="|^[?]@stripped$"
expect_whole_stacks $((12 * rounds))
expect_stack $rounds 'syscall<?stripped<?stripped<?stripped<__libc_start_call_main<__libc_start_main*<?stripped'
[ "$(shapes)" = "$dynamic_shapes" ] || fail "stripped: $(shapes); not stripped: $dynamic_shapes"
