#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A target that cannot be recorded is refused, and an earlier recording stays unchanged.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
mkdir out
"$MMTRACE" record -q -o out/mmtrace.data -- true || fail "record -- true ended with status $?"
before=$(contents_of out)
record() {
	timeout 100 "$MMTRACE" record -o out/mmtrace.data "$@"
}

sleep 0 &
wait $!
expect_refusal 2 "no( such)? process.*$!" record -p $!
expect_refusal 127 'no-such-command.*([Nn]ot found|No such file)' record -- no-such-command
expect_refusal 127 'no/such/command.*([Nn]ot found|No such file)' record -- ./no/such/command
printf '#!/no/such/interpreter\n' >no-interpreter && chmod +x no-interpreter
expect_refusal 127 'cannot run ./no-interpreter: .*; the file exists, but not the program in its first line' record -- ./no-interpreter
echo 'echo not executable' >script
expect_refusal 126 'script.*Permission denied' record -- ./script
expect_refusal 126 'directory|Permission denied' record -- "$directory"

# Targets without memory, and IDs that are not processes.
start_parent_of_zombie
expect_refusal 2 "$zombie has ended already" record -p "$zombie"
! grep -q '^Kthread:.1' /proc/2/status || expect_refusal 2 '2 is a kernel thread' record -p 2
expect_refusal 2 'is the recorder itself' bash -c 'exec "$0" record -o out/mmtrace.data -p $$' "$MMTRACE"
start_workload many-idle 2
thread=$(ls "/proc/$pid/task" | sort -n | tail -1)
expect_refusal 2 "$thread is a thread of process $pid: use -p $pid, and .mmtrace report --focus thread=$thread" record -p "$thread"

# Usage errors: the message names the mistake, followed by the help.
expect_usage_error() {
	local pattern=$1
	shift
	record "$@" >refused.out 2>refused.err
	[ $? = 2 ] || refusal_failed "status is not 2" record "$@"
	[ ! -s refused.out ] || refusal_failed "output on stdout" record "$@"
	head -1 refused.err | grep -qE -- "$pattern" || refusal_failed "no word of $pattern" record "$@"
	sed -n 2p refused.err | grep -q -- '--help' || refusal_failed "no word of --help" record "$@"
	[ "$(wc -l <refused.err)" = 2 ] || refusal_failed "not two lines" record "$@"
}
expect_refusal 2 'PID' record
expect_refusal 2 'cannot be combined' record -p 1 -- true
expect_usage_error '0x' -p 0x
expect_usage_error 'no-such-option' --no-such-option -- true
expect_usage_error 'duration' --duration -1 -- true
expect_usage_error 'call-graph' --call-graph sideways -- true
expect_usage_error 'call-graph' --call-graph dwarf,1000000 -- true
expect_usage_error 'ring-size.*8K to 1G' --ring-size 0 -- true
expect_usage_error 'ring-size.*8K to 1G' -m 3 -- true
expect_usage_error 'ring-size.*8K to 1G' -m 100G -- true
expect_usage_error 'ring-size' -m 99999999999999999999 -- true

# A 32-bit program that only calls pause(), in machine code.
cat >pause.s <<'END'
.globl _start
_start:
	mov $29, %eax
	int $0x80
END
as --32 -o pause.o pause.s && ld -m elf_i386 -o pause32 pause.o || fail "no 32-bit program could be made"
./pause32 &
pause=$!
processes+=($pause)
# If the kernel cannot run it, the shell does not try to either.
runs_or_not() {
	[ "$(readlink /proc/$pause/exe)" = "$directory/pause32" ] || ! kill -0 $pause
}
wait_until "the program to run, or not" runs_or_not
if kill -0 $pause 2>/dev/null; then
	expect_refusal 2 '32-bit' record -p $pause
	expect_refusal 2 '32-bit' record -- ./pause32
	kill $pause
else
	echo "this kernel runs no 32-bit programs: not tested"
fi

# Without permission the message shows what to run as root.
chmod 755 "$directory"
cp "$MMTRACE" mmtrace-for-all
mkdir -m 777 theirs
sleep 600 &
sleeper=$!
processes+=($sleeper)
as_nobody() {
	timeout 100 setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
for target in "-p $sleeper" "-- true"; do
	expect_denial "sudo ./mmtrace-for-all record -o theirs/mmtrace.data ${target% *}.* setcap cap_perfmon" \
		as_nobody ./mmtrace-for-all record -o theirs/mmtrace.data $target
done
[ -z "$(ls theirs)" ] || fail "something was left: $(ls theirs)"

[ "$(contents_of out)" = "$before" ] || fail "the earlier recording was touched: $(ls -l out)"
[ "$(ls out)" = mmtrace.data ] || fail "something was left beside the earlier recording: $(ls out)"
