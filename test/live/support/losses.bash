# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes more calls than the rings have room for; their number is known in advance. Source after recording.bash.

# stop_recorder: the recorder stops reading.
stop_recorder() {
	kill -STOP "$recorder"
	wait_until "the recorder to stop" grep -q '^State:.T' "/proc/$recorder/status"
}

# record_overflow CHURN OPTION...: the workload does most of its work while the recorder is stopped. Sets $made_mmap,
# $made_munmap, $unseen and $released as printed by the workload; $directory/dump.out is the dump.
record_overflow() {
	local churn=$1
	shift
	start_workload overflow "$churn"
	start_recording "$@" -p "$pid"
	go_on_until first
	let_recorder_catch_up
	stop_recorder
	go_on_until over
	kill -CONT "$recorder"
	let_recorder_catch_up # there is room in the rings again
	go_on_until 'done'
	stop_recording
	read -r made_mmap made_munmap unseen released < <(awk '/^made/ { print $3, $5, $7, $9 }' "$directory/workload.out")
	report_json
	"$MMTRACE" dump -i "$recording" >"$directory/dump.out" || fail "dump failed"
}

# attribute_lost NAME ROLE: number of lost events of this kind, as counted by the kernel.
attribute_lost() {
	awk -v name="$1" -v role="role $2," \
		'/^# attribute/ && index($0, "name \"" name "\",") && index($0, role) { sum += $NF } END { print sum + 0 }' \
		"$directory/dump.out"
}

# all_lost: of the events that the figures depend on.
all_lost() {
	awk '/^# attribute/ && / role (syscall|new-task|side-band|lock),/ { sum += $NF } END { print sum + 0 }' "$directory/dump.out"
}

# recorded CALL: number of recorded calls.
recorded() {
	grep -c " call event=syscalls:sys_exit_$1 $1(" "$directory/dump.out"
}
