#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A call that the kernel refuses names the limit that it met, and how near it was.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

# refused KIND NAME VALUE WORDS: the limit's name and value in JSON, and what the text says below the verdict.
refused() {
	attach_case refused "$1"
	expect_json '.failures | length == 1 and .[0].refused and .[0].limit == "'"$2"'"'
	expect_json '.failures[0] | .limit_used <= .limit_value and .limit_used + 2097152 > .limit_value'
	[ -z "$3" ] || expect_json ".failures[0].limit_value == $3"
	"$MMTRACE" report --no-pager -i "$recording" >report.txt || fail "report ended with status $?"
	grep -A1 '^FAILED: 1 x mmap E[A-Z]* for 2.00 MiB, .* in ask_until_refused$' report.txt | grep -qF "$4" ||
		fail "$1: the text does not say: $4: $(cat report.txt)"
}

refused address-space RLIMIT_AS 134217728 'The limit of address space is met: 12'
refused data RLIMIT_DATA 134217728 'The limit of data is met: 12'
refused locked RLIMIT_MEMLOCK '' 'The limit of locked memory is met: '
refused huge-pages HugePages_Total '' 'The pool of huge pages is too small: '

"$MMTRACE" pack -q -o packed.data "$recording" && "$MMTRACE" report --json -i packed.data >packed.json ||
	fail "the packed recording has no report"
[ "$(jq -c '.failures[0] | del(.frames)' packed.json)" = "$(jq -c '.failures[0] | del(.frames)' report.json)" ] ||
	fail "the packed recording has another limit"

# The target sets the limit itself, and ends: it is read with RSS, not only with the maps at the end.
# How soon that is depends on the load.
for seconds in 2 8 30; do
	start_workload refused address-space
	start_recording -p "$pid"
	let_work
	sleep "$seconds"
	let_end
	wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
	report_json
	[ "$(jq -r '.failures[0].limit' report.json)" != RLIMIT_AS ] || break
done
expect_json '.failures | length == 1 and .[0].limit == "RLIMIT_AS" and .[0].limit_value == 134217728'
