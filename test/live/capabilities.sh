#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# A non-root user can record with the three capabilities that the manual names, and not with fewer.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# Mounting tracefs needs more than those: use a mount namespace of this test.
[ -e /sys/kernel/tracing/events ] || [ -n "${TRACEFS_IS_OURS-}" ] || {
	need_own_mounts
	rm -rf "$directory"
	TRACEFS_IS_OURS=1 exec unshare --mount bash "$0"
}
[ -e /sys/kernel/tracing/events ] || mount -t tracefs -o mode=700 tracefs /sys/kernel/tracing || skip "no tracefs"

chmod 755 "$directory"
cp "$MMTRACE" mmtrace-for-all
mkdir -m 777 theirs
recording=$directory/theirs/mmtrace.data
# as_nobody CAPABILITIES COMMAND...
as_nobody() {
	local rights=$1
	shift
	timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="$rights" --ambient-caps="$rights" "$@"
}
all=+perfmon,+sys_ptrace,+dac_read_search

as_nobody $all ./mmtrace-for-all record -q -o "$recording" -- true 2>record.log ||
	fail "record -- true ended with status $?: $(cat record.log)"
report_json
expect_true_report
expect_json '.events.mmap > 0'

# A process of another user.
sleep 600 &
sleeper=$!
processes+=($sleeper)
as_nobody $all ./mmtrace-for-all record -q -o "$recording" --duration 200ms -p $sleeper 2>record.log ||
	fail "record -p ended with status $?: $(cat record.log)"
report_json
expect_true_report
expect_json '.processes | length == 1 and all(.checked)'

# Without CAP_PERFMON the kernel shows only system calls, and the recorder reports that.
as_nobody +sys_ptrace,+dac_read_search ./mmtrace-for-all record -o "$recording" --duration 200ms -p $sleeper \
	2>record.log || fail "record without CAP_PERFMON ended with status $?: $(cat record.log)"
grep -q 'without CAP_PERFMON' record.log || fail "no message about CAP_PERFMON: $(cat record.log)"
report_json
expect_json '.processes | all(.checked and .mismatch_bytes == 0)'

for rights in +perfmon,+sys_ptrace +perfmon,+dac_read_search; do
	as_nobody $rights ./mmtrace-for-all record -q -o "$recording" --duration 200ms -p $sleeper 2>record.log &&
		fail "recorded with $rights only"
	grep -q cap_ record.log || fail "with $rights no missing capability is named: $(cat record.log)"
done

# A recording made by another user: the report names the owner; no third user may read it.
"$MMTRACE" record -q -o roots.data -- true || fail "record ended with status $?"
setpriv --reuid=65534 --regid=65534 --clear-groups ./mmtrace-for-all report roots.data >report.txt 2>report.log
[ $? = 2 ] && [ "$(cat report.log)" = \
	"mmtrace report: cannot open roots.data, which its owner alone may read (user 0): Permission denied" ] ||
	fail "the recording of another user: $(cat report.txt report.log)"
# A file that its group may read is not private to its owner.
chmod 640 roots.data
setpriv --reuid=65534 --regid=65534 --clear-groups ./mmtrace-for-all report roots.data >report.txt 2>report.log
[ $? = 2 ] && [ "$(cat report.log)" = "mmtrace report: cannot open roots.data: Permission denied" ] ||
	fail "the recording of another group: $(cat report.txt report.log)"
