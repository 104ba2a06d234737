#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# lib/base/syscall-table.h is the only table of memory system calls: no other file of the library or the tool lists them, by
# constants, counters or names.
set -u
cd "${SOURCE:?}" || exit 1

table=lib/base/syscall-table.h
failed=0
mapfile -t calls < <(sed -nE 's/^\tCALL\(([A-Z_]+), .*/\1/p' "$table")
((${#calls[@]} > 10)) || { echo "$table: no table of calls found" >&2; exit 1; }
any=$(IFS='|'; echo "${calls[*]}")

# lists FILE: a file may name a single call, but not two.
lists()
{
	local constants names
	constants=$(grep -oE "\b(CALL|MMT_COUNT)_($any)\b" "$1" | sort -u | wc -l)
	names=$(grep -oE "\"(${any,,})\"" "$1" | sort -u | wc -l)
	((constants > 1 || names > 1))
}

while read -r file; do
	if lists "$file"; then
		echo "$file: lists calls: read the table of $table instead" >&2
		failed=1
	fi
done < <(find lib cmd -name '*.[ch]' ! -path "$table" | sort)

sample=$(mktemp)
trap 'rm -f "$sample"' EXIT
printf 'case CALL_MMAP:\n\tcase CALL_BRK:\n' >"$sample"
lists "$sample" || { echo "the check does not find a list" >&2; failed=1; }

exit $failed
