#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: redis-tools
# A program that we did not write: a database server is attached to while its own benchmark runs and children save its data.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for tool in redis-check-rdb redis-cli redis-benchmark; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
# The server is the same program under another name; without its own package nothing starts at boot.
ln -s "$(command -v redis-check-rdb)" redis-server

socket=$directory/redis.sock
# Its allocator returns memory to the kernel at once, so that there is something to see.
MALLOC_CONF=retain:false,dirty_decay_ms:0 ./redis-server --port 0 --unixsocket "$socket" --save "" --dir "$directory" --io-threads 2 >redis.log 2>&1 3>&- &
server=$!
processes+=("$server")
wait_until "redis to answer" redis-cli -s "$socket" ping

has_keys() {
	[ "$(redis-cli -s "$socket" dbsize)" -ge "$1" ]
}

redis-benchmark -s "$socket" -q -l -r 5000 -n 200000 -d 20000 -P 8 -t set >benchmark.log 2>&1 &
benchmark=$!
processes+=("$benchmark")
command_server() {
	redis-cli -s "$socket" "$@" >>cli.log
}

no_child_saves() {
	redis-cli -s "$socket" info persistence | grep -q rdb_bgsave_in_progress:0
}

wait_until "the benchmark to work" has_keys 1000
for round in 1 2; do
	start_recording -q -p "$server"
	# One child saves and exits; the next takes longer than the recording.
	command_server bgsave
	wait_until "the first child to have saved" no_child_saves
	command_server flushall
	wait_until "the benchmark to continue" has_keys 1000 # to be saved in 100 seconds
	command_server config set rdb-key-save-delay 100000
	command_server bgsave
	let_run "$server" 30
	stop_recording
	kill -0 "$benchmark" "$server" || fail "the benchmark or the server ended"
	report_json
	expect_true_report
	expect_json ".processes | any(.pid == $server and .checked and .checked_mappings > 20 and .mismatch_bytes == 0) and
		any(.parent_pid == $server and .ended) and
		any(.parent_pid == $server and .checked and (.ended | not) and .mismatch_bytes == 0) and
		all(.checked or .ended)"
	expect_json '.completeness.reconciled_bytes // 0 | . == 0'
	expect_json '.events.mmap + .events.munmap > 300'
	expect_check 0
	# The slow child is killed and its data removed.
	command_server config set rdb-key-save-delay 0
	command_server flushall
	wait_until "the slow child to end" no_child_saves
done
kill "$benchmark"
