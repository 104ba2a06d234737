#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: python3:python3
# At a terminal, a long report shows its progress and the remaining time, and Ctrl-C ends it.
source "$SOURCE/test/live/support/recording.bash" || exit 2

command -v python3 >/dev/null || skip "python3 is not installed"
export TERM=xterm
data=$SOURCE/test/data/more.data
unset PAGER MMTRACE_PAGER
export TMPDIR=$directory/kept # where what comes through a pipe is kept while it is read
mkdir kept

in_terminal() { # KEYS COMMAND...: what it wrote is in `terminal`
	local keys=$1
	shift
	: >terminal # or the feeder might take what the last one showed for what this one does
	python3 "$support/in-terminal.py" terminal "$keys" "$@"
}

# slowly FILE SECONDS: writes the file's bytes in pieces, for this long or until nobody reads them. The last pieces are held
# back until the terminal has shown the progress $SHOWN times.
cat >slowly <<'END'
#!/bin/bash
size=$(($(stat -c %s "$1") - 300)) pieces=$(($2 * 5))
for ((i = 0; i < pieces; i++)); do
	tail -c "+$((size * i / pieces + 1))" "$1" | head -c $((size * (i + 1) / pieces - size * i / pieces)) || exit
	sleep 0.2
done
for ((i = 1; i < 300 && $(grep -ao 'reading [sf]' terminal | wc -l) < ${SHOWN:-0}; i++)); do
	tail -c "+$((++size))" "$1" | head -c 1 || exit
	sleep 0.2
done
tail -c "+$((size + 1))" "$1"
END
chmod +x slowly
cat >slow-report <<'END'
#!/bin/bash
"$DIRECTORY/slowly" "$1" 2 | exec "$MMTRACE" report -i - "${@:2}"
END
chmod +x slow-report
export DIRECTORY=$directory MMTRACE

# One line, rewritten in place and erased before the report; the report appears once.
began=${EPOCHREALTIME/./}
SHOWN=2 in_terminal "" ./slow-report "$data" --no-pager || fail "the report in a terminal ended with status $?"
most=$(((${EPOCHREALTIME/./} - began) / 200000)) # one each 200 ms
tr '\r' '\n' <terminal >lines
shown=$(grep -c $'^\033\\[Kreading standard input: [0-9.]* [KMi]*B$' lines)
[ "$shown" -ge 2 ] && [ "$shown" -le $most ] || fail "the progress was shown $shown times: $(cat -v terminal)"
[ "$(grep -c 'unfreed in this recording' lines)" = 1 ] || fail "the report was not printed exactly once: $(cat -v terminal)"
awk '/reading standard input/ { last = NR } /unfreed in this recording/ { report = NR } END { exit !(last && last < report) }' \
	lines || fail "progress behind the report: $(cat -v terminal)"
grep -A1 'reading standard input' lines | tail -1 | grep -q $'^\033\\[K' || fail "the line was not wiped out: $(cat -v terminal)"
# The same with a pager.
SHOWN=1 PAGER='sed s/^/paged:/' in_terminal "" ./slow-report "$data" || fail "the report with a pager ended with status $?"
tr '\r' '\n' <terminal >lines
[ "$(grep -c 'unfreed in this recording' lines)" = 1 ] && grep -q 'paged:unfreed in this recording' lines ||
	fail "with a pager the report was not printed exactly once: $(cat -v terminal)"
grep -q 'paged:.*reading standard' lines && fail "the pager got the progress"
# If the pager is not installed, the report is printed without one.
PAGER=no-such-pager in_terminal "" "$MMTRACE" report -i "$data" || fail "without the pager the report ended with status $?"
grep -q "continuing without the pager 'no-such-pager'" terminal && [ "$(grep -c 'unfreed in this recording' terminal)" = 1 ] ||
	fail "without the pager the report was not printed exactly once: $(cat -v terminal)"

# No progress without a terminal, on a terminal that cannot show it, and when there is nothing to wait for.
./slow-report "$data" >out.txt 2>err.txt || fail "the report without a terminal failed"
[ ! -s err.txt ] || fail "progress without a terminal: $(cat -v err.txt)"
in_terminal "" sh -c './slow-report "$0" --json >out.txt 2>err.txt' "$data" || fail "the report into files failed"
[ ! -s err.txt ] && [ ! -s terminal ] || fail "progress although standard error is a file: $(cat -v err.txt terminal)"
TERM=dumb in_terminal "" ./slow-report "$data" --no-pager || fail "the report on a dumb terminal failed"
grep -q 'reading' terminal && fail "progress on a dumb terminal"
for attempt in {1..20}; do
	began=${EPOCHREALTIME/./}
	in_terminal "" "$MMTRACE" report --no-pager -i "$data" || fail "a quick report failed"
	took=$((${EPOCHREALTIME/./} - began))
	[ $took -ge 1000000 ] || break # else the machine had other work
done
[ $took -ge 1000000 ] || ! grep -q 'reading' terminal || fail "progress in a report that takes no time"
# Progress on the terminal, the report elsewhere.
SHOWN=1 in_terminal "" sh -c './slow-report "$0" --json >out.json' "$data" || fail "a report into a file failed"
grep -q 'reading standard input' terminal || fail "no progress when the report goes into a file"
jq -e .unfreed_bytes out.json >/dev/null || fail "the report is not JSON"

# diff, pack and dump show it too; a dump written to the terminal needs no progress line.
cat >slow-command <<'END'
#!/bin/bash
mkfifo feed || exit
"$DIRECTORY/slowly" "$1" 2 >feed &
"${@:2}"
status=$?
kill $! 2>kill.txt # where the command ended before all was written
rm feed
exit $status
END
chmod +x slow-command
SHOWN=1 in_terminal "" ./slow-command "$data" "$MMTRACE" diff --no-pager feed "$data" || fail "diff of a slow recording failed"
grep -q 'reading feed: ' terminal || fail "diff shows no progress: $(cat -v terminal)"
SHOWN=1 in_terminal "" ./slow-command "$data" "$MMTRACE" pack -o packed feed || fail "pack of a slow recording failed"
grep -q 'reading feed: ' terminal || fail "pack shows no progress: $(cat -v terminal)"
tr '\r' '\n' <terminal | grep -q $'^\033\\[Kpacked: ' || fail "pack did not wipe it out: $(cat -v terminal)"
in_terminal "" ./slow-command "$data" "$MMTRACE" pack -q -o packed feed || fail "pack -q of a slow recording failed"
[ ! -s terminal ] || fail "pack -q is not quiet: $(cat -v terminal)"
SHOWN=1 in_terminal "" ./slow-command "$data" sh -c '"$MMTRACE" dump feed >out.txt' || fail "dump of a slow recording failed"
grep -q 'reading feed: ' terminal || fail "dump shows no progress: $(cat -v terminal)"
"$MMTRACE" dump "$data" | cmp - out.txt || fail "dump wrote something else"
in_terminal "" ./slow-command "$data" "$MMTRACE" dump --no-pager feed || fail "dump to the terminal failed"
grep -q 'reading' terminal && fail "progress among the events: $(grep -a reading terminal | cat -v)"

# Ctrl-C in the middle: mmtrace dies of the signal while more input is to come, and prints no report. (Ctrl-C does not end
# the feeder, which runs in the background.)
cat >interrupted <<'END'
#!/bin/bash
trap : INT
mkfifo feed
{ "$DIRECTORY/slowly" "$1" 40; exec sleep 200; } >feed &
"$MMTRACE" report --no-pager -i - <feed
echo "status $?"
kill $!
END
chmod +x interrupted
in_terminal 'reading standard input:\x03' ./interrupted "$data" || fail "Ctrl-C did not end it: $(cat -v terminal)"
grep -q 'status 130' terminal || fail "Ctrl-C did not end it by the signal: $(cat -v terminal)"
grep -q 'unfreed in this' terminal && fail "a report after Ctrl-C: $(cat -v terminal)"
[ -z "$(ls -A kept)" ] || fail "files are left: $(ls -A kept)"
