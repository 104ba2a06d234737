#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: jq:jq strace:strace perf:linux-perf
# trace prints the calls that strace prints, what they did, and nothing that delays the target.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
export TMPDIR=$directory/tmp
mkdir tmp
cd "$directory" || exit 2

# expect_same_lines WHAT: `lines`, printed while $file was recorded, are those of the file, less those that it says it left
# out because the machine was busy. The file's are in `again` afterwards.
expect_same_lines() {
	"$MMTRACE" trace "$file" >again 2>again.errors || fail "$1: the file: $(cat again.errors)"
	awk 'FILENAME == "again" { total++; place += $0 == line[place + 1]; next }
		/ calls are left out, / { total -= $1; next } { line[++count] = $0 }
		END { if (place < count || total != count) { print total " " count ": " line[place + 1]; exit 1 } }' lines again >difference ||
		fail "$1: the file has other lines: $(cat difference)"
}

# The same calls, arguments and results as strace prints, from the first one of the program on; and the file has the same lines.
kinds=mmap,munmap,mremap,brk,mprotect,madvise
file=kept.data thread=traced
"$MMTRACE" trace -o $file -- strace -f -o peer -e "trace=$kinds" "$workloads/traced" --exit >lines 2>errors ||
	fail "a command: $(cat errors)"
expect_same_lines "a command"
grep -q 'all processes have ended' again.errors && fail "a file ends with $(cat again.errors)"
sed -E 's/^[0-9]+ +//; s/ \(.*\)$//; s/ += /= /; s/\b(PROT|MAP|MREMAP|MADV)_//g; /^[a-z]+\(/!d' peer >expected
grep -E '^[^ ]+ traced ' again >own
# With MREMAP_DONTUNMAP alone the kernel takes the fifth argument for a hint, which strace does not print.
sed -E 's/^[^ ]+ traced [0-9]+ +//; s/\) += (-1 [A-Z]+|[^ ]+) .*/)= \1/; s/(MAYMOVE\|DONTUNMAP), NULL\)/\1)/' own >actual
grep -qF 'MAYMOVE|DONTUNMAP, NULL)' own || fail "the hint of mremap is not printed: $(cat own)"
[ "$(wc -l <expected)" -gt 20 ] || fail "strace prints $(cat peer)"
diff expected actual >difference || fail "not the calls of strace: $(cat difference)"

# What they did.
where='\(traced\.c:[0-9]+\)'
while read -r effect; do
	grep -qE " +$effect" own || fail "no line has '$effect': $(cat own)"
done <<END
maps 4.00 MiB in map $where\$
reserves 8.00 MiB in map $where\$
commits 1.00 MiB of map $where after [0-9]
gives back up to 1.00 MiB of map $where after [0-9]
moves 4.00 MiB of map $where after [0-9]
makes inaccessible 2.00 MiB of map $where after [0-9]
maps 1.00 MiB in work $where, replaces 1.00 MiB of map $where after [0-9]
frees 8.00 MiB, 4.00 MiB of map $where after [0-9]
maps 1.00 MiB of heap in work $where\$
frees 1.00 MiB of work $where after [0-9]
= -1 ENOMEM +fails(: limit [^ ]+, .*)? in work $where\$
= -1 EINVAL +fails\$
END

# Filters, stacks and JSON.
select_calls() { # COUNT OPTION...
	local count=$1
	shift
	"$MMTRACE" trace $file --focus "thread=$thread" "$@" >selected 2>errors || fail "$*: $(cat errors)"
	[ "$(grep -cE '^[0-9{]' selected)" = "$count" ] || fail "$* gives not $count: $(cat selected)"
}
select_calls 5 --failed
select_calls 0 --failed --class anon
select_calls 2 --call 'm*map' --failed --min-bytes 1G
select_calls 5 --focus function=map --min-bytes 2M --ignore class=file
select_calls 0 --min-age 1h
select_calls "$(wc -l <own)" --json
jq -es 'length > 20 and any(.[]; .call == "munmap" and .freed_bytes == 8388608 and .owner.bytes == 4194304 and
	.owner.known and .owner.frames[0].function == "map") and any(.[]; .error == "EINVAL")' selected >/dev/null ||
	fail "the JSON: $(cat selected)"
select_calls 1 --stacks all --call munmap --min-bytes 8M
grep -qE '^    main +traced +traced\.c:[0-9]+$' selected || fail "--stacks: $(cat selected)"

# What moved, and what was replaced there.
file=changes.data thread="a*"
"$MMTRACE" trace -o $file -- "$workloads/traced" --exit . >lines 2>errors || fail "changes: $(cat errors)"
expect_same_lines changes
while read -r effect; do
	grep -qE " +$effect" again || fail "no line has '$effect': $(cat again)"
done <<END
frees 1.00 MiB of place $where after [^,]*, moves 1.00 MiB of map $where after [^,]*\$
maps 1.00 MiB in change $where, replaces 1.00 MiB of map $where after [^,]*, moves 1.00 MiB of place $where after [^,]*\$
= -1 ENOMEM +fails, gives back up to 12.00 KiB of change $where after [^,]*\$
frees 4.00 KiB inherited by fork [^,]* before\$
END

# Filters look at all that a call frees or replaces, not only at the largest part.
select_calls 3 --focus function=place --call mmap
select_calls 2 --focus function=place --call mremap
select_calls 1 --focus function=place --call munmap --min-bytes 7M --class anon
grep -qE ' frees [78].[0-9]+ MiB, [0-9.]+ [KM]iB of place ' selected || fail "not the selected part: $(cat selected)"
select_calls 1 --call munmap --min-bytes 7M --ignore function=work

# perf records every madvise: one that fails with EINVAL gives nothing back.
if command -v perf >/dev/null && unshare -m true 2>/dev/null; then
	unshare -m bash -c '[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing || exit 77
		exec perf record -q -e "syscalls:sys_*_mmap,syscalls:sys_*_madvise" -o perf.data "$0/traced" --exit .' "$workloads" >errors 2>&1 ||
		fail "perf: $(cat errors)"
	"$MMTRACE" trace perf.data --call madvise >lines 2>>errors || fail "a file of perf: $(cat errors)"
	grep -qE '= -1 EINVAL +fails$' lines && grep -qE '= -1 ENOMEM +fails, gives back up to ' lines ||
		fail "madvise of perf: $(cat lines)"
fi

# A running process, whose name is escaped. It ends: that is said, and is no failure.
rm lines
start_workload traced stop
"$MMTRACE" trace -p "$pid" >lines 2>errors &
trace=$!
processes+=("$trace")
echo >&3
wait_until "a line" grep -qF 'munmap(' lines
touch stop
wait "$trace" || fail "the end of the target is a failure: $(cat errors)"
grep -q '^mmtrace trace: all processes have ended$' errors || fail "the end of the target is not said: $(cat errors)"
grep -qF 'a\x1b[31m\x0a\xff '"$pid " lines && ! grep -qF $'\x1b' lines || fail "the name is not escaped: $(head -3 lines | cat -v)"
rm stop

# A signal to its whole process group, as that of Ctrl-C: every recorded call is printed. Two at once count as one: it is
# stopped until both are there.
file=kept.data
start_workload traced stop
echo >&3
for both in '' yes; do
	rm lines
	setsid "$MMTRACE" trace -p "$pid" -o $file >lines 2>errors &
	trace=$!
	processes+=("$trace")
	wait_until "a line" grep -qF 'munmap(' lines
	kill -STOP "$trace"
	kill -TERM -"$trace" ${both:+"$trace"}
	kill -CONT "$trace"
	wait "$trace"
	status=$?
	[ "$status" = 143 ] || fail "a signal to the group ends it with $status: $(cat errors)"
	expect_same_lines "a signal to the group"
done
touch stop
rm stop

# Without a reader it ends quietly; a slow one costs lines, which are counted, and not the target's time.
start_workload traced stop
echo >&3
"$MMTRACE" trace -p "$pid" 2>errors | head -1 >/dev/null
[ "${PIPESTATUS[0]}" = 141 ] && [ ! -s errors ] || fail "a closed output ends with ${PIPESTATUS[0]}: $(cat errors)"
"$MMTRACE" trace -p "$pid" -o $file 2>errors |
	awk '{ print } / calls are left out, / && !stopped++ { system("touch stop") } !stopped && NR % 2000 == 1 { system("sleep 8") }' >lines
[ "${PIPESTATUS[0]}" = 0 ] || fail "a slow reader: $(cat errors)"
expect_same_lines "a slow reader"
head -c 20000 kept.data >part.data
dd if=/dev/zero of=part.data bs=1 seek=48 count=8 conv=notrunc 2>/dev/null
"$MMTRACE" trace part.data >lines.part 2>errors
grep -q 'part.data: the recorder did not finish' errors || fail "an incomplete file: $(cat errors)"

# What cannot be recorded, and wrong usage.
while read -r expected arguments; do
	# shellcheck disable=SC2086
	"$MMTRACE" trace $arguments >output 2>errors
	status=$?
	[ "$status" = "$expected" ] && grep -q '^mmtrace trace: ' errors || fail "trace $arguments gives $status: $(cat output errors)"
	! grep -qE "^mmtrace record:|^See 'mmtrace record" errors || fail "trace $arguments names record: $(cat errors)"
done <<'END'
2
2 -p abc
2 -p 99999999
2 --comm no-such-name
2 --comm x kept.data
2 kept.data kept.data
2 no-such-file
2 --focus nothing= kept.data
2 --call foo kept.data
2 -p 99999999 kept.data
2 -p abc kept.data
2 -i kept.data -- true
127 -- ./missing
END
"$MMTRACE" trace --max-size 4K -- "$workloads/traced" --exit never >lines 2>errors
status=$?
[ "$status" = 1 ] && grep -q 'stopped: maximum size reached' errors || fail "--max-size gives $status: $(cat errors)"
"$MMTRACE" trace -- sh -c 'exit 3' >lines 2>errors
status=$?
[ "$status" = 3 ] || fail "a command that ends with 3 gives $status: $(cat errors)"
(ulimit -f 40 && "$MMTRACE" trace -- "$workloads/traced" --exit never 2>&1 >/dev/null) | cat >errors
grep -q 'cannot write' errors && ! grep -q 'contains what' errors || fail "a full disk: $(cat errors)"
[ -z "$(ls -A tmp)" ] || fail "left $(ls -A tmp)"
