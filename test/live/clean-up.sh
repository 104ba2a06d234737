#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The clean-up of tests removes from /tmp the files of the test's own ended processes, and no others.
number=$((5000000 + $$)) # no process has such a number
older=/tmp/perf-$number.map
: >"$older"
sleep 0.1
source "$SOURCE/test/live/support/recording.bash" || exit 2
traces=("/tmp/perfinfo-$number.map" "/tmp/jit-$number.dump" "/tmp/.java_pid$number" "/tmp/.attach_pid$number"
	"/tmp/clr-debug-pipe-$number-1-in" "/tmp/dotnet-diagnostic-$number-1-socket")
trap 'rm -f "$older" "${traces[@]}"; end_everything' EXIT
sleep 0.1

# check WORD FILE WHY: the file exists, or does not.
check() {
	[ "$1" = "$([ -e "$2" ] && echo there || echo gone)" ] || fail "$2 is not $1: $3"
}

touch -d '1 hour ago' "${traces[@]}"
remove_traces "$((number + 1))"
for path in "${traces[@]}"; do
	check there "$path" "no process of another number made it"
done
remove_traces "$number"
for path in "${traces[@]}"; do
	check gone "$path" "it was made since the test began"
done
check there "$older" "it was made before the test began"

# Files of living processes stay.
sleep 100 &
living=$!
processes+=("$living")
: >"/tmp/perf-$living.map"
remove_traces "$living"
check there "/tmp/perf-$living.map" "its process lives"
{ kill -9 "$living" && wait "$living"; } 2>/dev/null
remove_traces "$living"
check gone "/tmp/perf-$living.map" "its process has ended"

# A process that reuses a PID finds none of our files, however old.
(
	began=@$((EPOCHSECONDS + 1000))
	: >"/tmp/perf-$BASHPID.map"
	run_without_leftovers [ ! -e "/tmp/perf-$BASHPID.map" ]
) || fail "a new process finds the map of an earlier one"

# Files of another user.
if [ "$(id -u)" = 0 ]; then
	began=@1
	chown 65534 "$older"
	remove_traces "$number"
	check there "$older" "it is another user's"
fi
