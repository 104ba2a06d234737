#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A target in its own PID and mount namespaces and root directory, which nobody outside can see and which is gone when it
# ends: its stacks are complete and symbolized, JIT code included.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
unshare --pid --mount --fork true 2>/dev/null || skip "no namespaces can be made here"

# Outside, this path holds another program, and a library does not exist at all.
program=$directory/program
cp "$workloads/noleak" "$program"

# A root on a file system that only its own namespace has; the program has PID 1 there. With "pivot" the root is that of the
# namespace, as in containers, otherwise that of the process only: its paths look different from outside.
cat >"$directory/container" <<'END'
set -e
root=$1 workload=$2 program=$3
mount --make-rprivate /
mount -t tmpfs container "$root"
mkdir -p "$root/tmp" "$root/proc" "$root/$(dirname "$program")"
mount -t proc proc "$root/proc"
cp "$workload" "$root/$program"
copy_library() {
	mkdir -p "$root/$(dirname "$1")"
	cp -L "$1" "$root/$1"
}
for library in $(ldd "$workload" | grep -o '/[^ ]*'); do
	copy_library "$library"
done
if [ "$4" = pivot ]; then
	mkdir "$root/old"
	cd "$root"
	pivot_root . old
	cd /
	exec "$program" "${@:5}"
fi
exec chroot "$root" "$program" "${@:5}"
END
mkdir "$directory/root"

# start_container chroot|pivot [OPERAND...]: sets $pid to the process as seen from outside.
start_container() {
	start_command unshare --pid --mount --fork --kill-child bash "$directory/container" "$directory/root" \
		"$workloads/jit-code" "$program" "$@"
	pid=$(child_of "$pid")
	[ "$(awk '/^NSpid/ { print NF - 1 }' "/proc/$pid/status")" -ge 2 ] || fail "process $pid has no namespace of its own"
	[ ! -e "$directory/root/tmp" ] || fail "the root is visible outside"
}

expect_complete_stacks() {
	expect_true_report
	# Through the program and its JIT code to the thread's entry.
	for kind in Anonymous Doubly; do
		expect_json "[.groups[] | select([.frames[] | select(.inlined | not) | .function][:5] ==
			[\"mmap\", \"native_allocate\", \"${kind}Inner\", \"${kind}Outer\", \"main\"])] |
			length == 1 and .[0].stack_end == \"entry\" and .[0].unfreed_count == 10"
	done
	expect_json '[.groups[].frames[] | select(.function == "native_allocate")] |
		length == 2 and all(.source_file | endswith("jit-code.c"))'
	expect_json '.completeness.warnings | length == 0'
}

# Attached to from outside; the process is killed, and its root is gone, before the report.
for root in chroot pivot; do
	start_container $root
	start_recording -p "$pid"
	let_work
	kill -9 "$pid"
	wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
	report_json
	expect_complete_stacks
done
size=$(stat -c %s "$recording")

# Without the copies the report names the missing file, and does not symbolize with the other file of that path.
start_container pivot
start_recording -p "$pid" --images none
let_work
kill -9 "$pid"
wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
[ "$(stat -c %s "$recording")" -lt "$size" ] || fail "--images none copied something"
report_json
expect_json "[.completeness.warnings[] | select(contains(\"$program is not the build that was recorded\"))] | length == 1"
expect_json '[.completeness.warnings[] | select(contains("mmtrace pack"))] | length == 1'
expect_json '[.groups[].frames[] | select(.function // "" | test("native_allocate|^main"))] | length == 0'

# The recorder runs inside too: PIDs are those of the namespace, and the map is in the shared /tmp.
unshare --pid --mount --fork --mount-proc "$MMTRACE" record -q -o "$recording" -- "$workloads/jit-code" --exit \
	>"$directory/workload.out" 2>"$directory/record.log"
status=$?
report_json
inside=$(jq '.processes[0].pid' "$directory/report.json")
[ "$inside" -lt 10 ] || fail "process $inside is not numbered as in the namespace"
rm -f "/tmp/perf-$inside.map"
[ $status = 0 ] || fail "record inside ended with status $status: $(cat "$directory/record.log")"
expect_complete_stacks
