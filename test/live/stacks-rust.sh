#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: rustc:rustc
# Stacks of Rust are complete: generics, trait objects, panics, threads.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v rustc >/dev/null || skip "no rustc is installed"
rounds=100
build_program rustc -O -g -o program "$stack_sources/program.rs"
record_stacks ./program $rounds
expect_complete_stacks $((8 * rounds))
# In the program's first thread and in one more.
expect_rust_stack() {
	expect_stack $rounds "$1<program::one_round<...<program::main<...<main<...<_start"
	expect_stack $rounds "$1<program::one_round<...<start_thread<*"
}
expect_rust_stack 'mmap<...<malloc<...<program::leak_vector'
expect_rust_stack 'mmap<program::leak_mmap</Circle as program::Shape>::draw$/'
expect_rust_stack 'mmap<program::leak_mmap<...<program::apply'
expect_rust_stack 'mmap<program::leak_mmap</LeaksWhenDropped as core::ops::drop::Drop>::drop$/<...<program::panic_inside'
