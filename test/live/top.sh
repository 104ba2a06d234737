#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: python3:python3 jq:jq
# top shows what the report of the same recording shows: as blocks, as JSON and on a screen with keys, which it restores.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
export TMPDIR=$directory/tmp
mkdir tmp
nothing_left() { # WHAT
	[ -z "$(ls -A tmp)" ] || fail "$1: left $(ls -A tmp)"
}

# The kernel may leave children out while others end.
find_recorder() { # of this process of top
	local child
	recorder=
	for child in $(cat "/proc/$1/task/$1/children"); do
		find "/proc/$child/fd" -lname '*perf_event*' 2>/dev/null | grep -q . && recorder=$child
	done
	[ -n "$recorder" ]
}
recorder_ended() { # WHY
	wait_for_end "$recorder"
	! lives "$recorder" || fail "$1 leaves a recorder"
}

# The last line of JSON and the last block are the report of what was recorded.
"$MMTRACE" top --json -n 5 --interval 300ms -o top.data -- sh -c 'sleep 1; exit 0' >lines 2>errors || fail "--json: $(cat errors)"
jq -e . lines >/dev/null || fail "no lines of JSON: $(cat lines errors)"
"$MMTRACE" report --json -n 5 top.data >report.json || fail "no report"
[ "$(tail -1 lines | jq -S .)" = "$(jq -S . report.json)" ] || fail "the last line is not the report"
options=(--min-bytes 8K --by 'function,class' --sort committed --ignore none --no-demangle --limit 3)
"$MMTRACE" top "${options[@]}" --max-size 1G -o top.data --interval 1h -- sh -c 'sleep 0.3' >block 2>errors ||
	fail "a block: $(cat errors)"
"$MMTRACE" report "${options[@]}" top.data >report.txt
diff <(sed '1d;$d' block) report.txt >difference || fail "the last block is not the report: $(cat difference)"
grep -qE '^\[[0-9:]{8}\]$' block || fail "no time before the block"

# Processes by number, name and group; the output of a command is not among the reports.
start_workload leak-anon
for chosen in "-p $pid" "--comm leak-anon" "--pid=$pid --tree --focus main --colour never"; do
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
for command in "top --interval 100ms -p $pid" 'report --html - -i top.data'; do
	# shellcheck disable=SC2086
	"$MMTRACE" $command >/dev/full 2>errors && fail "$command writes to a full disk"
	[ "$(grep -c 'cannot write' errors)" = 1 ] || fail "$command says: $(cat errors)"
done
nothing_left "reports"

# start_top: in the background, until it has shown a report and its recorder is found.
start_top() {
	rm -f blocks
	"$MMTRACE" top --interval 100ms -p "$pid" >blocks 2>errors &
	top=$!
	processes+=("$top")
	wait_until "a block" grep -q . blocks
	wait_until "the recorder" find_recorder "$top"
}
# A signal ends it and its recorder, even if that is stopped. Here the shell makes both ignore SIGINT.
start_top
kill -STOP "$recorder"
kill "$top"
wait "$top"
status=$?
[ "$status" = 143 ] || fail "SIGTERM gives $status"
recorder_ended "SIGTERM"
nothing_left "SIGTERM"

# A recorder that ends before the processes: why, and its status. That of a command is passed on.
"$MMTRACE" top --max-size 4K -p "$pid" >blocks 2>errors
status=$?
[ "$status" = 1 ] && grep -q 'maximum size reached' errors || fail "--max-size does not say why it ends: $(cat errors)"
start_top
kill -KILL "$recorder"
wait "$top"
status=$?
[ "$status" = 137 ] && grep -q 'ended by signal 9' errors || fail "a killed recorder gives $status: $(cat errors)"
"$MMTRACE" top -- sh -c 'exit 3' >blocks 2>errors
status=$?
[ "$status" = 3 ] || fail "a command that ends with 3 gives $status: $(cat errors)"
nothing_left "an early end"

# What cannot be recorded, and wrong usage.
while read -r expected arguments; do
	# shellcheck disable=SC2086
	"$MMTRACE" top $arguments >output 2>errors
	status=$?
	[ "$status" = "$expected" ] && grep -q '^mmtrace top: ' errors || fail "top $arguments gives $status: $(cat output errors)"
	! grep -qE "^mmtrace record:|^See 'mmtrace record" errors || fail "top $arguments names record: $(cat errors)"
done <<'END'
2
2 --pid=
2 -p abc
2 --comm no-such-name
2 -p 99999999
2 -p 1 top.data
2 -o x top.data
2 top.data top.data
2 no-such-file
2 -
2 --output=- -- true
127 -- ./missing
END
nothing_left "nothing to record"

# in_terminal KEYS COLUMNS ROWS ARGUMENT...: $status is that of top; the terminal must be as before in the end. With `jobs`,
# a stopped one is continued.
jobs=
export TERM=xterm
in_terminal() {
	local keys=$1 columns=$2 rows=$3
	shift 3
	rm -f terminal before after
	jobs=$jobs python3 "$support/in-terminal.py" terminal "$keys" sh -c 'echo $$ >shell; columns=$1 rows=$2; shift 2
		until [ "$(stty size)" = "40 120" ]; do sleep 0.01; done; stty cols $columns rows $rows; stty -a >before
		[ -z "$jobs" ] || set -m
		"$0" top "$@"; status=$?
		[ $status != 148 ] || { stty -a >stopped; fg; status=$?; }
		for i in $(seq 1000); do stty -a >after; cmp -s before after && break; sleep 0.02; done
		exit $status' "$MMTRACE" "$columns" "$rows" "$@"
	status=$?
	cmp -s before after || fail "the terminal has changed: $(diff before after)"
	! grep -qaF $'\e[?1049h' terminal || grep -qaF $'\e[?1049l' terminal || fail "the screen of before does not come back: $(cat -v terminal)"
}
shown() { # PATTERN
	grep -qaE -- "$1" terminal || fail "'$1' is not shown: $(tail -c 3000 terminal | cat -v)"
}
quit_by_key() {
	[ $status = 0 ] || fail "q ends with $status: $(tail -c 3000 terminal | cat -v)"
}

# Each key, one after the other.
in_terminal $'trust:: \nPAUSED: \nby stack  sorted by memory:g\nby function:>\nsorted by resident:/*lea\\xe9\\x1b[15~\\x1b[1;5B\\x7fk*\\r
only --focus:/cancelled\\x1b\nfilter *leak*:\\\\none*\\r
without none*:P\nsorted by rate:M\nsorted by memory:b
since the baseline:b\ntrust:e\ntrust:\\x1b[B\\x1b[6~\\x1b[H\\x1b[F\nsorted:h\nPage Up, Page Down:\\x1c\nsorted:q' \
	80 24 --colour always -p "$pid"
quit_by_key
shown "only --focus .*\\*leak"
! grep -qaF "filter cancelled" terminal || fail "Escape does not cancel a filter"
! grep -qaE $'\e\\[m\e\\[[KJ]' terminal || fail "the last column of a full line is erased"
shown $'\e\\[[0-9;]*m.*\e\\[[0-9;]*m'

# Ctrl-Z gives the terminal back, and fg the screen; without a shell that could continue it, nothing stops.
jobs=1 in_terminal $'trust::\\x1a\n\e[?1049h:\ntrust::q' 80 24 -p "$pid"
quit_by_key
cmp -s before stopped || fail "the terminal has changed while it is stopped: $(diff before stopped)"
in_terminal $'trust::\\x1a\n\e[?1049h:\ntrust::q' 80 24 -p "$pid"
quit_by_key

# Narrow, wide and tiny: the report is as wide as the terminal.
for columns in 1 40 80 300; do
	LC_ALL=C in_terminal 'sorted:q' $columns $((columns < 24 ? columns : 24)) -p "$pid"
	quit_by_key
done

# The end: the view stays and says so; names cannot control the terminal; the output of the command comes afterwards.
printf '#!/bin/sh\necho spoken\nexec sleep 0.2\n' >command
cp command $'evil\e]0;title'
chmod +x $'evil\e]0;title'
in_terminal $'RECORDING HAS ENDED:x\ntrust::q' 80 24 -o top.data -- $'./evil\e]0;title'
quit_by_key
grep -qa spoken <(sed 's/.*\x1b\[?1049l//' terminal) || fail "the output of the command is lost: $(cat -v terminal)"
! grep -qaF $'\e]0;' terminal || fail "a name controls the terminal: $(cat -v terminal)"
"$MMTRACE" report top.data >/dev/null || fail "-o keeps no recording"
in_terminal "" 80 24 -p 99999999
[ $status = 2 ] || fail "no process: status $status"
shown 99999999
nothing_left "a screen"

# What is recorded so far, written in between.
in_terminal $'leak-anon:w\nwritten::q' 80 24 -p "$pid"
quit_by_key
"$MMTRACE" report --json mmtrace-2*.data >report.json || fail "what w writes is no recording"
expect_json ".processes[0].pid == $pid and .completeness.incomplete"

# A recording is shown as it was: at its end as its report, before that as a report of that moment.
"$MMTRACE" record -q -o replayed.data -- sh -c 'for i in 1 2 3 4 5; do sleep 0.5; done' || fail "record"
"$MMTRACE" top --json --interval 1s replayed.data >lines || fail "a recording: status $?"
for line in 1 2; do
	"$MMTRACE" report --json --to ${line}s replayed.data >report.json || fail "no report"
	[ "$(sed -n ${line}p lines | jq -S .)" = "$(jq -S . report.json)" ] || fail "line $line is not the report of that moment"
done
"$MMTRACE" report --json replayed.data >report.json || fail "no report"
expect_json ".to_ns - .start_ns >= ($(wc -l <lines) - 1) * 1000000000"
[ "$(tail -1 lines | jq -S .)" = "$(jq -S . report.json)" ] || fail "the end is not the report"
"$MMTRACE" top --by touch --interval 1s --count 1 replayed.data >blocks || fail "--by touch of a recording"
[ "$(grep -cx '\[1.0 s\]' blocks)" = 1 ] || fail "no time before the block: $(cat blocks)"
(umask 077 && : >only-mine) && [ "$(stat -c %a mmtrace-2*.data)" = "$(stat -c %a only-mine)" ] || fail "others can read what w writes"
# What passes while it is paused, or at its end, does not pass in it.
in_terminal $'speed 1: \nPAUSED:\\x1b[D\nat 1.0 s, speed 1:\n@2: \nat 1.:\\x1b[C\nat its end, speed 1:\n@2:\\x1b[D\nat 1.0 s, speed 1:q' \
	100 24 replayed.data
quit_by_key
in_terminal $'by touch:g\nby stack:q' 100 24 --by touch replayed.data
quit_by_key
# A paused one stays where it is.
in_terminal $'speed 1: \nPAUSED:\\x1b[D\nat 1.0 s, speed 1:+\nspeed 2:\\x1b[C\nat its end, speed 2:\\x1b[D
at 1.0 s, speed 2:-\nspeed 1:b\nbaseline: \nspeed 1:q' 100 24 replayed.data
quit_by_key
"$MMTRACE" trace replayed.data >calls && "$MMTRACE" trace --from 1s --to 2s replayed.data >some || fail "trace --from"
"$MMTRACE" trace --to 1s replayed.data >before && "$MMTRACE" trace --from 2s replayed.data >after || fail "trace --to"
[ -s some ] && cat before some after | diff - calls >difference || fail "trace --from: $(cat difference)"

# A command in the background cannot read the terminal.
in_terminal "" 80 24 --json -o top.data -- sh -c 'read -r line; echo "nothing read: $?" >&2'
[ $status = 0 ] || fail "a command that reads the terminal: status $status"
shown "nothing read: 1"

# However it ends, the terminal is restored, and no recorder is left.
for ending in 'INT 0' 'TERM 143' 'HUP 129' 'QUIT 131' 'SEGV 139' 'KILL 137'; do
	rm -f terminal shell
	(in_terminal "" 80 24 -p "$pid" && echo "$status" >status) &
	test=$!
	processes+=("$test")
	wait_until "a report" grep -qa trust: terminal
	top=$(cat "/proc/$(cat shell)/task/$(cat shell)/children")
	wait_until "the recorder" find_recorder "${top% }"
	# shellcheck disable=SC2086
	kill -"${ending% *}" $top
	wait $test || fail "SIG$ending: the terminal is not restored"
	[ "$(cat status)" = "${ending#* }" ] || fail "SIG$ending: status $(cat status)"
	recorder_ended "SIG$ending"
	case $ending in
	SEGV* | KILL*) rm -rf tmp/* ;;
	*) nothing_left "SIG$ending" ;;
	esac
done
