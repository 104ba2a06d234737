#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# One allocation after the other fails, whichever library requests it: the tool reports it and exits with status 2, or its
# output is the usual one; no partial file is left behind.
source "$SOURCE/test/golden/replay.bash" || exit 2

grep -q '^MMTRACE_SANITIZE:BOOL=ON$' "$BUILD/CMakeCache.txt" && {
	echo "SKIPPED: sanitizers have allocation functions of their own" >&2
	exit 77
}
library=$(find "$BUILD/test" -maxdepth 1 -name 'libfail-allocation.so')
[ -n "$library" ] || { echo "FAILED: libfail-allocation.so is missing" >&2 && exit 1; }
put_program
cd "$recordings" || exit 1
runs=0 failures=0
# A locale that cannot be loaded is no error.
export LC_ALL=C

# run WORD...: with FAIL_ALLOCATION. A file that it writes is the only one in its directory.
run() {
	rm -rf "$directory/written" && mkdir "$directory/written"
	LD_PRELOAD=$library "$MMTRACE" "$@" >"$directory/out" 2>"$directory/errors" </dev/null
}

# try_all STEP WORD...: each of the first allocations, then every STEPth.
try_all() {
	local step=$1 number status count
	shift
	FAIL_ALLOCATION=0 COUNT_ALLOCATIONS=$directory/count run "$@" || { echo "FAILED: $*: $(cat "$directory/errors")" >&2 && exit 1; }
	count=$(head -n 1 "$directory/count") # of the child, which ends first
	cp "$directory/out" "$directory/expected"
	[ "$count" -gt 100 ] || { echo "FAILED: $*: only $count allocations" >&2 && exit 1; }
	for ((number = 1; number <= count; number += number < 30 ? 1 : step)); do
		FAIL_ALLOCATION=$number run "$@"
		status=$?
		runs=$((runs + 1))
		# The threads of a report do not allocate in the same order each time: the last allocations may not be
		# reached.
		if [ $status = 0 ]; then
			cmp -s "$directory/out" "$directory/expected" && continue
		elif [ $status = 2 ] && grep -q 'out of memory' "$directory/errors"; then
			failures=$((failures + 1))
			ls "$directory/written" | grep -v '^packed$' || continue
			echo "files are left behind" >&2
		fi
		echo "FAILED: allocation $number of $count fails: status $status of $*: $(head -3 "$directory/errors")" >&2
		exit 1
	done
}

try_all 61 report --json -i leak.data
try_all 97 report --no-pager --every 100ms -i more.data
try_all 97 diff --json leak.data more.data
try_all 61 dump -i leak.data
try_all 61 pack -q -o "$directory/written/packed" leak.data
[ $failures -gt $((runs * 3 / 4)) ] || { echo "FAILED: only $failures of $runs runs failed" >&2 && exit 1; }
echo "$failures of $runs runs ended for lack of memory"
