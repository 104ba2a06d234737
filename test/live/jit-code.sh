#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# JIT code with a perf map, in anonymous memory and in a memfd written through a second mapping, is symbolized.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case jit-code
expect_json '[.groups[].frames[] | select(.function // "" | test("Inner$|Outer$")) | .kind == "jit"] | length == 4 and all'
command_case jit-code

# Other code at the same address: each call has the name valid at its time. The recorder checks the map every 50 ms.
attach_case jit-code 2000
command_case jit-code 2000
