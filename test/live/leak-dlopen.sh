#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Leaks of a plugin that stays loaded and of one that was closed and whose addresses were reused.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-dlopen
command_case leak-dlopen
