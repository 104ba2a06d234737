/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts with its calls: the call with number N maps, and the next one releases, N pages. Begins with a line on stdin,
 * or at once with --exit, at no more than some ten thousand calls a second; says "done" and ends when the milliseconds
 * of the operand are over.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/stage.h"

#define LOOK_CALLS 64
#define REST_MICROSECONDS 1000

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	uint64_t end_ms, number = 1;

	stage_begin(&stage);
	end_ms = now_ms() + stage_number(&stage, 0, 1000);
	while (now_ms() < end_ms) {
		for (int i = 0; i < LOOK_CALLS; i++, number++) {
			size_t bytes = number * stage_page_bytes();

			stage_need_call(munmap(stage_need(mmap(NULL, bytes, PROT_NONE,
							       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
							  "mmap"),
					       bytes),
					"munmap");
		}
		usleep(REST_MICROSECONDS);
	}
	stage_end(&stage);
	return 0;
}
