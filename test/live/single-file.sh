#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# A program with anonymous JIT code is .NET, published as a single file, if it contains that runtime.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# record_without_map NAME
record_without_map() {
	start_workload "$1"
	rm "/tmp/perf-$pid.map"
	record_work -p "$pid"
}

record_without_map jit-coreclr
expect_json '.completeness.warnings | any(contains("no names for JIT code in process '"$pid"' (.NET)"))'
expect_json '[.groups[].frames[].module] | index("libcoreclr.so in jit-coreclr") != null'
record_without_map jit-frameless
expect_json '.completeness.warnings | any(contains("does not know its runtime")) and (any(contains(".NET")) | not)'
