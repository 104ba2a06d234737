#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: node:nodejs
# Following the report's hint gives names to interpreted Node functions.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v node >/dev/null || skip "no node is installed"
program=("$stack_sources/program.js" 20)
for options in '' --perf-basic-prof; do
	record_stacks node $options "${program[@]}"
	expect_hint 'interpreted functions of process' '(Node) have no names: start it with --perf-basic-prof --interpreted-frames-native-stack'
	expect_no_function 'JS:~leakBuffer '
done
record_stacks node --perf-basic-prof --interpreted-frames-native-stack "${program[@]}"
expect_no_hint 'interpreted functions'
expect_function 'JS:.?leakBuffer '
