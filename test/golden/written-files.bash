# SPDX-License-Identifier: LGPL-2.1-or-later
# For tests of the files that mmtrace writes: runs it in an empty directory. Input: MMTRACE, SOURCE. Sets $data and $failed.
# Other tests place the recordings' program at its path for a while: while this script holds their lock (replay.bash), the
# program neither appears nor disappears, so that outputs can be compared.
exec 9</tmp && flock 9
set -u
export LC_ALL=C.UTF-8
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
cd "$directory" || exit 1
data=$SOURCE/test/data
failed=0

complain() {
	echo "$1" >&2
	failed=1
}

# run STATUS COMMAND...: mmtrace must exit with this status; its output and messages are in these files.
run() {
	local expected=$1 status=0
	shift
	"$MMTRACE" "$@" >output 2>messages || status=$?
	[ "$status" = "$expected" ] || complain "mmtrace $*: status $status instead of $expected: $(cat messages)"
}
