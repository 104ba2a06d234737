#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# On a terminal of 80 or 100 columns, no line of any report wraps, and what an incident needs fits on its lines less one
# for the prompt: header, verdict, causes, the first stack and trust. More lines show more.
source "$SOURCE/test/golden/replay.bash" || exit 2
source "$SOURCE/test/golden/first-screen.bash" || exit 2

failed=0
count=0
higher=0

check() {
	local name=$1 width size
	shift
	[ "$1" = report ] && [[ " $* " != *" --json "* ]] || return 0
	for size in 80x24 100x30; do
		width=${size%x*}
		(cd "$recordings" && on_terminal $size "$@") >"$directory/$name"
		if ! screen_fits $width $((${size#*x} - 1)) <"$directory/$name"; then
			echo "FAILED: $name, $size" >&2
			cat "$directory/$name" >&2
			failed=1
		fi
		grep -q '^trust: ' "$directory/$name" && count=$((count + 1))
		[ $size = 80x24 ] || screen_fits $width <"$directory/$name" >/dev/null || higher=$((higher + 1))
	done
}

put_program
for_each_golden check
# So does a first line on what was unmapped at the end.
for lines in 18 19 20; do
	(cd "$recordings" && on_terminal 80x$lines report --no-pager -i freed.data) >"$directory/freed"
	grep -q '^As of [0-9.]* .* before the end, before memory was freed; ' "$directory/freed" && screen_fits 80 $((lines - 1)) <"$directory/freed" || failed=1
done
# JSON has that answer besides the one of the end.
(cd "$recordings" && "$MMTRACE" report --json -i freed.data) >"$directory/freed"
jq -e '[.headline, (.before_end | .headline, .causes[0].name, .growth.verdict)] == ["GROWING", "LEAK", "grow (freed)", "growing"] and
	.to_ns - .before_end.to_ns > 1e8' "$directory/freed" >/dev/null || failed=1
[ $count -ge 40 ] && [ $higher -ge 1 ] || failed=1
exit $failed
