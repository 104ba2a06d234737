#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Leaks of private and shared file mappings.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-file
command_case leak-file
