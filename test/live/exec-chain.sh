#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Programs that execute others at once, whose maps the recorder opened when the next one took their place: what it then
# reads is nothing, and not the next program's.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
preload slow-maps
begin_command -- env -u LD_PRELOAD nice nice "$workloads/leak-anon"
wait_until "the workload to be ready" workload_said ready
let_recorder_catch_up
go_on_until 'done'
end_command
expect_true_report
expect_workload_answer no
