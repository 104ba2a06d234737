#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Stacks through libraries that are loaded and unloaded are complete, and their frames keep their names afterwards.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
rounds=100
build_native_library
build_program gcc -o libraries "${stack_options[@]}" "$stack_sources/libraries.c" "$stage_source" -ldl
record_stacks ./libraries --exit "$directory/libnative.so" $rounds
expect_complete_stacks $((7 * rounds))
outer='one_round<main<...<_start'
expect_stack $rounds "mmap<native_leak<by_pointer<$outer"
expect_stack $rounds "mmap<native_leak<called_back<native_call<by_callback<$outer"
expect_stack $rounds "mmap<native_leak<Java_Program_leak<$outer"
expect_stack $((3 * rounds))+ "__mmap64<...<_dl_open<...<dlopen*<$outer"
