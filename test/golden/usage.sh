#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Invalid command lines are refused before anything is done: status 2, nothing on standard output, one line that names the
# mistake, and one that says where the options are listed (omitted if the recording itself is wrong).
source "$SOURCE/test/golden/replay.bash" || exit 2

cp "$recordings/leak.data" "$recordings/README" "$directory" && cd "$directory" || exit 2
failed=0

# refuse LINES TEXT WORD...
refuse() {
	local lines=$1 text=$2 status
	shift 2
	"$MMTRACE" "$@" >out 2>err </dev/null
	status=$?
	if [ $status != 2 ] || [ -s out ] || [ "$(wc -l <err)" != "$lines" ] || [ "$(head -1 err)" != "mmtrace${text}" ]; then
		echo "FAILED: mmtrace $*: status $status, $(wc -c <out) bytes, instead of 'mmtrace$text':" >&2
		cat err >&2
		failed=1
	fi
}

refuse 2 ": no command given"
before=$(ulimit -S -s)
ulimit -S -s 120
refuse 1 " record: the limit of the stack is too low to record: raise it with \`ulimit -s\`" record true
ulimit -S -s "$before"
refuse 2 ": unknown command 'reprot'; did you mean 'report'?" reprot
refuse 2 ": unknown command 'zzzzzzzz'" zzzzzzzz
refuse 2 ": unknown command 'rec'; did you mean 'record'?" rec
refuse 2 ": unknown option -x" -x
refuse 2 ": unknown command 'dmup'; did you mean 'dump'?" help dmup
refuse 2 " report: unknown option --inptu; did you mean --input?" report --inptu leak.data
refuse 2 " record: option --exact-order was removed; leave it out: the report orders racing calls by itself" record --exact-order true
refuse 2 " record: option --pack was removed; leave it out: recordings are packed, except with --raw" record --pack true
refuse 2 " pack: option --no-code was removed; leave it out: packed recordings contain no instructions" pack --no-code
refuse 2 " report: option --no-cache was removed; leave it out: names are not kept between reports" report --no-cache leak.data
for command in report dump pack; do
	refuse 2 " $command: unexpected argument 'more.data': pass only one recording" $command leak.data more.data
	refuse 2 " $command: two recordings: --input leak.data and more.data; pass only one" $command -i leak.data more.data
	refuse 1 " $command: README: not a recording (no perf.data magic); make one with mmtrace record" $command README
	refuse 1 " $command: cannot open nowhere.data: No such file or directory" $command nowhere.data
done
refuse 2 " diff: pass two recordings, the earlier one first" diff leak.data
refuse 2 " diff: pass two recordings, the earlier one first" diff leak.data leak.data leak.data
refuse 1 " diff: README: not a recording (no perf.data magic); make one with mmtrace record" diff leak.data README
refuse 2 " pack: cannot pack standard input: pass a file" pack -
refuse 2 " pack: --output: the file's name is empty" pack --output= leak.data
refuse 1 " record: --output: the file's name is empty" record --output= -- true
refuse 1 " record: --cgroup: the group's path is empty" record -G ""
refuse 2 " record: --pid: '1,,2' is not a PID, or a list of them such as 123,456 or '123 456'" record -p 1,,2
refuse 2 " record: --pid: '1, ' is not a PID, or a list of them such as 123,456 or '123 456'" record -p '1, '
refuse 2 " record: --pid: '' is not a PID: the list is empty (\`pidof\` prints nothing if no such program runs)" record -p ''
refuse 1 " record: --tree needs -p or --comm: the others always include children" record --tree -a
refuse 2 " record: --wait needs one --comm NAME" record --wait -p 1
refuse 1 " record: --wait and a command cannot be combined" record --wait --comm x -- true
refuse 1 " record: --tree and --wait cannot be combined: a new process has no children" record --wait --tree --comm x
refuse 1 " record: --comm: no process has the command name 'no-such-name'; \`ps -e -o pid,comm\` shows the names, and \`mmtrace record --wait\` waits for a new process" \
	record --comm no-such-name
# Options of other tools, and abbreviations that would do more than one might guess.
refuse 2 " record: unknown option -d; --duration TIME stops after TIME" record -d 10 -p 1
refuse 2 " record: unknown option --timeout; --duration TIME stops after TIME" record --timeout=10 -p 1
refuse 2 " record: unknown option --name; --comm NAME records what runs under that name" record --name redis-server
refuse 2 " dump: unknown option -o; use \`> FILE\`" dump -o out leak.data
refuse 2 " record: --all is short for --all-cpus: write it out" record --all
refuse 2 " record: --ask is short for --ask-runtime: write it out" record --ask -p 1
redirect="use \`> FILE\` or --html FILE, or \`mmtrace export -o FILE\` for other formats"
refuse 2 " report: unknown option -o; $redirect" report -o out leak.data
refuse 2 " report: unknown option --output; $redirect" report --output out leak.data
refuse 2 " report: unknown option --format; use --json, --csv or --html FILE, or \`mmtrace export -f FORMAT\`" report --format json
keys="stack|touch|function|module|file|class|process|thread[,KEY]"
refuse 2 " report: --by: 'sort' is not $keys" report --by sort leak.data
refuse 2 " report: --by: 'class,' is not $keys" report --by class, leak.data
refuse 2 " report: --by: 'class,kind' is not $keys" report --by class,kind leak.data
refuse 2 " report: --by: 'class,class' is not two different keys" report --by class,class leak.data
refuse 2 " report: --by: 'class,file,thread' is not one key or two" report --by class,file,thread leak.data
refuse 2 " report: --by: 'class,stack' is not a pair of function|module|file|class|process|thread: stack and touch are used alone" \
	report --by class,stack leak.data
refuse 2 " diff: --by: a diff has no rows by touch or thread alone; pass --by thread,function" diff --by touch leak.data leak.data
refuse 2 " report: --sort: rows by touch have only memory" report --by touch --sort freed leak.data
refuse 1 " report: by: rows by touch allow no then_by, --every or --min-age" report --by touch --min-age 1s leak.data
refuse 2 " top: --by touch needs page faults, which top does not record" top --by touch -p 1
refuse 2 " report: --limit: '-1' is not a number such as 0 or 20" report --limit -1 leak.data
refuse 2 " report: --limit: '99999999999999999999' is not a number such as 0 or 20" report --limit 99999999999999999999 leak.data
refuse 1 " record: nothing to record: pass -p PID, --comm NAME, -a, --cgroup, or -- and a command" record
refuse 1 " record: -p (or --comm) and a command cannot be combined (at 'true')" record -p 1 -- true
refuse 1 " record: -p (or --comm), -a and --cgroup cannot be combined" record -p 1 -a
refuse 2 " check: unexpected argument 'x'" check x
refuse 2 " report: option --tail was removed; use --min-age" report --tail 10%
refuse 2 " report: option --at was removed; use --to" report --at=1h
refuse 2 " record: option --check-exit was removed; --snapshot-interval checks a command more often" record --check-exit -- true
refuse 2 " record: option -t was removed; use -p, and \`mmtrace report --focus thread=TID\`" record -t 1
refuse 2 " export: --service: the name is empty" export -f rows --service= leak.data
refuse 2 " record: option --madvise was removed; calls of madvise that succeed are recorded without it" record --madvise -- true
refuse 2 " export: option --every was removed; export each time with --to TIME" export -f pprof --every 1s leak.data
refuse 2 " export: --format massif was removed; use html, whose page has the same chart, or pprof" export -f massif
refuse 2 " export: --format heaptrack was removed; use html, whose page has the same chart, or pprof" export -f heaptrack
refuse 2 " export: --format speedscope was removed; use pprof, which speedscope.app opens" export -f speedscope
refuse 2 " export: --format svg was removed; use html, whose page saves its graph as SVG, or folded for flamegraph.pl" export -f svg
# Only of the commands that had them, and an option is not a value.
refuse 2 " record: unknown option --at" record --at 1h
refuse 2 " check: unknown option --massif" check --massif
refuse 2 " export: --format: 'at' is not folded|pprof|firefox|perfetto|rows|html" export -f at
refuse 2 " export: unknown option --massif" export --massif
moment="a time such as 10s, -10s, 10:12:03, 2026-11-21T10:12 or @NANOSECONDS"
for text in yesterday 2026-13-01T10:00 2026-11-31T10:00 24:00 10:60 10:12:60 10:1x mark:1 1600-01-01T10:00; do
	refuse 2 " report: --from: '$text' is not $moment" report --from $text leak.data
done
where="the recording, which is 0.001 s long (@7900553188001 to @7900554473847)"
refuse 1 " report: --from lies outside $where" report --from 1h leak.data
refuse 1 " report: --to lies outside $where" report --to 1h leak.data
# -h is one screen, with examples first; they are those of help examples.
for command in record report top trace watch export diff; do
	"$MMTRACE" $command -h >out
	[ "$(wc -l <out)" -le 23 ] && ! grep -qE '^.{81}|[(,;:] ?$' <(sed '/^[A-Z][a-z ]*:$/d; /^  --/d' out) &&
		[ "$(sed -n '/^  mmtrace/{s/^  //p;q}' out)" = "$("$MMTRACE" help examples | grep -m 1 "^mmtrace $command ")" ] || {
		echo "FAILED: mmtrace $command -h:" >&2
		cat out >&2
		failed=1
	}
done
# A group has options; nothing but a list of choices is wider than a terminal.
for command in record report top trace watch export diff dump pack check setup help; do
	{ "$MMTRACE" $command -h && "$MMTRACE" $command --help; } >out
	! grep -qzE '\n[A-Z][A-Za-z ]*:\n\n' out && ! grep -v '|' out | grep -qE '^.{81}| $' || {
		echo "FAILED: mmtrace $command -h or --help:" >&2
		cat out >&2
		failed=1
	}
done
"$MMTRACE" check -h >out
"$MMTRACE" check --help | diff out - >&2 && ! grep -q 'on one screen' out || {
	echo "FAILED: mmtrace check has no other options: $(cat out)" >&2
	failed=1
}
"$MMTRACE" top -h >out
grep -qE '^  -s, --sort unfreed\|[a-z|]*\|\.\.\.$' out || {
	echo "FAILED: mmtrace top -h lists no figures: $(cat out)" >&2
	failed=1
}
: >out
[ "$(ls)" = $'README\nerr\nleak.data\nout' ] || {
	echo "FAILED: something was made: $(ls)" >&2
	failed=1
}
exit $failed
