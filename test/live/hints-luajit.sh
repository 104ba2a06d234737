#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: luajit:luajit
# LuaJIT's stacks end in its traces: the report says why, and following its hint makes them complete.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v luajit >/dev/null || skip "no luajit is installed"
record_stacks luajit "$stack_sources/program.lua" 500
expect_json '.processes[0].runtime == "luajit"'
expect_hint '(LuaJIT) end in JIT code' 'start it with -joff, or call jit.off()'
expect_json '.completeness.stacks_by_end.no_unwind_data > 250'
record_stacks luajit -joff "$stack_sources/program.lua" 500
expect_no_hint LuaJIT
expect_json '.completeness | .truncated_stacks == 0 and .complete_stacks > 500'
