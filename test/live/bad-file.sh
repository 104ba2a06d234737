#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: perf:linux-perf
# Files that are not recordings, and damaged recordings, end in a clear error or a warning.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

need_perf
"$MMTRACE" record -q -o good.data -- "$workloads/leak-anon" --exit 50 4096 >/dev/null || fail "record ended with status $?"
size=$(stat -c %s good.data)

refuse_everywhere() {
	local pattern=$1 file=$2 subcommand
	for subcommand in "report --no-pager" "report --json" "dump"; do
		expect_refusal 2 "$file.*($pattern)" "$MMTRACE" $subcommand -i "$file"
	done
	expect_refusal 2 "$file.*($pattern)" "$MMTRACE" diff good.data "$file"
	expect_refusal 2 "$file.*($pattern)" "$MMTRACE" diff "$file" good.data
}

refuse_everywhere 'No such file' missing.data
for subcommand in "report --no-pager" "report --json" dump pack; do
	expect_refusal 2 'no mmtrace.data .*record first: mmtrace record -p PID' "$MMTRACE" $subcommand
done
mkdir directory.data && refuse_everywhere '[Dd]irectory|regular' directory.data
: >empty.data && refuse_everywhere 'empty' empty.data
echo "something else, long enough to hold the header of a recording and then some more words of no use, and more" >text.data
refuse_everywhere 'perf.data|recording' text.data
refuse_everywhere 'perf.data|recording|regular' /dev/zero
{ printf '2ELIFREP' && tail -c +9 good.data; } >foreign.data
refuse_everywhere 'byte order|endian' foreign.data
if command -v perf >/dev/null; then
	perf record -q -o silent.data -e dummy -- true 2>perf.log || fail "perf record: $(cat perf.log)"
	for subcommand in "report --no-pager" "report --json" "diff good.data"; do
		expect_refusal 2 'silent.data.*(memory|mmap)' "$MMTRACE" $subcommand silent.data
	done
fi

# survive FILE: report, dump and diff exit normally: status 0 and a warning that names the damage, or one line and status 2.
survive() {
	local file=$1 subcommand status
	for subcommand in "report --json" "dump"; do
		timeout 60 "$MMTRACE" $subcommand -i "$file" >out 2>err
		status=$?
		case $status in
		0) ;;
		2)
			[ "$(wc -l <err)" = 1 ] || fail "$subcommand $file: not one line: $(cat err)"
			grep -q "$file" err || fail "$subcommand $file: the file is not named: $(cat err)"
			;;
		*) fail "$subcommand $file: status $status: $(head -20 err)" ;;
		esac
		if [ $status = 0 ] && [ "$subcommand" = "report --json" ]; then
			jq -e '.completeness | .incomplete or .damaged' out >/dev/null ||
				fail "report $file: the damage is not reported: $(jq .completeness out)"
		fi
	done
}

for ((i = 1; i <= 16; i++)); do
	head -c $((size * i / 17)) good.data >cut.data
	survive cut.data
done
for bytes in 1 7 8 103 104 105 300 $((size - 1)) $((size - 8)); do
	head -c "$bytes" good.data >cut.data
	survive cut.data
done

# field OFFSET: the u64 at this offset. poke OFFSET HEX: write good.data with these bytes changed to poked.data.
field() {
	od -A n -t u8 -j "$1" -N 8 good.data | tr -d ' '
}
poke() {
	cp good.data poked.data
	printf "$(sed 's/../\\x&/g' <<<"$2")" | dd of=poked.data bs=1 seek="$1" conv=notrunc status=none
}
all_ones=ffffffffffffffff
for offset in 8 16 24 32; do
	for value in $all_ones 0000000000000000 0100000000000000; do
		poke $offset $value
		[ "$(sha256sum <poked.data)" = "$(sha256sum <good.data)" ] || survive poked.data
	done
done
# Offset and length of the data.
for offset in 40 48; do
	for value in $all_ones 0100000000000000 ffffffff00000000; do
		poke $offset $value
		survive poked.data
	done
done
# The first record: its length, then its type.
data=$(field 40)
for value in 0000 0100 0700 ffff; do
	poke $((data + 6)) $value
	survive poked.data
done
poke $((data)) ffffff7f
survive poked.data
# The first entries of the feature table: offset and length of a section.
table=$((data + $(field 48)))
for offset in $table $((table + 8)) $((table + 16)) $((table + 24)); do
	poke $offset $all_ones
	"$MMTRACE" report --json -i poked.data >out 2>err
	[ $? -lt 128 ] || fail "report crashed on a lie at byte $offset of $size"
done
