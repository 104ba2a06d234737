#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Stacks of C without frame pointers are complete, however the program is linked.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
rounds=100
sources=("$stack_sources/program.c" "$stage_source")

# c_case NAME COMPILER OPTION...
c_case() {
	local name=$1
	shift
	echo "$name"
	build_program "$@" -o "$name" "${stack_options[@]}" "${sources[@]}" -pthread
	record_stacks "./$name" --exit $rounds
	expect_complete_stacks $((12 * rounds))
	expect_c_stacks $rounds 'mmap<...</malloc$/'
}

shapes() {
	ask_stacks -c 'include "stacks"; [.groups[] | [.allocated_count, (functions | length)]] | sort'
}

c_case dynamic gcc
dynamic_shapes=$(shapes)
c_case static-pie gcc -static-pie
c_case static gcc -static

# Without symbols there are fewer names, but every frame.
echo stripped
strip -o stripped dynamic || fail "strip ended with status $?"
record_stacks ./stripped --exit $rounds
stack_entries+="|^[?]@stripped$"
expect_complete_stacks $((12 * rounds))
expect_stack $rounds 'syscall<?stripped<?stripped<?stripped<__libc_start_call_main<__libc_start_main*<?stripped'
[ "$(shapes)" = "$dynamic_shapes" ] || fail "stripped: $(shapes); not stripped: $dynamic_shapes"
