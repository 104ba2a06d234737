#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Functions that must not be called: unbounded or silently failing ones anywhere; in lib/, those that print or exit.
set -u
cd "${SOURCE:?}" || exit 1

failed=0

# FILE:LINE:CODE of all lines of the files, without comments and string literals.
code_of()
{
	grep -nH '' "$@" | sed -E -e 's/"([^"\\]|\\.)*"/""/g' -e 's@/\*.*\*/@@g' -e 's@//.*@@' -e 's@^([^:]*:[0-9]+:)[[:space:]]*/?\*.*@\1@'
}

# Calls of the functions $1 in the output $3 of code_of.
forbid()
{
	local functions=$1 why=$2 found

	found=$(grep -E "[^A-Za-z0-9_.>]($functions)[[:space:]]*\(" <<<"$3") || return 0
	sed "s|\$|    <- $why|" <<<"$found" >&2
	failed=1
}

mapfile -t all < <(find lib cmd include -name '*.[ch]' | sort)
mapfile -t library < <(find lib -name '*.[ch]' | sort)
((${#all[@]} > 0 && ${#library[@]} > 0)) || { echo "no source files found" >&2; exit 1; }
everywhere=$(code_of "${all[@]}")
in_library=$(code_of "${library[@]}")

forbid 'strcpy|strcat|strncpy|strncat|stpcpy|sprintf|vsprintf|gets|scanf|fscanf' 'no bound, or a silent one' "$everywhere"
forbid 'strtok|strtok_r|asctime|ctime|localtime|gmtime|strsignal|tmpnam|mktemp|tempnam|rand|srand' 'hidden state' "$everywhere"
forbid 'atoi|atol|atoll|atof' 'cannot fail' "$everywhere"
forbid 'alloca|strdupa|strndupa' 'unbounded stack' "$everywhere"
forbid 'system|popen' 'a shell with foreign words' "$everywhere"
forbid 'printf|puts|putchar|vprintf|perror|warn|warnx|error|err|errx' 'the library never prints' "$in_library"
forbid 'exit|abort|assert|quick_exit' 'the library never ends the process' "$in_library"

# Only a child process that the library created may exit.
forbid '_exit|_Exit' 'the library never ends the process' "$(grep -v '^lib/\(capture/process/command\|capture/procfs/blocking-calls\|base/helper-process\|capture/runtimes/ask-runtime\|code/names/names-helper\)\.c:' <<<"$in_library")"

found=$(grep -nE '\b(stdout|stderr)\b' "${library[@]}" | grep -vE ':[[:space:]]*(/?\*|//)|"/dev/stdout"')
if [[ -n $found ]]; then
	echo "$found    <- the library never prints" >&2
	failed=1
fi

# Written so that this line does not match itself.
found=$(grep -nE '\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b' "${all[@]}")
if [[ -n $found ]]; then
	echo "$found" >&2
	failed=1
fi

# Files that a unit test creates in another way stay when the test fails or is killed.
mapfile -t units < <(find test/unit -name '*.[ch]' ! -path test/unit/support/temporary.c | sort)
forbid 'mkdtemp|mkstemp|mkostemp|tmpnam|tempnam|mktemp' 'see test/unit/support/temporary.h' "$(code_of "${units[@]}")"

# The kernel walks every page of the process for this file, and blocks its calls meanwhile. Both users limit that.
found=$(grep -nE '"[^"]*\bsmaps' "${all[@]}" | grep -vE '^lib/capture/memory/(pss|swapped-pages)\.c:')
if [[ -n $found ]]; then
	echo "$found    <- use maps and pagemap, or pss.h" >&2
	failed=1
fi

found=$(awk 'FNR == 1 && !/SPDX-License-Identifier: LGPL-2\.1-or-later/ { print FILENAME }' "${all[@]}")
if [[ -n $found ]]; then
	sed 's|$|: the first line is not its licence|' <<<"$found" >&2
	failed=1
fi

exit $failed
