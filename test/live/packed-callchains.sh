#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: quick
# Packages: perf:linux-perf
# In a packed recording, perf finds the addresses of the complete stack in the callchain of each sample, also without frame
# pointers, for stacks deeper than those of perf, and for samples that were recorded without callchains (--lean).
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
command -v perf >/dev/null || skip "no perf is installed"

# expect_equal_stacks FUNCTION FRAMES OPTION...: record the workload $work; every row with the function has a complete stack of
# at least that many frames (0: of any), and perf shows as many samples with the addresses of the row as it has mappings.
expect_equal_stacks() {
	local function=$1 frames=$2
	shift 2
	"$MMTRACE" record -q --raw -o raw "$@" -- "$workloads"/$work >/dev/null || fail "record $* ended with status $?"
	"$MMTRACE" report --json --limit 0 raw >raw.json || fail "report of $work"
	"$MMTRACE" pack -q -o packed raw || fail "pack of $work"
	perf script -i packed --no-inline --max-stack 10000 -F event,ip >script.txt 2>script.log ||
		fail "perf script: $(cat script.log)"
	[ ! -s script.log ] || fail "perf script complains: $(cat script.log)"
	grep -q stack-dump script.txt && fail "perf sees stack dumps"
	perf evlist -v -i packed | grep -E 'STACK_USER|sample_stack_user' && fail "events ask for stack memory"
	python3 - "$function" "$frames" <<-'END' || fail "perf and mmtrace show other stacks of $work with $*"
		import collections, json, sys
		function, least = sys.argv[1], int(sys.argv[2])
		seen = collections.Counter()
		for sample in open("script.txt").read().split("\n\n"):
		    lines = sample.split("\n")
		    seen[tuple(int(line, 16) for line in lines if line and ":" not in line)] += 1
		rows = [row for row in json.load(open("raw.json"))["groups"]
		        if any(frame["function"] == function for frame in row["frames"])]
		for row in rows:
		    stack = tuple(int(frame["module_offset"], 16) for frame in row["frames"] if not frame["inlined"])
		    if len(stack) < least or least and row["stack_end"] != "entry" or seen[stack] != row["allocated_count"]:
		        sys.exit(f"{len(stack)} frames, {row['allocated_count']} mappings, {seen[stack]} samples: "
		                 + " ".join(map(hex, stack[:20])))
		sys.exit(not rows)
	END
}

work="deep-stack --exit 20" expect_equal_stacks leak_at_bottom 20
work="deep-stack --exit 180" expect_equal_stacks leak_at_bottom 180 --call-graph dwarf,65280
work="leak-anon --exit 20" expect_equal_stacks leak_inner 5 --lean
work="leak-anon --exit 20" expect_equal_stacks leak_outer 0 --call-graph fp
work="leak-anon --exit 20" expect_equal_stacks leak_inner 5

# 3,900 frames of 16 bytes fill a dump.
command -v gcc >/dev/null || exit 0
gcc -O1 -g -x c -o deep - <<-'END' || fail "gcc"
	#include <sys/mman.h>
	__attribute__((noinline, noclone)) long descend(long depth)
	{
		if (!depth)
			return mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
		return descend(depth - 1) + 1;
	}
	int main(void)
	{
		return descend(3900) != 3901;
	}
END
workloads=$PWD work=deep expect_equal_stacks descend 3900 --call-graph dwarf,65280
