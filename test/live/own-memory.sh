#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recorder reports its own memory, not that of the program that executed it.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
"$MMTRACE" record -v -o "$recording" -- true 2>own.log || fail "record: status $?"
# The shell that executes mmtrace expands this.
bash -c 'large=$(head -c 400000000 /dev/zero | tr "\0" a); exec "$@"' sh "$MMTRACE" record -v -o "$recording" -- true 2>after.log ||
	fail "record: status $?"
for log in own.log after.log; do
	grep -q '; [0-9.]* [KM]iB of memory and ' $log || fail "no figure of memory: $(cat $log)"
	! grep -qE '; ([3-9]|[1-9][0-9])[0-9]{2}(\.[0-9]+)? MiB of memory and ' $log || fail "not the recorder's own memory: $(cat $log)"
done
