#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: go:golang-go
# The report explains growth of Go's heap.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf
command -v go >/dev/null || skip "no go is installed"
env HOME="$directory" GOCACHE="$directory/cache" GO111MODULE=off CGO_ENABLED=0 \
	go build -o "$directory/grow" "$SOURCE/test/workload/causes/grow.go" >build.log 2>&1 || fail "go build: $(cat build.log)"

record_cause "$directory/grow" keep
expect_cause 'GOMEMLIMIT and GOGC'
expect_json '.growth | .end_bytes - .start_bytes > 60000000'
expect_json '.causes[0] | .pattern == "gc-heap" and .name == null and .caller == "main.allocate (grow)"'
record_cause env GOMEMLIMIT=8MiB "$directory/grow" drop
expect_json '.growth | .end_bytes - .start_bytes < 30000000'

# Memory that Go has mapped before: its heap is recognised by the program, which may be stripped.
strip "$directory/grow" || fail "strip: status $?"
start_command "$directory/grow" touch
start_recording -q -p "$pid"
let_work
stop_recording
report_json
expect_json '.growth.parts | any(.place == "before" and .runtime == "Go" and .bytes > 40000000)'
