#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# A FIFO where debug information is looked up: opening it would block until somebody writes. The report skips it and takes
# names from the program's own symbols.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
for tool in gcc objcopy strip; do
	command -v $tool >/dev/null || skip "$tool is not installed"
done
program=$directory/program
mkdir debug .debug

# record_program OPTION...
record_program() {
	gcc -O2 "$@" -o "$program" "$SOURCE/test/workload/names.c" || fail "gcc $*"
	"$MMTRACE" record -q -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"
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
	rm "$fifo"
}

# By the program's name, beside it and below the common directory; by the build ID.
record_program
for fifo in program.debug .debug/program.debug .debug/program; do
	expect_passed_over "$fifo"
done
id=$(readelf -n "$program" | sed -n 's/.*Build ID: //p')
if [ -d /usr/lib/debug ] && unshare -m true 2>/dev/null; then
	with_debug=(unshare -m bash -c "mount --bind '$directory/debug' /usr/lib/debug && exec \"\$@\"" -)
	for fifo in "debug$directory/program.debug" "debug$directory/program" "debug/${directory#/*/}/program.debug" \
		debug/program.debug "debug/.build-id/${id:0:2}/${id:2}.debug"; do
		expect_passed_over "$fifo" "${with_debug[@]}"
	done
else
	echo "no mount namespace: /usr/lib/debug is not tested"
fi

# By the name in the program's debug link.
objcopy --only-keep-debug "$program" separate
objcopy --add-gnu-debuglink=separate "$program"
rm separate
for fifo in separate .debug/separate; do
	expect_passed_over "$fifo"
done

# A supplementary file.
record_program -g
supplement=0123456789abcdef0123456789abcdef01234567
{
	printf 'supplement\0'
	printf "$(sed 's/../\\x&/g' <<<$supplement)"
} >link.bytes
objcopy --add-section .gnu_debugaltlink=link.bytes "$program" || fail "objcopy adds no section"
"$MMTRACE" record -q -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"
expect_passed_over supplement
jq -e 'any(.completeness.warnings[]; contains("program"))' report.json >jq.log || fail "the report does not say what is missing"

# The split DWARF file, where it was compiled or beside the program.
for options in "-gdwarf-4 -gsplit-dwarf" "-gdwarf-5 -gsplit-dwarf"; do
	record_program $options
	parts=(*.dwo)
	[ -f "${parts[0]}" ] || fail "gcc $options leaves no .dwo"
	rm "${parts[0]}"
	expect_passed_over "${parts[0]}"
	jq -e 'any(.completeness.warnings[]; contains("refers to"))' report.json >jq.log || fail "the missing part is not reported"
	mkdir elsewhere
	mv program elsewhere
	program=$directory/elsewhere/program
	"$MMTRACE" record -q -o "$recording" -- "$program" 2>record.log || fail "record: $(cat record.log)"
	expect_passed_over "elsewhere/${parts[0]}"
	rm -r elsewhere
	program=$directory/program
done
