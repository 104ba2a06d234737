#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A program maps and unmaps a lot and leaves nothing: no leak.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case noleak
expect_json '.unfreed_bytes == 0 and .allocated_bytes > 0 and .allocated_bytes == .freed_bytes'
command_case noleak 2000
