#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# On a terminal of 80 columns, no line of any report wraps, and what an incident needs fits on 23 lines: header, verdict,
# causes, the first stack and trust.
source "$SOURCE/test/golden/replay.bash" || exit 2
source "$SOURCE/test/golden/first-screen.bash" || exit 2

failed=0
count=0

check() {
	local name=$1 width
	shift
	[ "$1" = report ] && [[ " $* " != *" --json "* ]] || return 0
	for width in 80 100; do
		(cd "$recordings" && on_terminal $width "$@") >"$directory/$name"
		if ! screen_fits $width <"$directory/$name"; then
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
