#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packages: go:golang-go
# Stacks of Go: goroutines are complete down to their first function; the runtime maps memory on its own stacks, and the
# frames before the switch are missing, which the report says.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/stacks.bash" || exit 2

need_perf
command -v go >/dev/null || skip "no go is installed"
rounds=100
build_program env GOCACHE="$directory/cache" GOFLAGS=-mod=mod GOPATH="$directory" go build -o program "$stack_sources/program.go"
stack_entries='^runtime[.](goexit|mstart|mstart0|rt0_go)([.]abi0)?@program$'
record_stacks ./program $rounds
expect_json '[.groups[] | select(any(.frames[]; .function == "runtime.systemstack"))] | length > 0'
expect_json '.completeness.stacks_by_end | add == .entry + .other_stack'
expect_json '[.groups[] | select(.stack_end == "other_stack")] |
	all(.[]; .frames[-1].function | test("^runtime\\.(systemstack|mcall|morestack|asmcgocall)"))'
expect_json "[.groups[] | select(.stack_end == \"entry\" and .allocated_count > 0) | .frames[-1] |
	\"\\(.function)@\\(.module)\" | test(\"$stack_entries\")] | all"
# The kernel's frame-pointer chain may lead from a runtime stack back to the goroutine: this is a guess, marked where it
# changes stacks and nowhere else; in particular not at the goroutine's first function, which has no caller.
expect_json 'all(.groups[].frames; . as $frames | [range(length) | select($frames[.].doubtful)] | length == 0 or
	(length == 1 and .[0] > 0 and
		($frames[.[0] - 1].function // "" | test("^runtime\\.(systemstack|mcall|morestack|asmcgocall)"))))'

outer='main.oneRound<main.main<runtime.main<runtime.goexit'
other='main.oneRound<main.main.func1<runtime.goexit'
mapped='/yscall6$/<...<syscall.(*mmapper).Mmap<main.leakMmap'
for path in 'main.(*circle).draw' 'main.oneRound.func1<main.apply' '...<runtime.gopanic<main.leakDeferred<main.recoverPanic'; do
	expect_stack $rounds "$mapped<$path<$outer"
	expect_stack $((4 * rounds)) "$mapped<$path<$other"
done
