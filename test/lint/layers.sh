#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# #include lines, and the functions that files use, respect the permitted dependencies between the layers.
set -u
cd "${SOURCE:?}" || exit 1

# layer: what it may include besides itself and <mmtrace/...>
declare -A allowed=(
	[base]=""
	[trace]="base"
	[capture]="trace base"
	[model]="base"
	[code]="base"
	[analysis]="model code trace base"
	[output]="trace base"
)
failed=0

complain()
{
	echo "$1" >&2
	failed=1
}

for directory in lib/*/; do
	layer=$(basename "$directory")
	[[ -v allowed[$layer] ]] || complain "lib/$layer: no layer of the design"
done

while IFS=: read -r file line; do
	layer=${file#lib/}
	layer=${layer%%/*}
	included=$(sed -E 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"([^"]*)".*/\1/' <<<"$line")
	target=${included%%/*}
	[[ -e lib/$included ]] || complain "$file: \"$included\" is no path below lib/"
	[[ $target == "$layer" || " ${allowed[$layer]-} " == *" $target "* ]] && continue
	complain "$file: layer $layer must not include \"$included\""
done < <(grep -rE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' lib --include='*.[ch]')

# Within a layer, the arrows between folders go one way, too. These pairs of folders still include each other: no others may,
# and whoever separates one removes it here.
mutual='code/elf code/names
code/elf code/unwind
output output/export
trace/format trace/read
trace/read trace/sections'
arrows=$(grep -rE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' lib --include='*.[ch]' |
	sed -nE 's|^lib/(.*)/[^/:]*:[^"]*"(.*)/[^/"]*".*|\1 \2|p' | awk '$1 != $2' | sort -u)
found=$(awk '{ seen[$0] } END { for (arrow in seen) { split(arrow, of, " "); if (of[1] < of[2] && (of[2] " " of[1]) in seen) print arrow } }' \
	<<<"$arrows" | sort)
difference=$(diff <(sort <<<"$mutual") <(echo "$found")) ||
	complain "folders that include each other: expected (<) and found (>): $difference"

# What the linker joins obeys the same rules: a public function may be declared in a header that everybody includes. The
# public functions of the analysis, which work on a report, are also for the output.
objects=${BUILD:?}/CMakeFiles/mmtrace_objects.dir/lib
uses=$(find "$objects" -name '*.o' -exec nm -gA {} + | sed "s|^$objects/||; s|\.o:| |" |
	awk '$(NF - 1) != "U" && NF == 4 { place[$4] = $1 }
	     $(NF - 1) == "U" { used[$1 " " $NF] }
	     END { for (use in used) { split(use, of, " "); if (of[2] in place) print of[1], of[2], place[of[2]] } }')
[[ -n $uses ]] || complain "no objects in $objects"
while read -r file name other; do
	layer=${file%%/*} target=${other%%/*}
	[[ $target == "$layer" || " ${allowed[$layer]-} " == *" $target "* ]] && continue
	[[ $layer == output && $name == mmt_* ]] && continue
	complain "lib/$file: layer $layer must not use $name() of lib/$other"
done <<<"$uses"
found=$(awk '{ sub("/[^/]*$", "", $1); sub("/[^/]*$", "", $3); if ($1 != $3) seen[$1 " " $3] }
	END { for (arrow in seen) { split(arrow, of, " "); if (of[1] < of[2] && (of[2] " " of[1]) in seen) print arrow } }' \
	<<<"$uses" | grep -vxF "$mutual")
[[ -z $found ]] || complain "folders that use each other's functions: $found"

while IFS=: read -r file line; do
	included=$(sed -E 's/^[^"]*"([^"]*)".*/\1/' <<<"$line")
	[[ -e cmd/$included ]] || complain "$file: \"$included\" is no header of cmd/"
done < <(grep -rE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' cmd --include='*.[ch]')

while IFS=: read -r file line; do
	complain "$file: a public header includes something of ours that is not public: $line"
done < <(grep -rE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' include --include='*.h')

# The map of the sources in mmtrace-internals(7) leads to existing files.
while read -r path; do
	[[ -n $(find lib cmd include test -path "*/${path#./}" -print -quit) || -e $path || $path == *NAME* ]] ||
		complain "man/mmtrace-internals.7: $path does not exist"
done < <(sed -nE 's/.*[[:space:]]Pa ([a-z][A-Za-z0-9\/._-]*\.[ch]).*/\1/p; s/^\.Pa ([a-z][A-Za-z0-9\/._-]*\.[ch]).*/\1/p' man/mmtrace-internals.7 | sort -u)

# It names every folder of lib, and only existing paths.
for directory in lib/*/*/; do
	folder=$(basename "$directory")
	sed -n '/^\.Ss Layers$/,/^\.Ss Where is it$/p' man/mmtrace-internals.7 | grep -qE "^\.((It|Pq) )?Pa ([a-z/-]*/)?$folder( |\$)" ||
		complain "man/mmtrace-internals.7: Layers does not name $directory"
done
while read -r path; do
	[[ -e $path || -n $(compgen -G "${path/NAME/*}") ]] || complain "man/mmtrace-internals.7: $path does not exist"
done < <(grep -oE '\bPa (lib|cmd|include|test|man)/[A-Za-z0-9/._-]+' man/mmtrace-internals.7 | cut -d' ' -f2 | sort -u)

exit $failed
