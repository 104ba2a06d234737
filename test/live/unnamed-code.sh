#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Locks: dotnet-program
# Packages: javac:default-jdk-headless node:nodejs
# For runtimes started without a perf map, the report names the runtime and the option that gives names.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
recorded=0
churn=$SOURCE/test/workload/runtimes

# unnamed NAME LABEL OPTION COMMAND...: records the command for a few seconds. The option is in the first 20 lines.
unnamed() {
	local name=$1 label=$2 option=$3 process
	shift 3
	recorded=$((recorded + 1))
	run_without_leftovers "$@" >runtime.out 2>&1 3>&- &
	process=$!
	processes+=("$process")
	let_run $process 150
	begin_recording -q -p $process
	let_run $process 150
	stop_recording
	kill -9 $process
	wait $process 2>/dev/null
	report_json
	expect_json ".processes[0] | .runtime == \"$name\" and .unnamed_code"
	expect_json "[.completeness.warnings[] |
		select(contains(\"JIT code in process $process ($label)\") and contains(\"$option\"))] | length == 1"
	"$MMTRACE" report --no-pager -i "$recording" | head -20 | tr -s ' \n' ' ' | grep -qF -e "$option" ||
		fail "the first 20 lines do not name $option"
}

command -v node >/dev/null && unnamed node Node --perf-basic-prof node "$churn/churn.js"
command -v javac >/dev/null && javac -d "$directory" "$churn/Churn.java" &&
	unnamed java Java 'jcmd PID Compiler.perfmap' java -Xmx256m -cp "$directory" Churn

if command -v dotnet >/dev/null && dotnet --list-runtimes | grep -q '^Microsoft.NETCore.App 10\.'; then
	recorded=$((recorded + 1))
	program=$BUILD/dotnet-program
	"$SOURCE/test/workload/dotnet/build" "$program" >build.log 2>&1 || fail "build: $(cat build.log)"
	start_command env -u DOTNET_PerfMapEnabled DOTNET_CLI_TELEMETRY_OPTOUT=1 LD_LIBRARY_PATH="$workloads" \
		dotnet "$program/bin/Release/net10.0/MyConsoleApp.dll"
	record_work -p "$pid"
	expect_json '.processes[0] | .runtime == "dotnet" and .unnamed_code'
	expect_json "[.completeness.warnings[] | select(contains(\"process $pid (.NET)\") and contains(\"DOTNET_PerfMapEnabled=1\"))] | length == 1"
fi
[ $recorded -gt 0 ] || skip "neither node, java nor dotnet is installed"
