#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: firefox-esr:firefox-esr node:nodejs
# Firefox opens the page of report --html and the picture that it saves from files: no error, no request; a range, keys and
# the searches work. firefox.mjs has the checks.
set -u
: "${SOURCE:?}" "${BUILD:?}" "${MMTRACE:?}"
command -v firefox-esr node >/dev/null || { echo "firefox-esr or nodejs is not installed"; exit 77; }
node --experimental-websocket -e 'process.exit(typeof WebSocket === "function" ? 0 : 1)' 2>/dev/null ||
	{ echo "Node.js has no WebSocket: it must be 20.10 or later"; exit 77; }
set -e
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
export HOME=$directory TMPDIR=$directory
"$BUILD/test/generate-recording" --events 4000 --live 900 --stacks 150 --depth 12 --threads 4 "$directory/recording" >"$directory/account"
"$MMTRACE" report --html "$directory/page.html" "$directory/recording"
"$MMTRACE" report --json "$directory/recording" >"$directory/report.json"
timeout 300 node --experimental-websocket --no-warnings "$SOURCE/test/html/firefox.mjs" "$directory/page.html" "$directory/graph.svg" "$directory/report.json" ${PICTURE:+"$PICTURE"}
