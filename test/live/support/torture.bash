# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/live/torture-*.sh and test/torture, after recording.bash.

# torture_record MODE FIRST-SEED SEEDS OPERATIONS [without=NAME]...: into $recording and $directory/maps.*
torture_record() {
	local options=() status
	[ "$1" != races ] || options=(--exact-order)
	rm -f "$directory"/maps.*
	"$MMTRACE" record -q -g none -m 64M "${options[@]}" -o "$recording" -- \
		"$workloads/torture" --exit "$1" "$directory" "${@:2}" >"$directory/workload.out" 2>"$directory/record.log"
	status=$?
	[ $status = 0 ] || {
		cat "$directory/workload.out" "$directory/record.log" >&2
		fail "record -- torture $* ended with status $status"
	}
	grep '^torture ' "$directory/workload.out" || fail "the torture program said nothing"
}

# torture_case MODE ...: records and compares at every checkpoint.
torture_case() {
	torture_record "$@"
	"$BUILD/test/torture-check" "$recording" "$directory" || fail "the model differs from the kernel"
}
