#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Locks: dotnet-program
# Packages: javac:default-jdk-headless node:nodejs
# Managed runtimes under load, attached to or started by mmtrace: no mismatches, and their memory has the right classes.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
recorded=0
churn=$SOURCE/test/workload/runtimes

# runtime NAME COMMAND...: record the first seconds, then attach to another instance under load.
runtime() {
	local name=$1 process
	shift
	command -v "$1" >/dev/null || {
		echo "$name is not installed"
		return
	}
	recorded=$((recorded + 1))
	record_command_for 200 -q -m 32M -- "$@" >runtime.out
	report_json --by class
	expect_true_report
	expect_check 0
	jq -r --arg name "$name" '.groups[] | "\($name) \(.name) \(.unfreed_bytes)"' report.json
	expect_json '[.groups[] | select(.name == "thread-stack") | .unfreed_bytes] | add > 4 * 65536'
	expect_json '[.groups[] | select(.name == "jit") | .unfreed_bytes] | add > 65536'
	expect_json '[.groups[] | select(.name == "gc-reserve") | .unfreed_bytes] | add > 1048576'

	"$@" >runtime.out 2>&1 3>&- &
	process=$!
	processes+=("$process")
	record_running $process 150 -q -p $process
	expect_true_report
	expect_check 0
	expect_json '.events | .mmap + .munmap + .mprotect > 10'
	kill -9 $process
	wait $process 2>/dev/null
}

runtime node node "$churn/churn.js"
command -v javac >/dev/null && javac -d "$directory" "$churn/Churn.java" &&
	runtime java java -Xmx256m -cp "$directory" Churn
[ $recorded -gt 0 ] || skip "neither node nor java is installed"
