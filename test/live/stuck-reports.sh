#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize alone
# Programs and recordings on a file system that never answers: its programs lose their names, and Ctrl-C ends all commands
# that read recordings.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
need_own_mounts
[ "$(id -u)" = 0 ] && [ -w /dev/fuse ] || skip "no FUSE file system can be mounted here"
mkdir files
# In a mount namespace of its own.
start_command unshare --mount bash -c 'mount --make-rprivate / && exec "$0" "$1"' "$workloads/silent-files" "$directory/files"
files=$pid
# Before a command, which then runs where the file system is mounted.
within=(env --default-signal=INT nsenter --mount --target "$files")

# Packing and reports read the code that was mapped from the file, too: they go on without it.
if [ "$(uname -m)" = x86_64 ]; then
	start_command "${within[@]}" "$workloads/stuck" "$directory/files/file" frames
	start_recording --raw -p "$pid"
	stop_recording
	"${within[@]}" "$MMTRACE" pack -o packed.data "$recording" >messages 2>&1 || fail "pack failed: $(cat messages)"
	for file in "$recording" packed.data; do
		"${within[@]}" "$MMTRACE" report --no-pager "$file" >output 2>&1 || fail "no report: $(cat output)"
		grep -q 'files/file is on a file system that does not answer' output || fail "another report: $(cat output)"
	done
	report_json
	expect_true_report
	expect_json ".processes[] | select(.pid == $pid) | .checked"
	kill -9 "$pid"
fi

# A recording that lies there: the user ends what reads it.
is_stuck() {
	grep -qE '^State:.D|fuse' "/proc/$(child_of "$pid")"/{status,stack}
}

has_stopped() {
	! lives "$pid"
}

for words in "report FILE" "export -f folded FILE" "diff FILE FILE" "dump FILE" "pack FILE"; do
	read -r -a words <<<"${words//FILE/$directory/files/file}"
	"${within[@]}" "$MMTRACE" "${words[@]}" >output 2>&1 &
	pid=$!
	wait_until "${words[0]} to wait" is_stuck
	kill -INT "$pid"
	wait_until "${words[0]} to end" has_stopped
	wait "$pid"
	[ $? = 130 ] || fail "${words[0]} did not end of the signal: $(cat output)"
done
kill -9 "$files"
wait_for_end "$files"
