#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Other tools read the exports and find the report's bytes and counts for each stack.
# Packages: go:golang-go protoc:protobuf-compiler
source "$SOURCE/test/golden/replay.bash" || exit 2
put_program
sums=$SOURCE/test/live/support/export-sums.py
failed=0 skipped= program=leak-static

fail() {
	echo "FAILED: $*" >&2
	failed=1
}

# has TOOL: without the tool, its format is not tested.
has() {
	command -v "$1" >/dev/null && return
	[[ " $skipped " = *" $1 "* ]] || skipped="$skipped $1"
	return 1
}

# export_as FORMAT OPTION...: into $directory/FORMAT.
export_as() {
	local format=$1
	shift
	"$MMTRACE" export -f "$format" -o "$directory/${file_name:-$format}" "$@" "${selection[@]}" "$recording" || fail "export -f $format $* $recording"
}

# has_sums FORMAT FILE: compares the file with the report of the recording.
has_sums() {
	python3 "$sums" "$directory/report.json" "$1" "$2" || fail "$1 of $recording"
}

check_folded() {
	local weight

	for weight in memory unfreed resident committed allocated count; do
		export_as folded --weight "$weight" 2>/dev/null
		has_sums "folded=$weight" "$directory/folded"
	done
}

check_pprof() {
	has go || return
	export_as pprof
	go tool pprof -symbolize=none -raw "$directory/pprof" >"$directory/pprof.raw" || fail "pprof -raw"
	has_sums pprof "$directory/pprof.raw"
	# Without options the export shows what the report is sorted by.
	go tool pprof -top -unit=B "$directory/pprof" 2>/dev/null |
		grep -q "Total samples = $(jq '[.groups[].memory_bytes] | add' "$directory/report.json")B" || fail "pprof -top"
	# The program is the first mapping, and the caller of mmap the innermost function.
	go tool pprof -symbolize=none -top "$directory/pprof" 2>/dev/null >"$directory/pprof.top"
	grep -qx "File: $program" "$directory/pprof.top" || fail "pprof's file"
	! grep -qE ' (__)?mmap(64)?$' "$directory/pprof.top" || fail "pprof -top names mmap"
}

check_firefox() {
	export_as firefox
	has_sums firefox "$directory/firefox"
}

check_perfetto() {
	has protoc || return
	export_as perfetto
	protoc --proto_path="$SOURCE/test/live/support" --decode=mmtrace.Trace export.proto \
		<"$directory/perfetto" >"$directory/perfetto.text" || fail "protoc"
	# Fields that the description does not list would appear as numbers.
	! grep -nE '^ *[0-9]+[:{ ]' "$directory/perfetto.text" || fail "unknown fields"
	has_sums perfetto "$directory/perfetto.text"
}

# check RECORDING OPTION...: every format, with these report options.
check() {
	recording=$1
	shift
	selection=("$@")
	"$MMTRACE" report --json "${selection[@]}" "$recording" >"$directory/report.json" ||
		{ fail "report --json $recording"; return; }
	check_folded
	check_pprof
	check_firefox
	check_perfetto
}

for name in leak more troubled perf; do
	check "$SOURCE/test/data/$name.data"
done
check "$SOURCE/test/data/leak.data" --to 1ms --focus '*mmap*' --ignore class=heap
# JIT code without names, which no viewer can look up.
if "$BUILD/test/workload/perf-allowed" >/dev/null; then
	program=jit-frameless recording=$directory/jit.data selection=()
	"$MMTRACE" record -q -o "$recording" -- "$BUILD/test/workload/$program" >/dev/null || fail "record $program"
	"$MMTRACE" report --json "$recording" >"$directory/report.json" || fail "report --json $recording"
	check_pprof
fi
((!failed)) || exit 1
[ -z "$skipped" ] || {
	echo "SKIPPED: not installed:$skipped"
	exit 77
}
