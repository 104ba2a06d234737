#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: php:php-cli
# The report's hint gives names to PHP functions and completes stacks through JIT code that is missing from the recording.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/hints.bash" || exit 2

need_perf
command -v php >/dev/null || skip "no php is installed"
php -m | grep -q OPcache || skip "php has no opcache"
program=("$stack_sources/program.php" 20)
record_stacks php "${program[@]}"
expect_hint '(PHP) have no names: start it with -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=1205 -d opcache.jit_debug=0x10'
expect_no_function leak_string
record_stacks php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=32M -d opcache.jit=1205 -d opcache.jit_debug=0x10 \
	-d opcache.file_update_protection=0 "${program[@]}"
expect_no_hint 'have no names'
expect_function '^JIT.leak_string$'
