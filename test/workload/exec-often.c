/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Each program maps 16 MiB, all of which are resident when mmap returns, and executes the next one soon afterwards. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

enum { BYTES = 16 << 20, PAUSE_MICROSECONDS = 10000 };

int main(int argc, char **argv)
{
	(void)argc;
	stage_need(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), "mmap");
	usleep(PAUSE_MICROSECONDS);
	execv("/proc/self/exe", argv);
	perror("execv");
	return 1;
}
