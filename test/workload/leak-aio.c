/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * AIO contexts that are never destroyed, whose rings the kernel maps, while the stack grows too: leak-aio [--exit]
 * [COUNT].
 */
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/stage.h"

VISIBLE void leak_context(void)
{
	aio_context_t context = 0;

	stage_need_call((int)syscall(SYS_io_setup, 100, &context), "io_setup");
	KEEP_FRAME();
}

VISIBLE void use_stack(void)
{
	volatile uint8_t large[1 << 20];

	memset((void *)(uintptr_t)large, 1, sizeof(large));
	KEEP_FRAME();
}

static uint64_t count_ring_bytes(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	uint64_t start, end, bytes = 0;
	char line[512];

	stage_need(maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		if (strstr(line, "/[aio]") && sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
			bytes += end - start;
	}
	fclose(maps);
	return bytes;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t count = stage_number(&stage, 0, 7);

	stage_begin(&stage);
	use_stack();
	for (size_t i = 0; i < count; i++)
		leak_context();
	stage_expect("bytes=%" PRIu64 " count=%zu stack=syscall<leak_context<main", count_ring_bytes(), count);
	stage_end(&stage);
	return 0;
}
