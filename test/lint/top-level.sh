#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The top level contains only permitted files, and the tree contains no path of the machine it was developed on. In a clone
# these are the files tracked by git; elsewhere all except builds.
set -u
cd "${SOURCE:?}" || exit 1

failed=0
allowed=' cmd lib include test man CMakeLists.txt README COPYING '

list_files() {
	git -c safe.directory="$PWD" ls-files -z 2>/dev/null && return
	find . -name .git -prune -o -path './build*' -prune -o -type f -printf '%P\0'
}
mapfile -d '' -t files < <(list_files)
((${#files[@]} > 100)) || { echo "only ${#files[@]} files found" >&2; exit 1; }

while read -r name; do
	[[ $name == .* || $allowed == *" $name "* ]] && continue
	echo "$name: has no place at the top level" >&2
	failed=1
done < <(printf '%s\n' "${files[@]}" | cut -d/ -f1 | sort -u)

# This script is skipped: it has to spell what it looks for.
mapfile -t searched < <(printf '%s\n' "${files[@]}" |
	grep -vE '^(test/lint/top-level\.sh$|test/data/|test/golden/|test/fuzz/corpus/)')
found=$(printf '%s\0' "${searched[@]}" |
	xargs -0 grep -nIE -e '(^|[^A-Za-z0-9_}/*])/(home|root|Users|work)/[a-z]|/tmp/[a-z]+/build' --)
if [[ -n $found ]]; then
	echo "paths of one machine:" >&2
	echo "$found" >&2
	failed=1
fi

exit $failed
