#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# In lib and cmd no two files have the same base name, no two types have the same name, every header is included by a file
# other than its own .c file, and no file has more than 1,000 lines.
set -u
cd "${SOURCE:?}" || exit 1

# check DIRECTORY: reads lib, cmd and include there.
check()
{
	local file name failed=0
	local -a files

	cd "$1" || return 1
	mapfile -t files < <(find lib cmd include -name '*.[ch]' | sort)
	((${#files[@]} > 0)) || { echo "no source files found" >&2; return 1; }

	# A header of include/mmtrace is included as <mmtrace/NAME.h>: only headers of lib and cmd share a name space.
	for name in $(printf '%s\n' "${files[@]}" | grep -v '^include/' | sed 's|.*/||' | sort | uniq -d); do
		echo "several files are called $name: $(printf '%s\n' "${files[@]}" | grep -v '^include/' | grep "/$name\$" | tr '\n' ' ')" >&2
		failed=1
	done

	for name in $(grep -hE '^(static )?(const )?(struct|enum|union) [a-z_0-9]+ \{' "${files[@]}" |
		sed -E 's/^(static )?(const )?(struct|enum|union) ([a-z_0-9]+) .*/\4/' | sort | uniq -d); do
		echo "several types are called $name: $(grep -lE "^(static )?(const )?(struct|enum|union) $name \{" "${files[@]}" | tr '\n' ' ')" >&2
		failed=1
	done

	for file in "${files[@]}"; do
		if (($(wc -l <"$file") > 1000)); then
			echo "$file: more than 1,000 lines: divide it by subject" >&2
			failed=1
		fi
		[[ $file == include/* || $file == *.c ]] && continue
		name=${file#*/}
		if ! grep -lF "#include \"$name\"" "${files[@]}" | grep -qvxF "${file%.h}.c"; then
			echo "$file: only its own .c file includes it: move the declarations there" >&2
			failed=1
		fi
	done
	return $failed
}

# The check finds each of its defects.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{lib/one,lib/two,cmd,include/mmtrace}
printf 'struct same {\n};\n' | tee "$scratch/lib/one/name.c" >"$scratch/lib/two/name.c"
printf '#include "one/alone.h"\n' >"$scratch/lib/one/alone.c"
: >"$scratch/lib/one/alone.h"
yes '' | head -1001 >"$scratch/cmd/long.c"
for expected in 'files are called name.c' 'types are called same' 'alone.h: only its own' 'long.c: more than'; do
	(check "$scratch") 2>&1 | grep -qF "$expected" || { echo "the check does not find: $expected" >&2; exit 1; }
done

(check .) || exit 1
