#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The Debian packages have the project's version, depend on what CMake needs, and libmmtrace-dev depends on what mmtrace.pc
# names.
set -u
cd "${SOURCE:?}" || exit 1

failed=0

complain()
{
	echo "$1" >&2
	failed=1
}

version=$(sed -nE 's/^project\(mmtrace VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
[[ -n $version ]] || complain "CMakeLists.txt: no version found"
packaged=$(sed -nE '1s/^mmtrace \(([^)]*)\).*/\1/p' .debian/changelog)
[[ $packaged == "$version" ]] || complain ".debian/changelog: version $packaged; CMakeLists.txt: $version"

# field NAME PARAGRAPH: of .debian/control, as one line.
field()
{
	awk -v RS= -v name="$1" -v paragraph="$2" '
		$0 ~ "(^|\n)(Source|Package): " paragraph "\n" {
			gsub(/\n[ \t]+/, " ")
			count = split($0, lines, "\n")
			for (i = 1; i <= count; i++)
				if (index(lines[i], name ": ") == 1)
					print lines[i]
		}' .debian/control
}

# has_package WHERE FIELD NAME
has_package()
{
	[[ " ${2//,/ } " == *" $3 "* ]] || complain ".debian/control: $1 does not name $3"
}

declare -A package=([libdw]=libdw-dev [libelf]=libelf-dev [libzstd]=libzstd-dev [zlib]=zlib1g-dev [capstone]=libcapstone-dev
	[libxxhash]=libxxhash-dev)
build=$(field Build-Depends mmtrace) development=$(field Depends libmmtrace-dev)
modules=$(sed 's/#.*//' CMakeLists.txt | tr '\n' ' ' | sed -nE 's/.*set\(mmtrace_packages ([^)]*)\).*/\1/p')
[[ -n $modules ]] || complain "CMakeLists.txt: no mmtrace_packages found"
for module in $modules; do
	name=${package[${module%%[<>=]*}]-}
	[[ -n $name ]] || { complain "of which package is $module?"; continue; }
	has_package Build-Depends "$build" "$name"
	has_package "Depends of libmmtrace-dev" "$development" "$name"
	[[ $module != *">="* ]] || [[ $build == *"$name (>= ${module#*>=})"* ]] ||
		complain ".debian/control: Build-Depends does not name $name (>= ${module#*>=})"
	grep -qE "^Requires.private:.* ${module%%[<>=]*}( |$)" lib/mmtrace.pc.in || complain "lib/mmtrace.pc.in does not name $module"
done
has_package Build-Depends "$build" libiberty-dev
has_package "Depends of libmmtrace-dev" "$development" libiberty-dev
exit $failed
