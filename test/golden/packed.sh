#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every line of TESTLIST gives the same when the recordings are packed and their program is gone.
source "$SOURCE/test/golden/replay.bash" || exit 2

failed=0
compare() {
	# What is in the file is not the same, and is not meant to be; two cannot be packed.
	[[ $2 != dump && " $* " != *" perf.data "* && " $* " != *" cut.data "* ]] || return
	replay "$@"
	diff -u "$SOURCE/test/golden/$1.expected" "$directory/$1" || {
		echo "FAILED: $1, packed" >&2
		failed=1
	}
	count=$((count + 1))
}

put_program
recordings=$directory/recordings
mkdir "$recordings"
for recording in "$SOURCE"/test/data/*.data; do
	name=${recording##*/}
	[[ $name == perf.data || $name == cut.data ]] && continue
	"$MMTRACE" pack -q -o "$recordings/$name" "$recording" || failed=1
done
rm "$program_directory/leak-static"
count=0
for_each_golden compare
[ $count -gt 20 ] || failed=1
exit $failed
