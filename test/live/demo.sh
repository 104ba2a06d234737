#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick alone
# The first stack that test/demo shows is the leak.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
env -u MMTRACE "$SOURCE/test/demo" >"$directory/demo.txt" 2>"$directory/demo.log" || fail "test/demo ended with status $?: $(cat "$directory/demo.log")"
tr '\n' ' ' <"$directory/demo.txt" |
	grep -q ' 1  *1\.00 GiB.*256 x 4\.00 MiB.* mmap  .* mmap_allocation  .*demo-library\.c:[0-9].* MyTest  .* Main  .* main  .*What to look at' || {
	cat "$directory/demo.txt" >&2
	fail "the report of the demo does not begin with the leak"
}
# It leaves no files behind.
pgrep -f "$SOURCE/build/test/workload/demo" && fail "the demo's program still runs"
[ -z "$(git -C "$SOURCE" status --porcelain --ignored 2>/dev/null | grep -v ' build[^/]*/' | grep 'mmtrace\.data')" ] ||
	fail "the demo left a recording in the source tree"
