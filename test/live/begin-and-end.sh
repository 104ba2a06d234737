#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Packages: python3:python3
# record says when it has begun, on a log, a descriptor and a service manager's socket, and ends with the answer.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
expect_line() {
	grep -qxE -- "$1" record.log || fail "no line '$1': $(cat record.log)"
}
expect_order() { # PATTERN...: of lines, in this order, the last of them the last line
	local last=0 line pattern
	for pattern; do
		line=$(grep -nE -- "$pattern" record.log | tail -1 | cut -d: -f1)
		[ "${line:-0}" -gt $last ] || fail "'$pattern' is not in its place: $(cat record.log)"
		last=$line
	done
	[ "$last" = "$(wc -l <record.log)" ] || fail "'$pattern' is not the last line: $(cat record.log)"
}

# expect_one_verdict: record ended with the word with which the report begins.
expect_one_verdict() {
	local end begin
	end=$(sed -nE 's/^  ((sum of )?RSS|Pss) .*: ([A-Z][A-Z ]*)(, but level.*)?$/\3/p' record.log)
	begin=$(sed -nE 's/^([A-Z][A-Z ]*): .*/\1/p' report.txt | head -n 1)
	[ "$end" ] && [ "$end" = "$begin" ] || fail "two verdicts: $(cat record.log report.txt)"
}

# A process: the line of the descriptor is there when recording has begun, and calls from then on are recorded.
start_workload leak-anon
mkfifo ready
"$MMTRACE" record -o "$recording" -p "$pid" --ready-fd 7 7>ready 2>record.log 3>&- &
recorder=$!
processes+=("$recorder")
[ "$(timeout 60 cat ready)" = recording ] || fail "nothing on the descriptor: $(cat record.log)"
expect_line "mmtrace record: recording leak-anon \\(pid $pid\\); Ctrl-C stops"
let_work
stop_recording TERM
report_json
let_end
expect_workload_answer yes
expect_order '^recorded [0-9.]+ m?s, 1 process; stopped$' \
	'^  RSS [0-9.]+ [KMG]iB( to .*; \+[0-9.]+ [KMG]iB.*|, unchanged for [0-9.]+ [mun]?s): (UNDECIDED|NOTHING TO SEE|GROWING|LEAK|STEADY|PLATEAU)(, but level.*)?$' \
	'^.*mmtrace.data: [0-9.]+ KiB, [0-9,]+ events, 0 lost$' '^next: mmtrace report -i .*mmtrace.data$'
! grep -qE 'stack dump|recorder|ring|priority|packed' record.log || fail "diagnostics without -v: $(cat record.log)"

# A command: how it ended, and the recorder's own figures on request. It does not get the descriptor.
"$MMTRACE" record --ready-fd 7 -o "$recording" -- sh -c '[ ! -e /proc/self/fd/7 ]; exit $((3 + $?))' 7>ready.txt 2>record.log
[ $? = 3 ] && [ "$(cat ready.txt)" = recording ] || fail "a command with --ready-fd: $(cat ready.txt record.log)"
expect_line 'recorded .*; sh exited with status 3'
"$MMTRACE" record -v -o "$recording" -- sh -c 'kill -SEGV $$' 2>record.log
[ $? = 139 ] || fail "the command's signal is not the status: $(cat record.log)"
expect_line 'recorded .*; sh was killed by SIGSEGV \(Segmentation fault\)'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "no report of the killed command"
sed -n 1p report.txt | grep -qE '^KILLED: sh \(pid [0-9]+\) was killed by SIGSEGV \(Segmentation fault\)' ||
	fail "the report does not begin with the command's end: $(head -3 report.txt)"
report_json
expect_json '.command_end | .signal == 11 and .exit_status == null'
expect_line '  recorder: .* of processor time.*; .* of memory and .* of rings; .*'
expect_line '  [0-9,]+ stack dumps; 0 lost.*'
"$MMTRACE" record -o "$recording" --duration 200ms -- sleep 60 2>record.log || fail "--duration: $(cat record.log)"
expect_line 'recorded .*; duration over'
# The command needs these, and the answer is printed there.
for fd in 1 2; do
	"$MMTRACE" record --ready-fd $fd -o "$recording" -- true 2>record.log && fail "--ready-fd $fd was accepted"
	grep -q -- "--ready-fd $fd: use a descriptor from 3 on" record.log || fail "not the reason: $(cat record.log)"
done
"$MMTRACE" record --ready-fd 9 -o "$recording" -- true 2>record.log 9>&-
[ $? = 2 ] && grep -q -- '--ready-fd: descriptor 9 is not open' record.log || fail "a closed descriptor: $(cat record.log)"

# Of several processes, of which some have ended, the end has the figures and the verdict of the report's header.
"$MMTRACE" record -o "$recording" -- sh -c 'for i in 1 2 3; do sleep 0.2; (sleep 0.1); done & sleep 0.3; wait' 2>record.log ||
	fail "several processes: $(cat record.log)"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "no report"
sizes=$(tr '\n' ' ' <report.txt | sed -nE 's/.* {2,}((sum of )?RSS|Pss) ([0-9.]+ .?i?B) (at start|after [0-9.]+ s), ([0-9.]+ .?i?B) at end .*/\1 \3 \5/p')
[ -n "$sizes" ] && [ "$(sed -nE 's/^  ((sum of )?RSS|Pss) ([0-9.]+ .?i?B) to ([0-9.]+ .?i?B), .*: [A-Z][A-Z ]*$/\1 \3 \4/p' record.log)" = "$sizes" ] ||
	fail "the end differs from the report: $(cat record.log report.txt)"
expect_one_verdict
# Growing mappings, of which the readings of RSS alone say less than the report.
"$MMTRACE" record -o "$recording" -- python3 -c 'import mmap, time
kept = []
for i in range(60):
    kept.append(mmap.mmap(-1, 1 << 20))
    kept[-1].write(bytes(1 << 20))
    time.sleep(0.05)' 2>record.log || fail "mappings: $(cat record.log)"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "no report"
expect_one_verdict

# --report shows it behind that, on a terminal without -q only.
record_in_terminal() {
	LESS=FRX python3 "$support/in-terminal.py" terminal.log "" "$MMTRACE" record -o "$recording" --report "$@" -- true
}
record_in_terminal && tr -d '\r' <terminal.log >record.log
grep -A3 '^next: mmtrace report' record.log | grep -q 'true (pid ' && grep -q 'trust:' record.log || fail "--report: $(cat -v terminal.log)"
record_in_terminal --raw && grep -q 'trust:' terminal.log || fail "--report --raw: $(cat -v terminal.log)"
record_in_terminal -q && ! grep -q . terminal.log || fail "--report -q: $(cat -v terminal.log)"
"$MMTRACE" record -o "$recording" --report -- true >record.log 2>&1 && ! grep -q 'trust:' record.log || fail "--report without a terminal: $(cat record.log)"

# The SIGINT that a user types reaches the command, too: that is no alarm. Without a reading of memory there is nothing to see.
python3 "$support/in-terminal.py" terminal.log 'began:\x03' "$MMTRACE" record -o "$recording" -- sh -c 'echo began; exec sleep 60'
[ $? = 130 ] && grep -q 'sh was ended by Ctrl-C' terminal.log || fail "Ctrl-C with a command: $(cat -v terminal.log)"
"$MMTRACE" record -o "$recording" -- true 2>record.log || fail "record -- true: $(cat record.log)"
report_json
if [ "$(jq '.resident_readings | length' report.json)" = 0 ]; then
	expect_line '  nothing to see: it ended before its memory could be read'
else
	expect_line '  RSS .*'
fi

# The socket of a service manager, as a path and as an abstract name. A command may be the service itself.
cat >notified.py <<'END'
import os, socket, subprocess, sys
for name in sys.argv[1], "@" + sys.argv[1]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind("\0" + name[1:] if name[0] == "@" else name)
        for target, expected in (["-p", sys.argv[2], "--duration", "100ms"], b"READY=1"), (["--", "true"], None):
            subprocess.run([os.environ["MMTRACE"], "record", "-q", "-o", "notified.data", *target], check=True,
                           env={**os.environ, "NOTIFY_SOCKET": name})
            try:
                got = server.recv(100, socket.MSG_DONTWAIT)
            except BlockingIOError:
                got = None
            if got != expected:
                sys.exit(f"{name} {target}: {got}")
END
sleep 600 &
sleeper=$!
processes+=("$sleeper")
MMTRACE=$MMTRACE python3 notified.py "$directory/socket" "$sleeper" || fail "NOTIFY_SOCKET"

# The first line reaches a log in one piece, so that the lines of other programs do not cut it.
cat >pieces.py <<'END'
import os, socket, subprocess, sys
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
subprocess.run([os.environ["MMTRACE"], "record", "-o", "pieces.data", "-p", sys.argv[1], "--duration", "100ms"], check=True, stderr=theirs)
theirs.close()
print(ours.recv(4096).decode(), end="")
END
MMTRACE=$MMTRACE python3 pieces.py "$sleeper" >record.log || fail "stderr that is a socket"
expect_line "mmtrace record: recording sleep \(pid $sleeper\); Ctrl-C stops"

# The name of running processes instead of a PID or a command, and a PID instead of a command; --comm takes a pattern.
cp "$(command -v sleep)" a-sleeper
./a-sleeper 600 &
named=$!
processes+=("$named")
is_named() { [ "$(cat "/proc/$named/comm")" = a-sleeper ]; }
wait_until "the program to start" is_named
"$MMTRACE" record -p a-sleeper 2>record.log
[ $? = 2 ] || fail "record -p NAME: $(cat record.log)"
expect_line "mmtrace record: --pid: 'a-sleeper' is not a PID; --comm a-sleeper records what runs under that name \(pid .*\b$named\b.*\)"
"$MMTRACE" record a-sleeper 2>record.log
[ $? = 127 ] || fail "record NAME: $(cat record.log)"
expect_line "mmtrace record: cannot run a-sleeper: .*; --comm a-sleeper records .*\b$named\b.*"
# A name that is in PATH, too, starts a new process.
mkdir bin
cp "$(type -P true)" bin/a-sleeper
PATH=$PATH:bin "$MMTRACE" record -o "$recording" a-sleeper 2>record.log
expect_line "mmtrace record: recording a new a-sleeper; Ctrl-C stops"
expect_line "mmtrace record: --comm a-sleeper records what runs under that name \(pid .*\b$named\b.*\)"
PATH=$PATH:bin "$MMTRACE" record -o "$recording" a-sleeper 0 2>record.log || fail "a command of a running name: $(cat record.log)"
! grep -q -- --comm record.log || fail "the hint for a command with arguments: $(cat record.log)"
"$MMTRACE" record "$named" 2>record.log
[ $? = 127 ] || fail "record PID: $(cat record.log)"
expect_line "mmtrace record: cannot run $named: .*; -p $named records the process with this PID"
"$MMTRACE" record --comm 'a-sle[d-f]*' --duration 100ms -o "$recording" 2>record.log || fail "--comm with a pattern: $(cat record.log)"
expect_line "mmtrace record: recording .*a-sleeper \(pid $named\).*; Ctrl-C stops"
