#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Programs that execute the next one at once: if a process executes another program after the recorder has opened its maps,
# the recorder reads nothing, and not the next program's maps.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
preload slow-maps
begin_command -- env -u LD_PRELOAD nice nice "$workloads/leak-anon"
wait_until "the workload to be ready" workload_printed ready
let_recorder_catch_up
go_on_until 'done'
end_command
expect_true_report
expect_workload_answer no
