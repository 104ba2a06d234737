#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# Recording stops while gigabytes are being unmapped, which takes the kernel much longer than to remove them from the map:
# the call is recorded, and the model equals the kernel's maps.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
available=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
[ "${available:-0}" -gt 4000000 ] || skip "only ${available:-no} KiB of memory are available"

# printed WORD COUNT: the workload has printed the word this often.
printed() {
	[ "$(grep -c "^$1" workload.out)" = "$2" ]
}

round=0
start_workload free-much 1536
echo >&3
for delay in 0 0.005 0.02 0.05; do
	round=$((round + 1))
	wait_until "the memory to be touched" printed touched $round
	start_recording -p "$pid"
	echo >&3
	until printed releasing $round; do
		kill -0 "$pid" || fail "the workload ended"
	done
	sleep $delay
	stop_recording
	grep 'still inside a system call' record.log && fail "the recorder did not wait for the release, $delay seconds after it began"
	report_json
	expect_true_report
	expect_json '.events.munmap == 1 and (.processes | length == 1 and .[0].checked and .[0].reconciled_bytes == 0)'
	expect_check 0
done
kill -9 "$pid"
