# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/live/hints-*.sh: a hint of a report names a problem, and following it fixes that.
source "$SOURCE/test/live/support/stacks.bash" || exit 2
source "$SOURCE/test/golden/first-screen.bash" || exit 2

stack_bytes=65280
hint_count() {
	ask_stacks --arg hint "$1" '[.completeness.warnings[] | select(contains($hint))] | length'
}

# expect_hint WORDS...: the report has one note that contains each of them, all on its first screen.
expect_hint() {
	local words
	for words in "$@"; do
		[ "$(hint_count "$words")" = 1 ] || fail "not noted once: $words: $(ask_stacks '.completeness.warnings[]')"
		"$MMTRACE" report --no-pager -i "$recording" | head -30 | tr -s ' \n' ' ' | grep -qF -e "$words" ||
			fail "missing from the first screen: $words"
	done
	expect_first_screen
}

# expect_no_hint WORDS
expect_no_hint() {
	[ "$(hint_count "$1")" = 0 ] || fail "noted: $(ask_stacks '.completeness.warnings[]')"
}

# expect_function PATTERN: some frame has a name that matches the regular expression. expect_no_function: none does.
expect_function() {
	[ "$(ask_stacks --arg name "$1" '[.groups[].frames[] | .function // "" | select(test($name))] | length > 0')" = true ] ||
		fail "no function $1"
}
expect_no_function() {
	[ "$(ask_stacks --arg name "$1" '[.groups[].frames[] | .function // "" | select(test($name))] | length')" = 0 ] ||
		fail "there is a function $1"
}
