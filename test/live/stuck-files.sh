#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize alone
# A file system that never answers, below a target's /tmp and its TMPDIR, or whose file is mapped while somebody holds the
# target's mmap_lock: the recorder goes on without what is there, and ends when the user stops it. The file system still does
# not answer then, so without a helper process the recorder would not end.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
need_own_mounts
[ "$(id -u)" = 0 ] && [ -w /dev/fuse ] || skip "no FUSE file system can be mounted here"
mkdir files own
# The silent file system hides /tmp from the targets, and the build may be there.
programs=$(mktemp -d /var/tmp/mmtrace-test.XXXXXX) || fail "no directory below /var/tmp"
trap 'end_everything; rm -rf "$programs"' EXIT
cp "$workloads/stuck" "$programs"
cp "$workloads/stuck" libcoreclr.so

# In a mount namespace of its own.
start_silent_files() {
	start_command unshare --mount bash -c 'mount --make-rprivate / && exec "$0" "$1"' "$workloads/silent-files" \
		"$directory/files"
	files=$pid
}

# start_target [FILE]: in a mount namespace of its own, with the silent file system as its /tmp and TMPDIR.
start_target() {
	start_command nsenter --mount --target "$files" unshare --mount env TMPDIR="$directory/own" bash -c \
		'cd "$1" && mount --bind files own && mount --bind files /tmp && exec "$0" "${@:2}"' \
		"$programs/stuck" "$directory" "$@"
	# A PID may have a perf map already.
	rm -f "/tmp/perf-$pid.map"
}

# Only the command lines of processes that can be read are looked at.
left_helpers() {
	local path count=0
	for path in /proc/[0-9]*; do
		[ "$(cat "$path/comm" 2>/dev/null)" = mmtrace ] || continue
		grep -qaF "$directory" "$path/environ" 2>/dev/null && ! grep -q '^State:.Z' "$path/status" && count=$((count + 1))
	done
	echo "$count"
}

helpers_are_gone() {
	[ "$(left_helpers)" = 0 ]
}

has_ended() {
	! lives "$recorder"
}

# end_recording HELPERS: although nothing answers. So many helpers stay, each inside a call.
end_recording() {
	kill -INT "$recorder"
	wait_until "the recorder to end" has_ended
	wait "$recorder" || fail "record ended with status $?: $(cat record.log)"
	[ $(($(left_helpers) - helpers)) -le "$1" ] || fail "$(left_helpers) helpers are left instead of $1: $(cat record.log)"
	helpers=$(left_helpers)
}
helpers=0

expect_warning() {
	[ "$(grep -c "warning: .*$1" record.log)" = 1 ] || fail "not one warning about '$1': $(cat record.log)"
}

has_events() {
	[ "$(stat -c %s "$recording")" -gt 8192 ]
}

# Two targets on one file system cost one helper, and one for asking the runtime. The rings are read all the time.
start_silent_files
start_target
first=$pid
start_target
for options in "-p $first,$pid" "-p $first --ask-runtime" "-a"; do
	read -r -a words <<<"$options"
	begin_recording "${words[@]}"
	wait_until "the recorder to find that there is no answer" grep -q 'file system.*does not answer' record.log
	wait_until "events to be recorded" has_events
	case $options in
	*ask*)
		wait_until "the runtime to be given up" grep -q 'no names for.*does not answer' record.log
		end_recording 2
		;;
	*) end_recording 1 ;;
	esac
	report_json
	expect_true_report
	expect_json ".processes[] | select(.pid == $first) | .checked and .unfreed_bytes > 0"
	expect_warning 'a file system of a recorded process does not answer'
done

# When the file system is gone, nobody is stuck any more.
kill -9 "$files" "$first" "$pid"
wait_for_end "$files" "$first" "$pid"
wait_until "the helpers to end" helpers_are_gone
helpers=0

# The memory of the target cannot be read: before the recording, and during it.
for when in before during; do
	start_silent_files
	start_target /tmp/file
	[ $when = during ] || go_on_until stuck
	begin_recording -p "$pid"
	[ $when = before ] || go_on_until stuck
	end_recording 3
	kill -9 "$files"
	wait_for_end "$files"
	wait_until "the helpers to end" helpers_are_gone
	helpers=0
	report_json
	expect_json '.completeness.lost_events == 0'
	kill -9 "$pid"
	wait_for_end "$pid"
done

# A target in an exec that closes a file: the kernel lets everybody wait who reads its stat, exe or maps, or opens an event of
# one of its threads. The rings are read all the time.
is_in_exec() {
	local size code
	read -r size _ _ code _ <"/proc/$1/statm" && [ "$size" -gt 0 ] && [ "$code" = 0 ]
}

has_grown() {
	[ "$(stat -c %s "$recording")" -gt "$size" ]
}

# start_exec: a target in the mount namespace of the silent file system.
start_exec() {
	start_command nsenter --mount --target "$files" "$programs/stuck" "$directory/files/file" exec
	executing=$pid
}

begin_exec() {
	echo >&3
	wait_until "the target to be in its exec" is_in_exec "$executing"
}

use_own_group
scopes=("-p FIRST,EXEC --scope cpus" "-p FIRST,EXEC --scope threads" "-a" "--scope cpus -- $programs/stuck")
[ -z "$own_group" ] || scopes+=("-G $own_group")

# Descriptor 3 is that of the command started last, which waits for input.
for options in "${scopes[@]}"; do
	for when in before during; do
		start_silent_files
		start_command "$programs/stuck"
		first=$pid
		start_exec
		[ $when = during ] || begin_exec
		read -r -a words <<<"$(sed "s/FIRST/$first/; s/EXEC/$executing/" <<<"$options")"
		begin_recording "${words[@]}"
		[ $when = before ] || begin_exec
		case $options in
		*--\ *) first=$(child_of "$recorder") ;;
		*) wait_until "the recorder to find that there is no answer" grep -q 'does not answer, perhaps' record.log ;;
		esac
		size=$(stat -c %s "$recording")
		wait_until "events to be recorded" has_grown
		end_recording 0
		[ -z "$(grep 'does not answer, perhaps' record.log | grep -v "process $executing")" ] ||
			fail "another process is said to be stuck: $(cat record.log)"
		report_json
		expect_json ".processes[] | select(.pid == $first) | .checked"
		[[ $options = -a ]] || expect_json '.completeness.lost_events == 0'
		kill -9 "$files" "$first" "$executing"
		wait_for_end "$files" "$first" "$executing"
	done
done

# The program itself lies there, so its exec does not return.
is_in_call() {
	local command
	command=$(child_of "$recorder") && [ "$1" != top ] || command=$(child_of "$command")
	grep -qE '^State:.D|fuse' "/proc/$command"/{status,stack}
}

start_silent_files
for options in record "record --scope cpus" "top"; do
	read -r -a words <<<"$options"
	env --default-signal=INT nsenter --mount --target "$files" "$MMTRACE" "${words[@]}" -o program.data -- \
		"$directory/files/file" >record.log 2>&1 &
	recorder=$!
	processes+=("$recorder")
	wait_until "the command to be stuck" is_in_call "${words[0]}"
	kill -INT "$recorder"
	wait_until "$options to end" has_ended
	grep -q 'SIGTERM.*did not end' record.log || fail "$options has another end: $(cat record.log)"
done
kill -9 "$files"
wait_for_end "$files"
