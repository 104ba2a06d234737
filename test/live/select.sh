#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# --focus and --ignore select by function, module, file, class and thread, to the byte; the rest of the report follows.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
block=16384

start_workload owners
start_recording -p "$pid"
go_on_until round
stop_recording
go_on_until unmapped
let_work
let_end

# selects BLOCKS OPTION...
selects() {
	local blocks=$1
	shift
	report_json "$@"
	expect_json ".unfreed_bytes == $((blocks * block)) and ([.groups[].unfreed_bytes] | add // 0) == .unfreed_bytes and
		.unfiltered_unfreed_bytes == $everything and .unfiltered_committed_bytes == $committed" ||
		fail "$*: $(jq .unfreed_bytes report.json) bytes instead of $blocks blocks"
}

report_json
everything=$(jq .unfreed_bytes report.json)
committed=$(jq '.committed_bytes + .committed_before_bytes' report.json)
[ "$everything" -ge $((41 * block)) ] || fail "the workload mapped $everything bytes"
selects 16 --focus keep_cache
selects 28 --focus keep_cache --focus keep_buffer
selects 28 --focus 'keep_*' --ignore class=file
selects 13 --focus 'file=*pages*'
selects 13 --focus 'file=memfd:pages' --focus class=file
selects 13 --ignore 'function=keep_[bc]*' --focus module=owners --focus function='keep_*'
selects 5 --focus keep_cache --focus 'thread=worker-*'
selects 17 --focus 'keep_*' --focus 'thread=worker-*'
selects 8 --focus 'keep_*' --focus thread=worker-1
selects 11 --focus keep_cache --focus "thread=$pid"
selects 24 --focus 'keep_*' --ignore 'thread=worker-*'
selects 0 --focus keep
# In every grouping and in a window.
selects 16 --focus keep_cache --by class
selects 5 --focus keep_cache --focus 'thread=worker-*' --by function --every 100ms
expect_json ".steps[-1].unfreed_bytes == $((5 * block)) and (.focus | length) == 2 and .ignore == []"
selects 5 --focus keep_cache --focus 'thread=worker-*' --by thread
expect_json "[.thread_totals[].unfreed_bytes] | sort == [$((2 * block)), $((3 * block))]"

"$MMTRACE" report --no-pager --focus 'thread=worker-*' --focus 'keep_*' "$recording" >selected.txt || fail "report --focus"
grep -q '^  only --focus thread=worker-\*, keep_\*$' selected.txt &&
	grep -q "^  selected 272.0 KiB of .* unfreed, 272.0 KiB of .* committed$" selected.txt ||
	fail "the header does not show what was selected: $(head -12 selected.txt)"
"$MMTRACE" report --no-pager --focus keep "$recording" >selected.txt || fail "report --focus"
grep -q "nothing matches.*'\*name\*'" selected.txt || fail "nothing is selected, and no hint: $(cat selected.txt)"
grep -q 'no leak' selected.txt && fail "no leak where nothing was selected"

"$MMTRACE" report --focus theads=x "$recording" >refused.txt 2>&1
[ $? = 2 ] && grep -q "'theads' in 'theads=x' is not function, module, file, class or thread" refused.txt ||
	fail "an unknown key is accepted: $(cat refused.txt)"

# Both sides of a diff.
"$MMTRACE" diff --json --focus 'thread=worker-1' --ignore keep_cache --focus 'keep_*' "$recording" "$recording" >diff.json ||
	fail "diff --focus"
expect_json ".before.unfreed_bytes == $((5 * block)) and .after.unfreed_bytes == $((5 * block)) and .same_count == 1" diff.json
exit 0
