#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: strace:strace
# Recording to, and reporting to, places that cannot be written.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
# Missing directory: the command does not start.
expect_refusal 2 'no/such/directory.*No such file or directory' \
	"$MMTRACE" record -o no/such/directory/mmtrace.data -- touch started
[ ! -e started ] || fail "the command was started although there is no place for the recording"
mkdir directory.data
expect_refusal 2 'directory.data.*[Dd]irectory' "$MMTRACE" record -o directory.data -- touch started
[ ! -e started ] || fail "the command was started although there is no place for the recording"

# Not a regular file, or an invalid name.
mkfifo fifo.data
for name in fifo.data /dev/null; do
	expect_refusal 2 "$name: it is a special file" "$MMTRACE" record -o $name -- touch started
done
expect_refusal 2 'File name too long' "$MMTRACE" record -o "$(printf 'x%.0s' {1..300})" -- touch started
# A valid name that is too long once the temporary suffix is added; packing does not start.
long=$(printf 'x%.0s' {1..250})
expect_refusal 2 'choose a shorter name' "$MMTRACE" record -o "$long" -- touch started
echo "no recording" >nothing.data
expect_refusal 2 'choose a shorter name' "$MMTRACE" pack -o "$long" nothing.data
mkdir twice.data.old
echo earlier >twice.data
expect_refusal 2 'twice.data.old: it is a directory' "$MMTRACE" record -o twice.data -- touch started
[ "$(cat twice.data)" = earlier ] && [ ! -e started ] || fail "the earlier file is not as it was, or the command ran"
rm -r twice.data twice.data.old

# Symbolic links are never followed.
echo precious >precious
ln -s precious link.data
"$MMTRACE" record -q -o link.data -- true >/dev/null 2>&1
[ "$(cat precious)" = precious ] || fail "the recording was written through a link"

# An earlier recording is renamed to .old.
"$MMTRACE" record -q -o twice.data -- true || fail "record ended with status $?"
first=$(sha256sum <twice.data)
"$MMTRACE" record -q -o twice.data -- true || fail "record ended with status $?"
[ "$(sha256sum <twice.data.old)" = "$first" ] || fail "twice.data.old is not the earlier recording"

# The part of the file before the data grows with the CPUs and the names in it: where this is recorded.
limited=("$MMTRACE" record --raw -o limited.data -- "$workloads/noleak" --exit 400000)
"${limited[@]}" >/dev/null 2>record.log || fail "record ended with status $?: $(cat record.log)"
head=$(od -A n -t u8 -j 40 -N 8 limited.data | tr -d ' ')
[ "$head" -gt 1024 ] && [ "$head" -lt "$(stat -c %s limited.data)" ] || fail "the data begin at $head"
rm limited.data

# A full disk ends the recording; the part that was written is a valid recording.
export MMTRACE workloads directory disk_kib=$((head / 1024 + 240))
need_own_mounts
unshare -m bash -c '
	mkdir full && mount -t tmpfs -o size=${disk_kib}k tmpfs full || exit 99
	"$MMTRACE" record --raw -o full/mmtrace.data -- "$workloads/noleak" --exit 400000 >workload.out 2>record.log
	echo $? >status
	cp full/mmtrace.data cut.data
	head -c 1M /dev/zero >full/filler 2>/dev/null
	"$MMTRACE" record -o full/second.data -- true >/dev/null 2>second.log
	echo $? >second-status
	ls full >left
'
[ $? != 99 ] || fail "no tmpfs could be mounted"
[ "$(cat status)" != 0 ] || fail "a full disk goes unnoticed: $(cat record.log)"
grep -q 'No space left on device' record.log || fail "no message about the full disk: $(cat record.log)"
! grep -q ' events, ' record.log || fail "the summary counts what is not in the file: $(cat record.log)"
recording=$directory/cut.data
report_json
expect_json '[.events[]] | add > 0'
[ "$(cat second-status)" = 2 ] || fail "status $(cat second-status) on a disk that was full before: $(cat second.log)"
grep -q 'No space left on device' second.log || fail "no message about the full disk: $(cat second.log)"

# record_limited BYTES: record with this limit on file sizes.
record_limited() {
	prlimit --fsize="$1" "${limited[@]}" >workload.out 2>record.log
	echo $? >status
}
# If not even the header fits, no file is left and the command does not run.
for bytes in $((head / 2)) $((head - 1)); do
	record_limited $bytes
	[ "$(cat status)" = 2 ] || fail "status $(cat status) at $bytes bytes for a file: $(cat record.log)"
	[ "$(cat record.log)" = "mmtrace record: cannot write limited.data: File too large" ] ||
		fail "at $bytes bytes for a file: $(cat record.log)"
	[ ! -s workload.out ] && [ ! -e limited.data ] || fail "the command ran, or a file is left, at $bytes bytes for a file"
done

# A limit on file sizes, which the command inherits unchanged, also ends the recording: with room for little more than the
# header and the first record, or for no event at all, the file is readable and reported as incomplete.
for more in 8 1024 4096 49152 507904; do
	record_limited $((head + more))
	[ "$(cat status)" = 1 ] || fail "status $(cat status) with $more bytes behind the head: $(cat record.log)"
	grep -q 'File too large' record.log || fail "no message about the limit: $(cat record.log)"
	recording=$directory/limited.data
	report_json
	expect_json '.completeness.incomplete and (.completeness.damaged | not)'
done
expect_json '[.events[]] | add > 0'
[ "$("$MMTRACE" record -q -o signal.data -- sh -c 'kill -XFSZ $$' 2>/dev/null; echo $?)" = $((128 + $(kill -l XFSZ))) ] ||
	fail "the command does not die of SIGXFSZ"
bash -c 'trap "" XFSZ; exec "$@"' - "$MMTRACE" record -q -o signal.data -- sh -c 'kill -XFSZ $$' ||
	fail "the command dies of SIGXFSZ that is ignored: status $?"

# A disk quota that is exhausted at the start, or later.
if command -v strace >/dev/null; then
	quota() {
		rm -f quota.data workload.out
		ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -qq -o calls.txt -e trace=pwrite64 \
			-e inject=pwrite64:error=EDQUOT:when="$1" "$MMTRACE" record --raw -o quota.data -- \
			"$workloads/noleak" --exit 60000 >workload.out 2>record.log
		echo $? >status
		grep -q EDQUOT calls.txt || fail "nothing was refused: $(head -3 calls.txt)"
		grep -q 'quota.data: Disk quota exceeded' record.log || fail "no message about the quota: $(cat record.log)"
	}
	quota 1+
	[ "$(cat status)" = 2 ] && [ ! -s workload.out ] && [ ! -e quota.data ] ||
		fail "the command ran, or a file is left, without any quota: status $(cat status)"
	quota 8+
	[ "$(cat status)" = 1 ] || fail "status $(cat status) when the quota is used up: $(cat record.log)"
	recording=$directory/quota.data
	report_json
	expect_json '.completeness.incomplete and (.completeness.damaged | not)'
else
	echo "strace is not installed: no quota is tried"
fi

# The output directory is removed during recording: nothing can be stored, and the recorder reports that within seconds.
mkdir removed
start_workload noleak 1000
recording=$directory/removed/mmtrace.data
start_recording -p "$pid"
rm -r removed
wait_until "record to notice that its file is gone" eval "! kill -0 $recorder"
wait "$recorder"
[ $? = 1 ] || fail "the file was removed, and the status is not 1: $(cat record.log)"
grep -q 'removed/mmtrace.data was removed while it was written' record.log && ! grep -q 'kept\|next:' record.log ||
	fail "no message about the removed file, or more than that: $(cat record.log)"
let_work
let_end

# Output of the report.
recording=$directory/limited.data
for subcommand in "report --no-pager" "report --json" "dump" "diff --json $recording"; do
	"$MMTRACE" $subcommand "$recording" >/dev/full 2>full.log
	status=$?
	[ $status -gt 0 ] && [ $status -lt 128 ] || fail "$subcommand >/dev/full: status $status"
	grep -q 'No space left on device' full.log || fail "$subcommand >/dev/full: $(cat full.log)"
done
# A reader that closes the pipe early causes no message.
"$MMTRACE" dump "$recording" 2>pipe.log | head -1 >/dev/null
[ ! -s pipe.log ] || fail "dump complains about a closed pipe: $(cat pipe.log)"
