#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Like attach-threads, with thread IDs that are reused while mmtrace attaches: a PID namespace with few IDs. Before Linux
# 6.14 the maximum applies to the whole machine; the test then leaves it alone.
if [ -z "${IN_NAMESPACE:-}" ]; then
	printf '6.14\n%s\n' "$(uname -r)" | sort -V -C || {
		echo "SKIPPED: no maximum of process numbers of a namespace's own" >&2
		exit 77
	}
	unshare -pf --mount-proc true 2>/dev/null || {
		echo "SKIPPED: no namespace can be made" >&2
		exit 77
	}
	IN_NAMESPACE=1 exec unshare -pf --mount-proc bash "$0"
fi
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/relay.bash" || exit 2

need_perf
echo 1000 >/proc/sys/kernel/pid_max || skip "the maximum PID cannot be set"
relay_rounds 5
[ "$(ls -d /proc/[0-9]* | sed 's/.*\///' | sort -n | tail -1)" -le 1000 ] || fail "process numbers beyond 1,000"
