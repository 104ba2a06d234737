#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tags: sanitize
# Packages: gcc:gcc
# While a return probe on malloc is open, the kernel puts its page "[uprobes]" in place of malloc's caller: stacks end at
# malloc, and the report says why.
source "$SOURCE/test/live/support/recording.bash" || exit 2

need_perf
[ -r /sys/bus/event_source/devices/uprobe/type ] || skip "the kernel has no uprobes"
cat >probed.c <<'END_OF_C'
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void *kept[100000];

int main(void)
{
	struct perf_event_attr attributes = {.size = sizeof(attributes), .config = 1};
	FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	void *address = dlsym(RTLD_DEFAULT, "malloc");
	Dl_info info;

	if (!type || fscanf(type, "%u", &attributes.type) != 1 || !dladdr(address, &info))
		return 1;
	attributes.uprobe_path = (uint64_t)(uintptr_t)info.dli_fname;
	attributes.probe_offset = (uint64_t)((char *)address - (char *)info.dli_fbase);
	if (syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0) < 0)
		puts("refused");
	kept[0] = memset(malloc(1000), 1, 1000);
	puts("ready");
	fflush(stdout);
	for (int i = 1; i < 100000; i++) {
		kept[i] = memset(malloc(1000), 1, 1000);
		if (i % 100 == 0)
			usleep(10000);
	}
	pause();
}
END_OF_C
gcc -D_GNU_SOURCE -O1 -o probed probed.c -ldl || fail "probed.c does not compile"
start_command "$PWD/probed"
! grep -q refused "$directory/workload.out" || skip "return probes are not permitted"
grep -q '\[uprobes\]' "/proc/$pid/maps" || fail "no page of the kernel's: $(cat "/proc/$pid/maps")"
"$MMTRACE" record -q -p "$pid" --duration 1s -o "$recording" || fail "record: status $?"
kill "$pid"
"$MMTRACE" report --json "$recording" >report.json || fail "report: status $?"
expect_json '.completeness.stacks_by_end | .return_probe > 0 and add == .return_probe'
expect_json 'all(.groups[]; .frames[-1].function == "malloc" or .frames[-1].function == "__libc_malloc")'
"$MMTRACE" report --no-pager "$recording" >report.txt || fail "report: status $?"
grep -q 'callers beyond here are missing: return probe of another tool' report.txt &&
	grep -q '^callers missing, return probe: a tool' report.txt && ! grep -q 'no unwind data' report.txt ||
	fail "the report does not say what cuts the stacks: $(cat report.txt)"
"$MMTRACE" pack -q -o packed.data "$recording" || fail "pack: status $?"
"$MMTRACE" report --no-pager packed.data >packed.txt || fail "report of the packed recording: status $?"
grep -q 'callers beyond here are missing: return probe of another tool' packed.txt || fail "not packed: $(cat packed.txt)"
