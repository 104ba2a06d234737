#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: musl-gcc:musl-tools
# Stacks of C on musl, whose own code has neither unwind tables nor frame pointers, are complete.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v musl-gcc >/dev/null || skip "no musl-gcc is installed"
rounds=200
# Two calls of the loader end in __dls3(), which jumps to the program with a new stack pointer and never returns: no return
# shows how large its frame is. Debian's musl is stripped: the function that starts threads has no symbol, and must not get
# that of the preceding function.
stack_entries+='|^[?]@libc[.]so$'
for linking in dynamic static; do
	echo $linking
	options=()
	[ $linking = dynamic ] || options=(-static)
	build_program musl-gcc "${options[@]}" -o "$linking" "${stack_options[@]}" "$stack_sources/program.c" "$stage_source"
	record_stacks "./$linking" --exit $rounds
	expect_complete_stacks $((12 * rounds))
	expect_c_stacks $rounds+ '...'
done
