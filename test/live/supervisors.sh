#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: gunicorn:gunicorn nginx:nginx-light tini:tini
# Supervisors whose children do the work: without --tree, recorder and report warn that the children are missing, and no
# report says that there is no leak; with --tree they are recorded, and a growing child is found. tree.sh does the same with
# bash.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
export PATH=$PATH:/usr/sbin
started=0

# has_children NAME COUNT: the supervisor has replaced the shell that started it, and its children run too.
has_children() {
	[ "$(cat "/proc/$supervisor/comm")" = "$1" ] && [ "$(cat "/proc/$supervisor"/task/*/children | wc -w)" = "$2" ]
}

# supervise CHILDREN COMMAND...: returns false if the command is missing.
supervise() {
	local children=$1
	shift
	command -v "$1" >/dev/null || return 1
	started=$((started + 1))
	rm -f workload.in && mkfifo workload.in
	run_without_leftovers "$@" <workload.in >workload.out 2>&1 3>&- &
	pid=$! supervisor=$pid
	processes+=("$pid")
	exec 3>workload.in
	wait_until "$1 to start its children" has_children "$1" "$children"
	read -ra workers < <(cat /proc/"$supervisor"/task/*/children | xargs)
	processes+=("${workers[@]}")

	start_recording -p "$supervisor"
	stop_recording
	expect_unrecorded_children "$supervisor" "$children"
	head -4 report.txt | grep -q "note: process $supervisor had $children child" ||
		fail "the first lines do not say that children are missing: $(cat report.txt)"

	start_recording --tree -p "$supervisor"
}

# expect_children: the recording with --tree has all of them.
expect_children() {
	stop_recording
	expect_all_children "$supervisor" "${workers[@]}"
	"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
}

end_supervisor() {
	kill -TERM "$supervisor"
	wait "$supervisor"
}

cat >app.py <<'END'
import mmap
kept = []
def app(environ, start_response):
    block = mmap.mmap(-1, 8 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.write(bytes(8 << 20))
    kept.append(block)
    start_response("200 OK", [])
    return [b"kept"]
END
request='import http.client, socket, sys
socket_file = socket.socket(socket.AF_UNIX)
socket_file.connect(sys.argv[1])
connection = http.client.HTTPConnection("localhost")
connection.sock = socket_file
connection.request("GET", "/")
print(connection.getresponse().read().decode())'

if supervise 2 gunicorn --bind "unix:$directory/gunicorn.sock" --workers 2 --chdir "$directory" app:app; then
	for _ in 1 2 3; do
		[ "$(python3 -c "$request" gunicorn.sock)" = kept ] || fail "no answer of gunicorn"
	done
	expect_children
	expect_json "[.processes[] | select(.pid != $supervisor).unfreed_bytes] | add >= $((3 * 8 << 20))"
	expect_json ".processes[] | select(.pid == $supervisor) | .unfreed_bytes < 8388608"
	end_supervisor
fi

cat >nginx.conf <<END
daemon off; worker_processes 2; pid $directory/nginx.pid; error_log stderr;
events {} http { access_log off; server { listen unix:$directory/nginx.sock; location / { return 200 ok; } } }
END
if supervise 2 nginx -p "$directory" -c "$directory/nginx.conf"; then
	[ "$(python3 -c "$request" nginx.sock)" = ok ] || fail "no answer of nginx"
	expect_children
	grep -q 'no memory call was recorded' report.txt && grep -q 'no leak' report.txt && fail "no leak, of nothing: $(cat report.txt)"
	end_supervisor
fi

if supervise 1 tini -s -- "$workloads/leak-anon"; then
	let_work
	let_recorder_catch_up
	expect_children
	expect_json ".processes[] | select(.pid == ${workers[0]}) | .unfreed_bytes > 0"
	expect_workload_answer yes
	echo >&3
	wait "$supervisor" || fail "tini ended with status $?"
fi
[ $started -gt 0 ] || skip "neither gunicorn, nginx nor tini is installed"
exit 0
