#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: strace:strace
# Commands that parse recordings give up their rights first: afterwards they execute nothing, and open only their output for
# writing. Pager, pipes, an output and a root directory without /proc work as before.
source "$SOURCE/test/golden/written-files.bash" || exit 2
export LC_ALL=C
unset DEBUGINFOD_URLS
cp "$data"/{leak,more}.data .

# expect_confined PLACE WORD...: what is opened for writing after the seccomp filter matches PLACE.
expect_confined() {
	local place=$1 status=0
	shift
	strace -f -o trace -e trace=openat,open,creat,execve,execveat,socket,capset,seccomp,landlock_restrict_self \
		"$MMTRACE" "$@" >output 2>messages </dev/null || status=$?
	[ $status = 0 ] || complain "$*: status $status: $(cat messages)"
	grep -q 'capset(.*effective=\(0\|1<<CAP_DAC_READ_SEARCH\|1<<CAP_DAC_OVERRIDE|1<<CAP_DAC_READ_SEARCH|1<<CAP_FOWNER\),.*= 0$' trace ||
		complain "$*: capabilities are kept: $(grep capset trace)"
	if [ "$sanitized" = no ]; then
		grep -q 'seccomp(SECCOMP_SET_MODE_FILTER.*= 0$' trace || complain "$*: no seccomp filter"
		! sed '1,/seccomp(/d' trace | grep -E 'execve|socket\(' || complain "$*: not confined"
	fi
	! sed '1,/capset(/d' trace | grep -E 'O_WRONLY|O_RDWR|O_CREAT|creat\(' | grep -vE "= -1 |$place" ||
		complain "$*: opens files for writing"
}
sanitized=no
grep -q '^MMTRACE_SANITIZE:BOOL=ON$' "$BUILD/CMakeCache.txt" && sanitized=yes
if command -v strace >/dev/null; then
	export ASAN_OPTIONS=detect_leaks=0
	for words in "report leak.data" "report --json leak.data" "diff leak.data more.data" "dump leak.data" \
		"export -f folded leak.data"; do
		expect_confined NOTHING $words
	done
	expect_confined "\"(\.|page\.html[^\"]*)\"" report --html page.html leak.data
	expect_confined "\"(\.|heap\.pb\.gz[^\"]*)\"" export -f pprof -o heap.pb.gz leak.data
	[ -s page.html ] && [ -s heap.pb.gz ] || complain "no output is written"
	unset ASAN_OPTIONS
else
	echo "strace is not installed: system calls are not compared"
fi

run 0 report --no-pager leak.data
mv output expected

# expect_same WHAT: the output is that of an ordinary report, but for the name of the recording.
expect_same() {
	diff <(sed 's/^  -, from/  leak.data, from/' output) expected >&2 || complain "$1: another report"
}
"$MMTRACE" report --no-pager - <leak.data >output || complain "no report of a file as standard input"
expect_same "a file as standard input"
cat leak.data | TMPDIR=$directory "$MMTRACE" report --no-pager - >output || complain "no report of a pipe"
expect_same "a pipe"
DEBUGINFOD_URLS=http://127.0.0.1:1 "$MMTRACE" report --no-pager leak.data >output || complain "no report with debuginfod"
expect_same "debuginfod"
run 2 report --no-pager --html missing/page.html leak.data
grep -q 'missing/page.html: No such file' messages || complain "another message: $(cat messages)"

# The pager starts with the first output, and not at all without one.
if command -v script >/dev/null; then
	printf '#!/bin/sh\ntouch started\nexec sed "s/^/paged: /"\n' >pager && chmod +x pager
	export PAGER=$directory/pager TERM=dumb SHELL=/bin/sh
	script -qec "'$MMTRACE' report missing.data" log </dev/null >/dev/null
	grep -q 'missing.data: No such file' log || complain "no message with a pager: $(cat log)"
	[ -e started ] && complain "the pager starts without output"
	script -qec "'$MMTRACE' report leak.data" log </dev/null >/dev/null || complain "no report through a pager"
	grep -q '^paged: leak-static' log || complain "no pager: $(cat log)"
fi

# In a root directory without /proc and /dev. Sanitizers need /proc.
if [ "$(id -u)" = 0 ] && [ $sanitized = no ]; then
	mkdir root && cp "$MMTRACE" root/mmtrace && cp leak.data root/
	for library in $(ldd "$MMTRACE" | grep -o '/[^ ]*'); do
		mkdir -p "root/$(dirname "$library")" && cp -L "$library" "root/$library"
	done
	chroot root /mmtrace report --no-pager leak.data >output || complain "no report in a root directory without /proc"
	expect_same "a root directory without /proc"
fi
exit $failed
