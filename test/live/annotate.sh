#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# report --annotate: the machine code around a call, of a program and of generated code.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/refusal.bash" || exit 2

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

expect_refusal 2 "called 'nothing'" "$MMTRACE" report -i "$recording" --annotate nothing
for option in --json "--by module"; do
	"$MMTRACE" report -i "$recording" --annotate hidden $option >shown.txt 2>annotate.log
	[ $? = 2 ] && [ ! -s shown.txt ] && grep -q "leave out ${option% *}" annotate.log || fail "$option: $(cat annotate.log)"
done

# A packed recording has no code, and takes none from a file that it need not be of.
"$MMTRACE" pack -q -o packed.data "$recording" || fail "pack ended with status $?"
recording=packed.data annotate hidden
expect_shown '^hidden +program +in stack [0-9]+$'
expect_shown 'code is not at hand'
expect_shown '^-->' 0

# Another program in its place has other code.
gcc -O0 -o program "$source_file" || fail "gcc"
annotate 'program+0x*'
expect_shown 'code is not at hand'
expect_shown '^-->' 0

command_case jitdump
annotate Moved
expect_shown '^Moved +\[jit\] +in stack [0-9]+$'
expect_shown '^/nowhere/source.js:14$'
expect_shown '^--> +[0-9a-f]+:  call rax$'
expect_shown '^ +[0-9a-f]+:  ' 4
