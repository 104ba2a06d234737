#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Environment variables and arguments, which lie above the first frame of a stack, are in no recording: neither of a
# command, nor of what it executes, of short-lived children or of attached programs. Stacks stay complete.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
find_bytes=$BUILD/test/find-bytes
export SECRET_TOKEN=hunter2-in-the-environment

# expect_no_secret WHAT
expect_no_secret() {
	local text
	report_json
	expect_json '.completeness.stacks_by_end | .entry > 0 and .entry == add'
	for text in "$SECRET_TOKEN" hunter2-in-an-argument; do
		[ "$("$find_bytes" "$recording" "$text")" = 0 ] || fail "$1: the recording holds '$text'"
	done
}

for size in 8192 65280; do
	# Each program loads its libraries below the first frames; many have ended before their samples are read.
	printf '%s\n' 'token=$1' 'for i in 1 2 3 4 5 6 7 8; do /bin/true "$token"; (exec env >/dev/null); done' 'exec /bin/true' \
		>"$directory/script"
	printf '%s\n' "exec /bin/sh '$directory/script' hunter2-in-an-argument" >"$directory/outer"
	"$MMTRACE" record -q -g "dwarf,$size" -o "$recording" -- /bin/sh "$directory/outer" || fail "record ended with status $?"
	expect_no_secret "a command with $size bytes of stacks"
	rm "$recording"
done

start_workload leak-anon
start_recording -p "$pid"
let_work
stop_recording
let_end
expect_no_secret "a program attached to"
