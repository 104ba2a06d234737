#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Causes of growth in native programs: the report names each and what helps; after that is done, it does not name it any more.
# Ordinary programs get no hint.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf

# expect_growth OPERATOR BYTES: of RSS.
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
expect_cause 'heap profiler such as heaptrack'
record_cause "$workloads/causes" fragments fixed
expect_no_cause

record_cause "$workloads/causes" finished-threads
expect_cause 'never joined or detached: a leak. Call pthread_join()'
record_cause "$workloads/causes" finished-threads fixed
expect_no_cause
record_cause "$workloads/causes" waiting-threads
expect_cause 'threads that still run'
expect_no_cause 'never joined'

# cause KIND WORDS
cause() {
	record_cause "$workloads/causes" "$1"
	expect_cause "$2"
	expect_json '[.groups[] | select(.hint)] | length == 1'
	record_cause "$workloads/causes" "$1" fixed
	expect_no_cause
}
cause memfd 'memory files (memfd) mapped and not unmapped'
cause shared 'shared memory mapped and not unmapped'
cause shm 'shmdt() ends it'
cause file 'files mapped and not unmapped'
cause aio 'io_destroy() ends it'

# The process's own leak is no known cause, and nobody knows how much of a huge page was used.
record_cause "$workloads/causes" anonymous
expect_no_cause
record_cause "$workloads/causes" huge-pages
expect_no_cause
if ! grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled; then
	expect_growth '>' 60000000
	record_cause "$workloads/causes" huge-pages fixed
	expect_growth '<' 10000000
fi

# ordinary COMMAND...: recorded from its start to its end.
ordinary() {
	"$MMTRACE" record -q -m 32M -o "$recording" -- "$@" >/dev/null 2>record.log || fail "record -- $1 ended with status $?"
	report_json
	expect_no_cause
}
seq 300000 >numbers
ordinary ls -lR "$SOURCE/test"
ordinary gzip -c numbers
ordinary sed -e 's/1/2/' numbers
ordinary sha256sum numbers
ordinary find "$SOURCE/test" -newer numbers
