#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A leak before exec is gone; a leak after exec counts.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-exec
command_case leak-exec
