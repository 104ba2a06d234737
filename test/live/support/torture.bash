# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/live/torture-*.sh and test/torture, after recording.bash.

# torture_start: how recording starts, "attach" or "command".
torture_start=attach

record_command() {
	local status
	"$MMTRACE" record -q -g none -m 64M -o "$recording" -- \
		"$workloads/torture" --exit "$1" "$directory" "${@:2}" >"$directory/workload.out" 2>"$directory/record.log"
	status=$?
	[ $status = 0 ] || {
		cat "$directory/workload.out" "$directory/record.log" >&2
		fail "record -- torture $* ended with status $status"
	}
}

record_attached() {
	start_workload torture "$1" "$directory" "${@:2}"
	start_recording -q -g none -m 64M -p "$pid"
	let_work
	stop_recording
	let_end
}

# torture_record MODE FIRST-SEED SEEDS OPERATIONS [without=NAME]...: into $recording and $directory/maps.*
torture_record() {
	rm -f "$directory"/maps.*
	if [ $torture_start = command ]; then
		record_command "$@"
	else
		record_attached "$@"
	fi
	grep '^torture ' "$directory/workload.out" || fail "the torture program printed nothing"
}

# torture_case MODE FIRST-SEED SEEDS OPERATIONS: records and compares at every checkpoint, attached before the program
# starts, and from its exec on. TORTURE_SEEDS: fewer seeds, on an emulated machine.
torture_case() {
	set -- "$1" "$2" "${TORTURE_SEEDS:-$3}" "$4"
	for torture_start in attach command; do
		torture_record "$@"
		"$BUILD/test/torture-check" "$recording" "$directory" ||
			fail "the model differs from the kernel ($torture_start)"
	done
}
