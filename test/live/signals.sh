#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# How a recording ends (Ctrl-C, SIGTERM, duration, end of the target), and the exit status that record passes on.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# expect_record STATUS ARGUMENT...
expect_record() {
	local expected=$1 status
	shift
	"$MMTRACE" record -o "$recording" "$@" >"$directory/record.out" 2>"$directory/record.log"
	status=$?
	[ $status = "$expected" ] || fail "status $status instead of $expected: record $*: $(cat "$directory/record.log")"
}

expect_ended() {
	report_json
	expect_json '.completeness.incomplete | not'
	grep -q '\b0 lost\|lost 0\b' "$directory/record.log" || fail "no message about loss: $(cat "$directory/record.log")"
	grep -q mmtrace.data "$directory/record.log" || fail "the file is not named: $(cat "$directory/record.log")"
}

for signal in INT TERM; do
	start_workload leak-anon
	start_recording -p "$pid"
	let_work
	stop_recording $signal
	let_end
	expect_ended
	expect_workload_answer yes
done

# The duration ends.
start_workload leak-anon
expect_record 0 -v --duration 1 -p "$pid"
grep -q '; duration over$' "$directory/record.log" || fail "it did not end for its duration: $(cat "$directory/record.log")"
expect_ended
expect_json '.end_ns - .start_ns > 900000000'
grep -q 'processor time, [0-9.]* % of one; ' "$directory/record.log" || fail "no share of a processor: $(cat "$directory/record.log")"
let_work
let_end

# The target ends.
start_workload leak-anon
start_recording -p "$pid"
let_work
let_end
wait_until "record to end with its target" eval "! kill -0 $recorder"
wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
expect_ended
expect_json '.processes[0].ended'
expect_workload_answer no

# The command's own status, and its output unchanged.
expect_record 7 -- sh -c 'echo said; echo complained >&2; exit 7'
[ "$(cat "$directory/record.out")" = said ] || fail "the output of the command is not its own"
grep -q '^complained$' "$directory/record.log" || fail "the errors of the command are lost"
expect_record 137 -- sh -c 'kill -9 $$'
# A process that exits in time is not mentioned. Its second may be too short on a busy machine, but not every time.
sigterm_not_mentioned() {
	"$MMTRACE" record -o "$recording" --duration 300ms -- sleep 60 2>"$directory/record.log" ||
		given_up="record ended with status $?: $(cat "$directory/record.log")"
	! grep -q SIGTERM "$directory/record.log"
}
wait_until "a command to end within a second of SIGTERM" sigterm_not_mentioned
# A process that ignores SIGTERM, until it is released.
begin_recording -- sh -c 'trap "" TERM; : >deaf; until [ -e enough ]; do sleep 0.1; done'
wait_until "the command to ignore SIGTERM" test -e deaf
stop_recording
: >enough
grep -q 'SIGTERM.*did not end' "$directory/record.log" || fail "no message about the command that still runs"
# For a very short recording the recorder's CPU share means nothing.
expect_record 0 -v -- true
if [[ $(grep '^recorded ' "$directory/record.log") =~ ^recorded\ ([0-9]+)(\.[0-9]+)?\ (ms|us), ]] && ((BASH_REMATCH[1] < 100)); then
	grep -q 'processor time; ' "$directory/record.log" || fail "a share of a processor: $(cat "$directory/record.log")"
fi
expect_record 0 -q -- true
[ ! -s "$directory/record.log" ] || fail "-q is not quiet: $(cat "$directory/record.log")"
[ "$(stat -c %a "$recording")" = 600 ] || fail "the recording is readable by others"

# The command gets its own signals, stdin and exit; stopping record early does not kill it silently with status 0.
echo line | "$MMTRACE" record -o "$recording" -- cat >"$directory/record.out" 2>/dev/null
[ "$(cat "$directory/record.out")" = line ] || fail "the command does not get stdin"

# The command ignores and blocks the signals that it would without mmtrace: those inherited from the caller and no others.
for inherited in --default-signal --ignore-signal=PIPE,USR1,HUP,CHLD,XFSZ,RTMIN \
	"--ignore-signal=INT,USR2 --block-signal=TERM,USR1,PIPE"; do
	read -ra inherited <<<"--default-signal $inherited"
	env "${inherited[@]}" grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status >"$directory/untraced"
	env "${inherited[@]}" "$MMTRACE" record -o "$recording" -- grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status \
		>"$directory/traced" 2>"$directory/record.log" || fail "no recording: $(cat "$directory/record.log")"
	diff "$directory/untraced" "$directory/traced" >&2 || fail "other signals than without mmtrace: ${inherited[*]}"
done

# The exit status is known even if the caller ignores SIGCHLD.
env --ignore-signal=CHLD "$MMTRACE" record -o "$recording" -- sh -c 'exit 7' 2>"$directory/record.log"
status=$?
[ $status = 7 ] || fail "status $status of a command that ended with 7 while SIGCHLD was ignored: $(cat "$directory/record.log")"

# More signals while it stops change nothing.
start_workload sleepers 100
start_recording -p "$pid"
for i in 1 2 3; do
	kill -INT "$recorder"
	sleep 0.01
done
wait "$recorder" || fail "record ended with status $? after several signals: $(cat "$directory/record.log")"
report_json
expect_true_report
expect_check 0

# Ctrl-C while attaching to many threads: the recorder stops at once and leaves nothing behind.
limit=$(ulimit -Hn)
[ "$limit" = unlimited ] || [ "$limit" -gt $((100 * 25 * $(getconf _NPROCESSORS_CONF) + 1000)) ] ||
	skip "too few open files are allowed for many threads (all other checks passed)"
is_attaching() {
	local descriptors=("/proc/$recorder/fd/"*)
	[ ${#descriptors[@]} -gt 500 ] || ! kill -0 "$recorder" 2>/dev/null
}
end=$((SECONDS + 120))
# Attaching may finish before the signal arrives.
for attempt in 1 2 3 4 5 6 7 8 9 10; do
	rm -f "$recording"*
	# With a scheduling policy of its own the recorder keeps its priority, and the signal arrives in time.
	env --default-signal=INT chrt --batch 0 nice -n 19 "$MMTRACE" record -o "$recording" --scope threads -p "$pid" 2>"$directory/record.log" 3>&- &
	recorder=$!
	processes+=("$recorder")
	until is_attaching; do
		[ $SECONDS -lt $end ] || fail "it does not attach: $(cat "$directory/record.log")"
	done
	kill -INT "$recorder"
	wait "$recorder"
	status=$?
	[ $status = 0 ] && grep -q 'attached to' "$directory/record.log" || break
done
[ $status = 130 ] || fail "status $status of a recorder stopped while attaching: $(cat "$directory/record.log")"
grep -q 'stopped before recording began' "$directory/record.log" || fail "it does not say so: $(cat "$directory/record.log")"
compgen -G "$recording*" >/dev/null && fail "it left a file: $(ls "$directory")"
kill -9 "$pid"
