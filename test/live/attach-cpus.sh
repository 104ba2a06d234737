#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# With per-CPU events, which see every process, each call of the target, its new threads and its children is recorded once;
# other processes leave no record and no byte of their stacks.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/relay.bash" || exit 2
source "$SOURCE/test/live/support/forks.bash" || exit 2

need_perf

# Other processes: one makes the same calls as the target, one has a secret on its stack.
"$workloads/attach-relay" "$directory/strange-numbers" >strange.out &
stranger=$!
(while "$workloads/secret" --exit >/dev/null; do
	echo >>"$directory/secrets"
	sleep 0.05
done) &
processes+=("$stranger" $!)
wait_until "the stranger to run" grep -q ready strange.out

secrets() {
	wc -l <"$directory/secrets"
}
has_had_secrets() {
	[ "$(secrets)" -ge "$1" ]
}

expect_no_stranger() {
	grep -q "^[0-9.]* $stranger/" "$directory/dump.out" && fail "the stranger is in the recording"
	head -1 "$directory/dump.out" | grep -q 'events on CPUs$' || fail "the recording does not say where events were"
	[ "$("$BUILD/test/find-bytes" "$recording" 'S3cr3t#!')" = 0 ] || fail "a stranger's stack is in the recording"
	expect_json '.processes | all(.name != "secret")'
}

relay_rounds 3 --scope cpus
expect_no_stranger
fork_rounds 2 --scope cpus
expect_no_stranger

# A command, with the stacks of its calls.
"$MMTRACE" record --scope cpus -o "$recording" -- "$workloads/leak-fork" --exit >"$directory/workload.out" \
	2>"$directory/record.log" || fail "record ended with status $?: $(cat "$directory/record.log")"
grep -q 'of other processes ignored' "$directory/record.log" || fail "the summary does not tell of others"
report_json
expect_true_report
expect_workload_answer no
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
expect_no_stranger

# With -a they are all recorded.
start_recording -a
wait_until "one with a secret to come and go" has_had_secrets $(($(secrets) + 2))
stop_recording
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
head -1 "$directory/dump.out" | grep -q 'events on CPUs of all processes' || fail "-a: the recording does not say it"
grep -q "^[0-9.]* $stranger/" "$directory/dump.out" || fail "-a: the stranger is not in the recording"
[ "$("$BUILD/test/find-bytes" "$recording" 'S3cr3t#!')" != 0 ] || fail "-a: the secret is not in the recording"
