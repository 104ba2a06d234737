#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: alone sanitize
# When the rings overflow, only stack dumps are lost: no call is missing, and all figures are correct.
source "$SOURCE/test/live/support/recording.bash" || exit 2
source "$SOURCE/test/live/support/losses.bash" || exit 2

need_perf
# The rings have room for the records of all calls made while the recorder is stopped, but for a few hundred stack dumps
# only.
overflow() {
	record_overflow 1500 "$@"
	! grep -q 'kernel grants' "$directory/record.log" || skip "the kernel does not grant such rings"
}

overflow --raw -m 4M
expect_json '.completeness.lost_events == 0'
[ "$(recorded mmap)" = "$made_mmap" ] || fail "$(recorded mmap) of $made_mmap calls of mmap are recorded"
[ "$(recorded munmap)" = "$made_munmap" ] || fail "$(recorded munmap) of $made_munmap calls of munmap are recorded"
lost=$(attribute_lost syscalls:sys_exit_mmap/stack-dump stack-dump)
dumps=$(grep -c " stack-dump event=syscalls:sys_exit_mmap/stack-dump " "$directory/dump.out")
[ "$lost" -gt 500 ] || fail "only $lost stack dumps were lost"
[ $((dumps + lost)) = "$made_mmap" ] || fail "$dumps stack dumps and $lost lost ones do not add up to $made_mmap calls"
expect_json ".completeness.lost_stack_dumps == $lost"
tr -d , <"$directory/record.log" | grep -q "stack dumps; $lost lost" || fail "the summary does not say that $lost stack dumps were lost"
grep -q 'only stack dumps were lost: all figures are correct' "$directory/record.log" || fail "the summary does not say what that means"
# Everything is as if nothing had been lost.
expect_true_report
expect_json '.processes | all(.checked)'
expect_workload_answer yes
let_end

# With one record for both, releases are lost no earlier.
overflow --lean -m 1M
[ "$(recorded munmap)" = "$made_munmap" ] || fail "$(recorded munmap) of $made_munmap calls of munmap are recorded"
[ "$(attribute_lost syscalls:sys_exit_munmap syscall)" = 0 ] || fail "releases were lost"
lost=$(attribute_lost syscalls:sys_exit_mmap syscall)
[ "$lost" -gt 500 ] || fail "only $lost calls of mmap were lost"
[ $(($(recorded mmap) + lost)) = "$made_mmap" ] || fail "$lost lost calls of mmap and those recorded are not the $made_mmap made"
let_end
