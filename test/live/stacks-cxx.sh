#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: g++:g++
# Stacks of C++ are complete: exceptions, threads, templates, language coroutines.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v g++ >/dev/null || skip "no g++ is installed"
rounds=30
build_program gcc -c "${stack_options[@]}" -o stage.o "$stage_source"
build_program g++ -std=c++20 "${stack_options[@]}" -o exceptions "$stack_sources/exceptions.cc" stage.o -pthread
record_stacks ./exceptions --exit $rounds
expect_complete_stacks $((7 * 3 * rounds))
# In the program's first thread and in two more, whose first function is in the library.
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
expect_complete_stacks 300
expect_stack 100 'mmap<(anonymous namespace)::leak_mmap()<...<(anonymous namespace)::start_task(unsigned long)<main<...<_start'
expect_stack 200 'mmap<(anonymous namespace)::leak_mmap()<...<(anonymous namespace)::resume_elsewhere*<main<...<_start'

# Functions without a linkage name have their namespaces and classes, with and without debug information: from the symbol,
# or from the surrounding entries.
expect_scopes() {
	record_stacks ./scopes --exit $rounds
	expect_complete_stacks $((7 * rounds))
	expect_stack $rounds "mmap<first::(anonymous namespace)::cache::grow(int)<first::run()<main<...<_start"
	expect_stack $rounds "mmap<second::(anonymous namespace)::pool::grow(int)<second::run()<main<...<_start"
	expect_stack $rounds "mmap<second::help()<second::run()<main<...<_start"
	expect_stack $rounds "mmap</^second::run\(\)::.*::operator\(\)\(\) const$/<second::run()<main<...<_start"
}
# expect_inlined FUNCTION CALLER: an inlined function (a regular expression) is shown with its class.
expect_inlined() {
	expect_json "[.groups[] | select([.frames[] | select(.inlined) | .function] | any(test(\"$1\"))) |
		select(any(.frames[]; .function == \"$2\" and (.inlined | not))) | .allocated_count] | add == $rounds"
}
for compiler in g++ clang++; do
	command -v $compiler >/dev/null || continue
	build_program $compiler "${stack_options[@]}" -o scopes "$stack_sources/scopes.cc" stage.o
	expect_scopes
	expect_inlined '^first::\\(anonymous namespace\\)::cache::stretch' 'first::run()'
	expect_inlined '^second::\\(anonymous namespace\\)::pool::stretch' 'second::run()'
	expect_inlined '^second::run.*::.*::operator\\(\\)' 'second::run()'
	strip -g scopes
	expect_scopes
done
