#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Like causes.sh, for files and AIO contexts. Growth without a known cause and ordinary programs get no hint.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf

cause file 'files mapped and not unmapped'
cause aio 'io_destroy() ends it'

# A leak in the program itself is not a known cause.
record_cause "$workloads/causes" anonymous
expect_no_cause

# ordinary COMMAND...: record the command from start to end.
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
