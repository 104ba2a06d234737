#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# A leak of anonymous memory: bytes, count, residency and the complete stack.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-anon 10 12288
command_case leak-anon 300 4096
# The stack reaches the thread's entry and says so; the leaking line is known.
expect_json '[.groups[] | select(any(.frames[]; .function == "leak_inner"))] | length == 1 and all(.stack_end == "entry")'
expect_json '.groups[].frames[] | select(.function == "leak_inner") |
	(.source_file | endswith("leak-anon.c")) and .source_line > 0'
