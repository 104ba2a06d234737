#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: python3:python3
# Python without perf trampolines: following the report's hint gives names to its functions.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
for interpreter in python3 python3.1{2,3,4} "${PYENV_ROOT:-/nowhere}"/versions/3.1[2-9]*/bin/python3; do
	"$interpreter" -c 'import sys, mmap, ctypes; sys.activate_stack_trampoline("perf")' 2>/dev/null && break
	interpreter=
done
[ "$interpreter" ] || skip "no Python with perf trampolines is installed"
build_native_library
program=("$stack_sources/program.py" "$directory/libnative.so" 5)
record_stacks "$interpreter" "${program[@]}"
expect_hint '(Python) have no names: start it with -X perf'
expect_no_function leak_map
record_stacks "$interpreter" -X perf "${program[@]}"
expect_no_hint '(Python) have no names'
expect_function '^py::leak_map:'
"$MMTRACE" report --no-pager -n 0 --min-bytes 0 -i "$recording" | grep -A1 '^ *py::leak_native:' |
	grep -q '^ *py::by_sort\.<locals>\.key:' || fail "other lines stand between the functions of Python"
record_stacks PYTHONPERFSUPPORT=1 "$interpreter" "${program[@]}"
expect_no_hint '(Python) have no names'
expect_function '^py::leak_map:'

# An older Python ignores the setting: the report does not advise it, whether it was set or not.
for older in python3 python3.1{0,1} "${PYENV_ROOT:-/nowhere}"/versions/3.1[01]*/bin/python3; do
	"$older" -c 'import sys; sys.exit(sys.version_info >= (3, 12))' 2>/dev/null && break
	older=
done
[ "$older" ] || exit 0
record_stacks PYTHONPERFSUPPORT=1 "$older" "${program[@]}"
expect_hint '(Python) have no names: its version cannot write a perf map; run the program with Python 3.12 or later'
