#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: strace:strace
# The name cache keeps symbols from one report to the next: the report is the same without it, when it is filled, when it is
# used, when its file is damaged and when several reports write it.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v gcc >/dev/null || skip "gcc is not installed"
program=$directory/program
gcc -g -O2 -Wl,--build-id -o "$program" "$SOURCE/test/workload/names.c" || fail gcc
"$MMTRACE" record -q -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"

report() { # NAME [OPTION...]
	local name=$1
	shift
	"$MMTRACE" report --no-pager --stacks all -n 0 "$@" -i "$recording" >"$name" 2>&1 || fail "report: $(cat "$name")"
}
expect_same() { cmp "$1" "$2" || fail "$3"; }

report without --no-cache
grep -q 'names.c:' without || fail "the report has no lines: $(cat without)"
[ ! -e "$XDG_CACHE_HOME" ] || fail "--no-cache left $XDG_CACHE_HOME"
report miss
expect_same without miss "the report that keeps names is another one"
id=$(readelf -n "$program" | sed -n 's/.*Build ID: //p')
kept=$XDG_CACHE_HOME/mmtrace/$id.names
[ -f "$kept" ] || fail "$kept is missing: $(ls -R "$XDG_CACHE_HOME")"
[ "$(stat -c %a "$XDG_CACHE_HOME/mmtrace" "$kept" | tr '\n' ' ')" = "700 600 " ] || fail "other users can read the cache"
written=$(stat -c %i "$kept")
report hit
expect_same without hit "the report that found names is another one"
[ "$(stat -c %i "$kept")" = "$written" ] || fail "cached names were written again"
strace -f -e trace=openat -o opened "$MMTRACE" report --json -i "$recording" >/dev/null 2>&1
if [ -s opened ]; then
	grep -q "$id.names" opened || fail "the cached names were not read"
fi

# Another cache directory gives other text: raw names have their own file.
report raw --no-demangle
report raw-hit --no-demangle
expect_same raw raw-hit "raw names are others when found"
[ -f "${kept%.names}.raw.names" ] || fail "raw names were not kept"

# Damaged: truncated, changed, empty, a link, a directory.
size=$(stat -c %s "$kept")
cp "$kept" whole
for offset in 0 8 30 $((size / 2)) $((size - 2)); do
	cp whole "$kept"
	printf '\377\376' | dd of="$kept" bs=1 seek="$offset" conv=notrunc status=none
	report damaged
	expect_same without damaged "bytes changed at $offset of what is kept show"
	cmp -s whole "$kept" || fail "damage at $offset was not repaired"
done
for length in 0 1 60 $((size / 2)); do
	head -c "$length" whole >"$kept"
	report damaged
	expect_same without damaged "names cut to $length bytes show"
done
ln -sf "$directory/whole" "$kept"
report damaged
expect_same without damaged "a link shows"
rm "$kept" && mkdir "$kept"
report damaged
expect_same without damaged "a directory shows"
rmdir "$kept"

# A cache of another file: the same build ID, but names of its own.
cp whole "$kept"
gcc -g -O1 -Dhidden=another_name -Wl,--build-id=0x"$id" -o other "$SOURCE/test/workload/names.c" || fail gcc
mv other "$program"
report other --no-cache
! cmp -s other without || fail "the other program has the same names"
report other-found
expect_same other other-found "names kept for another file show"

# Many reports at once produce one file with all names.
rm -rf "$XDG_CACHE_HOME"
report other-found
cp "$kept" alone
rm -rf "$XDG_CACHE_HOME"
for i in 1 2 3 4 5 6; do
	report "parallel-$i" &
	running[$i]=$!
done
for i in 1 2 3 4 5 6; do
	wait "${running[$i]}" || fail "one of several reports ended with status $?"
	expect_same other "parallel-$i" "reports at the same time differ"
done
report after
expect_same other after "what several reports wrote shows"
cmp -s alone "$kept" || fail "several reports wrote another cache than one"
unfinished() { ls "$XDG_CACHE_HOME/mmtrace" | grep '\.new\.'; }
unfinished && fail "unfinished files are left"

# No file may grow: the report is the same, and the earlier cache stays.
report_without_files() { # NAME
	(
		ulimit -f 0
		exec "$MMTRACE" report --no-pager --stacks all -n 0 -i "$recording" 2>&1
	) | cat >"$1"
	[ "${PIPESTATUS[0]}" = 0 ] || fail "a report that may write no files ended with status ${PIPESTATUS[0]}: $(cat "$1")"
}
report_without_files limited-hit
expect_same other limited-hit "names that were kept are not found where no file may grow"
rm -r "$XDG_CACHE_HOME/mmtrace"
report_without_files limited
expect_same other limited "a report that may write no files is another one"
[ -z "$(ls "$XDG_CACHE_HOME/mmtrace")" ] || fail "a failed write leaves files: $(ls "$XDG_CACHE_HOME/mmtrace")"

# A read-only cache, one on a full disk, and none.
in_mounts() { # COMMAND: with what it mounts for itself
	timeout 100 unshare --mount bash -c "$1; "'exec "$MMTRACE" report --no-pager --stacks all -n 0 -i "$0"' "$recording" >mounted 2>&1 ||
		fail "the report ended with status $?: $(cat mounted)"
	expect_same other mounted "the report differs after: $1"
}
export MMTRACE XDG_CACHE_HOME
if [ "$(id -u)" = 0 ] && unshare --mount mount -t tmpfs none "$XDG_CACHE_HOME" 2>/dev/null; then
	in_mounts 'mount -t tmpfs -o size=64k none "$XDG_CACHE_HOME" && cat /dev/zero >"$XDG_CACHE_HOME/all" 2>/dev/null'
	in_mounts 'mount -t tmpfs -o ro none "$XDG_CACHE_HOME"'
	report other-found
	for i in 1 2; do # found, and missed
		in_mounts 'mount --bind "$XDG_CACHE_HOME" "$XDG_CACHE_HOME" && mount -o remount,bind,ro "$XDG_CACHE_HOME" || exit 1'
		[ -f "$kept" ] || [ "$i" = 2 ] || fail "a read-only cache lost its file"
		rm -f "$kept"
	done
fi
(
	XDG_CACHE_HOME=/dev/null/there
	report nowhere
	expect_same other nowhere "a report without a place for its cache is another one"
) || exit
report other-found

# A cache that others may write is neither trusted nor used.
chmod g+w "$XDG_CACHE_HOME/mmtrace"
touch -d '2 days ago' "$kept"
before=$(stat -c %Y "$kept")
report distrusted
expect_same other distrusted "a directory that others may write shows"
[ "$(stat -c %Y "$kept")" = "$before" ] || fail "a directory that others may write was used"

# Names that a missing supplementary file would improve are not cached; with the file that has the right build ID they are.
supplement=0123456789abcdef0123456789abcdef01234567
rm -rf "$XDG_CACHE_HOME"
{
	printf 'supplement\0'
	printf "$(sed 's/../\\x&/g' <<<$supplement)"
} >link
objcopy --add-section .gnu_debugaltlink=link "$program" with-link 2>/dev/null || skip "objcopy adds no section"
id=$(readelf -n with-link | sed -n 's/.*Build ID: //p')
kept=$XDG_CACHE_HOME/mmtrace/$id.names
mv with-link "$program"
"$MMTRACE" record -q -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"
report unsupplemented
grep -q 'names.c:' unsupplemented || fail "the report has no lines: $(cat unsupplemented)"
[ ! -e "$kept" ] || fail "names were kept although the supplementary file is missing"
gcc -g -shared -o supplement -Wl,--build-id=0x$supplement "$SOURCE/test/workload/names.c" || fail gcc
report supplemented
[ -f "$kept" ] || fail "names were not kept: $(ls -R "$XDG_CACHE_HOME")"

# When a separate debug file is replaced, the names change.
separate() { # DEFINITION...
	gcc -g -O2 "$@" -Wl,--build-id=0x$supplement -o whole "$SOURCE/test/workload/names.c" || fail gcc
	objcopy --only-keep-debug whole program.debug || fail objcopy
}
separate
objcopy --strip-debug --add-gnu-debuglink=program.debug whole separated || fail objcopy
mv separated "$program"
rm -rf "$XDG_CACHE_HOME"
"$MMTRACE" record -q -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"
report separate
[ -f "$XDG_CACHE_HOME/mmtrace/$supplement.names" ] || fail "names were not kept: $(ls -R "$XDG_CACHE_HOME")"
report separate-hit
expect_same separate separate-hit "names of a separate file are others when found"
separate -Dhidden=another_name
report replaced --no-cache
! cmp -s separate replaced || fail "the other debug file has the same names"
report replaced-found
expect_same replaced replaced-found "names of a debug file that was replaced show"
