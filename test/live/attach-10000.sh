#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone
# Attaching to a process of 10,000 threads does not need a descriptor for each thread, and records what its threads, old and
# new, and its children do.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
start_workload many-idle 10000
[ "$(ls "/proc/$pid/task" | wc -l)" = 10001 ] || fail "it does not have 10,001 threads"
# The usual soft and hard limit, which the recorder does not raise. Machines with more than 24 CPUs need more.
cpus=$(nproc --all)
ulimit -n $((cpus > 24 ? 64 + 40 * cpus : 1024))
start_recording -v -m 64M -p "$pid"
grep -q 'attached to every CPU, for 10001 threads' record.log || fail "$(cat record.log)"
# For each CPU: the events and the rings; and the descriptors that keep the tracepoints open.
events=$(find "/proc/$recorder/fd" -lname '*perf_event*' | wc -l)
[ "$events" -le $((20 + 39 * cpus)) ] || fail "the recorder has $events events open"
let_work
stop_recording
grep -q 'recorded on every CPU' record.log || fail "the summary does not say so"
report_json
let_end
expect_true_report
expect_json ".processes | length == 2 and all(.checked or .ended) and (map(.pid == $pid) | any)"
expect_workload_answer yes
expect_check 0

# If per-thread events are requested, the message says how many descriptors they would need.
use_own_group
start_workload many-idle 10000
(ulimit -n 20000 2>/dev/null; "$MMTRACE" record --scope threads -o refused.data -p "$pid" 2>refused.log) &&
	fail "10,000 threads were attached to one by one"
grep -q 'file descriptors.*ulimit -n' refused.log || fail "$(cat refused.log)"
[ ! -e refused.data ] || fail "a recording was left behind"
# A control group that has hardly any other thread is used instead.
if [ -n "$own_group" ]; then
	start_recording -v -m 64M -p "$pid"
	grep -q 'attached in control groups, for 10001 threads' record.log || fail "$(cat record.log)"
	let_work
	stop_recording
	grep -qF "recorded in the control group $own_group;" record.log || fail "$(cat record.log)"
	report_json
	expect_true_report
	expect_workload_answer yes
fi
