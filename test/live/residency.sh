#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Resident pages are read at each interval snapshot. A program touches, releases and touches memory again in phases: a
# report up to the end of a phase shows what was resident then, by stack, and so does the growth between two phases. The
# sums equal the kernel's counts but for what statm leaves out.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# Page readings since the last call; the count so far is in $readings.
has_new_reading() {
	local count
	"$MMTRACE" dump -i "$recording" >dump.out || return
	count=$(grep -c ' resident-pages ' dump.out)
	[ "$count" -gt $((readings + 1)) ] && readings=$count
}

start_workload growth phases
start_recording --snapshot-interval 100ms -p "$pid"
readings=0
for phase in 1 2 3 4; do
	go_on_until "phase-$phase"
	readings=$("$MMTRACE" dump -i "$recording" | grep -c ' resident-pages ')
	wait_until "resident pages of phase $phase" has_new_reading
done
let_work
stop_recording
let_end
report_json
expect_true_report
start=$(jq .start_ns report.json)
timestamps=("$start")
while read -r _ phase ns; do
	timestamps[phase]=$ns
done < <(grep '^timestamp ' workload.out)
[ ${#timestamps[@]} = 5 ] || fail "the workload did not print its timestamps: $(cat workload.out)"
older=(0) first=(0) second=(0) last=()

# Each CPU keeps changes of RSS back until they fill a batch (include/linux/percpu_counter.h), and statm leaves them out:
# the difference of two readings of anonymous memory may be off by a batch for each CPU, up or down, at both ends, and
# so may that of files.
cpus=$(nproc --all)
batch=$((2 * cpus > 32 ? 2 * cpus : 32))
statm_error=$((4 * cpus * batch * $(getconf PAGESIZE)))

# near FILTER BYTES: within 1 % of it, plus 128 KiB of stacks and libraries.
near() {
	expect_json "$1 - $2 | fabs <= $2 / 100 + 131072"
}

resident_of() {
	echo "([.groups[] | select(any(.frames[]; .function == \"$1\")) | .resident_bytes] | add // 0)"
}

while read -r _ phase _ bytes_first _ bytes_second _ bytes_older _ rss; do
	first[phase]=$bytes_first second[phase]=$bytes_second older[phase]=$bytes_older
	report_json --to "@${timestamps[phase]}"
	expect_json ".resident_ns > ${timestamps[phase - 1]} and .resident_ns < .to_ns"
	near "$(resident_of map_first)" "$bytes_first"
	near "$(resident_of map_second)" "$bytes_second"
	expect_json '.groups | all(.resident_bytes == null or .memory_bytes == .resident_bytes + .resident_before_bytes)'
	near '.resident_bytes' $((bytes_first + bytes_second))
	expect_json ".processes[0].resident_bytes - $rss | fabs <= $rss / 100 + $statm_error"
	expect_json ".growth | .pages_end_bytes - .pages_start_bytes - .unexplained_bytes - $((bytes_first + bytes_second + bytes_older)) | fabs <= $(((bytes_first + bytes_second + bytes_older) / 100 + 131072))"
	near '[.growth.parts[] | select(.place == "made").bytes] | add' $((bytes_first + bytes_second))
	expect_json '.growth | ([.parts[].bytes] | add) + .unexplained_bytes == .pages_end_bytes - .pages_start_bytes'
	expect_json ".growth | (.unexplained_bytes | fabs) <= $statm_error"
done < <(grep '^phase [0-9]' workload.out)
[ ${#first[@]} = 5 ] || fail "the workload did not print what is resident"

# From one phase to another: memory mapped in an earlier phase is older and may have been released. A window starts with the
# last reading of a phase: after its end, a later reading could be nearer.
"$MMTRACE" dump -i "$recording" | sed -n 's/^\([0-9]*\)\.\([0-9]*\) .* resident-pages .*/\1\2/p' >times.out
for phase in 1 2 3; do
	last[phase]=$(awk -v end="${timestamps[phase]}" '$1 < end { time = $1 } END { print time }' times.out)
	[ "${last[phase]}" -gt "${timestamps[phase - 1]}" ] || fail "no reading in phase $phase: $(cat times.out workload.out)"
done
report_json --from "@${last[1]}" --to "@${timestamps[2]}"
near '[.growth.parts[] | select(.place == "made").bytes] | add' "${second[2]}"
expect_json "[.growth.parts[] | select(.place == \"before\" and .bytes < 0).bytes] | add + ${first[2]} | fabs <= 131072"
report_json --from "@${last[2]}" --to "@${timestamps[3]}"
expect_json "([.growth.parts[] | select(.place == \"unmapped\").bytes] | add) + ${second[2]} | fabs <= 131072"
near '[.growth.parts[] | select(.place == "before" and .bytes > 0).bytes] | add' $((first[3] - first[2] + older[3]))
expect_json ".growth | (.unexplained_bytes | fabs) <= $statm_error"

"$MMTRACE" report --no-pager -i "$recording" --from "@${last[3]}" --to "@${timestamps[4]}" >report.txt || fail "report: status $?"
grep -qE '^  Resident pages were read [0-9.]+ m?s and [0-9.]+ m?s after the start; between these, RSS \+(39|40)\.[0-9]+ MiB:' report.txt ||
	fail "the report does not say between which readings the growth is: $(head -12 report.txt)"
grep -qE '^ +\+(39|40)\.[0-9]+ MiB  in mappings made in this window' report.txt || fail "no growth: $(head -12 report.txt)"
grep -qE 'resident +[0-9.]+ MiB \([0-9.]+ m?s after the start\)|[0-9.]+ MiB resident \([0-9.]+ m?s after the start\)' report.txt ||
	fail "the report does not say when resident pages were read: $(head -20 report.txt)"

# Each step shows the readings made in it, and a packed recording has the readings too.
report_json --every 50ms
expect_json "[.steps[].resident_bytes | values] | length >= 8 and max <= $((first[4] + second[4] + 131072)) and max >= $((first[4] + second[4] - 131072))"
expect_json "[.steps[].resident_bytes | values] | any(. - ${first[1]} | fabs <= 131072)"
report_json --to "@${timestamps[2]}"
"$MMTRACE" pack -q -o packed.data "$recording" || fail "pack failed"
"$MMTRACE" report --json -i packed.data --to "@${timestamps[2]}" >packed.json || fail "the packed recording has no report"
[ "$(jq -c '[.resident_bytes, .resident_ns, .growth.parts]' packed.json)" = "$(jq -c '[.resident_bytes, .resident_ns, .growth.parts]' report.json)" ] ||
	fail "the packed recording has other residency: $(jq -c .growth packed.json)"

# Without an interval there are no readings during recording, and a window has no resident bytes.
start_workload growth mmap
start_recording -p "$pid"
let_work
stop_recording
let_end
"$MMTRACE" dump -i "$recording" | grep -q ' resident-pages ' && fail "pages were read without a request"
report_json --to -1ms
expect_json '.resident_bytes == null and .resident_ns == null and .growth.pages_end_bytes == null'

# A command may end by itself at any time: its pages are read whenever its maps are.
rm -f "$recording"
start_command "$MMTRACE" record -q -o "$recording" -- "$workloads/growth" mmap
let_work
readings=0
wait_until "resident pages of the command" has_new_reading
wait_until "later resident pages of the command" has_new_reading
let_end
report_json
read -r _ bytes <<<"$(grep '^touched ' workload.out)"
expect_json '.processes[0].ended and .resident_ns < .to_ns'
near "$(resident_of map_block)" "$bytes"
expect_json '([.growth.parts[] | select(.place == "made").bytes] | add) == .resident_bytes'
exit 0
