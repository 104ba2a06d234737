#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Stacks deeper than the dump: with frame pointers the kernel's callchain completes them frame by frame; without, they end
# where the dump ends, and say so.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
depth=100
stack_bytes=2048

# deep_case NAME OPTION...
deep_case() {
	build_program gcc "${stack_options[@]}" "${@:2}" -o "$1" "$SOURCE/test/workload/deep-stack.c" "$stage_source"
	record_stacks "./$1" --exit $depth
}
# every_leak FILTER: true for all three.
every_leak() {
	expect_json "[.groups[] | select(any(.frames[]; .function == \"leak_at_bottom\"))] |
		(map(.allocated_count) | add) == 3 and all(.[]; $1)"
}

deep_case with-frame-pointers -fno-omit-frame-pointer
every_leak "[.frames[] | select(.function == \"descend\")] | length == $depth"
every_leak '[.frames[] | select(.inlined | not) | .function] | .[:3] == ["mmap", "leak_at_bottom", "descend"] and .[102] == "main"'
every_leak 'all(.frames[]; .doubtful | not)'

deep_case without-frame-pointers
every_leak '.stack_end == "dump_exhausted" and all(.frames[]; .function != "main")'
every_leak '[.frames[] | select(.function == "descend")] | length >= 4'
every_leak 'all(.frames[]; .doubtful | not)'

# With a large enough dump the same stack is complete.
stack_bytes=65280
record_stacks ./without-frame-pointers --exit $depth
every_leak '.stack_end == "entry"'
every_leak "[.frames[] | select(.function == \"descend\")] | length == $depth"
