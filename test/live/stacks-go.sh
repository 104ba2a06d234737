#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: go:golang-go
# Stacks of Go: goroutines are complete down to their first function, also where the runtime maps memory on its own
# stacks, in stripped programs, and in position-independent ones that another linker has written.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v go >/dev/null || skip "no go is installed"
rounds=100
build() {
	build_program env GOCACHE="$directory/cache" GOFLAGS=-mod=mod GOPATH="$directory" go build -o program "$@" "$stack_sources/program.go"
}

# Where systemstack() keeps no frame pointer, the kernel skips its caller. In Go 1.21 and later it keeps one.
switch_doubt=true
[[ $(go version) =~ go1\.([0-9]+) ]] && ((BASH_REMATCH[1] < 21)) || switch_doubt=null

expect_stacks() {
	local other outer path mapped
	expect_json '[.groups[] | select(any(.frames[]; .function == "runtime.systemstack"))] | length > 0'
	# Where the runtime creates threads with the C library, which uses the frame pointer register for other data.
	expect_json '.completeness.stacks_by_end | add == .entry + .other_stack'
	expect_json 'all(.groups[] | select(.stack_end == "other_stack"); .frames[-1].function == "runtime.asmcgocall")'
	$uses_c || expect_json '.completeness | .stacks_by_end.other_stack == 0 and .frames_without_name == 0'
	$uses_c || expect_json "[.groups[] | select(.allocated_count > 0) | .frames[-1] | \"\(.function)@\(.module)\" |
		test(\"$stack_entries\")] | all"
	# Marked where it changes stacks and nowhere else; in particular not at the goroutine's first function, which has no
	# caller. Functions that were inlined into a frame are marked with it.
	expect_json 'all(.groups[].frames; . as $frames |
		[range(length) | select($frames[.].doubtful and (. == 0 or ($frames[. - 1] | .doubtful and .inlined | not)))] |
		length == 0 or
		(length == 1 and .[0] > 0 and
			($frames[.[0] - 1].function // "" | test("^runtime\\.(systemstack|mcall|morestack|asmcgocall)"))))'
	expect_json "all(.groups[].frames; . as \$frames | all(range(1; length);
		\$frames[. - 1].function != \"runtime.systemstack\" or (\$frames[.].doubtful or $switch_doubt == null)))"
	outer='main.oneRound<main.main<runtime.main<runtime.goexit'
	other='main.oneRound<main.main.func1<runtime.goexit'
	mapped='/yscall6$/<...<syscall.(*mmapper).Mmap<main.leakMmap'
	for path in 'main.(*circle).draw' 'main.oneRound.func1<main.apply' \
		'...<runtime.gopanic<main.leakDeferred<main.recoverPanic'; do
		expect_stack $rounds "$mapped<$path<$outer"
		expect_stack $((4 * rounds)) "$mapped<$path<$other"
	done
	expect_json '[.groups[].frames[] | select(.function == "main.oneRound") | .source_file | endswith("/program.go")] |
		length > 0 and all'
}

stack_entries='^runtime[.](goexit|mstart|mstart0|rt0_go)([.]abi0)?@program$'
for options in '' '-ldflags=-s -w' '-buildmode=pie -ldflags=-s -w -linkmode=external'; do
	read -r -a mode <<<"${options%%-ldflags*}"
	[[ $options == *-ldflags* ]] && mode+=("-ldflags=${options#*-ldflags=}")
	uses_c=false
	[[ $options != *external* ]] || uses_c=true
	$uses_c && ! command -v gcc >/dev/null && continue
	build "${mode[@]}"
	stack_graph='' record_stacks ./program $rounds
	expect_stacks
done
build
uses_c=false
stack_graph=fp record_stacks ./program $rounds
expect_stacks
