#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every line of TESTLIST prints its NAME.expected.
source "$SOURCE/test/golden/replay.bash" || exit 2

failed=0
compare() {
	replay "$@"
	diff -u "$SOURCE/test/golden/$1.expected" "$directory/$1" || {
		echo "FAILED: $1" >&2
		failed=1
	}
	count=$((count + 1))
}

count=0
put_program
for_each_golden compare
[ $count -gt 0 ] || failed=1
[ ! -e "$XDG_CACHE_HOME" ] || failed=1 # reports keep nothing
exit $failed
