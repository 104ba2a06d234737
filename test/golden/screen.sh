#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# On a terminal of 80 columns, no line of any report wraps, and what an incident needs fits on 23 lines: header, verdict,
# causes, the first stack and trust.
source "$SOURCE/test/golden/replay.bash" || exit 2

failed=0
count=0

# fits WIDTH: the first screen ends with the first empty line after the first stack and the line on trust.
fits() {
	local line lines=0 stack= trust= end= wrong=0
	while IFS= read -r line; do
		[ ${#line} -le "$1" ] || {
			echo "a line of ${#line} columns: $line"
			wrong=1
		}
		[[ $line != "      "[^\ ]* ]] || stack=yes
		[[ $line != trust:* ]] || trust=yes
		[ "$line" ] || [ ! "$stack" ] || [ ! "$trust" ] || end=${end:-$lines}
		lines=$((lines + 1))
	done
	[ ! "$end" ] || [ "$end" -le 23 ] || {
		echo "the first screen has $end lines"
		wrong=1
	}
	return $wrong
}

check() {
	local name=$1 width
	shift
	[ "$1" = report ] && [[ " $* " != *" --json "* ]] || return 0
	for width in 80 100; do
		(cd "$recordings" && script -qec "stty cols $width rows 24 && '$MMTRACE' $* 2>/dev/null" /dev/null </dev/null) |
			tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g' >"$directory/$name"
		if ! fits "$width" <"$directory/$name"; then
			echo "FAILED: $name, $width columns" >&2
			cat "$directory/$name" >&2
			failed=1
		fi
		grep -q '^trust: ' "$directory/$name" && count=$((count + 1))
	done
}

put_program
for_each_golden check
[ $count -ge 40 ] || failed=1
exit $failed
