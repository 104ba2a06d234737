#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: g++:g++
# Whole stacks of C++: exceptions, threads, templates, coroutines of the language.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v g++ >/dev/null || skip "no g++ is installed"
rounds=30
build_program gcc -c "${stack_options[@]}" -o stage.o "$stage_source"
build_program g++ -std=c++20 "${stack_options[@]}" -o exceptions "$stack_sources/exceptions.cc" stage.o -pthread
record_stacks ./exceptions --exit $rounds
expect_whole_stacks $((7 * 3 * rounds))
# In the program's first thread and in two more, whose first function is the library's.
expect_cxx_stack() {
	expect_stack $rounds "$1<leaks::one_round()<main<...<_start"
	expect_stack $((2 * rounds)) "$1<leaks::one_round()<...<start_thread<*"
}
mapped='mmap<leaks::leak_mmap()'
thrown='leaks::throw_error(int)'
expect_cxx_stack "$mapped<leaks::leaks_when_destroyed::~leaks_when_destroyed()<$thrown<leaks::catch_error()"
expect_cxx_stack "$mapped<leaks::leaks_when_destroyed::~leaks_when_destroyed()<$thrown<$thrown<$thrown<leaks::catch_error()"
expect_cxx_stack "$mapped<leaks::catch_error()"
expect_cxx_stack "$mapped<leaks::circle::draw(*"
expect_cxx_stack "$mapped</for_every/"
expect_cxx_stack "$mapped<...<leaks::by_function(*"
expect_cxx_stack "mmap<...<malloc<operator new(unsigned long)<leaks::by_vector()"
expect_cxx_stack "mmap<...<malloc<...<leaks::leak_new()<$thrown<$thrown<$thrown<leaks::catch_error()"

build_program g++ -std=c++20 "${stack_options[@]}" -o coroutine "$stack_sources/coroutine.cc" stage.o
record_stacks ./coroutine --exit 100
expect_whole_stacks 300
expect_stack 100 'mmap<leak_mmap*<...<start_task*<main<...<_start'
expect_stack 200 'mmap<leak_mmap*<...<resume_elsewhere*<main<...<_start'
