#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The headers of each third-party library are included by one .c file of lib/ and nowhere else.
set -u
cd "${SOURCE:?}" || exit 1

failed=0

complain()
{
	echo "$1" >&2
	failed=1
}

# Files that include a header matching $1.
users()
{
	grep -rlE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($1)[>\"]" lib cmd include --include='*.[ch]'
}

while read -r name pattern; do
	count=0
	for file in $(users "$pattern"); do
		count=$((count + 1))
		[[ $file == lib/*.c ]] || complain "$file: only a .c file of lib/ may include $name"
	done
	((count == 1)) || complain "$name is included by $count files, not by one: $(users "$pattern" | tr '\n' ' ')"
done <<'END'
zstd zstd.*\.h
capstone capstone/.*
xxhash xxhash\.h
zlib zlib\.h
libiberty (libiberty/)?demangle\.h
END

for file in $(users '(elfutils/)?(libdw|libelf|libdwfl|libdwelf|libebl|dwarf|gelf)\.h'); do
	[[ $file == lib/code/* ]] || complain "$file: only the files of lib/code may include headers of elfutils"
done

# Headers that are neither ours, the kernel's nor libc's must be in the list above.
known='zstd|zlib|capstone|event-parse|xxhash|demangle|libdw|libelf|libdwfl|libdwelf|libebl|dwarf\.h|gelf'
while IFS=: read -r file line; do
	header=$(sed -E 's/^[^<]*<([^>]*)>.*/\1/' <<<"$line")
	[[ $header == mmtrace/* || $header == linux/* || $header == asm/* || $header =~ $known ]] && continue
	owner=$(dpkg -S "$(readlink -f "/usr/include/$header")" 2>/dev/null | head -1)
	[[ -z $owner || $owner == libc6-dev* || $owner == linux-libc-dev* ]] && continue
	complain "$file: <$header> (${owner%%:*}) is in no row of this test"
done < <(grep -rE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<' lib cmd include --include='*.[ch]' | sort -t: -u -k2)

exit $failed
