#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Function by function, inlined ones included, every stack is the one that gdb shows for the same call. All programs, beside
# perf: test/agreement.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2
source "$SOURCE/test/live/support/agreement.bash" || exit 2

need_perf
need_agreement
# agrees PROGRAM CALLS: on at least so many calls.
agrees() {
	agreement_build "$1" || {
		echo "$1: $missing is not installed"
		return
	}
	agreement_case
	echo "$1 $figures"
	[[ " $figures " =~ " gdb-whole="([0-9]+)" mmtrace="([0-9]+)" " ]] || fail "no figures: $figures"
	[ "${BASH_REMATCH[1]}" -ge "$2" ] || fail "$1: ${BASH_REMATCH[1]} calls, not $2"
	[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ] || {
		DIFFERENCES=1 python3 "$support/agreement.py" gdb.calls mmtrace=mmtrace.calls >&2
		fail "$1: gdb shows other stacks"
	}
}

agrees c 18
agrees c++ 24
agrees coroutine 3
agrees libraries 7
agrees go 15
