# SPDX-License-Identifier: LGPL-2.1-or-later
# More calls than the rings have room for, of which is known beforehand how many there are. After recording.bash.

# stop_recorder: from here on it does not read.
stop_recorder() {
	kill -STOP "$recorder"
	wait_until "the recorder to stand still" grep -q '^State:.T' "/proc/$recorder/status"
}

# record_overflow CHURN OPTION...: the workload does most of its work while the recorder stands still. Sets $made_mmap,
# $made_munmap, $unseen and $released, as the workload says them; $directory/dump.out is what was recorded.
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

# attribute_lost NAME ROLE: how many the kernel has lost of that event.
attribute_lost() {
	awk -v name="$1" -v role="role $2," \
		'/^# attribute/ && index($0, "name \"" name "\",") && index($0, role) { sum += $NF } END { print sum + 0 }' \
		"$directory/dump.out"
}

# all_lost: of the events that the figures rest on.
all_lost() {
	awk '/^# attribute/ && / role (truth|new-task|side-band|lock),/ { sum += $NF } END { print sum + 0 }' "$directory/dump.out"
}

# recorded CALL: how many calls of it.
recorded() {
	grep -c " call event=syscalls:sys_exit_$1 $1(" "$directory/dump.out"
}
