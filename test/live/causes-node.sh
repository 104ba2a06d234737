#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: node:nodejs
# The report explains growth of Node, outside and inside its heap.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/causes.bash" || exit 2

need_perf
command -v node >/dev/null || skip "no node is installed"
grow=$SOURCE/test/workload/causes/grow.js

record_cause node "$grow" buffers
expect_cause 'process.memoryUsage().arrayBuffers'
expect_next "node inspect -p $pid"
expect_json '[.groups[] | select(.pattern == "array-buffer") | .unfreed_bytes] | add >= 64 * 1048576'
record_cause node "$grow" reused
expect_no_cause 'arrayBuffers'
record_cause node "$grow" heap
expect_cause 'JavaScript heap'
expect_next "node inspect -p $pid"
expect_no_cause 'arrayBuffers'
