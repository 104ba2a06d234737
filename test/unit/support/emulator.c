// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/emulator.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* An emulator provides /proc/self of the program, but in /proc of another process, such as a child, the kernel shows
 * the emulator itself. */
bool emulator_hides(const char *what)
{
	char path[64], own[PATH_MAX], childs[PATH_MAX];
	ssize_t own_length, childs_length;
	pid_t child = fork();

	if (child < 0)
		return false;
	if (child == 0) {
		for (;;)
			pause();
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)child);
	own_length = readlink("/proc/self/exe", own, sizeof(own));
	childs_length = readlink(path, childs, sizeof(childs));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (own_length < 0 || childs_length < 0 ||
	    (own_length == childs_length && !memcmp(own, childs, (size_t)own_length)))
		return false;
	printf("skipped: the emulator does not show %s\n", what);
	return true;
}
