#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# If no more files can be opened, the recorder reports that, and does not ask for privileges that it already has.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# close_inherited: descriptors inherited by the test would count towards the limit.
close_inherited() {
	local path
	for path in "/proc/$BASHPID"/fd/*; do
		[ "${path##*/}" -le 2 ] || [ "${path##*/}" = 255 ] || eval "exec ${path##*/}>&-" # 255 is bash's own
	done
}
for limit in 6 8 10 12 16; do
	status=0
	(close_inherited && ulimit -n "$limit" && exec "$MMTRACE" record -q -o "$recording" -- true) 2>refused.log || status=$?
	[ "$status" = 2 ] || fail "with $limit descriptors record ended with status $status: $(cat refused.log)"
	grep -qE 'Too many open files|ulimit -n' refused.log || fail "with $limit descriptors: $(cat refused.log)"
	! grep -q 'run as root' refused.log || fail "with $limit descriptors, as user $(id -u): $(cat refused.log)"
done
