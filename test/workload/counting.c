/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Numbers its calls by their length: the call with number N maps N pages, and the next one releases them. Starts with a
 * line on stdin, or immediately with --exit, and makes some ten thousand calls a second at most; prints "done" and
 * exits after the number of milliseconds in the operand.
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
