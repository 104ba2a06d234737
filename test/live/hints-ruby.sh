#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Ruby's methods: what the report advises names those that are compiled.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v ruby >/dev/null || skip "no ruby is installed"
record_stacks ruby "$stack_sources/program.rb" 20
expect_hint '(Ruby) have no names: start it with --yjit --yjit-call-threshold=1 --yjit-perf'
expect_no_function leak_string
named=(--yjit --yjit-call-threshold=1 --yjit-perf)
ruby "${named[@]}" -e 1 2>/dev/null || skip "this ruby has no --yjit-perf"
record_stacks ruby "${named[@]}" "$stack_sources/program.rb" 20
expect_no_hint 'have no names'
expect_function leak_string
