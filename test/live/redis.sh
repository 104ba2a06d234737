#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A program that nobody here wrote: a database server under its own benchmark, with children that save while it works,
# attached to in full flight.
source "$SOURCE/test/live/support/recording.bash"

need_perf
for tool in redis-check-rdb redis-cli redis-benchmark; do
	command -v $tool >/dev/null || skip "$tool is not installed; test/setup test installs it"
done
# The server is the same program by another name; without its own package nothing is started at boot.
ln -s "$(command -v redis-check-rdb)" redis-server

socket=$directory/redis.sock
# Its allocator gives memory back to the kernel at once, so that there is something to see.
MALLOC_CONF=retain:false,dirty_decay_ms:0 ./redis-server --port 0 --unixsocket "$socket" --save "" --dir "$directory" --io-threads 2 >redis.log 2>&1 3>&- &
server=$!
processes+=("$server")
wait_until "redis to answer" redis-cli -s "$socket" ping

redis-benchmark -s "$socket" -q -l -r 2000 -n 200000 -d 20000 -P 8 -t set >benchmark.log 2>&1 &
benchmark=$!
processes+=("$benchmark")
# One child that saves and ends, then another one that takes longer than the recording.
save_twice() {
	sleep 0.3
	redis-cli -s "$socket" bgsave
	sleep 1.2
	redis-cli -s "$socket" config set rdb-key-save-delay 100000
	redis-cli -s "$socket" bgsave
}
sleep 1

for round in 1 2; do
	save_twice >>cli.log 2>&1 &
	"$MMTRACE" record -q -p "$server" --duration 3s -o "$recording" || fail "record ended with status $?"
	kill -0 "$benchmark" "$server" || fail "the benchmark or the server ended"
	report_json
	expect_true_report
	expect_json ".processes | any(.pid == $server and .checked and .checked_mappings > 20 and .wrong_bytes == 0) and
		any(.parent_pid == $server and .ended) and
		any(.parent_pid == $server and .checked and (.ended | not) and .wrong_bytes == 0) and
		all(.checked or .ended)"
	expect_json '.completeness.repaired_bytes // 0 | . == 0'
	expect_json '.events.mmap + .events.munmap > 1000'
	# The slow child goes with its data.
	redis-cli -s "$socket" config set rdb-key-save-delay 0 >>cli.log
	redis-cli -s "$socket" flushall >>cli.log
done
kill "$benchmark"
