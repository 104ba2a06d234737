#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: perf:linux-perf
# Recordings read from a pipe: an mmtrace file, perf's pipe format, truncated ones, and with no space for temporary files.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf

export TMPDIR=$directory/kept # where what comes through a pipe is kept while it is read
mkdir kept

# same WHAT FILE: the pipe's report equals the file's except for its name.
same() {
	local what=$1 file=$2
	"$MMTRACE" report --json -i "$file" | jq 'del(.input)' >from-file.json || fail "$what: the file has no report"
	"$MMTRACE" report --json -i - < <(cat "$file") | jq 'del(.input)' >from-pipe.json || fail "$what: no report"
	cmp from-file.json from-pipe.json || fail "$what: the pipe's report is another one"
	[ "$(jq '.unfreed_bytes > 0' from-pipe.json)" = true ] || fail "$what: nothing was found"
	"$MMTRACE" dump -i "$file" >from-file.txt || fail "$what: the file cannot be dumped"
	"$MMTRACE" dump -i - < <(cat "$file") >from-pipe.txt || fail "$what: dump failed"
	cmp from-file.txt from-pipe.txt || fail "$what: the pipe's dump is another one"
}

"$MMTRACE" record -q -o "$recording" -- "$workloads/leak-anon" >/dev/null </dev/null || fail record
same "our file" "$recording"
"$MMTRACE" report --no-pager - <"$recording" | grep -q leak-anon || fail "a file as standard input has no report"
"$MMTRACE" diff --json "$recording" - < <(cat "$recording") | jq -e '.entries | all(.bytes == 0)' >/dev/null ||
	fail "a recording differs from itself"

# A pipe made by the shell, and a named one whose writer comes later.
"$MMTRACE" report --json -i <(cat "$recording") | jq 'del(.input)' >from-shell.json
mkfifo named
{ sleep 0.2 && cat "$recording" >named; } &
"$MMTRACE" report --json -i named | jq 'del(.input)' >from-named.json
wait
for pipe in shell named; do
	cmp from-pipe.json from-$pipe.json || fail "a pipe is not read as standard input is: $pipe"
done

head -c $(($(stat -c %s "$recording") / 2)) "$recording" |
	"$MMTRACE" report -i - >cut.txt 2>&1
status=$?
grep -q 'truncated\|did not finish' cut.txt || fail "half a file is not reported as such (status $status): $(cat cut.txt)"
: | "$MMTRACE" report -i - >empty.txt 2>&1 && fail "nothing at all has a report"
grep -q 'standard input.*empty' empty.txt || fail "an empty pipe is not reported: $(cat empty.txt)"
TMPDIR=$directory/nowhere "$MMTRACE" report -i - < <(cat "$recording") >nowhere.txt 2>&1 && fail "it was kept nowhere"
grep -q "nowhere.*TMPDIR" nowhere.txt || fail "a missing TMPDIR is not reported: $(cat nowhere.txt)"
[ -z "$(ls -A kept)" ] || fail "files are left: $(ls -A kept)"

# Directly from mmtrace record; the workload's output must not get into the pipe.
"$MMTRACE" record -q -o - -- sh -c 'exec "$0" >/dev/null' "$workloads/leak-anon" </dev/null |
	tee own.pipe | "$MMTRACE" report --json -i - >own.json || fail "record -o - | report -i -"
jq -e '(.completeness.incomplete | not) and any(.groups[]; .unfreed_count == 10 and .unfreed_bytes == 40960)' own.json \
	>/dev/null || fail "the workload's mappings did not come through the pipe"
same "record -o -" own.pipe

command -v perf >/dev/null || exit 0
need_own_mounts
in_tracefs='[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing; exec "$@"'
for options in "" -z; do
	# The workload's output must not get into the pipe.
	unshare -m bash -c "$in_tracefs" - perf record -q -g $options -e syscalls:sys_enter_mmap,syscalls:sys_exit_mmap \
		-e syscalls:sys_enter_munmap,syscalls:sys_exit_munmap -o - -- bash -c '"$1" >/dev/null' - "$workloads/leak-anon" \
		</dev/null >perf.pipe 2>perf.err || skip "perf cannot record here: $(cat perf.err)"
	same "perf record $options -o -" perf.pipe
	jq -e '.recorded_by | startswith("perf ")' from-pipe.json >/dev/null || fail "perf's version did not come through"
	jq -e 'any(.groups[]; .unfreed_count == 10 and .unfreed_bytes == 40960)' from-pipe.json >/dev/null ||
		fail "perf's pipe: the workload's mappings are missing"
done
