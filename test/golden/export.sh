#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: strace:strace
# mmtrace export replaces an existing file only when the new one is complete.
source "$SOURCE/test/golden/written-files.bash" || exit 2

# says WORD...: in the messages of the last run.
says() {
	grep -qF -- "$*" messages || complain "no '$*' in: $(cat messages)"
}

# is_old [FILE]: the file is unchanged, and there is no other file beside it.
is_old() {
	[ "$(cat "${1:-file.out}")" = old ] && [ "$(echo file*)" = "${1:-file.out}" ]
}

run 0 export -f folded -o file.out "$data/more.data"
[ ! -s output ] && [ ! -s messages ] || complain "export -o FILE prints: $(cat output messages)"
run 0 export -f folded "$data/more.data"
cmp -s output file.out || complain "standard output and FILE differ"
echo old >file.out
run 2 export -f folded -o file.out "$SOURCE/README"
is_old || complain "a file that is no recording: FILE changed"
run 2 export -f folded -o file.out --from 1000s "$data/more.data"
is_old || complain "an empty window: FILE changed"
run 2 export -f folded -o missing/file.out "$data/more.data"
run 0 export -f pprof -o file.out "$data/more.data"
[ "$(head -c 2 file.out | od -An -tx1)" = ' 1f 8b' ] || complain "pprof is not compressed"
[ ! -c /dev/full ] || "$MMTRACE" export -f folded "$data/more.data" >/dev/full 2>messages
says 'No space left'

# Every format: no space, a full device, and Ctrl-C after the first piece is written.
read -r -a formats < <("$MMTRACE" export --list-options | sed -nE 's/^--format -f ([^ ]*).*/\1/p' | tr '|' ' ')
[ "${#formats[@]}" -ge 6 ] || complain "only these formats are listed: ${formats[*]}"
for format in "${formats[@]}"; do
	rm file*
	file=file.$format
	echo old >"$file"
	message=$(
		trap '' XFSZ
		ulimit -f 0
		"$MMTRACE" export -f "$format" -o "$file" "$data/more.data" 2>&1
		echo "status $?"
	)
	[[ $message = *"cannot write $file: File too large"*'status 2' ]] || complain "$format, no room: $message"
	is_old "$file" || complain "$format, no room: FILE changed"
	run 2 export -f "$format" -o /dev/full "$data/more.data"
	says 'cannot write /dev/full: No space left'
	strace -o /dev/null true 2>/dev/null || continue # missing, or ptrace is not permitted
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 strace -f -q -o trace -e trace=write \
		-e inject=write:signal=SIGINT:when=1 "$MMTRACE" export -f "$format" -o "$file" "$data/more.data" >output 2>messages
	[ $? = 130 ] || complain "$format, Ctrl-C: status is not 130: $(tail -n 2 trace)"
	is_old "$file" || complain "$format, Ctrl-C: FILE changed"
done

rm file*
cp "$data/more.data" file.out
run 2 export -f folded -o file.out "$data/more.data"
says 'file.out is a recording and is not replaced'
cmp -s file.out "$data/more.data" || complain "export replaced a recording"
rm file.out

# The page of report --html, for the same selection; the viewer chooses the weight.
for selection in "" "--to 300ms --class anon,file" "--focus *mmap* --min-age 1ms"; do
	# shellcheck disable=SC2086
	"$MMTRACE" report --html page.html $selection "$data/more.data"
	# shellcheck disable=SC2086
	run 0 export -f html -o file.html $selection "$data/more.data"
	cmp -s page.html file.html || complain "export -f html $selection differs from report --html"
done
run 0 export -f html "$data/more.data"
"$MMTRACE" report --html - "$data/more.data" | cmp -s - output || complain "export -f html to standard output differs from report --html"
run 2 export -f html --weight count "$data/more.data"
says 'html contains all figures'

# Names of another viewer's files are mistakes.
run 2 export -f folded -o leak.html "$data/more.data"
says 'leak.html is no name for folded: use --format html, or --output leak.folded'
run 2 export -f pprof -o leak.json "$data/more.data"
says 'leak.json is no name for pprof: use --format firefox, or --output leak.pb.gz'
run 2 export -f html -o leak.html.gz "$data/more.data"
says 'leak.html.gz is no name for html: use --format pprof, or --output leak.html'
run 2 export -f perfetto -o leak.pb.gz "$data/more.data"
says 'leak.pb.gz is no name for perfetto: use --format pprof, or --output leak.pftrace'
run 2 export -o leak.json "$data/more.data"
says 'leak.json: the name tells no format; choose a format'
[ -z "$(find . -name 'leak*')" ] || complain "a wrong name: it is written"
run 0 export -f perfetto -o /dev/null "$data/more.data"
# A name that only one format has needs no --format.
run 0 export -o inferred.folded "$data/more.data"
"$MMTRACE" export -f folded "$data/more.data" | cmp -s - inferred.folded || complain "export -o inferred.folded has no folded stacks"

# on_terminal WORD...: as run, but standard output is a terminal.
on_terminal() {
	script -qec "'$MMTRACE' $*" /dev/null </dev/null | tr -d '\r' >messages
}

# Without --output, a terminal gets a file, named after format and recording, that replaces none; a pipe gets the export.
for format in "${formats[@]}"; do
	on_terminal export -f "$format" "'$data/more.data'"
	name=$(sed -nE 's/^mmtrace export: wrote (more\.[^ ;]*); (open it with [a-z]|to open it: [a-z].* \1$).*/\1/p' messages)
	"$MMTRACE" export -f "$format" "$data/more.data" | cmp -s - "$name" || complain "on a terminal, $format: $(cat messages)"
	echo mine >"$name"
	on_terminal export -f "$format" "'$data/more.data'"
	says "$name exists; to replace it, add --output $name"
	[ "$(cat "$name")" = mine ] || complain "$name is replaced"
	on_terminal export -f "$format" -o "$name" "'$data/more.data'"
	[ ! -s messages ] || complain "on a terminal, $format with -o: $(cat messages)"
done
[ "$(echo more.*)" = 'more.firefox.json more.folded more.html more.ndjson more.pb.gz more.pftrace' ] ||
	complain "on a terminal: $(echo more.*)"
on_terminal export -f folded -o - "'$data/more.data'"
cmp -s messages more.folded || complain "-o - on a terminal: $(cat messages)"
on_terminal export -f folded '-' "<'$data/more.data'"
says 'wrote mmtrace.folded'

run 2 export -f pprof --weight count -o file "$data/more.data"
says 'pprof contains all figures'
run 2 export -f folded --service web "$data/more.data"
says '--service needs --format rows or pprof'

# Rows: labels of the file, sums of the report.
run 0 export -f rows --service web "$data/more.data"
jq -se 'length > 1 and all(.service_name == "web" and .host_name == "golden" and .executable_name == "leak-static")' output >/dev/null ||
	complain "labels of rows: $(cat output)"
"$MMTRACE" report --json "$data/more.data" >report.json
for figure in unfreed_bytes allocated_bytes freed_bytes; do
	[ "$(jq -s "map(.$figure) | add" output)" = "$(jq "[.groups[].$figure] | add" report.json)" ] || complain "rows: sum of $figure"
done
[ "$(jq -r .stack_id output | sort)" = "$(jq -r '.groups[].identity' report.json | sort)" ] || complain "rows: identities"
grep -E '0x7f|/' output && complain "rows have addresses or paths"
"$MMTRACE" export -f rows "$data/perf.data" | jq -se 'length > 0 and all(.start_time == null)' >/dev/null ||
	complain "rows of a recording without a time"

run 2 export -f flamegraph "$data/more.data"
says 'folded'
run 2 export "$data/more.data"
says 'choose a format'
run 0 export -f folded --weight resident "$data/perf.data"
says 'no resident sizes'
exit $failed
