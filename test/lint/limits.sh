#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Every limit for hostile or huge input is in lib/base/limits.h, has a use, and is listed in mmtrace-internals(7).
set -u
cd "${SOURCE:?}" || exit 1
header=lib/base/limits.h
limits=$(grep -oE '^#define LIMIT_[A-Z0-9_]+' "$header" | cut -d' ' -f2 | sort)
listed=$(sed -n '/^\.Ss Limits$/,/^\.El$/p' man/mmtrace-internals.7 | grep '^\.Dv ' | grep -oE 'LIMIT_[A-Z0-9_]+' | sort)
failed=0

complain()
{
	echo "$1" >&2
	failed=1
}

difference=$(diff <(echo "$limits") <(echo "$listed")) || complain "$header (<) and Limits of man/mmtrace-internals.7 (>):
$difference"
elsewhere=$(grep -rnE '#[[:space:]]*define LIMIT_' lib include --include='*.[ch]' | grep -v "^$header:") &&
	complain "limits outside $header: $elsewhere"
for limit in $limits; do
	grep -rqw --include='*.[ch]' --exclude=limits.h "$limit" lib || complain "$header: $limit has no use"
	grep -B1 "^#define $limit " "$header" | grep -qE "^#define $limit .*/\* .* \*/\$|^[/ ]\*.*\*/\$" ||
		complain "$header: no comment explains $limit"
done
exit $failed
