// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A checkpoint is a failing call, munmap(1, NUMBER), which is recorded with its arguments, followed by the kernel's
 * maps, appended to DIRECTORY/maps.PID after a line "NUMBER BYTES". Nothing in between changes a mapping.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/stage.h"
#include "torture.h"

#define MARKER_ADDRESS 1
#define HEADER_BYTES 64
#define MAPS_BYTES (4 << 20)

static char maps[HEADER_BYTES + MAPS_BYTES];
static int output = -1;

static void mark(uint64_t number)
{
	if (syscall(SYS_munmap, MARKER_ADDRESS, number) == 0) {
		fputs("the marker did not fail\n", stderr);
		abort();
	}
}

void torture_arrive(void)
{
	mark(0);
}

static void open_output(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/maps.%d", torture_program.directory, (int)getpid());
	output = stage_need_call(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), "open the maps' copy");
}

void torture_checkpoint_forked(void)
{
	close(output);
	output = -1;
}

static size_t read_maps(char *to, size_t room)
{
	int fd = stage_need_call(open("/proc/self/maps", O_RDONLY | O_CLOEXEC), "open maps");
	size_t length = 0;
	ssize_t count;

	while ((count = read(fd, to + length, room - length)) > 0)
		length += (size_t)count;
	stage_need_call((int)count, "read maps");
	close(fd);
	if (length == room)
		stage_need_call(-1, "maps too long");
	return length;
}

void torture_checkpoint(void)
{
	uint64_t number = atomic_fetch_add(torture_program.checkpoints, 1) + 1;
	size_t length;
	int header;

	if (output < 0)
		open_output();
	mark(number);
	length = read_maps(maps + HEADER_BYTES, MAPS_BYTES);
	header = snprintf(maps, HEADER_BYTES, "%llu %zu\n", (unsigned long long)number, length);
	memmove(maps + header, maps + HEADER_BYTES, length);
	length += (size_t)header;
	if (write(output, maps, length) != (ssize_t)length)
		stage_need_call(-1, "write the maps' copy");
}
