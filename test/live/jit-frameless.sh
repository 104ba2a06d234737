#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Generated code that keeps no frame pointers: its callers are found by its instructions, which the recording has.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case jit-frameless
expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] == ["Second", "First", "Outer"]'
expect_json '[.groups[].frames[] | select(.doubtful)] == []'

# Without the code a chain of frame pointers leads past the callers: what is in the recording is what made the difference.
start_workload jit-frameless
record_work -p "$pid" --code none
expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] == ["Second"]'
