#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: ruby:ruby
# Following the report's hint gives names to compiled Ruby methods.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v ruby >/dev/null || skip "no ruby is installed"
record_stacks ruby "$stack_sources/program.rb" 20
expect_hint '(Ruby) have no names: start it with --yjit --yjit-call-threshold=1 --yjit-perf'
expect_no_function leak_string

# The older compiler's code for the block has no unwind tables: the report says why a stack ends there, and without that
# compiler stacks are complete.
if ruby --yjit -e 1 2>/dev/null; then
	# That compiler calls mprotect some 5,000 times in half a second: dumps that the recorder can write meanwhile.
	stack_bytes=8192 record_stacks ruby --yjit --yjit-call-threshold=2 "$stack_sources/program.rb" 60
	truncated=$(ask_stacks '[.groups[] | select(.frames[-1].kind == "jit")] | length')
	[ "$truncated" = 0 ] || expect_hint '(Ruby) end in JIT code' 'or without --yjit'
	record_stacks ruby "$stack_sources/program.rb" 60
	expect_no_hint '(Ruby) end in JIT code'
	expect_json '.completeness.truncated_stacks == 0'
fi
named=(--yjit --yjit-call-threshold=1 --yjit-perf)
ruby "${named[@]}" -e 1 2>/dev/null || skip "this ruby has no --yjit-perf"
record_stacks ruby "${named[@]}" "$stack_sources/program.rb" 20
expect_no_hint 'have no names'
expect_function leak_string
