#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: erlc:erlang-base
# Stacks of Erlang's runtime are complete. Compiled Erlang code runs on its own stacks, in the heaps of its processes: with
# and without frame pointers, the instructions after the call show this, and such a stack is reported as ending on another
# stack.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v erlc >/dev/null || skip "no erlang is installed"
rounds=50
# The module loader's stack is deep.
stack_bytes=65280
build_program erlc -o "$directory" "$stack_sources/program.erl"

# erlang_case TITLE [OPTION]...: a program that is alive when recording ends, and one that is not.
erlang_case() {
	echo "$1"
	record_living_stacks erl "${@:2}" -noshell -run program start $rounds wait
	expect_erlang_stacks
	echo "$1, and it ends"
	record_ending_stacks erl "${@:2}" -noshell -run program start $rounds wait
	expect_erlang_stacks
}
expect_erlang_stacks() {
	expect_complete_stacks $((4 * rounds)) other_stack
	expect_json '[.groups[] | select(all(.frames[]; .kind != "jit")) | .stack_end] | unique | . - ["entry"] == []'
	expect_json '[.groups[] | select(any(.frames[]; .kind == "jit")) |
		if .stack_end == "other_stack" and .frames[-1].kind == "jit" then .allocated_count else -1000000 end] |
		add >= 4 * '$rounds
	expect_json 'all(.completeness.warnings[]; contains("end in JIT code") | not)'
}
erlang_case 'frame pointers' +JPperf map
expect_stack $((4 * rounds))+ 'mmap<...<erts_mmap<...<$global::call_*'
erlang_case 'no frame pointers'
