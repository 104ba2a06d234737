#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: postgresql
# A database server of many processes is attached to while its own benchmark runs: its sessions are children that come and
# go and share memory, which is counted once.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
programs=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
[ -x "$programs/postgres" ] && [ -x "$programs/initdb" ] && [ -x "$programs/pgbench" ] ||
	skip "postgresql is not installed"
[ "$(id -u)" = 0 ] && id postgres >/dev/null 2>&1 || skip "the server needs its own user, which only root can become"

as_server="setpriv --reuid postgres --regid postgres --clear-groups --"
server= benchmark=
# At once, with all its children: then its files can be removed.
end_server() {
	[ -z "$benchmark" ] || kill "$benchmark" 2>/dev/null
	[ -z "$server" ] || { kill -INT "$server" && wait "$server"; } 2>/dev/null
	end_everything
}
trap end_server EXIT
chmod 711 "$directory"
mkdir -m 700 "$directory/server" && chown postgres "$directory/server"
$as_server "$programs/initdb" -D "$directory/server/data" -A trust --no-sync >initdb.log 2>&1 || fail "initdb: $(tail -3 initdb.log)"
$as_server "$programs/postgres" -D "$directory/server/data" -k "$directory/server" -c listen_addresses= -c shared_buffers=32MB \
	-c fsync=off -c max_parallel_workers_per_gather=2 -c min_parallel_table_scan_size=0 >server.log 2>&1 3>&- &
server=$!
wait_until "the server to answer" $as_server "$programs/pg_isready" -q -h "$directory/server"
$as_server "$programs/pgbench" -h "$directory/server" -i -q postgres >init.log 2>&1 || fail "pgbench -i: $(tail -3 init.log)"
# -C: every transaction in its own session.
$as_server "$programs/pgbench" -h "$directory/server" -n -C -c 3 -j 1 -T 600 postgres >benchmark.log 2>&1 3>&- &
benchmark=$!
# Transactions of sessions that have ended.
transactions() {
	$as_server "$programs/psql" -h "$directory/server" -A -t -c \
		"select xact_commit from pg_stat_database where datname = 'postgres'" postgres
}
has_transactions() {
	[ "$(transactions)" -ge "$1" ]
}
wait_until "the benchmark to work" has_transactions $(($(transactions) + 20))

start_recording -q -m 32M -p "$server"
wait_until "sessions to start and end" has_transactions $(($(transactions) + 100))
stop_recording
kill -0 "$benchmark" "$server" || fail "the benchmark or the server ended: $(tail -3 benchmark.log server.log)"
report_json
expect_true_report
expect_json ".processes | any(.pid == $server and .checked and .checked_mappings > 20 and (.ended | not)) and
	(map(select(.parent_pid == $server and .ended)) | length > 3)"
expect_json '.completeness.reconciled_bytes == 0'
expect_json '.events | .mmap + .munmap + .brk > 100'
# The memory of a session ended with it: the peak is less than the sum over all sessions.
expect_json '.ended_bytes > 0 and .allocated_bytes - .freed_bytes - .unfreed_bytes == 0'
expect_check 0
