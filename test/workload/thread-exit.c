/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads leak and exit, the first one too: the process lives on without it. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/stage.h"

enum { THREADS = 6, BLOCKS = 5, BLOCK_PAGES = 8 };

static struct stage stage;
static pthread_barrier_t begin;
static pthread_t threads[THREADS];

VISIBLE void leak_in_thread(void)
{
	size_t block = BLOCK_PAGES * stage_page_bytes();

	for (int i = 0; i < BLOCKS; i++)
		stage_need(mmap(NULL, block, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

VISIBLE void *run_ending(void *unused)
{
	pthread_barrier_wait(&begin);
	leak_in_thread();
	KEEP_FRAME();
	return unused;
}

static void await_end_of_first_thread(void)
{
	char status[512] = "";
	ssize_t length;

	while (!strstr(status, ") Z ")) {
		int fd = stage_need_call(open("/proc/self/stat", O_RDONLY | O_CLOEXEC), "open");

		length = stage_need_call((int)read(fd, status, sizeof(status) - 1), "read");
		status[length] = '\0';
		close(fd);
		usleep(1000);
	}
}

static void *run_surviving(void *unused)
{
	size_t block = BLOCK_PAGES * stage_page_bytes();

	pthread_barrier_wait(&begin);
	await_end_of_first_thread();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	leak_in_thread();
	stage_expect("bytes=%zu count=%d threads=%d stack=mmap<leak_in_thread<run_ending<start_thread",
		     THREADS * BLOCKS * block, THREADS * BLOCKS, THREADS);
	stage_expect("bytes=%zu count=%d threads=1 stack=mmap<leak_in_thread<run_surviving", BLOCKS * block, BLOCKS);
	stage_expect("process=%d unfreed=%zu ended=0 checked=1", (int)getpid(), (THREADS + 1) * BLOCKS * block);
	stage_expect("total=%zu", (THREADS + 1) * BLOCKS * block);
	stage_end(&stage);
	exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t survivor;

	stage = stage_open(argc, argv);
	/* Threads that free memory of others would create arenas. */
	mallopt(M_ARENA_MAX, 1);
	pthread_barrier_init(&begin, NULL, THREADS + 2);
	for (int i = 0; i < THREADS; i++)
		stage_need_call(-pthread_create(&threads[i], NULL, run_ending, NULL), "pthread_create");
	stage_need_call(-pthread_create(&survivor, NULL, run_surviving, NULL), "pthread_create");
	stage_begin(&stage);
	pthread_barrier_wait(&begin);
	/* pthread_exit() would load a library. */
	syscall(SYS_exit, 0);
	return 0;
}
