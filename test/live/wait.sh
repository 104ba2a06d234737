#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# record --wait records the next process of a name from its exec on, with its children, and no other.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
cp "$workloads/leak-anon" awaited
cp "$workloads/leak-fork" awaited-fork
cp "$(command -v sleep)" running
./running 600 &
running=$!
processes+=("$running")
mkfifo ready

# begin_waiting NAME: until the recorder waits.
begin_waiting() {
	rm -f "$recording"
	"$MMTRACE" record -o "$recording" --comm "$1" --wait --ready-fd 7 7>ready 2>record.log 3>&- &
	recorder=$!
	processes+=("$recorder")
	[ "$(timeout 60 cat ready)" = recording ] || fail "it does not wait: $(cat record.log)"
	grep -qxF "mmtrace record: waiting for a new $1; Ctrl-C stops" record.log || fail "the first line: $(cat record.log)"
}
for name in awaited awaited-fork; do
	begin_waiting "awa?ted${name#awaited}"
	./running 0
	./$name --exit >workload.out
	wait "$recorder" || fail "record --wait ended with status $?: $(cat record.log)"
	grep -qE '^mmtrace record: process [0-9]+ has started: recording$' record.log || fail "not found: $(cat record.log)"
	report_json
	expect_true_report
	expect_workload_answer no
	expect_json ".processes | all(.name == \"$name\")"
done

# A process that runs already is not meant, and nothing is left if none starts.
begin_waiting running
kill -TERM "$recorder"
wait "$recorder"
[ $? = 143 ] && [ ! -e "$recording" ] || fail "an interrupted wait: $(cat record.log)"
grep -q 'stopped before recording began: nothing was recorded' record.log || fail "an interrupted wait: $(cat record.log)"
