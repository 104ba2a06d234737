#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A process in a control group with a limit: the report says how full the group is and when it will be full, and, when the
# kernel has killed the process, that this is why it ended. The limit may be that of a group above, and a target may enter its
# group after recording began.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
memory=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
group=${memory:-$unified}/mmtrace-test-$$
limit=memory.limit_in_bytes
[ -n "$memory" ] || limit=memory.max
[ -n "$memory" ] || echo +memory >"$unified/cgroup.subtree_control" 2>/dev/null
mkdir "$group" 2>/dev/null && [ -e "$group/$limit" ] || {
	rmdir "$group" 2>/dev/null
	skip "no control group with a limit of memory can be made here"
}
remove_group() {
	local i
	for ((i = 0; i < 100; i++)); do
		rmdir "$group"/* "$group" 2>/dev/null
		[ -e "$group" ] || break
		sleep 0.1
	done
}
trap 'end_everything; remove_group' EXIT
# A program that can swap is not killed.
[ -z "$memory" ] || echo 0 >"$group/memory.swappiness"
[ ! -e "$group/memory.swap.max" ] || echo 0 >"$group/memory.swap.max"
echo $((64 << 20)) >"$group/$limit" || fail "the limit cannot be set"

start_workload growth steadily
echo "$pid" >"$group/cgroup.procs" || fail "a process cannot be put into a control group"
start_recording -p "$pid"
echo >&3
wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
wait "$pid"
[ $? = 137 ] || skip "the kernel did not kill the process: its memory has no limit here"
report_json
expect_json ".control_group | .end.limit_bytes == $((64 << 20)) and .end.oom_kills - .start.oom_kills == 1"
expect_json '.growth.verdict == "growing" and .control_group.full_in_ns < 60000000000'
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
# With the event of OOM kills, they are reported by process; this user, or this container, may not have it.
victims=$(jq '.oom_kills | length' report.json)
if [ "$victims" = 0 ] && [ "$(id -u)" = 0 ] && [ "$(stat -Lc %i /proc/self/ns/pid)" = $((0xeffffffc)) ]; then
	fail "no OOM kill in the recording"
fi
says="ended 1 process of the control group"
if [ "$victims" != 0 ]; then
	says="ended growth (pid $pid)"
	expect_json "[.oom_kills[] | select(.pid == $pid)] | length == 1 and (.[0] | .name == \"growth\" and .in_report)"
	# A reading may come after the kernel has chosen the victim, and before it has freed its memory.
	late=$(jq ".oom_kills[0].time_ns < ([.processes[] | select(.pid == $pid)][0].end_reading_ns)" report.json)
	words='; its figures are those of its last reading, [0-9.]+ [a-zµ]+ before'
	[ "$late" = false ] || words=
	grep -qE "^ *OOM-KILLED: the kernel's OOM killer ended growth \(pid $pid\) [0-9.]+ m?s after the start$words$" report.txt ||
		fail "the report does not begin with the OOM kill: $(cat report.txt)"
fi
grep -qE "^  control group $group: the kernel's OOM killer ended 1 of its processes; [0-9.]+ MiB of its limit of 64.00 MiB are in use besides page cache" report.txt ||
	fail "no line of the group: $(cat report.txt)"
grep -qx "  the kernel's OOM killer $says" record.log || fail "record does not say why: $(cat record.log)"

grep -qE "^  [0-9.]+ MiB of 64.00 MiB of the control group's limit in use" record.log || fail "record does not name the limit: $(cat record.log)"

# The kill meets a condition, which has a page.
start_workload growth steadily
echo "$pid" >"$group/cgroup.procs" || fail "a process cannot be put into a control group"
"$MMTRACE" watch -o watched -p "$pid" --when oom >watch.log 2>&1 3>&- &
watcher=$!
processes+=("$watcher")
wait_until "the first recording" eval '[ -n "$(find watched -name "*.data" 2>/dev/null)" ]'
echo >&3
wait "$watcher" || fail "watch ended with status $?: $(cat watch.log)"
grep -qx 'mmtrace watch: condition met: oom' watch.log && grep -q '</html>' watched/*.html || fail "no page of the kill: $(cat watch.log)"
wait "$pid"

# A condition on the limit ends the recording before the kernel ends the process.
start_workload growth steadily
echo "$pid" >"$group/cgroup.procs" || fail "a process cannot be put into a control group"
begin_recording -p "$pid" --until 'group>30%'
echo >&3
wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
grep -qx 'mmtrace record: condition met: group>30%' record.log || fail "the condition did not come true: $(cat record.log)"
report_json
expect_json ".oom_kills == [] and .control_group.end.anon_bytes * 100 / .control_group.end.limit_bytes > 25"
kill -9 "$pid"
wait "$pid"

# The second target is in a group below, into which it comes after recording began.
mkdir "$group/below" || fail "no group can be made in a control group"
echo $((256 << 20)) >"$group/$limit" || fail "the limit cannot be set"
start_workload growth mmap
start_recording -p "$pid,$$"
echo "$pid" >"$group/below/cgroup.procs" || fail "a process cannot be put into a control group"
let_work
let_recorder_catch_up
stop_recording
let_end
report_json
expect_json ".control_group | .path == \"$group\" and .end.limit_bytes == $((256 << 20)) and (.selected | not)"

# Far from its limit, the group has no line.
limited=$((1 << 40))
echo "$limited" >"$group/$limit" || fail "the limit cannot be set"
start_workload growth mmap
echo "$pid" >"$group/cgroup.procs" || fail "a process cannot be put into a control group"
record_work -p "$pid"
expect_json ".control_group | .path == \"$group\" and .end.limit_bytes == $limited and .end.oom_kills == .start.oom_kills"
"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
! grep -q "control group" report.txt || fail "a line of the group: $(cat report.txt)"

# What it reads of a file larger than the limit, it must free itself. The raw recording says the same as the packed one.
read_slowly() {
	start_command bash -c "echo \$\$ >$group/cgroup.procs && exec \"\$@\"" - "$workloads/touch" file
	record_work "$@" -p "$pid"
	jq '[.stalls[] | {count, total_ns, longest_ns, frames: [.frames[].function]}]' "$directory/report.json" >"$directory/stalls.json"
	jq -e 'length > 0 and all(.[]; .count > 0 and .total_ns >= .longest_ns and .longest_ns > 0) and
		(map(select(.frames | index("read_pool") and index("main")) | .count) | add) >= (map(.count) | add) / 2' \
		"$directory/stalls.json" >/dev/null || fail "no stalls below read_pool: $(cat "$directory/stalls.json")"
}
if [ "$(stat -fc %T /tmp)" != tmpfs ]; then # from which a program without swap cannot be reclaimed
	echo $((24 << 20)) >"$group/$limit" || fail "the limit cannot be set"
	read_slowly
	read_slowly --raw
fi
