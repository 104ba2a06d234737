#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Leaks by a plugin that stays and by one that was closed and mapped over.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
attach_case leak-dlopen
command_case leak-dlopen
