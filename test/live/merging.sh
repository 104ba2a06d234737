#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Mappings are split and merged all the time: the final maps list overlapping lines, and residency is still known.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for round in 1 2 3; do
	record_command_for 20 -q -g none -m 64M -- "$workloads/merging"
	report_json
	expect_json '.completeness | .incomplete or .damaged | not'
	expect_json '.processes | length == 1 and .[0].checked'
	expect_json '[.groups[] | .resident_bytes // 0] | add >= 6000 * 4096'
done
