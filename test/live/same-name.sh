#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Several recordings under one name: mmtrace says what happened to the earlier ones and which name each has.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# expect_word PATTERN [FILE], expect_no_word PATTERN [FILE]: the recorder's messages.
expect_word() {
	grep -qE -- "$1" "${2:-record.log}" || fail "no message about '$1': $(cat "${2:-record.log}")"
}
expect_no_word() {
	! grep -qE -- "$1" "${2:-record.log}" || fail "a message about '$1': $(cat "${2:-record.log}")"
}
record_true() {
	"$MMTRACE" record "$@" -- true 2>record.log || fail "record ended with status $?: $(cat record.log)"
}

# One after the other: each earlier file is mentioned.
record_true
expect_no_word 'previous|replaced'
expect_word '^next: mmtrace report$'
record_true
expect_word '^  the previous mmtrace.data was kept as mmtrace.data.old$'
record_true
expect_word '^  the previous mmtrace.data was kept as mmtrace.data.old, replacing an earlier file of that name$'
# Two names of one file: it is kept.
ln -f mmtrace.data mmtrace.data.old
record_true
expect_word 'kept as mmtrace.data.old$'
record_true -q
[ ! -s record.log ] || fail "output in spite of -q: $(cat record.log)"

# The suggested next command, quoted for the shell.
sleep 600 &
sleeper=$!
processes+=("$sleeper")
for name in plain.data "it's \$HOME here.data" '-dash' 'é "ü".data' $'line\nand \\ it\'s.data' '~'; do
	"$MMTRACE" record -o "$name" -p "$sleeper" --duration 100ms 2>record.log || fail "record -o '$name': $(cat record.log)"
	expect_word '^next: mmtrace report -i .'
	eval "words=($(sed -n 's/^next: mmtrace report -i //p' record.log))"
	[ ${#words[@]} = 1 ] && [ "${words[0]}" = "$name" ] || fail "the name '$name' became: $(cat record.log)"
	[ "$(grep -c . record.log)" -le 6 ] || fail "a line break in a name is not escaped: $(cat record.log)"
	eval "\"\$MMTRACE\" $(sed -n 's/^next: mmtrace //p' record.log) --no-pager" >report.txt 2>&1 ||
		fail "the next step fails: $(cat record.log report.txt)"
done
expect_word '^~: '
"$MMTRACE" record -o plain.data -p "$sleeper" --duration 100ms 2>record.log || fail "record: $(cat record.log)"
expect_word '^next: mmtrace report -i plain.data$'

# record_to_the_same LOG OPTION...: until it has its name.
record_to_the_same() {
	local log=$1
	shift
	local before
	before=$(stat -c %i same.data 2>/dev/null)
	"$MMTRACE" record -o same.data -p "$sleeper" "$@" 2>"$log" &
	recorder=$!
	processes+=("$recorder")
	has_its_name() {
		kill -0 "$recorder" || given_up="record ended early: $(cat "$log")"
		[ -e same.data ] && [ "$(stat -c %i same.data)" != "$before" ]
	}
	wait_until "the recording to take its name" has_its_name
}
stop_first() {
	kill -TERM "$first"
	wait "$first" || fail "the first recorder ended with status $?: $(cat first.log)"
}
stop_second() {
	kill -TERM "$second"
	wait "$second" || fail "the second recorder ended with status $?: $(cat second.log)"
}

# At the same time: the first recorder reports its new name, also with -q.
for quiet in -v -q; do
	rm -f same.data same.data.old
	record_to_the_same first.log $quiet
	first=$recorder
	record_to_the_same second.log
	second=$recorder
	stop_first
	stop_second
	expect_word '^mmtrace record: warning: another recorder replaced same.data; this recording is now same.data.old$' first.log
	# The recorder packs its own file at the end, not the other one.
	[ $quiet = -q ] || expect_word '^same.data.old: packed to ' first.log
	[ $quiet = -q ] || expect_word '^next: mmtrace report -i same.data.old$' first.log
	expect_no_word 'warning' second.log
	expect_word 'kept as same.data.old$' second.log
	for file in same.data same.data.old; do
		"$MMTRACE" report --check --no-pager -i $file >report.txt 2>&1 || fail "$file: $(cat report.txt)"
	done
done
# Renamed by another program: mmtrace does not invent a name, and cannot pack the file.
rm -f same.data same.data.old
record_to_the_same first.log
first=$recorder
mv same.data elsewhere.data
kill -TERM "$first"
wait "$first"
[ $? = 0 ] || fail "not the status of a recording that is complete: $(cat first.log)"
expect_word 'the recording was not packed and contains stack memory' first.log
expect_word 'warning: same.data was renamed during recording' first.log
expect_no_word '^next:' first.log
"$MMTRACE" report --check --no-pager -i elsewhere.data >report.txt 2>&1 || fail "elsewhere.data: $(cat report.txt)"
