#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A report takes memory for what lives and for different stacks, not for each event: read from a file, from a pipe, step
# by step, and as the difference of two.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
# Memory that was freed shall be used again.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=0:thread_local_quarantine_size_kb=0
failed=0

# peak COMMAND...: in KiB
peak() {
	python3 -c 'import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss if status == 0 else "failed")' "$MMTRACE" "$@"
}

for events in 100000 400000; do
	"$BUILD/test/generate-recording" --events $events --live 2000 --stacks 200 "$directory/$events" >/dev/null
done

# same WHAT KIB KIB: of the short recording, and of the one four times as long, each event of which has 200 bytes and more.
same() {
	echo "$1: $2 and $3 KiB"
	[ "$3" -lt $(($2 + 8192)) ] && return
	echo "$1: memory grows with the recording"
	failed=1
}
same report "$(peak report "$directory/100000")" "$(peak report "$directory/400000")"
same "report -i -" "$(peak report -i - < <(cat "$directory/100000"))" "$(peak report -i - < <(cat "$directory/400000"))"
same "report --every" "$(peak report --every 5ms "$directory/100000")" "$(peak report --every 20ms "$directory/400000")"
same diff "$(peak diff "$directory/100000" "$directory/100000")" "$(peak diff "$directory/100000" "$directory/400000")"
exit "$failed"
