#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# report --html and diff --html replace an existing file only when the page is complete. The tests of test/html open the
# pages.
source "$SOURCE/test/golden/written-files.bash" || exit 2

# is_page FILE
is_page() {
	[ "$(head -c 15 "$1")" = '<!DOCTYPE html>' ] && [ "$(tail -n 1 "$1")" = '</html>' ] && grep -q '"recordings":\[{' "$1"
}

# is_old: page.html is unchanged, and there is no other file beside it.
is_old() {
	[ "$(cat page.html)" = old ] && [ "$(echo page.html*)" = page.html ]
}

umask 022
run 0 report --html page.html "$data/more.data"
is_page page.html || complain "report --html FILE: no complete page"
[ ! -s output ] && [ ! -s messages ] || complain "report --html FILE prints: $(cat output messages)"
[ "$(stat -c %a page.html)" = 644 ] || complain "a new page has the mode $(stat -c %a page.html)"
run 0 diff --html page.html "$data/leak.data" "$data/more.data"
is_page page.html || complain "diff --html FILE: no complete page"
grep -q '"input":"[^"]*leak.data"' page.html && grep -q '"input":"[^"]*more.data"' page.html || complain "diff --html: not both recordings"
run 0 report --html - "$data/more.data"
is_page output || complain "report --html -: no page on standard output"

echo old >page.html
chmod 600 page.html
run 2 report --html page.html "$SOURCE/README"
is_old || complain "a file that is no recording: page.html changed"
run 2 diff --html page.html "$data/leak.data" missing.data
is_old || complain "a missing recording: page.html changed"
(
	trap '' XFSZ
	ulimit -f 8
	exec "$MMTRACE" report --html page.html "$data/more.data" 2>messages
)
[ $? = 2 ] && grep -q '^mmtrace report: cannot write page.html: File too large$' messages || complain "no room: $(cat messages)"
is_old || complain "no room for the page: page.html changed"
run 0 report --html page.html "$data/more.data"
is_page page.html || complain "page.html is not replaced"
[ "$(stat -c %a page.html)" = 600 ] || complain "a page that is replaced has the mode $(stat -c %a page.html)"

echo old >page.html
ln -s page.html link.html
run 0 report --html link.html "$data/more.data"
[ -L link.html ] && is_page page.html || complain "a symbolic link: its target is not replaced"
cp "$data/more.data" mmtrace.data
run 2 report --html mmtrace.data
grep -q '^mmtrace report: mmtrace.data is a recording and is not replaced: choose another name for the output$' messages ||
	complain "a page instead of a recording: $(cat messages)"
run 2 diff --html mmtrace.data "$data/leak.data" "$data/more.data"
cmp -s mmtrace.data "$data/more.data" || complain "a page replaced a recording"
run 2 report --html /dev/full "$data/more.data"
grep -q 'cannot write /dev/full: No space left on device' messages || complain "/dev/full: $(cat messages)"
run 2 report --html none/page.html "$data/more.data"
grep -q 'cannot write none/page.html: No such file or directory' messages || complain "no directory: $(cat messages)"
run 2 report --html "" "$data/more.data"
grep -q -- '--html: the file.s name is empty' messages || complain "an empty name: $(cat messages)"
run 2 report --html page.html --json "$data/more.data"
grep -q -- '--html and --json cannot be combined' messages || complain "--html --json: $(cat messages)"
run 2 report --html page.html --by module "$data/more.data"
grep -q -- '--html shows stacks and cannot be combined with --by' messages || complain "--html --by: $(cat messages)"
exit "$failed"
