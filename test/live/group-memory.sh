#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A control group whose memory grows outside of any process says so: files on tmpfs. -G and -a show, as -p does, in which
# older memory a process grew.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
memory=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
name=mmtrace-test-$$.service
groups=("$unified/$name")
mkdir "$unified/$name" 2>/dev/null || skip "no control group can be made here"
if [ -n "$memory" ]; then
	mkdir "$memory/$name" && groups+=("$memory/$name")
else
	echo +memory >"$unified/cgroup.subtree_control"
fi 2>/dev/null
# A killed process stays in the group for a moment.
remove_groups() {
	local i
	rm -f "/dev/shm/$name"
	for ((i = 0; i < 100; i++)); do
		rmdir "${groups[@]}" 2>/dev/null
		[ -e "${groups[0]}" ] || return
		sleep 0.1
	done
}
trap 'end_everything; remove_groups' EXIT

# join PROCESS: all groups.
join() {
	local group
	for group in "${groups[@]}"; do
		echo "$1" >"$group/cgroup.procs" || fail "a process cannot be put into a control group"
	done
}

# expect_older: 40 MiB of shared memory that was mapped before. The recording may have other processes.
expect_older() {
	expect_json '[.growth.parts[] | select(.place == "before" and .class == "shm").bytes] | add // 0 | . - 41943040 | fabs <= 4194304'
	# With Pss, which other processes decide, the parts are of private memory.
	expect_json '.growth | .parts_measure != "rss" or ([.parts[].bytes] | add) + .changing_bytes + .unexplained_bytes == .end_bytes - .start_bytes'
}

start_workload growth shared
join "$pid"
start_recording -G "$name"
let_work
(join "$BASHPID" && exec dd if=/dev/zero of="/dev/shm/$name" bs=1M count=30 status=none)
let_recorder_catch_up
stop_recording
let_end
report_json
expect_older
if [ ! -e "${groups[-1]}/memory.stat" ]; then
	expect_json '.control_group == null'
else
	# The kernel charges a group in steps, and the workload's shared memory is the group's, too.
	expect_json '.control_group | .end.current_bytes - .start.current_bytes >= 70 * 1048576 - 4194304'
	expect_json '.control_group | .end.shmem_bytes - .start.shmem_bytes - 70 * 1048576 | fabs <= 4194304'
	expect_json '.control_group | .peak_bytes >= .end.current_bytes and .end.limit_bytes == null'
	"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
	grep -qE '^  control group \+[67][0-9.]+ MiB \(now [0-9.]+ MiB\): \+[67][0-9.]+ MiB files on tmpfs or shared memory.*, processes \+[34][0-9.]+ MiB$' report.txt ||
		fail "no line of the group: $(cat report.txt)"
	"$MMTRACE" pack -q -o packed.data "$recording" || fail "pack failed"
	"$MMTRACE" report --json -i packed.data >packed.json || fail "the packed recording has no report"
	[ "$(jq -c .control_group packed.json)" = "$(jq -c .control_group report.json)" ] || fail "the packed recording has other counters"
fi

start_workload growth shared
start_recording -a
let_work
let_recorder_catch_up
stop_recording
let_end
report_json
expect_older
expect_json '.control_group == null'

# A profile labels what each process mapped with the service that it belongs to.
start_workload leak-anon
join "$pid"
record_work -p "$pid"
"$MMTRACE" export -f pprof -o heap.pb.gz "$recording" && zcat heap.pb.gz >heap.pb || fail "export -f pprof"
grep -aqF "$name" heap.pb || fail "the profile has no label with the control group"

# In a hierarchy of version 1, the memory of a group of other processes, such as that of this shell, is not the group's.
if [ -n "$memory" ]; then
	start_workload leak-anon
	echo "$pid" >"$unified/$name/cgroup.procs" || fail "a process cannot be put into a control group"
	record_work -G "$name"
	expect_json '.control_group == null'
fi

# A directory is not a control group because it has such a file.
mkdir no-group && touch no-group/cgroup.procs
"$MMTRACE" record -o no.data -G "$PWD/no-group" 2>wrong.log
[ $? = 2 ] && grep -q "no control group $PWD/no-group: .*$PWD/no-group (not in a cgroup file system)" wrong.log ||
	fail "a directory that is no group: $(cat wrong.log)"
exit 0
