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
# A pipe can be read once: its report is of the end, and names the option for the moment before.
"$MMTRACE" report --no-pager <(cat "$SOURCE/test/data/freed.data") >"$directory/piped" &&
	grep -q '80.00 MiB were unmapped in the last 129 ms: --to ' "$directory/piped" || {
	echo "FAILED: a recording from a pipe: $(head -3 "$directory/piped")" >&2
	failed=1
}
# In a diff, the other recording is of its end, too.
for inputs in "- $SOURCE/test/data/freed.data" "$SOURCE/test/data/freed.data -"; do
	# shellcheck disable=SC2086 # words
	cat "$SOURCE/test/data/freed.data" | "$MMTRACE" diff --no-pager --fail-above 1M $inputs >"$directory/piped" 2>&1 &&
		grep -q '^No stack changed\.$' "$directory/piped" && ! grep -q '^As of ' "$directory/piped" || {
		echo "FAILED: diff $inputs of a pipe: $(head -5 "$directory/piped")" >&2
		failed=1
	}
done
[ ! -e "$XDG_CACHE_HOME" ] || failed=1 # reports keep nothing
exit $failed
