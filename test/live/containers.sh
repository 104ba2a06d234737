#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The recipes of mmtrace-containers(7), with namespaces, control groups and exactly the capabilities that they name: the
# statically linked tool in a container of its own, which shares the target's PID namespace or the machine's.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_static_tool
unshare --pid --mount --fork true 2>/dev/null || skip "no namespaces can be made here"
mount | grep -q ' on /sys/kernel/tracing type tracefs' || skip "tracefs is not mounted: containers could not get it"

# Those that docker gives to every container, and those of the recipe.
default=chown,dac_override,fsetid,fowner,mknod,net_raw,setgid,setuid,setfcap,setpcap,net_bind_service,sys_chroot,kill,audit_write
needed=perfmon,sys_ptrace,dac_read_search
mkdir -p target/proc tools/{proc,sys,host} "tools$directory"
cp "$workloads/leak-anon-static" target/leak
cp "$tool" tools/mmtrace

# start_target: process 1 of a container; sets $pid to its PID here.
start_target() {
	start_command unshare --pid --mount --fork --kill-child bash -c 'mount -t proc proc target/proc && exec chroot target /leak'
	pid=$(child_of "$pid")
	processes+=("$pid")
}

# in_container CAPABILITIES NAMESPACES ARGUMENT...: the tool, as root with these capabilities and those of every container, in
# these namespaces of the target. It has tracefs, and the machine's control groups in /host. With $tools_group, it is in that
# group, which is the root of its control groups.
tools_group=
in_container() {
	local capabilities=$default,$1 namespaces=$2
	shift 2
	[ -z "$tools_group" ] || echo "$BASHPID" >"$tools_group/cgroup.procs" || fail "a process cannot be put into a control group"
	exec env --default-signal=INT nsenter $namespaces --target="$pid" unshare --mount ${tools_group:+--cgroup} bash -c '
		mount -t proc proc tools/proc && mount -t sysfs -o ro sysfs tools/sys &&
		mount --bind /sys/kernel/tracing tools/sys/kernel/tracing && mount --rbind /sys/fs/cgroup tools/host &&
		mount --bind "$PWD" "tools$PWD" || exit 125
		capabilities=$1
		shift
		exec setpriv --no-new-privs --inh-caps=-all --bounding-set="-all,+${capabilities//,/,+}" \
			/usr/sbin/chroot tools /mmtrace "$@"' bash "$capabilities" "$@"
}

# record_beside CAPABILITIES NAMESPACES OPTION...: the work of the target, whose stacks and figures must be true.
record_beside() {
	local waiter
	rm -f "$recording"
	in_container "$1" "$2" record -o "$recording" "${@:3}" 2>record.log 3>&- &
	waiter=$! recorder=$waiter
	processes+=("$waiter")
	wait_until "mmtrace record to attach" recorder_attached
	# With a PID namespace, nsenter waits for it.
	[[ $2 != *--pid* ]] || recorder=$(child_of "$waiter")
	wait_for_first_snapshots
	let_work
	kill -INT "$recorder"
	wait "$waiter" || fail "record ended with status $?: $(cat record.log)"
	report_json
	expect_true_report
	expect_json '.completeness.warnings | length == 0'
	expect_workload_answer yes
	kill -9 "$pid"
	wait_for_end "$pid"
}

# A second container in the PID namespace of the first: docker run --pid=container:ID --cap-add=...
start_target
(in_container $needed,ipc_lock,sys_nice --pid check) >check.txt || fail "check: $(cat check.txt)"
grep -q '^ok  *ring buffers' check.txt && grep -q '^ok  *other users' check.txt || fail "check: $(cat check.txt)"
record_beside $needed,ipc_lock,sys_nice --pid -p 1
grep -qx 'mmtrace record: recording leak (pid 1); Ctrl-C stops' record.log || fail "$(cat record.log)"
# Smaller rings and no priority, but everything else.
start_target
record_beside $needed --pid -p 1
# Without CAP_SYS_PTRACE nothing can be recorded.
start_target
(in_container perfmon,dac_read_search --pid record -o refused.data --duration 1s -p 1) 2>refused.log && fail "CAP_SYS_PTRACE is not needed"
grep -q 'docker run --cap-add=PERFMON --cap-add=SYS_PTRACE' refused.log || fail "without CAP_SYS_PTRACE: $(cat refused.log)"
kill -9 "$pid"

# A container with the PID namespace of the machine: a DaemonSet with hostPID, kubectl debug node/N. It names the process as
# the machine does, and says which PID it has inside.
start_target
echo "$pid" >target-pid
record_beside $needed,ipc_lock,sys_nice --uts -p "$pid"
grep -qx "mmtrace record: recording leak (pid $(cat target-pid), 1 in its container); Ctrl-C stops" record.log || fail "$(cat record.log)"
expect_json ".processes[] | .pid == $(cat target-pid) and .container_pid == 1"
"$MMTRACE" report --no-pager -i "$recording" >report.txt && grep -q "^leak (pid $(cat target-pid), 1 in its container), " report.txt || fail "$(cat report.txt)"
"$MMTRACE" report --no-pager -i "$recording" -p 1 2>&1 | diff - report.txt || fail "-p 1 is not the process in the container"

# A PID that only a process in a container has, and one that two have: in PID namespaces in which no other process has it.
cat >nested <<'END'
for ((i = 0; i < $1; i++)); do
	unshare --pid --mount-proc --fork bash -c 'echo 20000 >/proc/sys/kernel/ns_last_pid; sleep 600 & wait' &
done
until [ "$(grep -lsE '^NSpid:.*[[:space:]]20001$' /proc/[0-9]*/status | wc -l)" = "$1" ]; do
	sleep 0.05
done
if [ "$1" = 1 ]; then
	"$MMTRACE" record -o nested.data --duration 300ms -p 20001
else
	"$MMTRACE" record -o nested.data --duration 300ms -p 20001 ||
		"$MMTRACE" record -q -o nested.data --duration 300ms --comm sleep && "$MMTRACE" report -i nested.data -p 20001
fi
END
export MMTRACE
timeout 100 unshare --pid --mount-proc --fork bash nested 1 2>nested.log || fail "record ended with status $?: $(cat nested.log)"
grep -qE '^mmtrace record: recording sleep \(pid [0-9]{1,3}, 20001 in its container\); ' nested.log || fail "$(cat nested.log)"
timeout 100 unshare --pid --mount-proc --fork bash nested 2 2>nested.log
[ $? = 2 ] && grep -q -- '--pid: 2 processes have the PID 20001 in their containers, and none has it here' nested.log &&
	grep -qE 'nested.data: 2 processes have the PID 20001 in their containers: pass the PID outside, such as [0-9]{1,3}$' nested.log || fail "$(cat nested.log)"

# The ID of a container, whose control group is in the file system of the machine.
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=$unified/mmtrace-test-$$
grep -q ':perf_event:' /proc/self/cgroup && exit 0
id=$(sha256sum <<<"$directory") && id=${id:0:64}
mkdir "$group" "$group/cri-containerd-$id.scope" "$group/tools" 2>/dev/null || exit 0
remove_groups() {
	wait_until "the control groups to be empty" rmdir "$group/cri-containerd-$id.scope" "$group/tools"
	rmdir "$group" ${memory:+"$memory/mmtrace-test-$$"}
}
memory=
trap 'end_everything; remove_groups' EXIT
start_grouped_target() {
	start_target
	echo "$pid" >"$group/cri-containerd-$id.scope/cgroup.procs" || fail "a process cannot be put into a control group"
}
start_grouped_target
record_beside $needed,ipc_lock,sys_nice --uts -G "${id:0:12}"

# docker and Kubernetes give each container a cgroup namespace. For one in it, the groups of others are outside. It finds them
# among those of the machine, and does not take its own group for theirs.
memory=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
[ -z "$memory" ] || mkdir "$memory/mmtrace-test-$$" || memory=
tools_group=$group/tools
start_grouped_target
[ -z "$memory" ] || echo "$pid" >"$memory/mmtrace-test-$$/cgroup.procs" || fail "a process cannot be put into a control group"
record_beside $needed,ipc_lock,sys_nice --uts -v --scope cgroup -p "$pid"
grep -q "recorded in the control group /host/.*/cri-containerd-$id.scope" record.log || fail "$(cat record.log)"
expect_json '.control_group == null or (.control_group.path | test("cri-containerd"))'
