#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: chromium:chromium npm:npm
# Chromium opens the pages of report --html and diff --html, and the pictures that they save: selecting works, and names
# cannot run code. page.mjs has the checks.
set -u
: "${SOURCE:?}" "${BUILD:?}" "${MMTRACE:?}"
. "$SOURCE/test/html/browser.bash" || exit 2
prepare_browser || exit 77
. "$SOURCE/test/golden/replay.bash" || exit 2
# Page and report must find the recordings' program at the same path.
put_program
export MMTRACE

set -e
generate=$BUILD/test/generate-recording
"$generate" --events 4000 --live 900 --stacks 150 --depth 12 --threads 4 "$directory/before.data" >"$directory/account"
"$generate" --events 4000 --live 1500 --stacks 150 --depth 12 --threads 4 --seed 7 "$directory/after.data" >"$directory/account"
"$generate" --events 40000 --live 4000 --stacks 1000 --depth 30 --threads 8 "$directory/many.data" >"$directory/account"
"$generate" --events 3000 --live 600 --stacks 40 --processes 3 "$directory/processes.data" >"$directory/account"
cp "$SOURCE/test/data/more.data" "$SOURCE/test/data/troubled.data" "$directory"
for name in before after many processes more troubled; do
	"$MMTRACE" report --html "$directory/$name.html" "$directory/$name.data"
done
"$MMTRACE" diff --html "$directory/diff.html" "$directory/before.data" "$directory/after.data"
"$BUILD/test/hostile-page" >"$directory/hostile.html"
"$BUILD/test/hostile-page" diff >"$directory/hostile-diff.html"
size=$(stat -c %s "$directory/many.html")
((size < 1000000)) || {
	echo "a page of 1,000 stacks has $size bytes"
	exit 1
}
run_node page.mjs "$directory"
