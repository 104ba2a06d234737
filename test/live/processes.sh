#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Children of every kind, each on its own and together: inherited memory is not theirs, and shared memory counts once.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for kind in fork fork-busy clone-vm clone-no-vm group-exit in-turn pid-reuse; do
	echo "$kind"
	attach_case processes $kind
	expect_check 0
	# Calls of busy threads during the fork may be visible only in the child's maps.
	[ $kind = fork-busy ] || expect_json '.completeness.ambiguous_events == 0'
done
