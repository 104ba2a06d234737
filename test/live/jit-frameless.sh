#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# JIT code without frame pointers: its callers are found by instruction analysis of the code that the recording contains.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case jit-frameless
expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] == ["Second", "First", "Outer"]'
expect_json '[.groups[].frames[] | select(.doubtful)] == []'

# Without the code, the frame-pointer chain skips the callers: the recorded code made the difference.
start_workload jit-frameless
record_work -p "$pid" --code none
expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] == ["Second"]'
