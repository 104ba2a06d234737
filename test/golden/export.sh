#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: strace:strace
# mmtrace export replaces an existing file only when the new one is complete.
source "$SOURCE/test/golden/written-files.bash" || exit 2

# says WORD...: in the messages of the last run.
says() {
	grep -qF -- "$*" messages || complain "no '$*' in: $(cat messages)"
}

# is_old: the file is unchanged, and there is no other file beside it.
is_old() {
	[ "$(cat file.gz)" = old ] && [ "$(echo file*)" = file.gz ]
}

run 0 export -f folded -o file.gz "$data/more.data"
[ ! -s output ] && [ ! -s messages ] || complain "export -o FILE prints: $(cat output messages)"
run 0 export -f folded "$data/more.data"
cmp -s output file.gz || complain "standard output and FILE differ"
echo old >file.gz
run 2 export -f folded -o file.gz "$SOURCE/README"
is_old || complain "a file that is no recording: FILE changed"
run 2 export -f folded -o file.gz --from 1000s "$data/more.data"
is_old || complain "an empty window: FILE changed"
run 2 export -f folded -o missing/file.gz "$data/more.data"
run 0 export -f pprof -o file.gz "$data/more.data"
[ "$(head -c 2 file.gz | od -An -tx1)" = ' 1f 8b' ] || complain "pprof is not compressed"
[ ! -c /dev/full ] || "$MMTRACE" export -f folded "$data/more.data" >/dev/full 2>messages
says 'No space left'

# Every format: no space, a full device, and Ctrl-C after the first piece is written.
read -r -a formats < <("$MMTRACE" export --list-options | sed -nE 's/^--format -f ([^ ]*).*/\1/p' | tr '|' ' ')
[ "${#formats[@]}" -ge 7 ] || complain "only these formats are listed: ${formats[*]}"
for format in "${formats[@]}"; do
	echo old >file.gz
	message=$(
		trap '' XFSZ
		ulimit -f 0
		"$MMTRACE" export -f "$format" -o file.gz "$data/more.data" 2>&1
		echo "status $?"
	)
	[[ $message = *'cannot write file.gz: File too large'*'status 2' ]] || complain "$format, no room: $message"
	is_old || complain "$format, no room: FILE changed"
	run 2 export -f "$format" -o /dev/full "$data/more.data"
	says 'cannot write /dev/full: No space left'
	strace -o /dev/null true 2>/dev/null || continue # missing, or ptrace is not permitted
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 strace -f -q -o trace -e trace=write \
		-e inject=write:signal=SIGINT:when=1 "$MMTRACE" export -f "$format" -o file.gz "$data/more.data" >output 2>messages
	[ $? = 130 ] || complain "$format, Ctrl-C: status is not 130: $(tail -n 2 trace)"
	is_old || complain "$format, Ctrl-C: FILE changed"
done

cp "$data/more.data" file.gz
run 2 export -f folded -o file.gz "$data/more.data"
says 'file.gz is a recording and is not replaced'
cmp -s file.gz "$data/more.data" || complain "export replaced a recording"

rm file.gz
run 0 export -f pprof --every 200ms -o file.pb.gz "$data/more.data"
[ "$(echo file*)" = 'file.0001.pb.gz file.0002.pb.gz file.0003.pb.gz' ] || complain "the series is $(echo file*)"
run 0 export -f pprof -o whole "$data/more.data"
cmp -s whole file.0003.pb.gz || complain "the last of a series is not the state at the end"
start=$("$MMTRACE" report --json --to 200ms "$data/more.data" | jq .to_ns)
run 0 export -f pprof --to "@$start" -o at "$data/more.data"
cmp -s at file.0001.pb.gz || complain "a file of a series is not the state at its time"

touch file.0004.pb.gz
run 0 export -f pprof --every 200ms -o file.pb.gz "$data/more.data"
says 'file.0004.pb.gz is from an earlier, longer series'
rm file.0004.pb.gz
run 0 export -f pprof --every 200ms -o file.pb.gz "$data/more.data"
[ ! -s messages ] || complain "a series without older files: $(cat messages)"

# The page of report --html, for the same selection; the viewer chooses the weight.
for selection in "" "--to 300ms --class anon,file --hide main" "--focus *mmap* --min-age 1ms"; do
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
run 2 export -f html --every 1s -o file.html "$data/more.data"
says '--every needs --format pprof'

run 2 export -f folded --every 1s -o file "$data/more.data"
says '--every needs --format pprof'
run 2 export -f pprof --every 1s "$data/more.data"
says '--every writes several files'
run 2 export -f pprof --weight count -o file "$data/more.data"
says 'pprof contains all figures'
run 2 export -f flamegraph "$data/more.data"
says 'folded'
run 2 export "$data/more.data"
says 'choose a format'
run 0 export -f folded --weight resident "$data/perf.data"
says 'no resident sizes'
exit $failed
