# SPDX-License-Identifier: LGPL-2.1-or-later
# Shared by golden/screen.sh and the live tests of hints and causes. Input: MMTRACE.

# screen_fits WIDTH [LINES]: on standard input, no line is wider, and the first screen, which ends with the first empty
# line after the first stack (or the count of those that are not shown) and the line on trust, has at most LINES lines,
# or 23.
screen_fits() {
	local line lines=0 stack= trust= end= wrong=0
	while IFS= read -r line; do
		[ ${#line} -le "$1" ] || {
			echo "a line of ${#line} columns: $line"
			wrong=1
		}
		[[ $line != "      "[^\ ]* && $line != [0-9]*" more "@(stack|row)* ]] || stack=yes
		[[ $line != trust:* ]] || trust=yes
		[ "$line" ] || [ ! "$stack" ] || [ ! "$trust" ] || end=${end:-$lines}
		lines=$((lines + 1))
	done
	[ ! "$end" ] || [ "$end" -le "${2:-23}" ] || {
		echo "the first screen has $end lines"
		wrong=1
	}
	return $wrong
}

# on_terminal WIDTH[xLINES] WORD...: what mmtrace with these words prints on a terminal of LINES or 24, without colours.
on_terminal() {
	local width=${1%x*} lines=24
	[ "$width" = "$1" ] || lines=${1#*x}
	shift
	LC_ALL=C.UTF-8 script -qec "stty cols $width rows $lines && '$MMTRACE' $* 2>/dev/null" /dev/null </dev/null |
		tr -d '\r' | sed 's/\x1b\[[0-9;]*m//g'
}

# expect_first_screen: of the report of $recording.
expect_first_screen() {
	on_terminal 80 report --no-pager -i "$recording" >"$directory/screen.txt"
	LC_ALL=C.UTF-8 screen_fits 80 <"$directory/screen.txt" || fail "the first screen does not fit: $(cat "$directory/screen.txt")"
}
