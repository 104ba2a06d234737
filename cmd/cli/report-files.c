// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/report-files.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/message.h"

static volatile sig_atomic_t happened;

/* Other causes than a read beyond the end of a file still end the process. */
static void handle_bus_error(int number, siginfo_t *info, void *context)
{
	uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *page = (char *)((uintptr_t)info->si_addr & ~(page_bytes - 1));

	(void)context;
	if (info->si_code == BUS_ADRERR &&
	    mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page) {
		happened = 1;
		return;
	}
	signal(number, SIG_DFL);
	raise(number);
}

void truncated_files_ignore(void)
{
	struct sigaction action = {.sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	(void)sigaction(SIGBUS, &action, NULL);
}

void truncated_files_report(const struct command *command)
{
	if (happened)
		message(command,
			"warning: a program or debug file was cut short while it was read: names may be missing, "
			"and stacks may end early");
}

char *cache_directory(void)
{
	const char *base = getenv("XDG_CACHE_HOME");
	const char *below = "/mmtrace";
	char *directory = NULL;

	/* The specification says to ignore relative paths. */
	if (!base || *base != '/') {
		base = getenv("HOME");
		below = "/.cache/mmtrace";
	}
	if (!base || *base != '/' || asprintf(&directory, "%s%s", base, below) < 0)
		return NULL;
	return directory;
}
