#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Mappings that MAP_FIXED replaces in place and that are unmapped once are not a leak.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case map-fixed
expect_json '.unfreed_bytes == 0 and .allocated_bytes == .freed_bytes and .allocated_bytes > 0'
expect_check 0
command_case map-fixed
