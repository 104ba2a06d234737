#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: python3:python3
# Stacks of CPython are complete: the interpreter's own frames and, with -X perf where available, every Python function
# between them, in order.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
build_native_library
stack_bytes=65280
stack_entries+='|^[?]@python3'
rounds=50
interpreters=0 trampolines=0

# python_case INTERPRETER OPTION...
python_case() {
	echo "$*"
	record_stacks "$@" "$stack_sources/program.py" "$directory/libnative.so" $rounds
	expect_complete_stacks $((2 * 6 * rounds))
	interpreters=$((interpreters + 1))
	# The interpreter's frames; main thread and the other one.
	expect_stack $((2 * 2 * rounds)) 'mmap<native_leak<...<ffi_call<*'
	expect_stack $((2 * rounds)) 'mmap<native_leak<...<ffi_call<...<Py_BytesMain<...<__libc_start_main*'
	expect_stack $((2 * rounds)) 'mmap<native_leak<...<ffi_call<...<start_thread<*'
}

# expect_python PATTERN: in both threads; functions are "py::NAME:FILE".
expect_python() {
	local round='</^py::one_round:/<...</^py::rounds:/<...'
	expect_stack $rounds "$1<...$round</^py::main:/<...<__libc_start_main*"
	expect_stack $rounds "$1<...$round<start_thread<*"
}

for interpreter in /usr/bin/python3 python3 python3.1{2,3,4} "${PYENV_ROOT:-/nowhere}"/versions/3.1[2-9]*/bin/python3; do
	"$interpreter" -c 'import mmap, ctypes' 2>/dev/null || continue
	if ! "$interpreter" -c 'import sys; sys.activate_stack_trampoline("perf")' 2>/dev/null; then
		[ $interpreters -gt 0 ] || python_case "$interpreter"
		continue
	fi
	python_case "$interpreter" -X perf
	trampolines=$((trampolines + 1))
	expect_python 'mmap<new_mmap_object<...</^py::leak_map:/<...</^py::Circle.draw:/<...</^py::by_method:/'
	expect_python 'mmap<...<PyByteArray_Resize<...</^py::leak_bytes:/<...</^py::by_closure.*inner:/<...</^py::by_closure:/'
	expect_python 'mmap<new_mmap_object<...</^py::leak_map:/<...</^py::generate:/<...</^py::by_generator:/'
	expect_python 'mmap<native_leak<...</^py::leak_native:/<...</^py::by_sort.*key:/<...</^py::by_sort:/'
	expect_python 'mmap<native_leak<...</^py::leak_native:/<...</called_back:/<...<native_call<...</^py::by_callback:/'
	expect_python 'mmap<new_mmap_object<...</^py::leak_map:/<...</^py::by_exception:/'
done
[ $interpreters -gt 0 ] || skip "no python3 is installed"
[ $trampolines -gt 0 ] || echo "no interpreter has perf trampolines"
