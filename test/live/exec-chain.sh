#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Programs that execute others at once, whose maps the recorder opened when the next one took their place: what it then
# reads is nothing, and not the next program's.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
mkfifo workload.in
: >workload.out
# The sanitizers' library wants to be loaded first.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 LD_PRELOAD=$workloads/libslow-maps.so \
	env --default-signal=INT "$MMTRACE" record -o "$recording" -- env -u LD_PRELOAD nice nice "$workloads/leak-anon" \
	<workload.in >workload.out 2>record.log 3>&- &
recorder=$!
processes+=("$recorder")
exec 3>workload.in
wait_until "the workload to be ready" workload_said ready
let_recorder_catch_up
go_on_until 'done'
exec 3>&-
wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
report_json
expect_true_report
expect_workload_answer no
