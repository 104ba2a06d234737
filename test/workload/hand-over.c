/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One thread maps, another one unmaps; each keeps some and frees some itself. Prints the table of who released whose
 * memory. */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include "support/stage.h"

enum {
	KEPT = 5,
	OWN = 10,
	HANDED_OVER = 15,
	NEVER_TAKEN = 3,
	CONSUMER_KEPT = 2,
	CONSUMER_OWN = 8,
	FOR_FIRST = 4,
	BLOCK_PAGES = 4
};

static void *handed_over[HANDED_OVER], *for_first[FOR_FIRST];
static pthread_barrier_t begin, produced, consumed;

VISIBLE void *map_block(void)
{
	void *block = mmap(NULL, BLOCK_PAGES * stage_page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return stage_need(block, "mmap");
}

static void unmap_block(void *block)
{
	stage_need_call(munmap(block, BLOCK_PAGES * stage_page_bytes()), "munmap");
}

static void *produce(void *unused)
{
	pthread_setname_np(pthread_self(), "producer");
	pthread_barrier_wait(&begin);
	for (int i = 0; i < KEPT; i++)
		map_block();
	for (int i = 0; i < OWN; i++)
		unmap_block(map_block());
	for (int i = 0; i < HANDED_OVER; i++)
		handed_over[i] = map_block();
	pthread_barrier_wait(&produced);
	pthread_barrier_wait(&consumed);
	return unused;
}

static void *consume(void *unused)
{
	pthread_setname_np(pthread_self(), "consumer");
	pthread_barrier_wait(&begin);
	for (int i = 0; i < CONSUMER_KEPT; i++)
		map_block();
	for (int i = 0; i < CONSUMER_OWN; i++)
		unmap_block(map_block());
	for (int i = 0; i < FOR_FIRST; i++)
		for_first[i] = map_block();
	pthread_barrier_wait(&produced);
	for (int i = 0; i < HANDED_OVER - NEVER_TAKEN; i++)
		unmap_block(handed_over[i]);
	pthread_barrier_wait(&consumed);
	return unused;
}

static void print_thread(const char *name, int itself, int others, int unfreed, int released)
{
	size_t block = BLOCK_PAGES * stage_page_bytes();
	int allocated = itself + others + unfreed;

	stage_expect("thread=%s allocated=%zu allocations=%d itself=%zu others=%zu unfreed=%zu count=%d released=%zu",
		     name, allocated * block, allocated, itself * block, others * block, unfreed * block, unfreed,
		     released * block);
}

static void print_release(const char *owner, const char *releaser, int blocks)
{
	stage_expect("owner=%s releaser=%s released=%zu", owner, releaser, blocks * BLOCK_PAGES * stage_page_bytes());
}

int main(int argc, char **argv)
{
	enum { TAKEN = HANDED_OVER - NEVER_TAKEN };
	struct stage stage = stage_open(argc, argv);
	pthread_t threads[2];

	mallopt(M_ARENA_MAX, 1);
	pthread_barrier_init(&begin, NULL, 3);
	pthread_barrier_init(&produced, NULL, 2);
	pthread_barrier_init(&consumed, NULL, 3);
	stage_need_call(-pthread_create(&threads[0], NULL, produce, NULL), "pthread_create");
	stage_need_call(-pthread_create(&threads[1], NULL, consume, NULL), "pthread_create");
	stage_begin(&stage);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&consumed);
	for (int i = 0; i < FOR_FIRST; i++)
		unmap_block(for_first[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	print_thread("producer", OWN, TAKEN, KEPT + NEVER_TAKEN, OWN);
	print_thread("consumer", CONSUMER_OWN, FOR_FIRST, CONSUMER_KEPT, CONSUMER_OWN + TAKEN);
	print_release("producer", "producer", OWN);
	print_release("producer", "consumer", TAKEN);
	print_release("consumer", "consumer", CONSUMER_OWN);
	print_release("consumer", "hand-over", FOR_FIRST);
	stage_expect("total=%zu", (KEPT + NEVER_TAKEN + CONSUMER_KEPT) * BLOCK_PAGES * stage_page_bytes());
	stage_end(&stage);
	return 0;
}
