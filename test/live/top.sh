#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: jq:jq
# top shows what the report of the same recording shows, as blocks and as JSON, and leaves nothing behind.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
export TMPDIR=$directory/tmp
mkdir tmp
nothing_left() { # WHAT
	[ -z "$(ls -A tmp)" ] || fail "$1: left $(ls -A tmp)"
}

# The last line of JSON and the last block are the report of what was recorded.
"$MMTRACE" top --json -n 5 --interval 300ms -o top.data -- sh -c 'sleep 1; exit 0' >lines 2>errors || fail "--json: $(cat errors)"
jq -e . lines >/dev/null || fail "no lines of JSON: $(cat lines errors)"
"$MMTRACE" report --json -n 5 top.data >report.json || fail "no report"
[ "$(tail -1 lines | jq -S .)" = "$(jq -S . report.json)" ] || fail "the last line is not the report"
options=(--by 'function,class' --sort committed --hide none --ignore none --no-demangle --limit 3)
"$MMTRACE" top "${options[@]}" --max-size 1G -o top.data --interval 1h -- sh -c 'sleep 0.3' >block 2>errors ||
	fail "a block: $(cat errors)"
"$MMTRACE" report "${options[@]}" top.data >report.txt
diff <(sed '1d;$d' block) report.txt >difference || fail "the last block is not the report: $(cat difference)"
grep -qE '^\[[0-9:]{8}\]$' block || fail "no time before the block"

# Processes by number, name and group; the output of a command is not among the reports.
start_workload leak-anon
for chosen in "-p $pid" "--comm leak-anon" "--pid=$pid --focus main --colour never"; do
	# shellcheck disable=SC2086
	"$MMTRACE" top $chosen --count 2 --interval 200ms >blocks 2>errors || fail "$chosen: $(cat errors)"
	[ "$(grep -cE '^\[[0-9:]{8}\]$' blocks)" = 2 ] || fail "$chosen: not two blocks: $(cat blocks)"
	grep -q 'leak-anon' blocks && ! grep -q INCOMPLETE blocks || fail "$chosen: $(cat blocks)"
done
use_own_group
if [ -n "$own_group" ]; then
	"$MMTRACE" top --cgroup "$own_group" --json --count 1 >blocks 2>errors || fail "--cgroup: $(cat errors)"
fi
[ "$(id -u)" != 0 ] || "$MMTRACE" top --all-cpus --json --count 1 >blocks 2>errors || fail "--all-cpus: $(cat errors)"
"$MMTRACE" top --json -- sh -c 'echo spoken; sleep 0.1' 2>errors | jq -e . >/dev/null || fail "output among the JSON"
grep -qx spoken errors || fail "the output of the command is lost: $(cat errors)"
"$MMTRACE" top --interval 100ms -p "$pid" 2>errors | head -1 >/dev/null
[ "${PIPESTATUS[0]}" = 141 ] || fail "a closed output ends with ${PIPESTATUS[0]}"
nothing_left "reports"

# A signal ends it and its recorder. Here the shell makes both ignore SIGINT.
"$MMTRACE" top --interval 100ms -p "$pid" >blocks 2>errors &
top=$!
processes+=("$top")
wait_until "a block" grep -q . blocks
recorder=$(for child in $(cat "/proc/$top/task/$top/children"); do
	tr '\0' ' ' <"/proc/$child/cmdline" | grep -q ' record ' && echo "$child"
done)
kill "$top"
wait "$top"
status=$?
[ "$status" = 143 ] || fail "SIGTERM gives $status"
[ -n "$recorder" ] && ! lives "$recorder" || fail "SIGTERM leaves a recorder"
nothing_left "SIGTERM"

# What cannot be recorded, and wrong usage.
while read -r expected arguments; do
	# shellcheck disable=SC2086
	"$MMTRACE" top $arguments >output 2>errors
	status=$?
	[ "$status" = "$expected" ] && [ -s errors ] || fail "top $arguments gives $status: $(cat output errors)"
done <<'END'
2
2 -p 99999999
2 -p 1 top.data
127 -- ./missing
END
nothing_left "nothing to record"
