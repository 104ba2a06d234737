# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by test/live/stacks-*.sh, after recording.bash: builds programs and records them from start to end with stack
# dumps larger than their stacks and rings large enough for all of them; every stack must reach the entry of its thread.

stack_sources=$SOURCE/test/workload/stacks
stage_source=$SOURCE/test/workload/support/stage.c
# Compiled like production code, with line numbers. The dump size is enough for every stack here, unless a test overrides
# it.
stack_options=(-O2 -g -fomit-frame-pointer -D_GNU_SOURCE -I"$SOURCE/test/workload")
stack_bytes=32768

# The functions at which threads start, as FUNCTION@MODULE; a stripped program has no name for its _start.
stack_entries='^(_start|_dl_start_user|__clone|__clone3|clone|clone3|thread_start)@'

build_program() {
	"$@" >"$directory/build.log" 2>&1 || fail "$*: $(cat "$directory/build.log")"
}

# record_stacks [VARIABLE=VALUE]... COMMAND [ARGUMENT]...: into $recording and report.json.
record_stacks() {
	local status variables=()
	while [[ $1 == [A-Za-z]*=* ]]; do
		variables+=("$1")
		shift
	done
	env "${variables[@]}" "$MMTRACE" record -q ${raw_stacks:+--raw} -m 256M -g "${stack_graph:-dwarf,$stack_bytes}" -o "$recording" -- "$@" \
		>"$directory/workload.out" 2>"$directory/record.log" </dev/null
	status=$?
	[ $status = 0 ] || fail "record -- $* ended with status $status: $(cat "$directory/workload.out" "$directory/record.log")"
	report_json
	remove_recorded_traces
	expect_json '.completeness.lost_events == 0 and .completeness.lost_stack_dumps == 0'
}

# Options of `record` for the functions below.
living_options=()

# record_living_stacks [VARIABLE=VALUE]... COMMAND [ARGUMENT]...: the same for a program that waits before and after its
# work, so that its JIT code can be copied.
record_living_stacks() {
	start_command env "$@"
	start_recording -q -m 256M -g "${stack_graph:-dwarf,$stack_bytes}" "${living_options[@]}" -p "$pid"
	let_work
	stop_recording
	report_json
	let_end
	expect_json '.completeness.lost_events == 0 and .completeness.lost_stack_dumps == 0'
}

# code_bytes PROCESS: resident bytes of its executable memory outside ELF files, or in one of .NET's.
code_bytes() {
	awk '/^[0-9a-f]+-/ {
			code = $2 ~ /x/ && ($6 == "" || $6 ~ /^(\/memfd:|\[anon|\/dev\/zero|\/SYSV|\[heap\])/ || /\.(dll|exe)$/)
		}
		code && $1 == "Rss:" { bytes += $2 * 1024 }
		END { print bytes + 0 }' "/proc/$1/smaps"
}
# bytes_read: by the recorder and its helper processes, which read the memory of targets.
bytes_read() {
	local children
	children=$(cat "/proc/$recorder"/task/*/children)
	# shellcheck disable=SC2086 # one word for each process
	awk '$1 == "rchar:" { bytes += $2 } END { print bytes + 0 }' $(printf '/proc/%s/io ' $recorder $children) 2>/dev/null
}
recorder_read() {
	[ "$(bytes_read)" -ge "$1" ]
}

# let_recorder_read_code: waits until the recorder has copied each page of the target's JIT code as it is now. Each page is
# read at least every 0.8 seconds, after which all others are read before it is read again: so all have been read when twice
# as many bytes have been read as there are. The recorder reads almost nothing else meanwhile.
let_recorder_read_code() {
	local bytes
	let_recorder_catch_up
	sleep 1
	bytes=$(code_bytes "$pid") || exit 1
	[ "$bytes" -gt 0 ] || fail "there is no JIT code to wait for"
	wait_until "the recorder to read the code" recorder_read $(($(bytes_read) + 2 * bytes + 65536))
}

# record_ending_stacks [VARIABLE=VALUE]... COMMAND [ARGUMENT]...: the same for a program that ends before the recording.
record_ending_stacks() {
	start_command env "$@"
	start_recording -q -m 256M -g "${stack_graph:-dwarf,$stack_bytes}" -p "$pid"
	let_work
	let_recorder_read_code
	let_end
	wait "$recorder" || fail "record ended with status $?: $(cat "$directory/record.log")"
	report_json
	remove_recorded_traces
	expect_json '.completeness.lost_events == 0 and .completeness.lost_stack_dumps == 0'
	expect_json "any(.processes[]; .pid == $pid and .ended)"
}

ask_stacks() {
	jq -r -L "$support" "$@" <"$directory/report.json" || fail "jq could not read the report"
}

# expect_complete_stacks CALLS [END]...: at least CALLS calls, 99.9 % of them with a stack that reaches the entry of its thread
# or has one of these ENDs.
expect_complete_stacks() {
	local ends="${*:2}" broken calls broken_calls
	calls=$(ask_stacks '[.groups[].allocated_count] | add // 0') || exit 1
	[ "$calls" -ge "$1" ] || fail "only $calls calls were recorded, not $1"
	broken=$(ask_stacks -c --arg entries "$stack_entries" --arg ends "$ends" 'include "stacks";
		broken($entries; $ends | split(" "))') || exit 1
	broken_calls=$(jq -s '[.[].calls] | add // 0' <<<"$broken")
	[ $((broken_calls * 1000)) -le "$calls" ] || {
		jq -r '"\(.calls) calls: \(.reason): \(.stack)"' <<<"$broken" >&2
		fail "$broken_calls of $calls stacks are truncated"
	}
	expect_json "(\"$ends\" | split(\" \")) as \$ends | .completeness.stacks_by_end |
		([to_entries[] | select(.key != \"entry\" and (.key | IN(\$ends[]) | not)) | .value] | add) * 1000 <= add"
	echo "$((calls - broken_calls)) of $calls stacks are complete${ends:+ or end as permitted: $ends}"
}

# expect_stack CALLS PATTERN: exactly CALLS calls came through these functions, innermost first: "mmap<inner<...<main".
# CALLS+: at least CALLS.
expect_stack() {
	local calls
	calls=$(ask_stacks --arg pattern "$2" 'include "stacks"; calls_through($pattern)') || exit 1
	[ "$calls" = "$1" ] || [[ $1 == *+ && $calls -ge ${1%+} ]] || {
		ask_stacks 'include "stacks"; .groups[] | "\(.allocated_count) \(functions | join("<"))"' | sort -rn | head -40 >&2
		fail "$calls calls, not $1, came through $2"
	}
}

# expect_list CALLS LIST [MODULE]...: exactly CALLS calls have this stack, from the first frame to the last: words as in
# patterns, without "..."; "@MODULE" stands for consecutive frames of a module whose functions do not matter, "?MODULE" for
# those without names. CALLS+: at least CALLS.
expect_list() {
	local calls
	calls=$(ask_stacks --arg list "$2" 'include "stacks"; calls_by($list; $ARGS.positional)' --args "${@:3}") || exit 1
	[ "$calls" = "$1" ] || [[ $1 == *+ && $calls -ge ${1%+} ]] || {
		ask_stacks 'include "stacks"; .groups[] | "\(.allocated_count) \(functions_outside($ARGS.positional) | join("<"))"' \
			--args "${@:3}" | sort -rn | head -40 >&2
		fail "$calls calls, not $1, have the stack $2"
	}
}

# Builds libnative.so, for programs in other languages, in $directory.
build_native_library() {
	build_program "${gcc:-gcc}" -shared -fPIC "${stack_options[@]}" -o "$directory/libnative.so" "$stack_sources/native.c"
}

# expect_c_stacks CALLS PATTERN: every path of program.c, with the calls that come through it in $rounds rounds and in its
# thread; CALLS calls reach leak_malloc through functions that match PATTERN.
expect_c_stacks() {
	local mapped='mmap<leak_mmap' allocated="$2<leak_malloc" outer='one_round<main<...<_start'
	expect_stack $rounds "...<leak_syscall<$outer"
	expect_stack $rounds "leak_instruction<$outer"
	expect_stack "$1" "$allocated<$outer"
	expect_stack $rounds "$mapped<$outer"
	expect_stack $rounds "$mapped<with_alloca<$outer"
	expect_stack $rounds "$mapped<with_alignment<$outer"
	expect_stack "$1" "$allocated<with_alignment_and_alloca<$outer"
	expect_stack $rounds "$mapped<with_large_frame<$outer"
	expect_stack $rounds "$mapped<with_arguments<$outer"
	expect_stack $rounds "$mapped<compare<...<by_callback<$outer"
	expect_stack $rounds "$mapped<by_inlined<$outer"
	expect_stack $rounds "$mapped<by_recursion<by_recursion<by_recursion<by_recursion<by_recursion<by_recursion<$outer"
	expect_stack 1 "$mapped<thread<*"
	expect_stack 1 "$mapped<leave_thread<by_last_call<thread<*"
}
