#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A recording with a damaged section can still be reported, and the check fails because figures are missing.
source "$SOURCE/test/golden/replay.bash" || exit 2

failed=0
copy=$directory/copy.data
cp "$recordings/more.data" "$copy" && chmod u+w "$copy" || exit 2
"$MMTRACE" report --check --no-pager "$copy" >"$directory/out" 2>&1 || {
	echo "FAILED: the sound recording: status $?" >&2
	failed=1
}
# The last section, except the ones that locate the others, is residency.
printf '\377\377\377\377' | dd of="$copy" bs=1 seek=$(($(stat -c %s "$copy") - 78)) conv=notrunc status=none || exit 2
status=0
"$MMTRACE" report --check --no-pager "$copy" >"$directory/out" 2>"$directory/err" || status=$?
if [ $status != 1 ] || ! grep -q '^DAMAGED: residency section: ' "$directory/out" ||
	! grep -q ': --check: the recording is damaged: ' "$directory/err"; then
	echo "FAILED: status $status: $(head -1 "$directory/out") $(cat "$directory/err")" >&2
	failed=1
fi
"$MMTRACE" export -f folded "$copy" >"$directory/out" 2>"$directory/err"
grep -q ': warning: the recording is damaged: residency section: ' "$directory/err" || {
	echo "FAILED: export: status $?: $(cat "$directory/err")" >&2
	failed=1
}
# In a diff, what changed comes first, and only why it may be wrong stands before it.
"$MMTRACE" diff --no-pager "$recordings/leak.data" "$copy" >"$directory/out" 2>&1 || failed=1
if ! sed '/^unfreed before/q' "$directory/out" | grep -F -A2 "  $copy, from" | grep -A1 '^DAMAGED: ' | grep -q '^trust:'; then
	echo "FAILED: diff: $(head -20 "$directory/out")" >&2
	failed=1
fi

# No changed bit gives another report without a word, wherever it is in a packed recording.
packed=$directory/packed.data
"$MMTRACE" pack -q -o "$packed" "$recordings/leak.data" || failed=1
"$MMTRACE" report --no-pager "$packed" >"$directory/sound" || failed=1
size=$(stat -c %s "$packed")
for part in {0..99}; do
	at=$((size * part / 100))
	cp "$packed" "$copy"
	byte=$(($(od -An -tu1 -j $at -N 1 "$packed") ^ 1 << part % 8))
	printf "\\x$(printf %x $byte)" | dd of="$copy" bs=1 seek=$at conv=notrunc status=none || exit 2
	status=0
	"$MMTRACE" report --no-pager "$copy" >"$directory/out" 2>&1 || status=$?
	[ $status = 2 ] || grep -q '^DAMAGED: ' "$directory/out" || {
		echo "FAILED: byte $at of $size changed: status $status, $(diff "$directory/sound" "$directory/out")" >&2
		failed=1
	}
done
# A file whose end is missing was not left so by the recorder.
for bytes in 1 100 400; do
	head -c -$bytes "$packed" >"$copy"
	"$MMTRACE" report --no-pager "$copy" >"$directory/out" 2>&1
	if ! grep -q '^DAMAGED: the file was truncated: its end is missing' "$directory/out" ||
		grep -q 'did not finish' "$directory/out"; then
		echo "FAILED: without its last $bytes bytes: $(cat "$directory/out")" >&2
		failed=1
	fi
done
exit $failed
