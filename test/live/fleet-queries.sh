#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# ClickHouse and DuckDB answer the questions of lib/output/sql/ alike: of recordings under three host names, and of a
# generated fleet, whose ten leaks they find.
# Packages: npm:npm
set -u
source "$SOURCE/test/golden/replay.bash" || exit 2
source "$SOURCE/test/live/support/engines/engines.bash" || exit 2
put_program
cd "$directory" || exit 2
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }

# ask NAME FILE...: writes clickhouse-NAME and duckdb-NAME. One writes integers of 64 bits as strings.
ask() {
	local engine name=$1
	shift
	for engine in clickhouse duckdb; do
		node "$engines/query.mjs" $engine "$SOURCE/lib/output/sql" "$@" 2>"$engine.log" |
			jq 'walk(if type == "string" then (tonumber? // .) else . end | if . == "" then null else . end)' >"$engine-$name" &&
			[ -s "$engine-$name" ] || { cat "$engine.log"; fail "$engine: $name"; }
	done
	diff "clickhouse-$name" "duckdb-$name" >difference || { fail "the answers differ ($name)"; head -40 difference; }
}

# expect NAME FILTER: true of the answers.
expect() {
	jq -e "$2" "duckdb-$1" >/dev/null || { fail "$1: $2"; jq -c . "duckdb-$1" | head -c 3000; }
}

"$MMTRACE" record -q -o live.data -- "$BUILD/test/workload/leak-anon" --exit 100 >/dev/null 2>record.log ||
	{ grep -q -i permission record.log && exit 77; cat record.log; fail "record"; }
for recording in live.data "$SOURCE"/test/data/{leak,more}.data; do
	"$MMTRACE" export -f rows -i "$recording" || fail "export of $recording"
done >rows
for host in a b c; do
	jq -c --arg host "$host" '.host_name = $host' rows >"$host.ndjson"
done
ask recorded "$PWD"/[abc].ndjson
expect recorded '.sums | length == 3 and map(.host_name) == ["a", "b", "c"] and (map(del(.host_name)) | unique | length == 1)'
expect recorded ".sums[0] | .row_count == $(wc -l <rows) and .unfreed == $(jq -s 'map(.unfreed_bytes) | add' rows)"
expect recorded ".sums[0] | .stacks == $(jq -s 'map(.stack_id) | unique | length' rows)"
expect recorded ".sums[0].deepest == $(jq -s 'map(.stack | length) | max' rows)"
grep -q 'leak_inner (leak-anon)' rows || fail "no leak_inner in the rows"

node "$engines/make-fleet.mjs" 30 24 50 "$PWD/fleet.ndjson" 2>make.log || { cat make.log; fail "make-fleet.mjs"; }
ask fleet "$PWD/fleet.ndjson"
expect fleet '."growing-stacks"[:10] | map(.service_name) == ["svc-9","svc-8","svc-7","svc-6","svc-5","svc-4","svc-3","svc-2","svc-1","svc-0"]
	and map(.hosts) == [30, 27, 24, 21, 18, 15, 12, 9, 6, 3] and all(.stack_functions[1] | test("^allocate_[0-9] "))'
expect fleet '."new-since-build" | length == 1 and .[0].executable_name == "bin-5" and .[0].hosts == 18'
expect fleet '."limit-within-a-day" | length == 12 and all(.service_name == "svc-3" and .hours_left < 24)'
expect fleet '.deployment[:2] | map(.bytes_per_hour_before) | sort | .[0] == 0 and .[1] > 0'
expect fleet '."host-against-peers"[0] | .host_name == "host-2" and .service_name == "svc-12"'
exit $failed
