#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# report --annotate shows the machine code around a call, in programs and in JIT code.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2
source "$SOURCE/test/live/support/other-machine.bash" || exit 2

need_perf
source_file=$SOURCE/test/workload/names.c
line_of() { grep -n "/\* $1 \*/" "$source_file" | cut -d: -f1; }

annotate() {
	"$MMTRACE" report --no-pager -i "$recording" --annotate "$@" >shown.txt 2>annotate.log || fail "--annotate $*: $(cat annotate.log)"
}

# expect_shown PATTERN [COUNT]
expect_shown() {
	[ "$(grep -cE -- "$1" shown.txt)" = "${2:-1}" ] || {
		cat shown.txt >&2
		fail "not ${2:-1} times: $1"
	}
}

gcc -O2 -g -fomit-frame-pointer -o program "$source_file" || fail "gcc"
"$MMTRACE" record -q -o "$recording" -- ./program 2>record.log || fail "record: $(cat record.log)"
annotate hidden
expect_shown '^hidden +program +in stack [0-9]+$'
expect_shown "^.*/names.c:$(line_of innermost)\$"
expect_shown '^--> +[0-9a-f]+:  call 0x[0-9a-f]+$'
call=$(sed -n '/^-->/=' shown.txt)
[ "$(sed -n "/names.c:$(line_of innermost)\$/=" shown.txt)" -lt "$call" ] || fail "the source line does not stand before the call"
[ "$(grep -cE '^ +[0-9a-f]+:  ' shown.txt)" -ge 8 ] || fail "few instructions: $(cat shown.txt)"
cp shown.txt hidden.txt
annotate innermost # inlined there
cmp -s <(sed 1d shown.txt) <(sed 1d hidden.txt) || fail "the inlined function is elsewhere"
annotate '_ZN5space*' # as the file has it
expect_shown '^void space::member'
annotate '*' --limit 0
expect_shown '^-->' "$(grep -cE 'in stack' shown.txt)"

expect_refusal 2 "no function 'nothing'" "$MMTRACE" report -i "$recording" --annotate nothing
for option in --json "--by module"; do
	"$MMTRACE" report -i "$recording" --annotate hidden $option >shown.txt 2>annotate.log
	[ $? = 2 ] && [ ! -s shown.txt ] && grep -q "cannot be combined with ${option% *}" annotate.log || fail "$option: $(cat annotate.log)"
done

# expect_packed_shows PATTERN NAME: the packed recording shows the same for all frames of this name, on another machine too.
expect_packed_shows() {
	annotate "$1" --limit 0
	mv shown.txt original.txt
	"$MMTRACE" pack -q -o "$2" "$recording" || fail "pack ended with status $?"
	recording=$2 annotate "$1" --limit 0
	cmp original.txt shown.txt || fail "$1: not the same when it is packed: $(diff original.txt shown.txt | head -20)"
	has_other_machine || return
	make_machine "$2"
	on_other_machine report --no-pager --annotate "$1" --limit 0 "$2" >shown.txt || fail "--annotate on another machine"
	cmp original.txt shown.txt || fail "$1: not the same on another machine: $(diff original.txt shown.txt | head -20)"
}
expect_packed_shows '*' packed.data

# Another program at this path has different code; a packed recording does not read it.
gcc -O0 -o program "$source_file" || fail "gcc"
annotate 'program+0x*'
expect_shown 'code is not available'
expect_shown '^-->' 0
recording=packed.data annotate hidden
cmp shown.txt hidden.txt || fail "packed, it shows another program's code"

command_case jitdump
annotate Moved
expect_shown '^Moved +\[jit\] +in stack [0-9]+$'
expect_shown '^/nowhere/source.js:14$'
expect_shown '^--> +[0-9a-f]+:  call rax$'
expect_shown '^ +[0-9a-f]+:  ' 4
expect_packed_shows '*' packed-jitdump.data
grep -q '^Outer ' original.txt && grep -q '^LaterOuter ' original.txt || fail "JIT code is missing: $(cat original.txt)"

# JIT code that a perf map names and that the recording contains: code that existed until the end is shown, code that other
# code replaced is not.
attach_case jit-code 2000
annotate '*Outer'
expect_shown '^(Doubly|Later)Outer +\[jit\] +in stack [0-9]+$' 2
expect_shown '^as it was last seen$' 2
expect_shown '^ +[0-9a-f]+:  (push rbp|mov rbp, rsp|sub rsp, 0x10|movabs rax, 0x[0-9a-f]+|leave|ret)$' 12
expect_shown '^--> +[0-9a-f]+:  call rax$' 2
[ "$(grep -A1 '^AnonymousOuter ' shown.txt | tail -1)" = \
	"    its code is not available: it is not in the recorded build of its file, a jitdump or a copy" ] ||
	fail "code of another time is shown: $(cat shown.txt)"
expect_packed_shows '*' packed-copies.data

# Code is copied when it was last seen; by then a process may run another program than in a report with an earlier end.
for recording in "$recording" packed-copies.data; do
	annotate '*Outer' --to -1ms
	expect_shown '^(Anonymous|Doubly|Later)Outer ' 3
	expect_shown ' copies may be newer than the report$' 3
	expect_shown '^-->' 0
done
