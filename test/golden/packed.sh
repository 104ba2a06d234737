#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every line of TESTLIST gives the same output when the recordings are packed and their program is gone; so does a recording
# with so many frames that a report does not cache the names of all, as it does for a packed one.
source "$SOURCE/test/golden/replay.bash" || exit 2

failed=0
compare() {
	# The contents of the files differ, as intended; two recordings cannot be packed.
	[[ $2 != dump && " $* " != *" perf.data "* && " $* " != *" cut.data "* ]] || return
	replay "$@"
	# Packing leaves out the arguments of the command.
	diff -u -I '"command_line":' "$SOURCE/test/golden/$1.expected" "$directory/$1" || {
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

"$BUILD/test/generate-recording" --events 120000 --live 2000 --stacks 60000 --depth 2 --program "$MMTRACE" \
	"$directory/many" >/dev/null
"$MMTRACE" pack -q -o "$directory/many-packed" "$directory/many"
for input in many many-packed; do
	"$MMTRACE" report --json "$directory/$input" | sed -n '/^  "groups": \[$/,/^  \]/p' >"$directory/$input.json"
done
read -r groups different < <(python3 -c 'import json, sys
groups = json.loads("{" + sys.stdin.read().rstrip().rstrip(",") + "}")["groups"]
def name(frame):
    words = [frame[word] for word in ("kind", "module", "function", "source_file", "source_line", "inlined")]
    return *words, None if frame["function"] else frame["module_offset"]
print(len(groups), len({tuple(map(name, group["frames"])) for group in groups}))' <"$directory/many.json")
echo "60000 stacks in $groups groups, $different of them with names of their own"
[ "$groups" -gt 1000 ] && [ "$groups" = "$different" ] && cmp "$directory/many.json" "$directory/many-packed.json" || {
	echo "FAILED: many frames" >&2
	failed=1
}
exit $failed
