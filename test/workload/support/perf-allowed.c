/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exits with status 77 and one line that says why if this kernel does not permit recording system calls here,
 * otherwise with 0. */
#include <errno.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REFUSED 77

static int refuse(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	return REFUSED;
}

int main(void)
{
	struct perf_event_attr attribute = {
	    .size = sizeof(attribute), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .disabled = 1};

	if (syscall(SYS_perf_event_open, &attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0)
		return refuse("perf_event_open is refused");
	if (access("/sys/kernel/tracing/events/syscalls", R_OK) < 0 &&
	    syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC) < 0)
		return refuse("tracefs is neither mounted nor mountable");
	return 0;
}
