# SPDX-License-Identifier: LGPL-2.1-or-later
# For tests of bad input: each is refused with one clear line and a status, and nothing is damaged.

# expect_refusal STATUS PATTERN COMMAND...: the status (a number, or "error": any but 0 and those of signals), nothing on
# stdout and one line on stderr that matches PATTERN.
expect_refusal() {
	local expected=$1 pattern=$2 status
	shift 2
	"$@" >"$directory/refused.out" 2>"$directory/refused.err" </dev/null
	status=$?
	if [ "$expected" = error ]; then
		[ $status -gt 0 ] && [ $status -lt 128 ] || refusal_failed "status $status" "$@"
	else
		[ $status = "$expected" ] || refusal_failed "status $status instead of $expected" "$@"
	fi
	[ ! -s "$directory/refused.out" ] || refusal_failed "output on stdout" "$@"
	[ "$(wc -l <"$directory/refused.err")" = 1 ] || refusal_failed "not one line" "$@"
	grep -qE -- "$pattern" "$directory/refused.err" || refusal_failed "no word of $pattern" "$@"
}

# expect_denial PATTERN COMMAND...: the system does not permit it: status 2 and, in this order, the words of PATTERN, which
# sees the lines as one.
expect_denial() {
	local pattern=$1
	shift
	"$@" >"$directory/refused.out" 2>"$directory/refused.err" </dev/null
	[ $? = 2 ] || refusal_failed "not status 2" "$@"
	[ ! -s "$directory/refused.out" ] || refusal_failed "output on stdout" "$@"
	tr '\n' ' ' <"$directory/refused.err" | grep -qE -- "$pattern" || refusal_failed "no word of $pattern" "$@"
}

refusal_failed() {
	local what=$1
	shift
	head -20 "$directory/refused.out" "$directory/refused.err" >&2
	fail "$what: $*"
}

# The files in the working directory and their contents.
contents_of() {
	find "$1" -type f -exec sha256sum {} + | sort
}
