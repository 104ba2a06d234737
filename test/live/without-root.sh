#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# An unprivileged user records own processes after root has run `mmtrace setup`; `mmtrace check` says what is missing.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
[ "$(id -u)" = 0 ] || skip "only root can act as both root and a user"
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || skip "kernel.perf_event_paranoid denies users all events"
# This test has its own /run; tracefs, if mounted, is accessible to root only.
[ -n "${RUN_IS_OURS-}" ] || {
	need_own_mounts
	cd / && rm -rf "$directory"
	RUN_IS_OURS=1 exec unshare --mount bash "$0"
}
mount -t tmpfs -o mode=755 tmpfs /run || skip "no tmpfs can be mounted"
[ ! -e /sys/kernel/tracing/events ] || mount -t tracefs -o remount,mode=700 tracefs /sys/kernel/tracing
chmod 755 "$directory"
cp "$MMTRACE" mmtrace-for-all
cp "$workloads"/{leak-anon,leak-thread,leak-fork,noleak} .
mkdir -m 777 theirs
as_user() {
	timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}
as_user cat /sys/kernel/tracing/events/header_page >/dev/null 2>&1 && skip "users can read tracefs here"
recording=$directory/theirs/mmtrace.data

# Before setup: refused, with the command to copy, the reason, and what permits it for good; check says the same.
expect_denial "^mmtrace record: permission denied; try:   sudo ./mmtrace-for-all record -o $recording --duration 1s -- \
setpriv --reuid=65534 --regid=65534 --init-groups sh -c 'exit 0' cannot read the tracepoints: only root may .*:   sudo mmtrace setup .*setcap" \
	as_user ./mmtrace-for-all record -o "$recording" --duration 1s sh -c 'exit 0'
expect_denial "^mmtrace top: permission denied; try:   sudo ./mmtrace-for-all top --json -o $recording -- \
setpriv --reuid=65534 --regid=65534 --init-groups sh -c 'exit 0' cannot" \
	as_user ./mmtrace-for-all top --json -o "$recording" -- sh -c 'exit 0'
expect_denial "^mmtrace trace: permission denied; try:   sudo ./mmtrace-for-all trace -- \
setpriv --reuid=65534 --regid=65534 --init-groups sh -c 'exit 0' cannot" \
	as_user ./mmtrace-for-all trace -- sh -c 'exit 0'
as_user ./mmtrace-for-all check >check.txt && fail "check reports no problem: $(cat check.txt)"
grep -q '^MISSING  tracepoints ' check.txt && grep -q 'fix: sudo mmtrace setup' check.txt ||
	fail "check does not say what is missing: $(cat check.txt)"
grep -qx 'you cannot record yet: sudo mmtrace setup' check.txt || fail "the verdict of check: $(cat check.txt)"
expect_refusal 2 'root' as_user ./mmtrace-for-all setup

# Where sudo would not help: a container without capabilities, and one whose filter refuses perf_event_open.
sleep 600 &
other=$!
processes+=($other)
refuse_events=$SOURCE/test/live/support/refuse-events.py
# Other tests may have mounted it; a user 0 reads it without any capability.
without_tracefs() {
	unshare --mount sh -c 'while umount /sys/kernel/tracing 2>/dev/null; do :; done; exec "$@"' sh "$@"
}
for drop in "--bounding-set=-all" "--bounding-set=-all --reuid=65534 --regid=65534 --clear-groups" "--no-new-privs \
	--reuid=65534 --regid=65534 --clear-groups"; do
	expect_denial '^mmtrace record: cannot read the tracepoints: no tracefs .*docker run .*on the host' \
		without_tracefs setpriv $drop ./mmtrace-for-all record -o "$recording" -- true
done
for number in 1 13 38; do
	expect_denial '^mmtrace record: cannot open a perf event: .*a seccomp filter .*docker run .* SystemCallFilter=' \
		"$refuse_events" $number "$MMTRACE" record -o "$recording" -p $other
	"$refuse_events" $number "$MMTRACE" check >check.txt && fail "check with a filter: $(cat check.txt)"
	env MMTRACE="$MMTRACE" "$refuse_events" $number "$SOURCE/test/demo" >demo.txt 2>&1 && fail "the demo with a filter: $(cat demo.txt)"
	grep -q '^you cannot record yet: docker' demo.txt || fail "the demo with a filter: $(cat demo.txt)"
	grep -q '^MISSING  permissions  *none: a seccomp filter' check.txt && grep -q '^you cannot record yet: docker' check.txt ||
		fail "check with a filter: $(cat check.txt)"
done

# test/demo names what root must run for such a user, who cannot use sudo here; Debian's kernels set 3.
mkdir -p demo/test bin && cp -r "$SOURCE"/test/{demo,workload} demo/test && printf '#!/bin/sh\nexit 1\n' >bin/sudo && chmod 755 bin/sudo
expect_demo_asks() {
	as_user env TMPDIR="$directory/theirs" PATH="$directory/bin:$PATH" MMTRACE="$directory/mmtrace-for-all" demo/test/demo \
		>demo.txt 2>&1 && fail "a user without permissions records the demo: $(cat demo.txt)"
	[ "$(sed -nE 's/.*Ask root to run `([^`]*)`.*/\1/p' demo.txt)" = "$1" ] || fail "not asked for '$1': $(cat demo.txt)"
}
expect_demo_asks "$directory/mmtrace-for-all setup"
echo 3 >paranoid
mount --bind paranoid /proc/sys/kernel/perf_event_paranoid || fail "cannot replace the kernel's setting"
expect_demo_asks "sysctl kernel.perf_event_paranoid=2 && $directory/mmtrace-for-all setup"
umount /proc/sys/kernel/perf_event_paranoid

"$MMTRACE" setup 2>setup.log || fail "setup: $(cat setup.log)"
saved=/run/mmtrace/tracepoints
[ "$(stat -c '%U %a' $saved)" = "root 644" ] && [ "$(stat -c '%U %a' /run/mmtrace)" = "root 755" ] ||
	fail "the file can be written by others: $(ls -la /run/mmtrace)"
# Again, as the service runs it at boot: with these capabilities alone, in a directory that exists.
capabilities=$(sed -nE 's/^CapabilityBoundingSet=//p' "$BUILD/mmtrace-setup.service")
[[ $(grep ^ExecStart= "$BUILD/mmtrace-setup.service") == ExecStart=/*/bin/"mmtrace setup --quiet" ]] || fail "the service runs something else"
rm $saved && (umask 077 && setpriv --no-new-privs --bounding-set="-all$(sed "s/ *cap_/,+/g" <<<"${capabilities,,}")" \
	"$MMTRACE" setup --quiet) 2>setup.log || fail "setup again: $(cat setup.log)"
[ ! -s setup.log ] && [ "$(stat -c %a $saved)" = 644 ] || fail "setup -q: $(cat setup.log)"
as_user ./mmtrace-for-all check >check.txt || fail "check says that nothing can be recorded: $(cat check.txt)"
grep -q "^ok  *tracepoints .*$saved" check.txt && grep -q '^limited  permissions .*own processes' check.txt ||
	fail "check: $(cat check.txt)"
[ "$(tail -1 check.txt)" = 'you can record your own processes' ] || fail "the verdict of check: $(cat check.txt)"
"$MMTRACE" check >check.txt || fail "check as root: $(cat check.txt)"
grep -q '^ok  *permissions  *all events' check.txt || fail "check as root: $(cat check.txt)"
[ "$(tail -1 check.txt)" = 'you can record all processes' ] || fail "the verdict of check: $(cat check.txt)"
# Root in a user namespace has no permission for events, whatever capabilities it shows; record says the same.
if unshare --user --map-root-user true 2>/dev/null; then
	unshare --user --map-root-user "$MMTRACE" check >check.txt || fail "check in a user namespace: $(cat check.txt)"
	grep -q '^limited  permissions .*own processes' check.txt && grep -q '^limited  other users .*namespace' check.txt ||
		fail "check in a user namespace: $(cat check.txt)"
	unshare --user --map-root-user "$MMTRACE" record -o "$recording" -- true 2>record.log
	grep -q 'recorded without CAP_PERFMON' record.log || fail "record in a user namespace: $(cat record.log)"
	# That root is not told to become root.
	expect_denial "process $$: permission denied: this is a user namespace.* on the host" \
		unshare --user --map-root-user "$MMTRACE" record -o "$recording" -p $$
fi
# In a user's own namespace root's files look like anybody else's, and check says so.
if as_user unshare --user --map-root-user true 2>/dev/null; then
	expect_refusal 2 'root is not known in this user namespace' \
		as_user unshare --user --map-root-user ./mmtrace-for-all record -o "$recording" -- true
fi
expect_denial 'sudo .*every CPU: permission denied: .*CAP_PERFMON.* setcap' as_user ./mmtrace-for-all record -a -o "$recording" -- true
grep -q 'the time' refused.err && fail "unrequested output: $(cat refused.err)"
"$MMTRACE" check again >/dev/null 2>&1
[ $? = 2 ] || fail "check takes an argument"

# A command, and the user's own processes: figures, stacks and the check equal root's.
for workload in leak-anon leak-thread leak-fork; do
	as_user ./mmtrace-for-all record -o "$recording" -- ./$workload --exit >workload.out 2>record.log ||
		fail "record -- $workload ended with status $?: $(cat record.log)"
	grep -q 'recorded without CAP_PERFMON' record.log || fail "the summary: $(cat record.log)"
	[ "$(stat -c '%u %a' "$recording")" = "65534 600" ] || fail "the recording can be read by others"
	report_json
	expect_true_report
	expect_workload_answer no
	expect_json '.completeness.warnings | any(test("CAP_PERFMON"))'
done
start_command setpriv --reuid=65534 --regid=65534 --clear-groups ./leak-anon
start_recording_as_user() {
	rm -f "$recording"
	setpriv --reuid=65534 --regid=65534 --clear-groups env --default-signal=INT ./mmtrace-for-all record -o "$recording" "$@" 2>record.log 3>&- &
	recorder=$!
	processes+=("$recorder")
	wait_until "mmtrace record to attach" recorder_attached
	wait_for_first_snapshots
}
start_recording_as_user -p "$pid"
let_work
kill -INT "$recorder"
wait "$recorder" || fail "record -p ended with status $?: $(cat record.log)"
report_json
let_end
expect_true_report
expect_json ".processes | length == 1 and .[0].pid == $pid and .[0].checked"
expect_workload_answer yes

# A process of another user is refused with a message.
expect_denial "sudo ./mmtrace-for-all record -o $recording -p $other cannot .* process $other: .* another user.*setcap" \
	as_user ./mmtrace-for-all record -o "$recording" -p $other
# Nor may a root without capabilities.
setpriv --reuid=65534 --regid=65534 --clear-groups sleep 600 &
nobodys=$!
processes+=($nobodys)
wait_until "a process of another user" grep -q sleep /proc/$nobodys/comm
expect_denial "^mmtrace record: .* process $nobodys: permission denied: root has no .*docker run" \
	setpriv --bounding-set=-all ./mmtrace-for-all record -o "$recording" -p $nobodys
expect_denial '^mmtrace record: .* every CPU: permission denied: root has no .*docker run' \
	setpriv --bounding-set=-all ./mmtrace-for-all record -o "$recording" -a -- true

# With CAP_PERFMON alone everything is recorded.
timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+perfmon --ambient-caps=+perfmon \
	./mmtrace-for-all record -o "$recording" -- ./leak-anon --exit >workload.out 2>record.log ||
	fail "record with CAP_PERFMON ended with status $?: $(cat record.log)"
grep -q 'without CAP_PERFMON' record.log && fail "the summary: $(cat record.log)"
report_json
expect_true_report
expect_workload_answer no
expect_json '.completeness.warnings == []'

# A configuration that others could have written, or that is from an earlier boot, is not trusted.
expect_distrust() {
	expect_refusal 2 "$1" as_user ./mmtrace-for-all record -o "$recording" -- true
	"$MMTRACE" setup -q || fail "setup does not fix it ($1)"
	as_user ./mmtrace-for-all record -q -o "$recording" -- true 2>record.log || fail "not fixed ($1): $(cat record.log)"
}
chmod 666 $saved
expect_distrust 'users other than root can write it'
chown 65534 $saved
expect_distrust 'does not belong to root'
chmod 777 /run/mmtrace
expect_refusal 2 'users other than root can write there' as_user ./mmtrace-for-all record -o "$recording" -- true
expect_refusal 2 'users other than root can write there' "$MMTRACE" setup
chmod 755 /run/mmtrace
mv $saved theirs/saved
ln -s "$directory/theirs/saved" $saved
expect_distrust 'tracepoints'
echo precious >precious
ln -s "$directory/precious" /run/mmtrace/tracepoints.new
"$MMTRACE" setup -q || fail "setup beside a link"
[ "$(cat precious)" = precious ] || fail "setup wrote through a link"
sed -i 's/^\(MMTRTPS0\)[0-9a-f]/\1x/' $saved
expect_distrust 'earlier boot.*mmtrace setup'
head -c 1000 $saved >cut && cat cut >$saved
expect_distrust 'tracepoint'
rm -r /run/mmtrace
mv theirs /run/mmtrace-target
ln -s /run/mmtrace-target /run/mmtrace
expect_refusal 2 'cannot open /run/mmtrace' "$MMTRACE" setup
