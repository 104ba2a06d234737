#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Whole stacks of PHP's interpreter. Code of its just-in-time compiler keeps no frame pointers: such a stack ends there, with
# the function's name, and is not called whole.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v php >/dev/null || skip "no php is installed"
rounds=50
stack_entries+='|^[?]@php'
record_stacks php "$stack_sources/program.php" $rounds
expect_whole_stacks $((4 * rounds))
expect_stack $((4 * rounds))+ 'mmap<...<execute_ex<zend_execute<...<php_execute_script<...<__libc_start_main*'

record_stacks php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=1205 -d opcache.jit_debug=0x10 \
	"$stack_sources/program.php" $rounds
expect_json 'any(.groups[].frames[]; .kind == "jit")' && expect_json "[.groups[] |
	select(any(.frames[]; .function == \"JIT\$leak_string\")) |
	if .stack_end == \"no_unwind_data\" and .frames[-1].function == \"JIT\$leak_string\" then .allocated_count else -1000000 end] |
	add >= 4 * $rounds"
expect_json 'all(.groups[]; .stack_end == "entry" or any(.frames[]; .kind == "jit"))'

# The summary says what would lead further, which a packed recording repeats; and it does.
expect_end_named() {
	expect_json '[.completeness.lacks[] | select(contains("(PHP) end in generated code") and contains("-d opcache.jit=off"))] | length == 1'
}
expect_end_named
packed=$directory/packed.data
"$MMTRACE" pack -o "$packed" "$recording" 2>pack.log || fail "pack: $(cat pack.log)"
recording=$packed report_json
expect_end_named

record_stacks php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=off "$stack_sources/program.php" $rounds
expect_whole_stacks $((4 * rounds))
expect_json 'all(.completeness.lacks[]; contains("end in generated code") | not)'
