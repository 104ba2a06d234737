#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A command whose reading process crashes, or is killed because memory ran out, says so and that its output is incomplete.
source "$SOURCE/test/golden/written-files.bash" || exit 2

ulimit -c 0
mkfifo recording
exec 3<>recording
for ending in ABRT KILL; do
	for words in "report --no-pager" "report --html page.html" "export -f folded -o stacks.folded" "dump" "pack -o packed.data"; do
		"$MMTRACE" $words recording >output 2>messages 3>&- &
		pid=$!
		child=
		while [ -z "$child" ]; do
			child=$(cat "/proc/$pid/task/$pid/children") || break
		done
		kill -$ending $child
		wait $pid
		status=$?
		[ $status = 2 ] || complain "$words: status $status after SIG$ending"
		grep -q "^mmtrace ${words%% *}: reading ended with signal .*: the output is incomplete$" messages ||
			complain "$words: another message after SIG$ending: $(cat messages)"
	done
done
[ ! -e page.html ] && [ ! -e stacks.folded ] && [ ! -e packed.data ] || complain "an incomplete file has its name"
exit $failed
