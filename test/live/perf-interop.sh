#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# perf is the oracle for the file: perf script reads it without a word and shows the same samples as mmtrace dump.
source "$SOURCE/test/live/support/recording.bash"

need_perf
command -v perf >/dev/null || skip "no perf is installed"
