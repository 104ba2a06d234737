#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Functions that must not be called: unbounded or silently failing ones anywhere, printing and ending the process in lib/.
set -u
cd "${SOURCE:?}" || exit 1

failed=0

# Calls of the functions $1 in the files that follow, comments and texts left out.
forbid()
{
	local functions=$1 why=$2 file found

	shift 2
	for file in "$@"; do
		found=$(sed -E -e 's/"([^"\\]|\\.)*"/""/g' -e 's@/\*.*\*/@@g' -e 's@//.*@@' -e 's@^[[:space:]]*/?\*.*@@' "$file" |
			grep -nE "(^|[^A-Za-z0-9_.>])($functions)[[:space:]]*\(")
		if [[ -n $found ]]; then
			sed "s|^|$file:|; s|\$|    <- $why|" <<<"$found" >&2
			failed=1
		fi
	done
}

mapfile -t all < <(find lib cmd include -name '*.[ch]' | sort)
mapfile -t library < <(find lib -name '*.[ch]' | sort)
((${#all[@]} > 0 && ${#library[@]} > 0)) || { echo "no source files found" >&2; exit 1; }

forbid 'strcpy|strcat|strncpy|strncat|stpcpy|sprintf|vsprintf|gets|scanf|fscanf' 'no bound, or a silent one' "${all[@]}"
forbid 'strtok|strtok_r|asctime|ctime|localtime|gmtime|strsignal|tmpnam|mktemp|tempnam|rand|srand' 'hidden state' "${all[@]}"
forbid 'atoi|atol|atoll|atof' 'cannot fail' "${all[@]}"
forbid 'alloca|strdupa|strndupa' 'unbounded stack' "${all[@]}"
forbid 'system|popen' 'a shell with foreign words' "${all[@]}"
forbid 'printf|puts|putchar|vprintf|perror|warn|warnx|error|err|errx' 'the library never prints' "${library[@]}"
forbid 'exit|abort|assert|quick_exit' 'the library never ends the process' "${library[@]}"

# A child process that it has made is the only one that may end itself.
mapfile -t others < <(printf '%s\n' "${library[@]}" | grep -v '^lib/capture/\(command\|question\)\.c$')
forbid '_exit|_Exit' 'the library never ends the process' "${others[@]}"

found=$(grep -nE '\b(stdout|stderr)\b' "${library[@]}" | grep -vE ':[[:space:]]*(/?\*|//)')
if [[ -n $found ]]; then
	echo "$found    <- the library never prints" >&2
	failed=1
fi

# Written so that this line is none of them.
found=$(grep -nE '\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b' "${all[@]}")
if [[ -n $found ]]; then
	echo "$found" >&2
	failed=1
fi

# What a unit test makes elsewhere stays when the test fails or is killed.
mapfile -t units < <(find test/unit -name '*.[ch]' ! -path test/unit/support/temporary.c | sort)
forbid 'mkdtemp|mkstemp|mkostemp|tmpnam|tempnam|mktemp' 'see test/unit/support/temporary.h' "${units[@]}"

# The kernel walks every page of the process for it, and keeps its calls waiting meanwhile.
found=$(grep -nE '"[^"]*\bsmaps' "${all[@]}")
if [[ -n $found ]]; then
	echo "$found    <- maps and pagemap say as much" >&2
	failed=1
fi

for file in "${all[@]}"; do
	head -1 "$file" | grep -q 'SPDX-License-Identifier: LGPL-2.1-or-later' ||
		{ echo "$file: the first line is not its licence" >&2; failed=1; }
done

exit $failed
