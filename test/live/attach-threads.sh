#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Attaching to a process that creates threads all the time: once recording has started, every call of every thread is
# recorded once.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/relay.bash" || exit 2

need_perf
relay_rounds 5
