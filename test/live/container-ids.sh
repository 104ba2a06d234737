#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# -G finds the control group of a container by its ID, or the beginning of it, and that of a pod by its UID, under the names
# that docker, containerd, CRI-O and Kubernetes give to groups.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
unified=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
memory=$(awk '$3 == "cgroup" && $4 ~ /(^|,)memory(,|$)/ { print $2; exit }' /proc/mounts)
grep -q ':perf_event:' /proc/self/cgroup && skip "perf events use a hierarchy of version 1 here"
top=$unified/mmtrace-test-$$
mkdir "$top" 2>/dev/null || skip "no control group can be made here"
groups=("$top")
trap 'end_everything; remove_groups' EXIT

# A killed process stays in its group for a moment.
remove_groups() {
	local i j
	for ((i = 0; i < 500; i++)); do
		for ((j = ${#groups[@]} - 1; j >= 0; j--)); do
			rmdir "${groups[j]}" 2>/dev/null
		done
		[ -e "$top" ] || return
		sleep 0.02
	done
}

# make_group PATH: below $top, with all groups above it; sets $group.
make_group() {
	local part
	group=$top
	for part in ${1//// }; do
		group+=/$part
		[ -d "$group" ] || { mkdir "$group" && groups+=("$group"); } || fail "cannot make $group"
	done
}

# No other container has these.
hash=$(sha256sum <<<"$directory") && hash=${hash:0:20}a${hash:21:43}
twin=${hash:0:20}b${hash:21}
other=$(sha256sum <<<"$hash") && other=${other:0:64}
uid=${other:0:8}-${other:8:4}-${other:12:4}-${other:16:4}-${other:20:12}

# expect_found NAME...: each of them leads to $group, in which the workload is.
expect_found() {
	local name
	for name; do
		start_workload leak-anon
		echo "$pid" >"$group/cgroup.procs" || fail "a process cannot be put into a control group"
		record_work -G "$name"
		expect_true_report
		expect_workload_answer yes
	done
}

# expect_refused NAME PATTERN
expect_refused() {
	"$MMTRACE" record -o refused.data -G "$1" -- true 2>refused.log
	[ $? = 2 ] && grep -qE "$2" refused.log || fail "-G $1: $(cat refused.log)"
	[ ! -e refused.data ] || fail "-G $1 recorded something"
}

expect_refused "$hash" "no container or pod $hash: no control group has this ID"
expect_refused "${hash:0:11}" "no control group ${hash:0:11}: .*at least 12 digits"

# A pod with a container, as the systemd drivers of containerd name them, and what waits for a container of CRI-O.
pod=kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${uid//-/_}.slice
make_group "$pod/crio-conmon-$hash.scope"
make_group "$pod/cri-containerd-$hash.scope"
expect_found "${hash:0:12}" "containerd://$hash" "$uid" "${hash^^}" "${uid//-/_}" "${uid^^}"
# Another container with the same beginning.
make_group "system.slice/docker-$twin.scope"
expect_refused "${hash:0:12}" "several control groups have the ID ${hash:0:12} in their names: $top/.* and $top/.*"
expect_found "${twin:0:21}"
# Without systemd.
make_group "docker/$other"
expect_found "$other"
uid=${hash:0:8}-${other:8:4}-${other:12:4}-${other:16:4}-${other:20:12}
make_group "kubepods/besteffort/pod$uid/$(tr 0-9a-f 1-9a-f0 <<<"$other")"
expect_found "$uid"
# In a node that is a container, a pod whose resources are guaranteed.
uid=$(rev <<<"$uid")
make_group "system.slice/docker-$twin.scope/kubelet/kubelet-kubepods-pod${uid//-/_}.slice/cri-containerd-${other//[0-9]/e}.scope"
expect_found "$uid" "${other//[0-9]/e}"

# In another hierarchy there are no events of groups: the message says what to do.
if [ -n "$memory" ] && mkdir "$memory/mmtrace-test-$$"; then
	groups+=("$memory/mmtrace-test-$$" "$memory/mmtrace-test-$$/$(rev <<<"$hash")")
	mkdir "${groups[-1]}" || fail "cannot make ${groups[-1]}"
	expect_refused "$(rev <<<"$hash")" "the control group ${groups[-1]} is of a version 1 hierarchy .*-p \"\\$\(paste -sd, ${groups[-1]}/"
fi
