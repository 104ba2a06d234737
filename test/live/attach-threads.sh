#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# A process that starts threads all the time is attached to: from the moment of recording on every call of every thread
# is in the recording, once.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/relay.bash" || exit 2

need_perf
relay_rounds 5
