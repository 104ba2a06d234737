#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Nothing stands at the top that has no place there, and the tree knows nothing of the machine it was made on.
set -u
cd "${SOURCE:?}" || exit 1
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 77

failed=0
allowed=' cmd lib include test man CMakeLists.txt README COPYING '

while read -r name; do
	[[ $name == .* || $allowed == *" $name "* ]] && continue
	echo "$name: has no place at the top level" >&2
	failed=1
done < <(git ls-files | cut -d/ -f1 | sort -u)

# Own path is left out: it must spell what it looks for.
found=$(git grep -nIE '(^|[^A-Za-z0-9_}/*])/(home|root|Users|work)/[a-z]|/tmp/[a-z]+/build' -- . ':!test/lint/top-level.sh' ':!test/data' ':!test/golden' ':!test/fuzz/corpus')
if [[ -n $found ]]; then
	echo "paths of one machine:" >&2
	echo "$found" >&2
	failed=1
fi

exit $failed
