#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# If the kernel is missing a feature or grants less than requested, mmtrace uses smaller rings, or prints one clear line and
# leaves an earlier recording unchanged.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
need_own_mounts
export MMTRACE directory
"$MMTRACE" record -q -o mmtrace.data -- true || fail "record -- true ended with status $?"
before=$(sha256sum <mmtrace.data)
expect_earlier() {
	[ "$(sha256sum <mmtrace.data)" = "$before" ] && [ ! -e mmtrace.data.old ] ||
		fail "the earlier recording is not as it was ($1)"
	compgen -G 'mmtrace.data.new*' >/dev/null && fail "something is left ($1)"
}

# A tracefs without one of the tracepoints.
mkdir tracefs
copy_tracefs() {
	local from=$1 event
	mkdir -p tracefs/events/syscalls tracefs/events/task
	cp "$from"/events/header_{page,event} tracefs/events/ || return
	cp -r "$from"/events/task/task_newtask tracefs/events/task/
	for event in "$from"/events/syscalls/sys_{exit,enter}_{mmap,munmap,mremap,brk,mprotect,pkey_mprotect,shmat,shmdt,madvise,mseal}; do
		[ ! -d "$event" ] || mkdir -p tracefs/events/syscalls/"${event##*/}"
		cp "$event"/{id,format} tracefs/events/syscalls/"${event##*/}"/ 2>/dev/null
	done
	return 0
}
export -f copy_tracefs
unshare --mount bash -c '
	mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing || exit 99
	copy_tracefs /sys/kernel/tracing || exit 99
	mount --bind tracefs /sys/kernel/tracing || exit 99
	"$MMTRACE" record -q -o copy.data -- true 2>copy.log
	echo $? >copy.status
	rm -r tracefs/events/syscalls/sys_exit_munmap
	"$MMTRACE" record -o mmtrace.data -- touch started >missing.out 2>missing.log
	echo $? >missing.status'
[ $? != 99 ] || skip "no tracefs can be mounted here"
[ "$(cat copy.status)" = 0 ] || fail "a copy of tracefs does not suffice: $(cat copy.log)"
[ "$(cat missing.status)" = 2 ] || fail "a tracepoint is missing: status $(cat missing.status): $(cat missing.log)"
grep -q 'no tracepoint syscalls:sys_exit_munmap' missing.log && [ "$(wc -l <missing.log)" = 1 ] ||
	fail "a tracepoint is missing: $(cat missing.log)"
[ ! -e started ] || fail "the command was started without a tracepoint that is needed"
expect_earlier "no tracepoint"

# A kernel that is too old, and a processor that is not supported: both are personalities of this kernel.
expect_refusal 2 'cannot record on Linux 2\.6\.[^ ]+: use Linux 5\.10 or later' \
	setarch --uname-2.6 "$MMTRACE" record -o mmtrace.data -- touch started
expect_refusal 2 'cannot record on i686, only on ' setarch i686 "$MMTRACE" record -o mmtrace.data -- touch started
[ ! -e started ] || fail "the command was started on an unsupported system"
expect_earlier "an unsupported system"
for words in "--uname-2.6 use Linux 5.10 or later" "i686 cannot record on i686"; do
	setarch "${words%% *}" "$MMTRACE" check >check.txt 2>&1
	status=$?
	[ $status = 1 ] && grep -q "${words#* }" check.txt || fail "check with ${words%% *}: status $status: $(cat check.txt)"
done

# Too few descriptors for the events.
expect_refusal 2 'descriptors.*ulimit -n|Too many open files' \
	bash -c 'ulimit -n 24; exec "$MMTRACE" record -o mmtrace.data -- true'
expect_earlier "no descriptors"

# Less lockable memory than requested, for a user who may neither lock more nor mount tracefs: smaller rings and a message
# about them.
chmod 755 .
cp "$MMTRACE" mmtrace-for-all
mkdir -m 777 theirs
recording=$directory/theirs/mmtrace.data
rights=+perfmon,+sys_ptrace,+dac_read_search
unshare --mount bash -c '
	mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing || exit 99
	ulimit -l 64
	exec setpriv --reuid=65534 --regid=65534 --clear-groups "--inh-caps=$2" "--ambient-caps=$2" \
		./mmtrace-for-all record -o "$1" -m 64M -- true' bash "$recording" $rights 2>record.log ||
	fail "record with little locked memory ended with status $?: $(cat record.log)"
grep -qE 'warning: the kernel grants ring buffers of [0-9]+ KiB per CPU only.*ulimit -l' record.log ||
	fail "no message about the smaller rings: $(cat record.log)"
report_json
expect_true_report
