# SPDX-License-Identifier: LGPL-2.1-or-later
# For live tests: start workloads, record them, compare reports with what the workloads expect. Everything started is
# ended and every file removed when the test ends, however it ends.
#
# Given by CTest: MMTRACE (the tool), SOURCE, BUILD. Set here: $directory, the test's own; $recording; $pid of the workload.
set -u
export LC_ALL=C.UTF-8 NO_COLOR=1
unset DEBUGINFOD_URLS

workloads=$BUILD/test/workload
support=$SOURCE/test/live/support
directory=$(mktemp -d) || exit 1
recording=$directory/mmtrace.data
pid= recorder=
processes=()

end_everything() {
	local process
	for process in "${processes[@]}"; do
		kill -9 "$process" 2>/dev/null && wait "$process" 2>/dev/null
		rm -f "/tmp/perf-$process.map"
	done
	rm -rf "$directory"
}
export XDG_CACHE_HOME=$directory/names-kept # names of functions kept from one report to the next
trap end_everything EXIT
trap 'exit 1' INT TERM
cd "$directory" || exit 1

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

skip() {
	echo "SKIPPED: $*" >&2
	exit 77
}

# Where the kernel does not let anybody here record system calls there is nothing to test.
need_perf() {
	local reason
	reason=$("$workloads/perf-allowed") || skip "$reason"
}

# wait_until WHAT COMMAND...: until the command succeeds, half a minute at most.
wait_until() {
	local what=$1 i
	shift
	for ((i = 0; i < 600; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	fail "waited too long: $what"
}

workload_said() {
	grep -q "^$1" "$directory/workload.out"
}

# start_command COMMAND...: in the background, its stdin held by us, until it says "ready".
start_command() {
	rm -f "$directory/workload.in"
	mkfifo "$directory/workload.in"
	: >"$directory/workload.out"
	"$@" <"$directory/workload.in" >"$directory/workload.out" 2>&1 3>&- &
	pid=$!
	processes+=("$pid")
	exec 3>"$directory/workload.in"
	wait_until "$1 to be ready" workload_said ready
}

start_workload() {
	local name=$1
	shift
	start_command "$workloads/$name" "$@"
}

let_work() {
	echo >&3
	wait_until "the workload to be done" workload_said done
}

let_end() {
	echo >&3
	wait "$pid" || fail "the workload ended with status $?"
}

recorder_attached() {
	kill -0 "$recorder" 2>/dev/null || fail "record ended early: $(cat "$directory/record.log")"
	[ -s "$recording" ]
}

# start_recording OPTION...: until every event is on. The recording takes its name just before the first snapshot, which
# is short.
start_recording() {
	rm -f "$recording"
	env --default-signal=INT "$MMTRACE" record -o "$recording" "$@" 2>"$directory/record.log" 3>&- &
	recorder=$!
	processes+=("$recorder")
	wait_until "mmtrace record to attach" recorder_attached
	sleep 0.3
}

# stop_recording [SIGNAL]: the recorder's status must be 0.
stop_recording() {
	kill "-${1:-INT}" "$recorder"
	wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
}

# report_json OPTION...: into $directory/report.json.
report_json() {
	"$MMTRACE" report --json --limit 0 -i "$recording" "$@" >"$directory/report.json" 2>"$directory/report.log" ||
		fail "report --json ended with status $?: $(cat "$directory/report.log")"
}

# expect_json FILTER [FILE]: the jq filter must be true of the report.
expect_json() {
	jq -e "$1" "${2:-$directory/report.json}" >/dev/null || {
		jq 'del(.groups)' "${2:-$directory/report.json}" >&2
		fail "not true of the report: $1"
	}
}

# The report is whole and agrees with the kernel.
expect_true_report() {
	expect_json '.completeness.lost_events == 0 and (.completeness.incomplete or .completeness.damaged | not)'
	expect_json '[.processes[].wrong_bytes // 0 | select(. != 0)] == []'
}

# expect_check STATUS: what report --check ends with.
expect_check() {
	local status
	"$MMTRACE" report --check --no-pager -i "$recording" >"$directory/check.txt" 2>&1
	status=$?
	[ $status = "$1" ] || {
		head -20 "$directory/check.txt" >&2
		fail "report --check ended with status $status instead of $1"
	}
}

# expect_workload_answer yes|no: the report has what the workload said; yes when it was attached to.
expect_workload_answer() {
	local differences
	differences=$(jq -r --rawfile expectations "$directory/workload.out" --arg attached "$1" \
		-f "$support/expectations.jq" "$directory/report.json") || fail "jq could not compare the report"
	[ -z "$differences" ] || {
		"$MMTRACE" report --no-pager --limit 12 -i "$recording" >&2
		echo "$differences" >&2
		fail "the report differs from what the workload expects"
	}
	grep -q '^expect ' "$directory/workload.out" || fail "the workload expects nothing"
}

# attach_case NAME [OPERAND...]: attach to the waiting workload, let it work, stop, compare.
attach_case() {
	start_workload "$@"
	start_recording -p "$pid"
	let_work
	stop_recording
	report_json
	let_end
	expect_true_report
	# Whoever lives, the workload itself in any case.
	expect_json ".processes | all(.checked or .ended) and any(.pid == $pid and .checked and (.ended | not))"
	expect_workload_answer yes
}

# command_case NAME [OPERAND...]: record the workload from its start to its end.
command_case() {
	local name=$1 status
	shift
	"$MMTRACE" record -o "$recording" -- "$workloads/$name" --exit "$@" \
		>"$directory/workload.out" 2>"$directory/record.log"
	status=$?
	[ $status = 0 ] || fail "record -- $name ended with status $status: $(cat "$directory/record.log")"
	report_json
	expect_true_report
	expect_workload_answer no
}
