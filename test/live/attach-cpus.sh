#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# With per-CPU events, which see every process, or every process in the target's control group, each call of the target, its
# new threads and its children is recorded once; other processes leave no record and no byte of their stacks.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/relay.bash" || exit 2
source "$SOURCE/test/live/support/forks.bash" || exit 2

need_perf
use_own_group

# Other processes: one makes the same calls as the target, one has a secret on its stack.
"$workloads/attach-relay" "$directory/strange-numbers" >strange.out &
other=$!
(while "$workloads/secret" --exit >/dev/null; do
	echo >>"$directory/secrets"
	sleep 0.05
done) &
processes+=("$other" $!)
wait_until "the other process to run" grep -q ready strange.out

secrets() {
	wc -l <"$directory/secrets"
}
has_had_secrets() {
	[ "$(secrets)" -ge "$1" ]
}

expect_no_other_process() {
	grep -q "^[0-9.]* $other/" "$directory/dump.out" && fail "the other process is in the recording"
	head -1 "$directory/dump.out" | grep -q "events $place\$" || fail "the recording does not say where events were"
	[ "$("$BUILD/test/find-bytes" "$recording" 'S3cr3t#!')" = 0 ] || fail "a stack of the other process is in the recording"
	expect_json '.processes | all(.name != "secret")'
}

for scope in "${cpu_scopes[@]}"; do
	place="on CPUs" where="on every CPU"
	[ $scope = cpus ] || place="in control groups" where="in the control group $own_group"
	relay_rounds 2 --raw --scope $scope
	expect_no_other_process
	fork_rounds 1 --raw --scope $scope
	expect_no_other_process

	# A command, with the stacks of its calls.
	"$MMTRACE" record -v --raw --scope $scope -o "$recording" -- "$workloads/leak-fork" --exit >"$directory/workload.out" \
		2>"$directory/record.log" || fail "record ended with status $?: $(cat "$directory/record.log")"
	grep -q "recorded $where; .* of other processes ignored" "$directory/record.log" ||
		fail "the summary does not mention other processes: $(cat "$directory/record.log")"
	report_json
	expect_true_report
	expect_workload_answer no
	"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
	expect_no_other_process
done

# With -a they are all recorded.
start_recording -a --raw
wait_until "a process with a secret to come and go" has_had_secrets $(($(secrets) + 2))
stop_recording
"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
head -1 "$directory/dump.out" | grep -q 'events on CPUs of all processes' || fail "-a: the recording does not say so"
grep -q "^[0-9.]* $other/" "$directory/dump.out" || fail "-a: the other process is not in the recording"
[ "$("$BUILD/test/find-bytes" "$recording" 'S3cr3t#!')" != 0 ] || fail "-a: the secret is not in the recording"
