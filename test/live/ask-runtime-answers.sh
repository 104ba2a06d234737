#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: python3:python3
# --ask-runtime: whatever the runtime answers, or if it never answers, the recorder continues, reports it, and stops on
# request.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v python3 >/dev/null || skip "python3 is not installed"
mkdir sockets

start_runtime() {
	rm -f asked commands
	start_command env TMPDIR="$directory/sockets" python3 "$support/diagnostics.py" "$@"
}

was_asked() {
	[ -s asked ]
}

expect_log() {
	grep -qE "$1" record.log || fail "no message about '$1': $(cat record.log)"
}

# A second signal ends the wait for a runtime. The recordings are raw: one that comes later would end packing.
end_at_once() {
	for i in {1..40}; do
		kill -INT "$recorder" 2>/dev/null || break
		sleep 0.2
	done
	wait "$recorder" || fail "record ended with status $?"
}

# Like .NET: map started, map ended, nothing left behind.
for mode in bundled writes; do
	start_runtime $mode
	start_recording -p "$pid" --ask-runtime -v
	wait_until "the runtime to be asked" was_asked
	let_work
	stop_recording
	expect_log "process $pid \(.NET\) was asked for a perf map and writes one"
	[ "$(tr '\n' ' ' <commands)" = '5 6 ' ] || fail "commands: $(cat commands)"
	[ ! -e "/tmp/perf-$pid.map" ] || fail "the map was left behind"
	report_json
	expect_true_report
	[ $mode = writes ] || exec 3>&-
done

# If another user's file has replaced the map, the recorder does not use its privileges to remove it: only the name comes
# from the target.
if [ "$(id -u)" = 0 ]; then
	rm -f asked commands
	start_recording -p "$pid" --ask-runtime -v
	wait_until "the runtime to write its map" grep -q 'writes one' record.log
	chown 65534 "/tmp/perf-$pid.map"
	stop_recording
	[ -e "/tmp/perf-$pid.map" ] || fail "a file of another user was removed"
	expect_log "cannot remove /tmp/perf-$pid.map, which process $pid wrote for this recording"
	rm -f "/tmp/perf-$pid.map"
fi

# The recorder sees the process too late to ask it before the end.
rm -f commands
start_recording -p "$pid" --ask-runtime -v --duration 100ms
wait "$recorder" || fail "record ended with status $?"
expect_log "process $pid \(.NET\) was asked for a perf map and writes one"
[ "$(tr '\n' ' ' <commands)" = '5 6 ' ] || fail "commands: $(cat commands)"
[ ! -e "/tmp/perf-$pid.map" ] || fail "the map was left behind"
exec 3>&-

# The process's map is removed when it executes another program; a map written by the new program stays.
map_is_noted() {
	grep -q 'writes one' record.log
}
for next in true 'echo "2000 10 of the next one" >/tmp/perf-$$.map'; do
	start_runtime writes "$next"
	start_recording -p "$pid" --ask-runtime -v
	wait_until "the runtime to write its map" map_is_noted
	sleep 0.05 # the time of the file has the resolution of the kernel's tick
	let_work
	if [ "$next" = true ]; then
		wait_until "the map to be removed at the exec" test ! -e "/tmp/perf-$pid.map"
	else
		wait_until "the next program to write a map" grep -qs '^2000 10 of the next one' "/tmp/perf-$pid.map"
	fi
	stop_recording
	[ "$next" = true ] || [ "$(cat "/tmp/perf-$pid.map")" = '2000 10 of the next one' ] ||
		fail "the next program's map is gone"
	rm -f "/tmp/perf-$pid.map"
	exec 3>&-
done

# The runtime answers yes, but writes no map: the recorder notices.
start_runtime lies
start_recording -p "$pid" --ask-runtime -v --duration 100ms
wait "$recorder" || fail "record ended with status $?"
expect_log "no names for the JIT code of process $pid \(.NET\).*agreed to write a perf map, but there is no /tmp/perf-$pid.map"
! grep -q 'writes one' record.log || fail "a missing map was trusted"
exec 3>&-

start_runtime refuses
start_recording -p "$pid" --ask-runtime --duration 100ms
wait "$recorder" || fail "record ended with status $?"
expect_log "no names for the JIT code of process $pid \(.NET\).*refuses with status 0x80131384"
exec 3>&-

# A runtime that never answers: calls made in the meantime are recorded, and stopping the recording does not wait.
start_runtime silent
start_recording --raw -p "$pid" --ask-runtime
wait_until "the runtime to be asked" was_asked
let_work
wait_until "the recorder to abandon it" grep -q 'no names for the JIT code' record.log
end_at_once
expect_log "no names for the JIT code of process $pid \(.NET\).*no answer"
expect_log "process $pid \(.NET\) may keep writing its perf map"
report_json
expect_true_report
expect_json '.allocated_bytes >= 1048576'
exec 3>&-

# Stopping does not wait either while the connection is open.
start_runtime silent
start_recording --raw -p "$pid" --ask-runtime
wait_until "the runtime to be asked" was_asked
end_at_once
expect_log "process $pid \(.NET\) may keep writing its perf map: it did not confirm that it stops"
exec 3>&-

# If the runtime answers too late, it is still asked to stop, and the map that it writes is removed.
start_runtime late
start_recording -p "$pid" --ask-runtime
wait_until "the runtime to be asked" was_asked
stop_recording
[ "$(tr '\n' ' ' <commands)" = '5 6 ' ] || fail "commands: $(cat commands)"
[ ! -e "/tmp/perf-$pid.map" ] || fail "the map was left behind"
exec 3>&-

# A Java request that is abandoned leaves nothing in the target's /tmp.
start_runtime java
begin_recording -p "$pid" --ask-runtime --duration 100ms
wait_until "Java to be asked" test -e "/tmp/.attach_pid$pid"
kill -INT "$recorder"
wait "$recorder" || fail "record ended with status $?"
if [ -e "/tmp/.attach_pid$pid" ]; then
	rm -f "/tmp/.attach_pid$pid"
	fail "the file that makes Java listen was left behind"
fi
exec 3>&-

# A socket in /tmp left by a killed process with the same PID is not mistaken for the one the runtime will listen on.
start_runtime attaches
start_recording -p "$pid" --ask-runtime -v
let_work
stop_recording
rm -f "/tmp/.java_pid$pid" "/tmp/perf-$pid.map"
expect_log "process $pid \(Java\) was asked for a perf map"
! grep -q 'no names for the JIT code' record.log || fail "it was not waited for: $(cat record.log)"
exec 3>&-
