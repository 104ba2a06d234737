#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A target ends while mmtrace attaches: there is a recording or one clear line, never a crash or a hang.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
recorded=0 refused=0
for ((i = 0; i < 40; i++)); do
	sleep "0.0$((i % 10))" &
	target=$!
	rm -f "$recording"
	timeout 100 "$MMTRACE" record -q -o "$recording" -p $target >"$directory/out" 2>"$directory/err"
	status=$?
	wait $target
	if [ $status = 0 ]; then
		recorded=$((recorded + 1))
		report_json
		expect_json '[.processes[].mismatch_bytes // 0 | select(. != 0)] == []'
	else
		refused=$((refused + 1))
		[ $status = 2 ] || fail "status $status: $(cat "$directory/err")"
		[ "$(wc -l <"$directory/err")" = 1 ] || fail "not one line: $(cat "$directory/err")"
		grep -q "$target" "$directory/err" || fail "the process is not named: $(cat "$directory/err")"
		[ ! -e "$recording" ] || fail "a recording was left"
	fi
done
echo "$recorded recorded, $refused refused"

# A command can leave processes behind, which run on unrecorded.
# shellcheck disable=SC2016
timeout 100 "$MMTRACE" record -o "$recording" -- sh -c 'sleep 1000 & echo $! >child
	until read -r name <"/proc/$!/comm" && [ "$name" = sleep ]; do :; done' 2>err || fail "record: $(cat err)"
processes+=("$(cat child)")
grep -q "^  1 child process still running, but not recorded any more: record -p $(cat child), " err ||
	fail "the process left behind is not named: $(cat err)"
"$MMTRACE" report -i "$recording" >report || fail "report: $(cat report)"
grep -q "note: 1 process of the command still ran when it ended, and recording with it: record -p $(cat child)" report ||
	fail "the report does not name the process left behind: $(cat report)"
grep -q "; 1 final map matches" report || fail "one map: $(cat report)"
# What the command held just before it ended is shown, even if an idle process that it has started lives on.
# shellcheck disable=SC2016
timeout 100 "$MMTRACE" record -o "$recording" -- sh -c 'sleep 1000 & echo $! >child; exec "$0" --exit' "$workloads/demo" 2>err >demo.out ||
	fail "record: $(cat err)"
processes+=("$(cat child)")
"$MMTRACE" report -i "$recording" --no-pager >report || fail "report: $(cat report)"
report_json
# The last reading may be early on a slow machine.
if jq -e '(.end_ns - .growth.peak_ns) * 16 < .end_ns - .start_ns' "$directory/report.json" >shifted; then
	head -1 report | grep -Eq '^As of .* before the end, before memory was freed; --to -0s shows the end$' ||
		fail "the end is shown: $(cat report)"
	grep -Eq '^  1 .* mmap_allocation \(libdemo-library.so\)$' report || fail "who mapped it is not named: $(cat report)"
else
	grep -q ' before it fell: --to ' report || fail "no word of the moment before: $(cat report)"
fi
# So can a process.
# shellcheck disable=SC2016
start_command sh -c 'echo ready; read -r line; sleep 1000 & echo $! >child'
begin_recording -p "$pid"
wait_for_first_snapshots
let_end
wait "$recorder" || fail "record: $(cat "$directory/record.log")"
processes+=("$(cat child)")
grep -q "^  1 child process still running, but not recorded any more: record -p $(cat child), " "$directory/record.log" ||
	fail "the child left behind is not named: $(cat "$directory/record.log")"
"$MMTRACE" report -i "$recording" >report || fail "report: $(cat report)"
grep -q "note: 1 process of the target still ran when it ended, and recording with it: record -p $(cat child)" report ||
	fail "the report does not name the child left behind: $(cat report)"
# Other processes that are recorded are not of the command.
timeout 100 "$MMTRACE" record -a -o "$recording" -- sh -c '(sh -c "sleep 1000 & echo \$! >child"; exit 0); exit 0' 2>err ||
	fail "record: $(cat err)"
processes+=("$(cat child)")
grep -q "^  1 child process still running, but not recorded any more: record -p $(cat child), " err ||
	fail "record -a: not the process left behind: $(cat err)"
timeout 100 "$MMTRACE" record -o "$recording" -- sh -c 'sleep 0 & wait' 2>err || fail "record: $(cat err)"
grep -q "still running" err && fail "processes that have ended run on: $(cat err)"
"$MMTRACE" report -i "$recording" >report || fail "report: $(cat report)"
grep -q "still ran" report && fail "processes that have ended still ran: $(cat report)"
exit 0
