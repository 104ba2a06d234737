#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A FIFO where debug information is looked up: opening it blocks until somebody writes. After some seconds the report takes
# names from the program's own symbols, and says so.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for tool in gcc objcopy; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
program=$directory/program
mkdir debug

# record_program OPTION...
record_program() {
	gcc -O2 "$@" -o "$program" "$SOURCE/test/workload/names.c" || fail "gcc $*"
	"$MMTRACE" record -q --raw -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"
}

# expect_passed_over FIFO [COMMAND...]: a report with a FIFO there, run by the command, finishes and has names.
expect_passed_over() {
	local fifo=$1 status
	shift
	mkdir -p "$(dirname "$fifo")" && mkfifo "$fifo" || fail "no FIFO $fifo"
	timeout 60 "$@" "$MMTRACE" report --json -i "$recording" >report.json 2>report.log
	status=$?
	[ $status = 0 ] || fail "with a FIFO $fifo a report ended with status $status: $(cat report.log)"
	jq -e 'any(.groups[].frames[]; .function == "visible")' report.json >jq.log || fail "no names with a FIFO $fifo"
	jq -e 'any(.completeness.warnings[]; contains("/program takes too long to read"))' report.json >jq.log ||
		fail "a FIFO $fifo is not reported"
	rm "$fifo"
}

# By the program's name, and by its build-id.
record_program
expect_passed_over program.debug
id=$(readelf -n "$program" | sed -n 's/.*Build ID: //p')
if [ -d /usr/lib/debug ] && unshare -m true 2>/dev/null; then
	expect_passed_over "debug/.build-id/${id:0:2}/${id:2}.debug" \
		unshare -m bash -c "mount --bind '$directory/debug' /usr/lib/debug && exec \"\$@\"" -
else
	echo "no mount namespace: /usr/lib/debug is not tested"
fi

# A supplementary file.
record_program -g
supplement=0123456789abcdef0123456789abcdef01234567
{
	printf 'supplement\0'
	printf "$(sed 's/../\\x&/g' <<<$supplement)"
} >link.bytes
objcopy --add-section .gnu_debugaltlink=link.bytes "$program" || fail "objcopy adds no section"
"$MMTRACE" record -q --raw -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"
expect_passed_over supplement

# The split DWARF file.
record_program -gdwarf-5 -gsplit-dwarf
parts=(*.dwo)
[ -f "${parts[0]}" ] || fail "gcc -gsplit-dwarf leaves no .dwo"
rm "${parts[0]}"
expect_passed_over "${parts[0]}"
