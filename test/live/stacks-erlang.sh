#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Stacks of Erlang: the runtime's own are whole. Compiled Erlang code runs on stacks of its own, in the heaps of its
# processes, without frame pointers: a stack that comes to it ends there, and is not called whole.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v erlc >/dev/null || skip "no erlang is installed"
rounds=20
build_program erlc -o "$directory" "$stack_sources/program.erl"
record_stacks erl +JPperf map -noshell -run program start $rounds
expect_json '[.groups[] | select(all(.frames[]; .kind != "jit")) | .stack_end] | unique == ["entry"]'
expect_json 'all(.groups[] | select(any(.frames[]; .kind == "jit")); .stack_end != "entry" and .frames[-1].kind == "jit")'
expect_stack $((4 * rounds))+ 'mmap<...<erts_mmap<...<$global::call_*'
expect_stack 5+ 'mmap<...<start_thread<*'
expect_json '[.completeness.lacks[] | select(contains("(Erlang) end in generated code"))] | length == 1'
