/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that start threads: each of four runners makes a few numbered calls, starts the next one and exits. A
 * numbered call is a munmap() of a page that was never mapped, whose address is the number; each number is used once.
 * The first operand names a file of eight-byte numbers: the next one to use, then for each runner the one whose call it
 * is about to make: 0 while it takes a number, and a number greater than any after it has made its call.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/stage.h"

#define RUNNERS 4
#define CALLS 5
#define FIRST_ADDRESS 0x100000000000ULL

static _Atomic uint64_t *next_number; /* and those of the runners */

static void *run(void *own_number)
{
	_Atomic uint64_t *own = own_number;
	pthread_attr_t attributes;
	pthread_t next;

	for (int i = 0; i < CALLS; i++) {
		uint64_t number;

		atomic_store(own, 0);
		number = atomic_fetch_add(next_number, 1);
		atomic_store(own, number);
		munmap((void *)(uintptr_t)(FIRST_ADDRESS + number * stage_page_bytes()), stage_page_bytes());
		atomic_store(own, INT64_MAX);
	}
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	while (pthread_create(&next, &attributes, run, own_number))
		usleep(1000);
	pthread_attr_destroy(&attributes);
	return NULL;
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	const char *path = stage.operand_count ? stage.operands[0] : "/dev/null";
	int fd = stage_need_call(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), path);

	stage_need_call(ftruncate(fd, (off_t)stage_page_bytes()), path);
	next_number = stage_need(mmap(NULL, stage_page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), path);
	for (int i = 1; i <= RUNNERS; i++)
		run((void *)&next_number[i]);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
