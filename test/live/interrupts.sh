#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: python3:python3
# Ctrl-C at a terminal while a recording is read, names are looked up or the result is written, with and without a pager:
# mmtrace dies of the signal, the terminal's line is clean, and no file is left behind.
source "$SOURCE/test/live/support/recording.bash" || exit 2

command -v python3 >/dev/null || skip "python3 is not installed"
export TERM=xterm MMTRACE DATA=$directory/large.data
unset PAGER MMTRACE_PAGER LESS
library=$(ls "$BUILD"/libmmtrace.so.*.*.*) || fail "no library to name functions of"
"$BUILD/test/generate-recording" --events 60000 --live 20000 --stacks 1500 --program "$library" "$DATA" >/dev/null ||
	fail "no recording was made"
mkdir kept
export TMPDIR=$directory/kept
patient="python3 $support/patient-pager.py"

in_terminal() { # KEYS COMMAND...: what it wrote is in `terminal`
	local keys=$1
	shift
	: >terminal
	python3 "$support/in-terminal.py" terminal "$keys" "$@"
}

# A shell at the terminal.
cat >tell <<'END'
#!/bin/bash
trap : INT
echo begins
"$@"
echo "status $?"
END
# Half of the recording, then a trickle. The feeder ignores Ctrl-C.
cat >half-fed <<'END'
#!/bin/bash
trap : INT
mkfifo feed
{
	trap "" INT
	size=$(stat -c %s "$DATA")
	head -c $((size / 2)) "$DATA"
	echo "half is read" >/dev/tty
	for ((i = size / 2; i < size / 2 + 1000; i++)); do
		tail -c "+$((i + 1))" "$DATA" | head -c 1 || exit
		sleep 0.2 || exit
	done
} >feed &
if [ -v BY_NAME ]; then "$@"; else "$@" <feed; fi
echo "status $?"
kill $! 2>/dev/null # it may have noticed that nobody reads
rm feed
END
chmod +x tell half-fed

# expect_end STATUS WHAT: ... and no file is left.
expect_end() {
	grep -q "status $1" terminal || fail "$2: not status $1: $(tail -c 600 terminal | cat -v)"
	[ -z "$(ls -A kept)" ] || fail "$2: files are left: $(ls -A kept)"
	! compgen -G "$directory/*.new-*" || fail "$2: a file is left"
}

# While reading.
for command in "report --no-pager -i -" "dump --no-pager -i -" "diff --no-pager $DATA -" "diff --no-pager - $DATA"; do
	in_terminal 'half is read:\x03' ./half-fed "$MMTRACE" $command || fail "$command: it did not end"
	expect_end 130 "$command, reading"
	! grep -q 'snapshot (pid\|event=' terminal || fail "$command: a result after Ctrl-C: $(cat -v terminal)"
done
in_terminal 'reading standard input:\x03' ./half-fed "$MMTRACE" report -i - || fail "report: it did not end"
expect_end 130 "report, with progress"
grep -a -B1 'status 130' terminal | tr -d '\n\r' | grep -aqF $'^C\033[Kstatus' ||
	fail "the line was not wiped out: $(cat -v terminal)"
BY_NAME=1 in_terminal 'reading feed:\x03' ./half-fed "$MMTRACE" pack -o packed feed || fail "pack: it did not end"
expect_end 130 "pack, reading"
[ ! -e packed ] || fail "pack left half a file"
# When everything is written but the file has no name yet.
cp "$DATA" whole.data
preload endless-sync
in_terminal 'syncing:\x03' ./tell "${preload[@]}" "$MMTRACE" pack whole.data || fail "pack: it did not end"
expect_end 130 "pack, written"
cmp whole.data "$DATA" || fail "pack changed the recording before it was done"
# The recording that `record` has made by then stays.
if "$workloads/perf-allowed" >/dev/null; then
	in_terminal 'syncing:\x03' ./tell "${preload[@]}" "$MMTRACE" record -o recorded.data -- \
		env -u LD_PRELOAD true || fail "record: it did not end"
	expect_end 130 "record, packed"
	grep -q 'packing was interrupted: recorded.data is complete.*; `mmtrace pack recorded.data` packs it' terminal ||
		fail "it does not say how to pack the recording: $(cat -v terminal)"
	"$MMTRACE" report --no-pager -i recorded.data >recorded.txt || fail "what was recorded cannot be read"
	"$MMTRACE" dump --no-pager -i recorded.data | grep -q stack-dump || fail "it was packed, or nothing was recorded"
fi
PAGER='echo began; exec sleep 300' in_terminal 'half is read:\x03' ./half-fed "$MMTRACE" dump -i - || fail "dump: it did not end"
expect_end 130 "dump with a pager, reading"
! grep -q began terminal || fail "the pager runs before there is output: $(cat -v terminal)"

# During output.
in_terminal 'event=:\x03' ./tell "$MMTRACE" dump --no-pager "$DATA" || fail "dump: it did not end"
expect_end 130 "dump, writing"
PAGER='read -r line; echo "paged: $line"; exec sleep 300' in_terminal 'paged:\x03' ./tell "$MMTRACE" dump "$DATA" ||
	fail "dump: it did not end"
expect_end 130 "dump with a pager, writing"
# The pager keeps running, with the output it has, until its user quits; then the shell has the terminal again.
PAGER=$patient in_terminal '<first:\x03
<interrupted>:a\n
<all:q\n' ./tell "$MMTRACE" dump "$DATA" || fail "dump: it did not end"
expect_end 130 "dump with a pager that lives on, writing"
grep -A99 'pager ends' terminal | grep -q 'status 130' || fail "it ended before its pager: $(cat -v terminal)"
paged=$(sed -n 's/.*<all: \([0-9]*\)>.*/\1/p' terminal) size=$("$MMTRACE" dump --no-pager "$DATA" | wc -c)
[ $((paged * 10)) -lt "$size" ] || fail "after Ctrl-C there came $paged bytes of $size"
# The same when everything is written: the shell learns of the signal, so that it ends a loop.
for command in "report" "diff $DATA"; do
	PAGER='cat >all; echo "paged: $(wc -l <all)"; exec sleep 300' in_terminal 'paged:\x03' ./tell "$MMTRACE" $command "$DATA" ||
		fail "$command: it did not end"
	expect_end 130 "$command with a pager"
	PAGER=$patient in_terminal '<first:a\n
<all:\x03
<interrupted>:q\n' ./tell "$MMTRACE" $command "$DATA" || fail "$command: it did not end"
	expect_end 130 "$command with a pager that lives on"
	grep -A99 'pager ends' terminal | grep -q 'status 130' || fail "it ended before its pager: $(cat -v terminal)"
done

# At random moments, also while names are looked up: a command is killed or finishes, and its output is never partial.
"$MMTRACE" report --no-pager -n 0 "$DATA" >right.txt 2>&1 || fail "report failed"
"$MMTRACE" pack -q -o expected.data "$DATA" || fail "pack failed"
sum=$(sha256sum <"$DATA")
packed_sum=$(sha256sum <expected.data)

# interrupt_anytime WHAT COMMAND...: five times, later each time, spread over the time a complete run takes. That is shorter
# than the first measurement if a run finished before it was interrupted.
interrupt_anytime() {
	local what=$1 start took delay i killed=0
	shift
	start=${EPOCHREALTIME/./}
	prepare
	in_terminal "" ./tell "$@" || fail "$what failed: $(cat -v terminal)"
	expect_end 0 "$what"
	took=$((${EPOCHREALTIME/./} - start))
	for i in {1..5}; do
		prepare
		delay=$((took * (killed + 1) / 6))
		in_terminal "begins:
@$(printf '%d.%06d' $((delay / 1000000)) $((delay % 1000000))):\\x03" ./tell "$@" ||
			fail "$what: it did not end: $(cat -v terminal)"
		if grep -q 'status 130' terminal; then
			((killed++))
			expect_end 130 "$what"
		else
			expect_end 0 "$what"
			took=$((took / 4))
		fi
		after
	done
	echo "$what: $killed of 5 were killed, of $((took / 1000)) ms"
	[ "$killed" -gt 0 ] || fail "$what was never killed"
}

prepare() { :; }
after() {
	"$MMTRACE" report --no-pager -n 0 "$DATA" >after.txt 2>&1 || fail "report after Ctrl-C failed"
	cmp right.txt after.txt || fail "after Ctrl-C the report is another one"
}
interrupt_anytime report "$MMTRACE" report --no-pager -n 0 "$DATA"
after() { :; }
interrupt_anytime diff "$MMTRACE" diff --no-pager "$DATA" "$DATA"
prepare() { cp "$DATA" own.data; }
after() {
	local now
	now=$(sha256sum <own.data)
	[ "$now" = "$sum" ] || [ "$now" = "$packed_sum" ] || fail "a partly packed recording was left"
}
interrupt_anytime pack "$MMTRACE" pack own.data
