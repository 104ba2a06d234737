#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick sanitize
# A child leaks after fork; inherited memory does not count.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-fork
expect_json '.processes | length == 2'
command_case leak-fork
