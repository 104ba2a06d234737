# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by golden/screen.sh and the live tests of hints and causes. Input: MMTRACE.

# screen_fits WIDTH: on standard input, no line is wider, and the first screen, which ends with the first empty line after
# the first stack and the line on trust, has at most 23 lines.
screen_fits() {
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

# on_terminal WIDTH WORD...: what mmtrace with these words prints on a terminal of 24 lines, without colours.
on_terminal() {
	local width=$1
	shift
	LC_ALL=C.UTF-8 script -qec "stty cols $width rows 24 && '$MMTRACE' $* 2>/dev/null" /dev/null </dev/null |
		tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g'
}

# expect_first_screen: of the report of $recording.
expect_first_screen() {
	on_terminal 80 report --no-pager -i "$recording" >"$directory/screen.txt"
	LC_ALL=C.UTF-8 screen_fits 80 <"$directory/screen.txt" || fail "the first screen does not fit: $(cat "$directory/screen.txt")"
}
