#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A map of the program that runs last names its JIT code, and not that of a program that had the same PID earlier.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# record_programs NAME...: attach, let the programs run one after the other, stop.
record_programs() {
	local left
	start_workload jit-exec "$@"
	start_recording -p "$pid"
	for ((left = $#; left > 0; left--)); do
		go_on_until "begun-$left"
		let_recorder_catch_up
		go_on_until "written-$left"
		let_recorder_catch_up
	done
	let_work
	stop_recording
	report_json
	exec 3>&-
	wait "$pid" || fail "the workload ended with status $?"
	rm -f "/tmp/perf-$pid.map" "jit-$pid.dump"
	expect_true_report
}

# expect_names NAME...: names of the code, in the order of the calls; null: none.
expect_names() {
	expect_json "[.groups | sort_by(.first_ns)[] | .frames[] | select(.kind == \"jit\") | .function] == $1"
}

# The second program writes no map: the existing one is not its own. Nor is it kept for the first, whose memory is gone; both
# have the same stacks without names.
record_programs Old -
expect_names '[null]'
record_programs Old New
expect_names '[null, "New"]'
# The first program has no map: the later one is not its own.
record_programs - New
expect_names '[null, "New"]'
record_programs Old - New
expect_names '[null, "New"]'

# The same with jitdumps, which all use the same file in turn: the names of a program are lost if the next one overwrites it.
record_programs +Old -
expect_names '["Old", null]'
record_programs +Old +New
expect_names '[null, "New"]'
record_programs - +New
expect_names '[null, "New"]'
record_programs +Old - +New
expect_names '[null, "New"]' # the first two programs have the same stacks without names

# record_chain COMMAND...: the program executed last has a jitdump, and lives until the recorder has read all of it.
record_chain() {
	begin_command -- "$@" "$workloads/jit-exec" +Last
	printf '\n\n\n' >&3
	wait_until "the workload to finish" workload_printed 'done'
	let_recorder_catch_up
	end_command
	rm -f jit-[0-9]*.dump
	expect_true_report
	expect_names '["Last"]'
}

# One exec follows the other on CPUs whose rings are read in either order: the timestamps decide which program wrote the
# dump. The same for a child whose fork is in another CPU's ring.
mapfile -t cpus < <(awk '/^Cpus_allowed_list:/ { gsub(",", " "); for (i = 2; i <= NF; i++) {
	split($i, ends, "-"); for (cpu = ends[1]; cpu <= (ends[2] == "" ? ends[1] : ends[2]); cpu++) print cpu } }' \
	/proc/self/status)
record_chain env nice
[ ${#cpus[@]} -ge 2 ] || exit 0
for pair in "${cpus[0]} ${cpus[1]}" "${cpus[1]} ${cpus[0]}"; do
	read -r one other <<<"$pair"
	record_chain taskset -c "$one" taskset -c "$other"
	# shellcheck disable=SC2016 # expanded by that shell
	record_chain taskset -c "$one" sh -c 'taskset -c "$0" "$@"; exit $?' "$other"
done
