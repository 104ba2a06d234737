#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# During a long recording (hundreds of thousands of calls, as many as some programs make in minutes) the recorder's memory
# does not grow with the calls, nor with the maps that it reads all the time.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
# In the sanitizer build, freed memory is reused soon.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:quarantine_size_mb=1
# Private memory only: before Linux 6.14 used ring pages count as resident.
memory_kib() {
	awk '/^RssAnon:/ { print $2 }' "/proc/$recorder/status"
}
has_grown_by() {
	[ "$(stat -c %s "$recording")" -gt $(($1 + $2)) ]
}
start_workload noleak 1000000000
start_recording -m 16M --code none --images none --snapshot-interval 200ms -p "$pid"
echo >&3
# Buffers, names and tables that every recording has.
wait_until "the first calls to be written" has_grown_by 0 1000000
sleep 2
wait_until "some of the next calls to be written" has_grown_by 0 2000000
# A buffer grows to what the longest delay of the recorder requires, whenever that happens. What the calls themselves leave
# behind grows with their number.
for ((i = 0; i < 6; i++)); do
	before=$(memory_kib) size=$(stat -c %s "$recording")
	wait_until "many calls to be written" has_grown_by "$size" 4000000
	after=$(memory_kib)
	[ $((after - before)) -ge 256 ] || break
done
stop_recording
{ kill -9 "$pid" && wait "$pid"; } 2>/dev/null
report_json
calls=$(jq '[.events[]] | add' report.json)
echo "$calls calls; recorder: $before KiB, then $after KiB, after growing in $i pieces"
[ "$calls" -gt 150000 ] || fail "only $calls calls"
[ $i -lt 6 ] || fail "the recorder grows all the time, at last from $before to $after KiB"
