#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: php:php-cli
# Stacks of PHP are complete: interpreted, and with its JIT compiler, whose code runs in the interpreter's frame.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v php >/dev/null || skip "no php is installed"
rounds=50
stack_bytes=65280
stack_entries+='|^[?]@php'
record_stacks php "$stack_sources/program.php" $rounds
expect_complete_stacks $((4 * rounds))
outer='zend_execute<...<php_execute_script<...<__libc_start_main*'
expect_stack $((4 * rounds))+ "mmap<...<execute_ex<$outer"

compiler=(php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.file_update_protection=0)
# compiled_case living|ending OPTION...: one PHP function calls another within one frame of the interpreter, except those
# that the library calls. A program that is alive when recording ends, or is not.
compiled_case() {
	"record_$1_stacks" "${compiler[@]}" -d opcache.jit_debug=0x10 "${@:2}" "$stack_sources/program.php" $rounds wait
	expect_complete_stacks $((4 * rounds)) $ends
	expect_json 'all(.completeness.warnings[]; contains("end in JIT code") | not)'
}
ends=
leaf='mmap<...<JIT$leak_string'
for program in living ending; do
	echo "every function compiled, $program"
	compiled_case $program -d opcache.jit=1205
	expect_stack $((2 * rounds))+ "$leaf<zend_execute<zend_execute_scripts<php_execute_script<...<__libc_start_main*"
	expect_stack $rounds+ "$leaf<zend_call_function<...<JIT\$one_round<$outer"
	expect_stack $rounds+ "$leaf<zend_generator_resume<...<JIT\$one_round<$outer"
done
# If the interpreter runs below the compiler, whose arrays are partly not in memory yet, stack dumps end there.
ends=dump_exhausted
for program in living ending; do
	echo "traces, $program"
	compiled_case $program -d opcache.jit=tracing -d opcache.jit_hot_func=2 -d opcache.jit_hot_loop=2
	expect_json 'any(.groups[].frames[]; .kind == "jit" and (.function | startswith("TRACE-")))'
	expect_json 'all(.groups[]; .stack_end == "entry" or .frames[-1].module == "opcache.so")'
done

# Without the instructions a stack ends in JIT code; the summary says why and what to do, and so does a packed recording.
echo 'no code'
living_options=(--code none)
record_living_stacks "${compiler[@]}" -d opcache.jit_debug=0x10 -d opcache.jit=1205 "$stack_sources/program.php" $rounds wait
expect_end_named() {
	expect_json '[.completeness.warnings[] | select(contains("(PHP) end in JIT code") and contains("-d opcache.jit=off"))] | length == 1'
	expect_json 'all(.groups[]; .stack_end == "entry" or (.stack_end == "no_unwind_data" and .frames[-1].kind == "jit"))'
}
expect_end_named
packed=$directory/packed.data
"$MMTRACE" pack -o "$packed" "$recording" 2>pack.log || fail "pack: $(cat pack.log)"
recording=$packed report_json
expect_end_named

record_stacks "${compiler[@]}" -d opcache.jit=off "$stack_sources/program.php" $rounds
expect_complete_stacks $((4 * rounds))
expect_json 'all(.completeness.warnings[]; contains("end in JIT code") | not)'
