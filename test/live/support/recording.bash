# SPDX-License-Identifier: LGPL-2.1-or-later
# For live tests: start workloads, record them, compare reports with what the workloads expect. When the test ends, however
# it ends, every process that it started is ended and every file removed.
#
# CTest sets MMTRACE (the tool), SOURCE and BUILD. This file sets $directory, the test's own; $recording; $pid of the
# workload.
set -u
export LC_ALL=C.UTF-8 NO_COLOR=1
unset DEBUGINFOD_URLS

workloads=$BUILD/test/workload
support=$SOURCE/test/live/support
directory=$(mktemp -d) || exit 1
began=@$(stat -c %.9Z "$directory")
recording=$directory/mmtrace.data
pid= recorder=
processes=()
preload=()

# is_ours PROCESS: the PID may have been reused by another program. Ours are our children, and have our directory in their
# environment.
is_ours() {
	grep -qx "PPid:[[:space:]]*$$" "/proc/$1/status" || grep -qaF "$directory" "/proc/$1/environ"
} 2>/dev/null

# lives PROCESS: an ended process may still be a zombie. Whoever reads the stat of a stuck process is stuck, too. No read of
# bash: if the process ends meanwhile, bash cannot seek back to the next line, and gives the rest to a later read.
lives() {
	grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status"
} 2>/dev/null

# own_traces [TEST...]: NUMBER PATH of files that killed runtimes leave in shared directories, and of perf maps: those of
# this user that pass find's tests.
own_traces() {
	find /tmp "/tmp/hsperfdata_$(id -un)" -maxdepth 1 ! -type d -user "$(id -u)" "$@" 2>/dev/null |
		sed -nE -e 's:^/tmp/(perf-|perfinfo-)([0-9]+)\.map$:\2 &:p' -e 's:^/tmp/jit-([0-9]+)\.dump$:\1 &:p' \
			-e 's:^/tmp/\.(java_pid|attach_pid)([0-9]+)$:\2 &:p' -e 's:^/tmp/hsperfdata_[^/]*/([0-9]+)$:\1 &:p' \
			-e 's:^/tmp/(clr-debug-pipe|dotnet-diagnostic)-([0-9]+)-.*$:\2 &:p'
}

# remove_traces PROCESS...: files left by those of these processes that ended since the test began. A PID may belong to
# another process by now, and earlier files may belong to a process that ended long ago, or to one that lives in another PID
# namespace. The ctime of the file decides, because a test may set its other times.
remove_traces() {
	local -A ended=()
	local process path
	for process; do
		lives "$process" || ended[$process]=1
	done
	while read -r process path; do
		[ ! -v "ended[$process]" ] || rm -f "$path"
	done < <(own_traces -newerct "$began")
}

# remove_recorded_traces: files of the ended processes in report.json, which may have left perf maps for it.
remove_recorded_traces() {
	local ended
	mapfile -t ended < <(jq '.processes[] | select(.ended) | .pid' "$directory/report.json")
	remove_traces "${ended[@]}"
}

# wait_for_end PROCESS...: killed processes take a while, at most ten seconds.
wait_for_end() {
	local process i
	for process; do
		for ((i = 0; i < 500; i++)); do
			lives "$process" || break
			sleep 0.02
		done
	done
}

huge_page_pool=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
borrowed_huge_pages=0
change_huge_pages() {
	echo $(($(cat $huge_page_pool) + $1)) >$huge_page_pool
}

# borrow_huge_pages COUNT: adds pages of 2 MiB to the pool of hugetlbfs until the test ends, if the system has them.
borrow_huge_pages() {
	local before
	before=$(cat $huge_page_pool) && change_huge_pages "$1" && borrowed_huge_pages=$(($(cat $huge_page_pool) - before)) &&
		[ "$borrowed_huge_pages" = "$1" ]
} 2>/dev/null

# A control group of this test, if one can be made: see use_own_group.
own_group=

# use_own_group: moves this test, with the processes that it will start, into a control group of its own, and sets
# $cpu_scopes to the scopes with events on CPUs: of groups too, unless no such group can be made here.
use_own_group() {
	local unified path
	cpu_scopes=(cpus)
	unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	path=$(sed -n 's|^0::/*||p' /proc/self/cgroup)
	[ -n "$unified" ] && ! grep -q ':perf_event:' /proc/self/cgroup || return 0
	own_group=$unified${path:+/$path}/mmtrace-test-$$
	if mkdir "$own_group" && echo $$ >"$own_group/cgroup.procs"; then
		cpu_scopes+=(cgroup)
	else
		echo "no control group can be made here: --scope cgroup is not tested" >&2
		own_group=
	fi 2>/dev/null
}

# leave_own_group: when everything in it has ended. Killed processes stay in it for a moment.
leave_own_group() {
	local i
	echo $$ >"${own_group%/*}/cgroup.procs"
	for ((i = 0; i < 500; i++)); do
		rmdir "$own_group" 2>/dev/null && break
		sleep 0.02
	done
}

# The command of a recorder ends with it.
end_everything() {
	local process children
	for process in "${processes[@]}"; do
		children=()
		if is_ours "$process"; then
			read -r -a children <"/proc/$process/task/$process/children"
			kill -9 "$process" "${children[@]}"
			wait "$process"
			wait_for_end "$process" "${children[@]}"
		fi 2>/dev/null
		remove_traces "$process" "${children[@]}"
	done
	[ -z "$own_group" ] || leave_own_group
	[ "$borrowed_huge_pages" -gt 0 ] && change_huge_pages -"$borrowed_huge_pages"
	rm -rf "$directory"
}
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

# If the kernel does not permit recording system calls here, there is nothing to test.
need_perf() {
	local reason
	reason=$("$workloads/perf-allowed") || skip "$reason"
}

# In a plain chroot, where / is not a mount point, the kernel refuses to make its mounts private.
need_own_mounts() {
	unshare --mount true 2>/dev/null || skip "this test needs private mounts, and a mount namespace cannot be created here"
}

# The statically linked tool, $tool, for containers and roots that have nothing else.
need_static_tool() {
	tool=$BUILD/test/mmtrace-static
	[ -e "$tool" ] || skip "the archives of the libraries cannot be linked statically here"
	[ "$(id -u)" = 0 ] || skip "this test needs root: it makes containers"
	need_perf
	need_own_mounts
}

# wait_until WHAT COMMAND...: until the command succeeds, for at most two minutes, or WAIT_FACTOR times as long on an
# emulated machine. A command that can no longer succeed sets `given_up` to the reason.
wait_until() {
	local what=$1 given_up= end=$((SECONDS + 120 * ${WAIT_FACTOR:-1}))
	shift
	while [ $SECONDS -lt $end ]; do
		"$@" >/dev/null 2>&1 && return
		[ -z "$given_up" ] || fail "$given_up"
		sleep 0.05
	done
	fail "waited too long: $what"
}

# go_on_until WORD: the workload continues until it prints WORD.
go_on_until() {
	echo >&3
	wait_until "the workload to print $1" workload_printed "$1"
}

# cpu_ticks PROCESS: CPU time of all its threads, in hundredths of a second. Unlike elapsed time it shows how much work was
# done, whatever the load of the machine.
cpu_ticks() {
	sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

has_run() {
	[ -e "/proc/$1/stat" ] || given_up="process $1 ended"
	[ "$(cpu_ticks "$1")" -ge "$2" ]
}

# let_run PROCESS TICKS: until it has used this much more CPU time.
let_run() {
	wait_until "process $1 to work" has_run "$1" $(($(cpu_ticks "$1") + $2))
}

workload_printed() {
	grep -q "^$1" "$directory/workload.out"
}

# run_without_leftovers COMMAND...: first removes files left by an earlier process with this PID, however old: the PID is
# ours now. The removal is waited for here, because the command would otherwise have an unknown child.
run_without_leftovers() {
	local traces process path
	traces=$(own_traces)
	while read -r process path; do
		[ "$process" != "$BASHPID" ] || rm -f "$path"
	done <<<"$traces"
	exec "$@"
}

# start_command COMMAND...: in the background, with its stdin on descriptor 3, until it prints "ready".
start_command() {
	rm -f "$directory/workload.in"
	mkfifo "$directory/workload.in"
	: >"$directory/workload.out"
	run_without_leftovers "$@" <"$directory/workload.in" >"$directory/workload.out" 2>&1 3>&- &
	pid=$!
	processes+=("$pid")
	exec 3>"$directory/workload.in"
	wait_until "$1 to be ready" workload_printed ready
}

start_workload() {
	local name=$1
	shift
	start_command "$workloads/$name" "$@"
}

let_work() {
	go_on_until 'done'
}

let_end() {
	echo >&3
	wait "$pid" || fail "the workload ended with status $?"
}

recorder_attached() {
	kill -0 "$recorder" 2>/dev/null || given_up="record ended early: $(cat "$directory/record.log")"
	[ -s "$recording" ]
}

# In its loop, with nothing left to read: in epoll_wait() of x86-64, or epoll_pwait() of arm64.
recorder_waits() {
	local number
	read -r number _ <"/proc/$recorder/syscall" && [[ $number = 232 || $number = 22 ]]
}

# How often it has slept: at least once in each round of its loop, and for some answers of its helper.
recorder_sleeps() {
	awk '/^voluntary_ctxt_switches:/ { print $2 }' "/proc/$recorder/status"
}

# let_recorder_catch_up: until it has read everything that has happened so far. It sleeps if there is no more, for 50 ms: if
# it sleeps again after that time, it has run its whole loop since. If its target never rests, it may not sleep at all.
let_recorder_catch_up() {
	local i
	for i in 1 2 3 4; do
		wait_until "the recorder to wait for work" recorder_waits
		sleep 0.06
	done
	wait_until "the recorder to wait for work again" recorder_waits
}

# The recording takes its name when every event is enabled, just before the first snapshots. These are finished when the
# recorder waits for work; if the target never rests, this may not be observed, and need not be.
wait_for_first_snapshots() {
	local i
	for ((i = 0; i < 100; i++)); do
		recorder_waits 2>/dev/null && break
		sleep 0.02
	done
	sleep 0.3 # so long is every recording at least
}

# begin_recording OPTION...: until every event is enabled. What follows may happen while the first snapshots are taken.
begin_recording() {
	rm -f "$recording"
	env --default-signal=INT "$MMTRACE" record -o "$recording" "$@" <&0 2>"$directory/record.log" 3>&- &
	recorder=$!
	processes+=("$recorder")
	wait_until "mmtrace record to attach" recorder_attached
}

# preload LIBRARY: of the workloads. "${preload[@]}" before a command loads it there, and into programs that it executes;
# the sanitizers' own library must be the first.
preload() {
	preload=(env "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "LD_PRELOAD=$workloads/lib$1.so")
}

# begin_command [OPTION...] -- COMMAND...: recorded from its start, with its stdin on our descriptor; with the preloaded
# libraries.
begin_command() {
	rm -f "$recording" "$directory/workload.in"
	mkfifo "$directory/workload.in"
	: >"$directory/workload.out"
	"${preload[@]}" env --default-signal=INT "$MMTRACE" record -o "$recording" "$@" \
		<"$directory/workload.in" >"$directory/workload.out" 2>"$directory/record.log" 3>&- &
	recorder=$!
	processes+=("$recorder")
	exec 3>"$directory/workload.in"
}

# end_command: closes its stdin, and waits until it ends.
end_command() {
	exec 3>&-
	wait "$recorder" || fail "record of a command ended with status $?: $(cat "$directory/record.log")"
	report_json
}

# child_of PROCESS: the PID of its first child.
child_of() {
	local children
	read -r -a children <"/proc/$1/task/$1/children" # the line has no end
	[ ${#children[@]} -gt 0 ] && echo "${children[0]}"
}

# record_command_for TICKS OPTION... -- COMMAND...: from its start, until it has used this much CPU time.
record_command_for() {
	local ticks=$1 command
	shift
	begin_recording "$@"
	wait_until "the command to start" child_of "$recorder"
	command=$(child_of "$recorder")
	processes+=("$command")
	wait_until "the command to work" has_run "$command" "$ticks"
	stop_recording
}

# start_recording OPTION...: until the first snapshots are taken, too.
start_recording() {
	begin_recording "$@"
	wait_for_first_snapshots
}

# stop_recording [SIGNAL]: the recorder's exit status must be 0.
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

# The report is complete and agrees with the kernel.
expect_true_report() {
	expect_json '.completeness.lost_events == 0 and (.completeness.incomplete or .completeness.damaged | not)'
	expect_json '[.processes[].mismatch_bytes // 0 | select(. != 0)] == []'
}

# expect_check STATUS: the exit status of report --check.
expect_check() {
	local status
	"$MMTRACE" report --check --no-pager -i "$recording" >"$directory/check.txt" 2>&1
	status=$?
	[ $status = "$1" ] || {
		head -20 "$directory/check.txt" >&2
		fail "report --check ended with status $status instead of $1"
	}
}

# expect_workload_answer yes|no: the report has the figures that the workload printed; yes if it was attached to.
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

# record_work OPTION...: record the waiting workload while it works, and let it end; report_json shows the result.
record_work() {
	start_recording "$@"
	let_work
	stop_recording
	report_json
	let_end
}

# record_running PROCESS TICKS OPTION...: record a busy process for this much CPU time; it continues.
record_running() {
	local process=$1 ticks=$2
	shift 2
	let_run "$process" "$ticks"
	begin_recording "$@"
	let_run "$process" "$ticks"
	stop_recording
	report_json
}

# expect_unrecorded_children PROCESS COUNT: the recorder and the report say that COUNT children of the only recorded process
# are missing, and the report, in report.txt, does not say that there is no leak.
expect_unrecorded_children() {
	local process=$1 count=$2
	grep -q "warning: pid $process (.*) has $count child.* not recorded: add --tree\$" "$directory/record.log" ||
		fail "no warning about $count children of process $process: $(cat "$directory/record.log")"
	report_json
	expect_json ".processes | length == 1 and .[0].pid == $process"
	expect_json '.completeness.warning_codes | index("unrecorded-children")'
	"$MMTRACE" report --no-pager -i "$recording" >"$directory/report.txt" || fail "report ended with status $?"
	grep -q "process $process had $count child" "$directory/report.txt" ||
		fail "the report does not say that $count children are missing: $(cat "$directory/report.txt")"
	! grep -q 'no leak' "$directory/report.txt" ||
		fail "the report says that there is no leak, without the children: $(cat "$directory/report.txt")"
}

# expect_all_children PROCESS...: there is no warning, and the report contains exactly these processes.
expect_all_children() {
	local processes_json
	processes_json=[$(IFS=, && echo "$*")]
	! grep -q warning "$directory/record.log" || fail "unexpected warning: $(cat "$directory/record.log")"
	report_json
	expect_true_report
	expect_json "[.processes[].pid] | sort == ($processes_json | sort)"
	expect_json '.completeness.warning_codes | index("unrecorded-children") | not'
}

# start_parent_of_zombie: $zombie is a child of $parent that has ended, and the parent does not wait for it.
start_parent_of_zombie() {
	# A shell would reap its child; sleep does not.
	mkfifo may_end
	(read -r <may_end & exec sleep 600) &
	parent=$!
	processes+=("$parent")
	wait_until "the parent to be sleep" runs_sleep
	echo >may_end
	wait_until "a process to end" has_zombie
}

runs_sleep() {
	[ "$(cat "/proc/$parent/comm")" = sleep ]
}

has_zombie() {
	zombie=$(child_of "$parent") && grep -q '^State:.Z' "/proc/$zombie/status"
}

# Options of `record` for the two functions below.
case_options=()

# attach_case NAME [OPERAND...]: attach to the waiting workload, let it work, stop, compare.
attach_case() {
	start_workload "$@"
	record_work "${case_options[@]}" -p "$pid"
	expect_true_report
	# All living processes, including the workload.
	expect_json ".processes | all(.checked or .ended) and any(.pid == $pid and .checked and (.ended | not))"
	expect_workload_answer yes
}

# command_case NAME [OPERAND...]: record the workload from its start to its end.
command_case() {
	local name=$1 status
	shift
	"$MMTRACE" record "${case_options[@]}" -o "$recording" -- "$workloads/$name" --exit "$@" \
		>"$directory/workload.out" 2>"$directory/record.log"
	status=$?
	[ $status = 0 ] || fail "record -- $name ended with status $status: $(cat "$directory/record.log")"
	report_json
	remove_recorded_traces
	expect_true_report
	expect_workload_answer no
}
