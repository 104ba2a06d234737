#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# One word for each concept, the one of perf, the kernel and DWARF: these private words must not come back into the sources
# and tests.
set -u
cd "${SOURCE:?}" || exit 1

failed=0
mapfile -t files < <(find lib cmd include -name '*.[ch]' | sort)
# This script has to spell the words. The recordings' programs, expected outputs and READMEs are no code.
mapfile -t tests < <(find test -type f ! -path '*/data/*' ! -path '*/corpus/*' ! -name '*.expected' ! -name '*.json' ! -name README \
	! -path test/golden/TESTLIST ! -path test/lint/vocabulary.sh ! -path '*/__pycache__/*' | sort | xargs grep -lI '')
((${#files[@]} > 0 && ${#tests[@]} > 0)) || { echo "no source files or no tests found" >&2; exit 1; }

# Without string literals, which may contain the words of other programs and of earlier versions; the names of .NET's stubs.
lines=$(grep -nH '' "${files[@]}" "${tests[@]}" | sed -E 's/"([^"\\]|\\.)*"/""/g; s/IL_STUB//g')

# Parts of identifiers, and words of comments.
while read -r old new; do
	found=$(grep -Ei "(^|[^[:alpha:]])($old)([^[:alpha:]]|\$)" <<<"$lines")
	if [[ -n $found ]]; then
		sed "s|\$|    <- write: $new|" <<<"$found" >&2
		failed=1
	fi
done <<'END'
witness(es)? MMAP2 record
births? allocation, or fork
lacks_[a-z]+|[a-z]+_lacks warnings
holdings process totals
sentinels? hotplug event
precedence scheduling priority
seldom[.]h cold.h
unwatched set-user-ID exec
anew again
[a-z]+_stubs?|stubs?_[a-z]+ special function
kept[_-]images module copies
known[_-]processes process table
name[_-]pieces incremental metadata
unwind[_-]memo unwind cache
lanes?|[a-z_]+_lanes?|lane_[a-z_]+ compression stream
everybody all processes, or all users
mend(s|ed|ing)? fix
borders?|border_[a-z]+ boundary
generated_code(_[a-z]+)* JIT code
cut_files(_[a-z]+)* truncated files
feed_[a-z]+|struct.feed readahead
END

# A test's name states the behaviour.
while read -r line; do
	echo "$line    <- state the behaviour in the field's words" >&2
	failed=1
done < <(grep -nHE 'START_TEST\(([a-z0-9]+_)*(whoever|told|lies|anew|born|seldom|strangers?)(_[a-z0-9]+)*\)' test/unit/test-*.c)

# Phrases in comments, messages, manual pages and READMEs, and in comments of tests. A line break, or two string literals, may
# divide them: each file becomes one line.
texts=$(for file in "${tests[@]}"; do
	{ grep -E '^[[:space:]]*(#|//|/?[*])' "$file" || true; } | tr '\n' ' ' |
		sed -E "s%[[:space:]]+([*]|#|//)[[:space:]]% %g; s%[[:space:]]+% %g; s%^%$file: %; s%\$%\n%"
done
for file in "${files[@]}" man/*.[1357] README test/README test/bench/README; do
	tr '\n' ' ' <"$file" | sed -E "s|\"[[:space:]]+\"||g; s|[[:space:]]+[*][[:space:]]| |g; s|[[:space:]]+| |g; s|^|$file: |; s|\$|\n|"
done)
mapfile -t phrases <<'END'
bytes off => bytes differ
repaired => reconciled
cut short => truncated
breaks off => ends
happened to need => triggered the growth
no whole number => not a multiple
no multiple => not a multiple
lead it into => pipe it into
passed over => ignored
(is|are|be|only these) told => reports, warns, describes
whoever => the program, thread or user
heeds? => uses
seldom => rarely
at the most => at most
shall => must
impossible (size|number|index) => invalid
(is|are) not there => is missing
mean something => are meaningful
(?<!there )(is|are|was|were) no (leak|cache|growth|terminal|error|failure|problem|program|stack|jitdump|sample)s? => is not a
number of no [a-z]+ => number of something that does not exist
END
contains() { grep -Pi "(?<![[:alpha:]])($1)(?![[:alpha:]_])" <<<"$texts"; }
if contains "$(IFS='|' && echo "${phrases[*]/% => */}")" >/dev/null; then
	for phrase in "${phrases[@]}"; do
		while IFS=: read -r file _; do
			echo "$file: ${phrase%% => *}    <- write: ${phrase##* => }" >&2
			failed=1
		done < <(contains "${phrase%% => *}")
	done
fi

# Terms that a newcomer would search for: each occurs in a file name or a comment.
for term in hotplug dedup reorder backtrace readahead 'build-id' callchain resident JIT CFA; do
	grep -qi -- "$term" "${files[@]}" || { echo "no source file mentions '$term'" >&2; failed=1; }
done

exit $failed
