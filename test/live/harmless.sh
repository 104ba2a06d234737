#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# Packages: strace:strace
# A recording leaves the target and the system as they were: state and files of the process, mounts, tracefs. The recorder
# sends no signal, traces no process, writes to no other process's memory, and creates or changes no file except its own.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
[ "$(id -u)" = 0 ] || skip "only root can make private mounts"
# This test has its own mounts, without tracefs: the recorder's mount must not stay.
[ -n "${MOUNTS_ARE_OURS-}" ] || {
	unshare --mount true 2>/dev/null || skip "no private mounts can be made here"
	cd / && rm -rf "$directory"
	MOUNTS_ARE_OURS=1 exec unshare --mount bash "$0"
}
while umount /sys/kernel/tracing 2>/dev/null; do :; done
[ "$(stat -f -c %T /sys/kernel/tracing)" != tracefs ] || skip "tracefs is in use and stays mounted"

# Leave out what changes by itself: sizes, times, run counts.
look() {
	echo "== process"
	grep -vE '^(Vm|Rss|HugetlbPages|State|SigQ|.*ctxt_switches)' "/proc/$pid/status"
	for task in "/proc/$pid/task/"*; do
		echo "${task##*/}: $(cut -d' ' -f 18,19,40,41 "$task/stat") $(taskset -p "${task##*/}" | sed 's/.*: //')"
	done
	cat "/proc/$pid/"{limits,oom_score_adj,timerslack_ns,coredump_filter,cgroup,environ,cmdline} | tr '\0' '\n'
	ls -l "/proc/$pid/fd" | awk 'NR > 1 { print $9, $10, $11 }'
	echo "== system"
	cat /proc/self/mounts
	ls -A /sys/kernel/tracing /dev/shm /run/mmtrace 2>&1
	grep -H . /proc/sys/kernel/perf_event_* /proc/sys/kernel/yama/* /proc/sys/vm/max_map_count 2>/dev/null
}

# unharmed WORKLOAD OPTION...: record the workload while it works.
unharmed() {
	local workload=$1
	shift
	start_workload "$workload"
	look >before
	start_recording "$@" -p "$pid"
	look >during
	stop_recording
	look >after
	for moment in during after; do
		diff before $moment >changed || fail "record $*: not the same $moment the recording: $(cat changed)"
	done
	grep -q '^TracerPid:.0$' during || fail "record $*: the target is traced"
	let_work
	let_end
}
unharmed leak-thread
use_own_group
for scope in "${cpu_scopes[@]}"; do
	unharmed leak-thread --scope $scope
done
unharmed jit-code --snapshot-interval 100ms --code all

# The system calls of the recorder. It creates its files, the packed one too, without a name in the output directory.
command -v strace >/dev/null || skip "strace is not installed (all other checks passed)"
start_workload jit-code
rm -f "$recording"
ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o calls.txt \
	"$MMTRACE" record -o "$recording" --snapshot-interval 100ms --code all --duration 2s -p "$pid" 2>record.log 3>&- &
recorder=$!
processes+=("$recorder")
wait_until "record to begin" test -s "$recording"
let_work
wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
let_end
report_json
expect_true_report
calls() {
	grep -vE '^[0-9]+ +(---|\+\+\+|<\.\.\.)' calls.txt | grep -E "^[0-9]+ +($1)\\("
}
calls 'openat' | grep -q "/proc/$pid/" || fail "strace shows nothing of the recorder: $(head -5 calls.txt)"
! calls 'ptrace|process_vm_writev|pidfd_send_signal|process_madvise|mount|move_mount|umount2|setns|finit_module|init_module|bpf' ||
	fail "the recorder accesses memory of others"
! calls 'kill|tkill|tgkill' | grep -vE ', (0|SIG_0)(\)| <unfinished)' || fail "the recorder sends signals"
places=$(calls openat | sed -nE "s|.*\(AT_FDCWD, \"$directory/\", [A-Z_\|]*O_PATH.* = ([0-9]+)$|\1|p" | sort -u | paste -sd "|")
[ -n "$places" ] || fail "the recorder does not open the directory of its file"
! calls 'open|openat|openat2|creat' | grep -E 'O_WRONLY|O_RDWR|O_CREAT|O_TRUNC' |
	grep -vE "\"($recording[^\"]*|[^\"]*mmtrace\.data\.new[^\"]*|/dev/null|/proc/self/oom_score_adj)\"|\\(($places), \"\.\", [A-Z_|]*O_TMPFILE|= -1" ||
	fail "the recorder writes into files of others"
! calls 'unlink|unlinkat|mkdir|mkdirat|rename|renameat|renameat2|link|linkat|symlink|symlinkat|chmod|fchmodat|chown|fchownat|truncate' |
	grep -vE "mmtrace\.data" || fail "the recorder changes files of others"
