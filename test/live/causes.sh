#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# For native programs, malloc and threads, the report names the cause of growth and what helps; once the user has done that,
# the report no longer names it. causes-mappings.sh and causes-others.sh have more causes.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf

# expect_growth OPERATOR BYTES: compares the growth of RSS.
expect_growth() {
	expect_json ".growth | .end_bytes - .start_bytes $1 $2"
}

record_cause "$workloads/causes" arenas
expect_cause 'try MALLOC_ARENA_MAX=2'
expect_growth '>' 100000000
record_cause env MALLOC_ARENA_MAX=1 "$workloads/causes" arenas
expect_no_cause 'malloc arena'
expect_growth '<' 50000000

record_cause "$workloads/causes" fragments
expect_cause 'shows which blocks in use grow'
record_cause "$workloads/causes" fragments fixed
expect_no_cause

record_cause "$workloads/causes" finished-threads
expect_cause 'never joined or detached: a leak. Call pthread_join()'
record_cause "$workloads/causes" finished-threads fixed
expect_no_cause
record_cause "$workloads/causes" waiting-threads
expect_cause 'threads that still run'
expect_no_cause 'never joined'

# The end of a process ends its threads: these had not finished.
start_command "$workloads/causes" waiting-threads
start_recording -q -p "$pid"
go_on_until 'done'
exec 3>&-
kill -KILL "$pid"
wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
report_json
list_hints | grep -qF 'threads that still run' || fail "the threads of a process that was killed count as finished: $(list_hints)"
