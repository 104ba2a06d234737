#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Stacks of signal handlers are complete wherever the signal arrived: at any instruction of a function, in libc, in the
# vdso.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
build_program gcc -o interrupted "${stack_options[@]}" "$stack_sources/interrupted.c" "$stage_source"
stack_bytes=8192
record_stacks ./interrupted --exit 20
expect_complete_stacks 2000
expect_stack 2000+ 'mmap<handle_signal<...<main<...<_start'
for function in in_library in_vdso in_program; do
	expect_stack 1+ "mmap<handle_signal<...<$function<...<main<...<_start"
done
expect_json 'any(.groups[]; .stack_end == "entry" and any(.frames[]; .module == "[vdso]"))'
