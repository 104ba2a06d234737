#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The linker replaces a function by name and checks no types. So each --wrap=NAME has, in a source file of its target, both
# functions declared with the type of the real one, and the compiler checks them.
set -u
cd "${SOURCE:?}" || exit 1

failed=0

complain()
{
	echo "$1" >&2
	failed=1
}

# One line for each command: its name and its words.
commands=$(find . -name CMakeLists.txt ! -path './build*' -exec sed -e 's/#.*//' {} + | tr '\n' ' ' |
	sed -E 's/([a-z_]+)[[:space:]]*\(([^()]*)\)/\n\1 \2\n/g')

# sources_of TARGET: below test/, as its add_executable() has them; unit tests and fuzz targets are found by their names.
# The target that a function adds is the tool.
sources_of()
{
	[[ $1 == '${name}' ]] && printf '%s\n' cmd/*.c cmd/cli/*.c
	[[ $1 == test-* ]] && echo "test/unit/$1.c"
	[[ $1 == fuzz-* ]] && echo "test/fuzz/$1.c"
	awk -v target="$1" '$1 == "add_executable" && $2 == target { for (i = 3; i <= NF; i++) print "test/" $i }' <<<"$commands"
}

count=0
while read -r target name; do
	count=$((count + 1))
	mapfile -t sources < <(sources_of "$target")
	grep -qsxF "__typeof__($name) __real_$name, __wrap_$name;" "${sources[@]}" ||
		complain "$target: no line '__typeof__($name) __real_$name, __wrap_$name;' in ${sources[*]-its sources}"
done < <(awk '$1 == "target_link_options" { for (i = 3; i <= NF; i++) { gsub(",", " " $2 " ", $i); print $2, $i } }' <<<"$commands" |
	grep -oE '[^ ]+ --wrap=[A-Za-z0-9_]+' | sed 's/--wrap=//')

# Options written in another way are found here.
written=$(find . -name CMakeLists.txt ! -path './build*' -exec sed -e 's/#.*//' {} + | grep -oE -- '--wrap\b' | wc -l)
((count == written && count > 0)) || complain "$written of --wrap in the CMakeLists.txt, $count of them understood"

exit $failed
