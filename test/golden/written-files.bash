# SPDX-License-Identifier: LGPL-2.1-or-later
# For tests of what mmtrace writes where: runs it in an empty directory. Given: MMTRACE, SOURCE. Set here: $data, $failed.
# Other tests put the program of the recordings at its place for a while: under this lock of theirs (replay.bash), it
# neither comes nor goes, so that outputs can be compared.
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

# run STATUS COMMAND...: mmtrace must end with this status; its output and messages are in these files.
run() {
	local expected=$1 status=0
	shift
	"$MMTRACE" "$@" >output 2>messages || status=$?
	[ "$status" = "$expected" ] || complain "mmtrace $*: status $status instead of $expected: $(cat messages)"
}
