#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Stacks other than the thread's own: signal handlers, also on an alternate stack, and contexts made by makecontext. What
# lies beyond them was not recorded, and the report says how the stack ends.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
rounds=100
build_program gcc -o contexts "${stack_options[@]}" "$stack_sources/contexts.c" "$stage_source"
record_stacks ./contexts --exit $rounds
expect_json ".completeness.stacks_by_end | .entry >= 3 * $rounds and .other_stack == $rounds and .coroutine == $rounds and
	add == .entry + .other_stack + .coroutine"

expect_stack $rounds 'mmap<leak_mmap<one_round<main<...<_start'
expect_stack $rounds 'mmap<leak_mmap<handle_signal<__restore_rt<...<raise<raise_signal<one_round<main<...<_start'
# A handler called by a fault, not by a call.
expect_stack $rounds 'mmap<leak_mmap<step_over<__restore_rt<fault<one_round<main<...<_start'
# On the alternate stack; the signal frame tells where the signal interrupted.
expect_stack $((2 * rounds)) 'mmap<leak_mmap<handle_signal<__restore_rt<*'
expect_json "[.groups[] | select(.stack_end == \"other_stack\") |
	(.allocated_count == $rounds and any(.frames[]; .function == \"handle_signal\") and .frames[-1].module == \"libc.so.6\")] | . == [true]"
# A coroutine starts in the library.
expect_stack $rounds 'mmap<leak_mmap<leak_in_context<run_coroutine<__start_context'
expect_json '[.groups[] | select(.stack_end == "coroutine") | .frames[-1].function] | unique == ["__start_context"]'
