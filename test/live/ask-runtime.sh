#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Locks: dotnet-program
# Packages: javac:default-jdk-headless
# With --ask-runtime, runtimes started without a perf map write one during recording and are unchanged afterwards.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
asked=0

nothing_left_behind() {
	[ ! -e "/tmp/perf-$1.map" ] || fail "/tmp/perf-$1.map was left behind"
	[ ! -e "/tmp/.attach_pid$1" ] || fail "/tmp/.attach_pid$1 was left behind"
	kill -0 "$1" || fail "process $1 did not survive"
}

if command -v dotnet >/dev/null && dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.'; then
	asked=1
	program=$BUILD/dotnet-program
	"$SOURCE/test/workload/dotnet/build" "$program" >build.log 2>&1 || fail "build: $(cat build.log)"
	# The runtime's socket is in TMPDIR, its map is not. It is asked while it is idle, and again when only the end of
	# the recording is left.
	mkdir "$directory/sockets"
	for wait in 1.5 0; do
		start_command env -u DOTNET_PerfMapEnabled TMPDIR="$directory/sockets" DOTNET_CLI_TELEMETRY_OPTOUT=1 \
			LD_LIBRARY_PATH="$workloads" dotnet "$program/bin/Release/net10.0/MyConsoleApp.dll"
		start_recording -p "$pid" --ask-runtime -v
		sleep $wait
		let_work
		stop_recording
		grep -q "process $pid (.NET) was asked" record.log || fail "not asked: $(cat record.log)"
		report_json
		nothing_left_behind "$pid"
		let_end
		expect_true_report
		expect_json '.processes[0].unnamed_code | not'
		expect_json '[.groups[0].frames[] | select(.inlined | not)] | .[2:5] | all(.kind == "jit") and
			(.[0].function | contains("IL_STUB_PInvoke")) and (.[1].function | contains("Program::MyTest")) and
			(.[2].function | contains("Program::Main"))'
	done

	# A runtime that already writes a map keeps it.
	start_command env DOTNET_PerfMapEnabled=3 DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$workloads" \
		dotnet "$program/bin/Release/net10.0/MyConsoleApp.dll"
	start_recording -p "$pid" --ask-runtime -v
	let_work
	stop_recording
	! grep -q "was asked" record.log || fail "asked although it has a map"
	[ -s "/tmp/perf-$pid.map" ] || fail "its own map is gone"
	let_end

	# If a runtime cannot be asked, the recorder warns.
	start_command env -u DOTNET_PerfMapEnabled DOTNET_EnableDiagnostics=0 DOTNET_CLI_TELEMETRY_OPTOUT=1 \
		LD_LIBRARY_PATH="$workloads" dotnet "$program/bin/Release/net10.0/MyConsoleApp.dll"
	start_recording -p "$pid" --ask-runtime
	let_work
	stop_recording
	grep -q "warning: no names for the JIT code of process $pid (.NET).*DOTNET_EnableDiagnostics" record.log ||
		fail "no warning: $(cat record.log)"
	report_json
	let_end
	expect_json '.processes[0].unnamed_code and .groups[0].unfreed_bytes == 1073741824'
fi

# ask_java OPTION...: record a Java program under load.
ask_java() {
	run_without_leftovers java "$@" -Xmx256m -cp "$directory" Churn >java.out 2>&1 3>&- &
	process=$!
	processes+=("$process")
	record_running "$process" 150 -v --ask-runtime -p "$process"
}

if command -v javac >/dev/null && javac -d "$directory" "$SOURCE/test/workload/runtimes/Churn.java"; then
	asked=1
	ask_java -XX:+PreserveFramePointer
	grep -q "process $process (Java) was asked" record.log || fail "not asked: $(cat record.log)"
	nothing_left_behind $process
	! grep -q 'Full thread dump' java.out || fail "Java took the signal for a request of a thread dump"
	expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] | any(. != null)'
	# The program has the option, though the command line of the recorder does not.
	expect_json 'all(.completeness.warnings[]; contains("PreserveFramePointer") | not)'
	kill -9 $process

	# A Java program that already writes a map keeps it unchanged.
	java -XX:+PreserveFramePointer -Xmx256m -cp "$directory" Churn >java.out 2>&1 3>&- &
	process=$!
	processes+=("$process")
	echo '10 8 its own' >"/tmp/perf-$process.map"
	"$MMTRACE" record -v -o "$recording" --duration 1500ms --ask-runtime -p $process 2>record.log ||
		fail "record -p: $(cat record.log)"
	! grep -q "was asked" record.log || fail "Java was asked although it has a map"
	[ "$(cat "/tmp/perf-$process.map")" = '10 8 its own' ] || fail "Java's own map was overwritten"
	kill -9 $process

	# An attach file created by another program stays.
	java -XX:+PreserveFramePointer -Xmx256m -cp "$directory" Churn >java.out 2>&1 3>&- &
	process=$!
	processes+=("$process")
	touch "/tmp/.attach_pid$process"
	let_run "$process" 100
	"$MMTRACE" record -v -o "$recording" --duration 500ms --ask-runtime -p $process 2>record.log ||
		fail "record -p: $(cat record.log)"
	[ -e "/tmp/.attach_pid$process" ] || fail "a file of another program was removed"
	rm -f "/tmp/.attach_pid$process"
	grep -q "process $process (Java) was asked" record.log || fail "not asked: $(cat record.log)"
	nothing_left_behind $process
	kill -9 $process

	# The signal that wakes the listener would kill it.
	ask_java -Xrs -XX:+DisableAttachMechanism
	grep -q "warning: no names for the JIT code of process $process (Java).*SIGQUIT" record.log || fail "no warning: $(cat record.log)"
	nothing_left_behind $process
	expect_json '.processes[0].unnamed_code'
	expect_json 'any(.completeness.warnings[]; contains("-XX:+PreserveFramePointer") and (contains("may have been") | not))'
	kill -9 $process

	# Another user in a PID namespace, where the process has PID 1.
	if unshare --pid --mount --fork true 2>/dev/null; then
		chmod 755 "$directory"
		rm -f /tmp/perf-1.map /tmp/.java_pid1
		unshare --pid --mount --fork --kill-child --mount-proc setpriv --reuid 12345 --regid 12345 --clear-groups \
			java -XX:+PreserveFramePointer -Xmx256m -cp "$directory" Churn >java.out 2>&1 3>&- &
		outer=$!
		processes+=("$outer")
		wait_until "the program in the namespace" child_of "$outer"
		process=$(child_of "$outer")
		# A change of user clears the parent-death signal.
		processes+=("$process")
		record_running "$process" 150 -v --ask-runtime -p "$process"
		grep -q "process $process (Java) was asked" record.log || fail "not asked: $(cat record.log)"
		expect_json '[.groups[].frames[] | select(.kind == "jit") | .function] | any(. != null)'
		nothing_left_behind "$process"
		[ ! -e /tmp/perf-1.map ] || fail "the map of the namespace was left behind"
		kill -9 "$process"
		rm -f /tmp/.java_pid1
	fi
fi
[ $asked = 1 ] || skip "neither dotnet nor java is installed"
