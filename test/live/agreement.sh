#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: gdb:gdb libc6-dbg perf:linux-perf g++:g++ rustc:rustc go:golang-go musl-gcc:musl-tools python3:python3
# For every call, the stack of mmtrace equals that of gdb function by function, inlined ones included. For musl the
# reference is the sequence of calls that the program made. test/agreement shows all programs, beside perf.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2
source "$SOURCE/test/live/support/agreement.bash" || exit 2

need_perf
need_agreement
# agrees PROGRAM CALLS [PART]: mmtrace and gdb agree on all calls; at least CALLS stacks agree completely, and at most PART,
# of one of the two, agree only in part.
agrees() {
	local part=${3:-0}
	agreement_build "$1" || {
		echo "$1: $missing is not installed"
		return
	}
	agreement_case
	echo "$1 $figures"
	[[ "$figures " =~ ^calls=([0-9]+)" complete="([0-9]+)" mmtrace="([0-9]+)" mmtrace-part="([0-9]+)" " ]] || fail "no figures: $figures"
	[ $((BASH_REMATCH[3] + BASH_REMATCH[4])) = "${BASH_REMATCH[1]}" ] || {
		DIFFERENCES=1 python3 "$support/agreement.py" gdb.calls mmtrace=mmtrace.calls >&2
		fail "$1: gdb shows other stacks"
	}
	[ "${BASH_REMATCH[3]}" -ge "$2" ] || fail "$1: ${BASH_REMATCH[3]} calls agree, not $2"
	[ "${BASH_REMATCH[4]}" -le "$part" ] || fail "$1: ${BASH_REMATCH[4]} calls agree in part only"
}

agrees c 18
agrees c++ 24
agrees coroutine 3
agrees rust 8
# On arm64, callers are doubtful below a signal handler that has its own stack, if they keep no frame pointers; and for Go, gdb
# also reports stops that are no calls.
[ "$(uname -m)" != aarch64 ] || {
	agrees libraries 6
	exit 0
}
agrees contexts 4 1
agrees libraries 7
agrees c-musl 16
# gdb does not unwind from one Go stack to another.
agrees go 15 99
# A stack that ends anywhere else agrees with nothing.
awk -F'\t' -v OFS='\t' '$3 == "other_stack" { NF--; print >"cut.calls"; next } { print >"cut.calls"; whole++ }
	END { print whole + 0 }' mmtrace.calls >left
[[ "$(python3 "$support/agreement.py" gdb.calls mmtrace=cut.calls) " =~ " mmtrace="([0-9]+)" mmtrace-part="([0-9]+)" " ]]
[ $((BASH_REMATCH[1] + BASH_REMATCH[2])) = "$(cat left)" ] || fail "stacks of Go that end too soon agree with gdb's: ${BASH_REMATCH[0]}"
