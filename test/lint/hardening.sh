#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# The tool and the library are built so that an overflow ends them before it is of use.
set -u
cd "${BUILD:?}" || exit 1
failed=0

# expect FILE WHAT PATTERN READELF-OPTION...
expect() {
	local file=$1 what=$2 pattern=$3
	shift 3
	readelf -W "$@" "$file" | grep -qE "$pattern" && return
	echo "$file: no $what" >&2
	failed=1
}

sanitized=$(sed -n 's/^MMTRACE_SANITIZE:BOOL=//p' CMakeCache.txt)
for file in mmtrace libmmtrace.so; do
	expect "$file" "immediate binding (-z now)" 'BIND_NOW|Flags: .*NOW' -d
	expect "$file" "read-only relocations (-z relro)" GNU_RELRO -l
	expect "$file" "stack protector" __stack_chk_fail --dyn-syms
	grep -q '^MMTRACE_HAVE_FORTIFY_[23]:INTERNAL=1' CMakeCache.txt || continue
	[[ $sanitized == ON ]] || expect "$file" "checked C library calls (_FORTIFY_SOURCE)" '__[a-z]+_chk' --dyn-syms
done
grep -q '"command".*-fstack-clash-protection.*lib/base/bytes\.c' compile_commands.json 2>/dev/null ||
	grep -q 'FLAGS = .*-fstack-clash-protection' build.ninja CMakeFiles/mmtrace_objects.dir/flags.make 2>/dev/null || {
	echo "lib/: not compiled with -fstack-clash-protection" >&2
	failed=1
}
exit $failed
