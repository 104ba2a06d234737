#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The manual pages are well-formed, have all required sections, and their references exist.
set -u
export LC_ALL=C.UTF-8
cd "${SOURCE:?}" || exit 1
command -v mandoc >/dev/null || exit 77

failed=0
version=$(sed -nE 's/^project\(mmtrace VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)

complain()
{
	echo "$1" >&2
	failed=1
}

for page in mmtrace.1 mmtrace-record.1 mmtrace-report.1 mmtrace-diff.1 mmtrace-dump.1 mmtrace.3 mmtrace-file.5 mmtrace-json.5 \
	mmtrace-causes.7 mmtrace-containers.7 mmtrace-fleet.7 mmtrace-internals.7; do
	[[ -f man/$page ]] || complain "man/$page is missing"
done

for page in man/*.[1357]; do
	# The examples come first: that is what most readers look for.
	problems=$(mandoc -T lint -W warning "$page" | grep -v 'sections out of conventional order: Sh DESCRIPTION$') &&
		complain "$problems"
	grep -qx ".Os Linux \"mmtrace $version\"" "$page" || complain "$page: .Os does not say Linux and the version"
	[[ $page == *.1 ]] || continue
	[[ $(grep -A1 -x '.Sh SYNOPSIS' <(grep '^\.Sh' "$page") | tail -1) == '.Sh EXAMPLES' ]] ||
		complain "$page: EXAMPLES do not follow SYNOPSIS"
	for section in 'DESCRIPTION' 'FILES' 'EXIT STATUS' 'SEE ALSO'; do
		grep -qx "\.Sh $section" "$page" || complain "$page: no section $section"
	done
	for status in 0 2 '128 + Ar n'; do
		sed -n '/^\.Sh EXIT STATUS$/,/^\.Sh SEE ALSO$/p' "$page" | grep -qxF ".It $status" ||
			complain "$page: EXIT STATUS does not explain ${status/ Ar/}"
	done
done

# The two pages that everybody reads stay short: formats and explanations have pages of their own.
while read -r page limit; do
	size=$(stat -c %s "man/$page")
	((size <= limit)) || complain "man/$page has $size bytes, more than $limit"
done <<<'mmtrace-report.1 28672
mmtrace-record.1 18432'

# An item without text in a -tag list. mandoc reports empty items of the other types of lists.
for page in man/*.[1357]; do
	empty=$(awk '
		/^\.\\"/ || /^\.Pp$/ { next }
		item && /^\.(It|El)( |$)/ { print item }
		{ item = "" }
		/^\.Bl / { tagged[++depth] = $2 == "-tag"; next }
		/^\.El/ { depth--; next }
		/^\.It / && tagged[depth] { item = FNR ": " $0 }' "$page")
	[[ -z $empty ]] || complain "$page: list items without an explanation: $empty"
done

# In the rendered text: no nested quotes of the same kind, no heading swallowed by a macro, no macro without its argument
# (mandoc then prints "file ...").
for page in man/*.[1357]; do
	rendered=$(mandoc -T utf8 "$page" | sed -E 's/.\x08//g')
	stray=$(grep -nE '‘[^’]*‘|“[^”]*“|‘’|“”|(^| )(Qo|Qc|Ns|Ta|Pq|Ql|Fl|Op|Xr) |file \.\.\.' <<<"$rendered") &&
		complain "$page: stray quotes or macros in the rendered text: $stray"
	while read -r _ heading; do
		grep -qF -- "${heading//\\&/}" <<<"$rendered" || complain "$page: the heading '$heading' is rendered otherwise"
	done < <(grep -E '^\.Ss ' "$page" | grep -vE '^\.Ss .*(Nm|Fl|Cm|Pa|Xr) ')
done

# The pages explain every field of the JSON output; those of its figures, and the keys of --sort, are in one table.
table=include/mmtrace/figures.h
figures=$(sed -nE 's/^(FIGURE\(DO, |DO\()([a-z_]+), .*/\2/p' $table)
keys=$(grep -oE 'MMT_SORTED\([A-Z]+, "[a-z]+"' $table | grep -oE '[a-z]+')
[[ -n $figures && -n $keys ]] || complain "$table: no figures found"
fields=$(comm -23 <((grep -ohE '(document|put|open)_[a-z_]+\([a-z]+, "[a-z_]+"' lib/output/json/*.c | grep -oE '"[a-z_]+"' | tr -d '"'; echo "$figures") | sort -u) \
	<(grep -hE '^\.(It )?Va ' man/mmtrace-json.5 | grep -oE '[a-z_]+' | sort -u))
[[ -z $fields ]] || complain "fields of the JSON output that no page explains: $fields"
keys=$(comm -23 <(sort -u <<<"$keys") <(sed -n '/^\.It Fl s , Fl Fl sort/,/^\.It Fl Fl/p' man/mmtrace-report.1 | grep -oE '^\.Cm [a-z]+' | cut -d' ' -f2 | sort -u))
[[ -z $keys ]] || complain "man/mmtrace-report.1: keys of --sort that are not explained: $keys"

# man(1) formats the pages with groff, which reports words that do not fit into an 80-column terminal.
if command -v groff >/dev/null; then
	for page in man/*.[1357]; do
		wide=$(groff -mdoc -T utf8 -ww -z -rLL=78n "$page" 2>&1 | grep -E "break line|substring") && complain "$page: $wide"
	done
fi

# groff 1.23 (Debian 13) treats an apostrophe in a column's width as a delimiter, which breaks the table.
quoted=$(grep -nE "^\.Bl -column .*'" man/*.[1357]) && complain "an apostrophe in the width of a column: $quoted"

# mmtrace(3) shows the program that test/live/example.sh compiles and runs.
example=test/example/record-and-report.c
difference=$(diff "$example" <(sed -n '/^\.Bd -literal$/,/^\.Ed$/p' man/mmtrace.3 |
	sed -e '1d;$d' -e 's/\\e/\\/g' -e "s/\\\\(aq/'/g")) || complain "$example (<) and man/mmtrace.3 (>):
$difference"

# It names every public header.
for header in include/mmtrace/*.h; do
	grep -qF "Pa ${header#include/}" man/mmtrace.3 || complain "man/mmtrace.3 does not name ${header#include/}"
done

while IFS=: read -r page reference; do
	read -r _ name section _ <<<"$reference"
	[[ $name == mmtrace* ]] || continue
	[[ -f man/$name.$section ]] || complain "$page: refers to $name($section), which is no page"
done < <(grep -oE '\.Xr mmtrace[a-z-]* [0-9]' man/*.[1357])

exit $failed
