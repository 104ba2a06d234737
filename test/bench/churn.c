// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * mmap and munmap of 64 KiB, called 24 frames deep:
 *
 *     churn COUNT [STACKS]              from STACKS different places (1); prints nanoseconds per pair
 *     churn --mappings MAPPINGS COUNT   in a process with MAPPINGS other mappings; prints six numbers, see
 *                                       time_among_mappings()
 *     churn --paced COUNT PAUSE BYTES   PAUSE microseconds apart (0: no pause), on a stack of at least BYTES bytes;
 *                                       prints the lower quartile of the CPU time of a pair
 *     churn --rate PAIRS SECONDS        PAIRS per second, in bursts; one block of 64 KiB of each 64th burst stays mapped
 *     churn --resident RESIDENT MAPPED MAPPINGS [huge]
 *                                       with RESIDENT of MAPPED MiB resident and MAPPINGS other mappings; runs on
 *                                       request, see serve_pairs(); `huge`: in huge pages
 *     churn --madvise ...               one of these with a call of madvise, as deep, instead of the pair
 *     churn --threads THREADS           in THREADS threads, until it is killed
 *     churn --spin                      no calls: only keeps a CPU busy until it is killed
 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <alloca.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BYTES 65536
#define DEPTH 22   /* under main() and above make_calls() */
#define FIRST 5000 /* pairs that are not counted: it takes a recorder some to adapt to their rate */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void map_and_unmap(void)
{
	void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	munmap(memory, BYTES);
}

static void give_back(void)
{
	static void *memory;

	if (!memory)
		memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, BYTES, MADV_DONTNEED) != 0)
		abort();
}

static void (*make_calls)(void) = map_and_unmap; /* at the depth */

/* For each frame, a bit of `path` selects one of two call sites of the next one. */
__attribute__((noinline)) static void go_deeper(unsigned depth, unsigned path)
{
	if (!depth)
		make_calls();
	else if (path & 1)
		go_deeper(depth - 1, path >> 1);
	else
		go_deeper(depth - 1, path / 2);
	__asm__ volatile("" ::: "memory"); /* a call in tail position would be no frame */
}

static int time_pairs(unsigned count, unsigned stacks)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < count; i++)
		go_deeper(DEPTH, i % stacks);
	printf("%llu\n", (unsigned long long)((now_ns() - start) / count));
	return 0;
}

/* How the thread was scheduled during a pair. */
enum fate { KEPT_PROCESSOR, SLEPT, GAVE_WAY, FATES };

static enum fate find_fate(const struct rusage *before, const struct rusage *after)
{
	if (after->ru_nvcsw != before->ru_nvcsw)
		return SLEPT;
	return after->ru_nivcsw != before->ru_nivcsw ? GAVE_WAY : KEPT_PROCESSOR;
}

/* The thread's total run-queue delay; 0 if the kernel does not report it. */
static uint64_t queued_ns(void)
{
	unsigned long long queued = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "r");

	if (file && fscanf(file, "%*u %llu", &queued) != 1)
		queued = 0;
	if (file)
		fclose(file);
	return queued;
}

static int compare_lengths(const void *first, const void *second)
{
	uint64_t a = *(const uint64_t *)first, b = *(const uint64_t *)second;

	return (a > b) - (a < b);
}

struct pairs {
	uint64_t *lengths; /* in ns, of the first `room` */
	uint64_t room, count;
	uint64_t longest[FATES];
	uint64_t sum, long_ones;
};

/* Adds one pair; *usage and *queued are the thread's before it, and are updated. */
static void time_pair(struct pairs *pairs, struct rusage *usage, uint64_t *queued)
{
	struct rusage before = *usage;
	uint64_t start = now_ns(), length;
	enum fate fate;

	go_deeper(DEPTH, 0);
	length = now_ns() - start;
	if (pairs->count < pairs->room)
		pairs->lengths[pairs->count] = length;
	pairs->count++;
	getrusage(RUSAGE_THREAD, usage);
	fate = find_fate(&before, usage);
	pairs->sum += length;
	pairs->long_ones += fate == GAVE_WAY && length > 1000000;
	if (fate != KEPT_PROCESSOR) {
		uint64_t waited = queued_ns() - *queued;

		*queued += waited;
		if (fate == SLEPT)
			length -= waited < length ? waited : length;
		getrusage(RUSAGE_THREAD, usage);
	}
	pairs->longest[fate] = length > pairs->longest[fate] ? length : pairs->longest[fate];
}

/* Alternating protections, so that the kernel does not merge the mappings. */
static int map_many(unsigned mappings, int touch)
{
	for (unsigned i = 0; i < mappings; i++) {
		char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return 1;
		if (touch)
			*memory = 1;
		if (i % 2 && mprotect(memory, 4096, PROT_READ))
			return 1;
	}
	return 0;
}

/*
 * Prints the mean, the 99.9th percentile, the longest pair in which the thread kept its CPU, the longest in which it
 * slept (waited for a lock), without its run-queue delay, the longest in which it was preempted, and the number of
 * pairs per second that took more than a millisecond.
 */
static int time_among_mappings(unsigned mappings, unsigned count)
{
	struct pairs pairs = {.lengths = calloc(count + 1, sizeof(*pairs.lengths)), .room = count};
	uint64_t began, queued;
	struct rusage usage;

	if (!pairs.lengths || !count || map_many(mappings, 0))
		return 1;
	began = now_ns();
	queued = queued_ns();
	getrusage(RUSAGE_THREAD, &usage);
	while (pairs.count < count)
		time_pair(&pairs, &usage, &queued);
	qsort(pairs.lengths, count, sizeof(*pairs.lengths), compare_lengths);
	printf("%llu %llu %llu %llu %llu %.0f\n", (unsigned long long)(pairs.sum / count),
	       (unsigned long long)pairs.lengths[count * 999ULL / 1000],
	       (unsigned long long)pairs.longest[KEPT_PROCESSOR], (unsigned long long)pairs.longest[SLEPT],
	       (unsigned long long)pairs.longest[GAVE_WAY], (double)pairs.long_ones * 1e9 / (double)(now_ns() - began));
	free(pairs.lengths);
	return 0;
}

#define MIB (1ul << 20)
#define LENGTHS (4u << 20) /* of which the median is taken */
#define PAIRS_PER_POLL 64

/* If a quarter is to be resident, the first quarter of each 4 MiB, and so on. With small pages, this is the most
 * work for a reader. */
static int make_resident(size_t resident_mib, size_t mapped_mib, bool huge)
{
	const size_t step = 4 * MIB;
	size_t part = mapped_mib ? step * resident_mib / mapped_mib : 0;
	char *memory;

	if (!mapped_mib)
		return 0;
	memory =
	    mmap(NULL, mapped_mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	madvise(memory, mapped_mib * MIB, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (size_t i = 0; i < mapped_mib * MIB; i += 4096) {
		if (i % step < part)
			memory[i] = 1;
	}
	return 0;
}

/*
 * Prints "ready". For each line on standard input: makes pairs until the next line, then prints the median, the 99.9th
 * percentile, and the longest pairs like time_among_mappings().
 */
static int serve_pairs(size_t resident_mib, size_t mapped_mib, unsigned mappings, bool huge)
{
	struct pairs pairs = {.lengths = calloc(LENGTHS, sizeof(*pairs.lengths)), .room = LENGTHS};
	char line[16];

	if (!pairs.lengths || make_resident(resident_mib, mapped_mib, huge) || map_many(mappings, 1))
		return 1;
	memset(pairs.lengths, 1, LENGTHS * sizeof(*pairs.lengths)); /* not a page more while pairs are made */
	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, line, sizeof(line)) > 0) {
		struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
		uint64_t queued = queued_ns();
		struct rusage usage;
		size_t stored;

		getrusage(RUSAGE_THREAD, &usage);
		pairs = (struct pairs){.lengths = pairs.lengths, .room = LENGTHS};
		do {
			for (unsigned i = 0; i < PAIRS_PER_POLL; i++)
				time_pair(&pairs, &usage, &queued);
		} while (!poll(&input, 1, 0));
		if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
			break;
		stored = pairs.count < LENGTHS ? pairs.count : LENGTHS;
		qsort(pairs.lengths, stored, sizeof(*pairs.lengths), compare_lengths);
		printf("%llu %llu %llu %llu %llu\n", (unsigned long long)pairs.lengths[stored / 2],
		       (unsigned long long)pairs.lengths[stored * 999 / 1000],
		       (unsigned long long)pairs.longest[KEPT_PROCESSOR], (unsigned long long)pairs.longest[SLEPT],
		       (unsigned long long)pairs.longest[GAVE_WAY]);
		fflush(stdout);
	}
	return 0;
}

static uint64_t processor_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static int time_paced(unsigned count, unsigned pause_microseconds, size_t bytes)
{
	const struct timespec pause = {.tv_nsec = pause_microseconds * 1000L};
	uint64_t *lengths = calloc(count, sizeof(*lengths));
	char *stack = alloca(bytes);

	if (!lengths || !count)
		return 1;
	memset(stack, 1, bytes);
	__asm__ volatile("" ::"r"(stack) : "memory");
	for (unsigned i = 0; !pause_microseconds && i < FIRST; i++)
		go_deeper(DEPTH, 0);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = processor_ns();

		go_deeper(DEPTH, 0);
		lengths[i] = processor_ns() - start;
		if (pause_microseconds)
			nanosleep(&pause, NULL);
	}
	qsort(lengths, count, sizeof(*lengths), compare_lengths);
	printf("%llu\n", (unsigned long long)lengths[count / 4]);
	free(lengths);
	return 0;
}

/* A block of each 64th burst stays mapped. */
static int keep_rate(unsigned pairs, unsigned seconds)
{
	uint64_t start_ns = now_ns(), made = 0, bursts = 0;

	while (now_ns() - start_ns < seconds * 1000000000ULL) {
		uint64_t due = (now_ns() - start_ns) * pairs / 1000000000;

		for (; made < due; made++)
			go_deeper(DEPTH, 1);
		if (pairs && ++bursts % 64 == 0)
			(void)mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		(void)poll(NULL, 0, 10);
	}
	printf("%llu\n", (unsigned long long)(2 * made));
	return 0;
}

static void *work(void *unused)
{
	for (;;)
		go_deeper(DEPTH, 0);
	return unused;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--madvise")) {
		make_calls = give_back;
		argc--;
		argv++;
	}
	if (argc > 3 && !strcmp(argv[1], "--mappings"))
		return time_among_mappings((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	if (argc > 4 && !strcmp(argv[1], "--resident"))
		return serve_pairs((size_t)atoi(argv[2]), (size_t)atoi(argv[3]), (unsigned)atoi(argv[4]), argc > 5);
	if (argc > 3 && !strcmp(argv[1], "--rate"))
		return keep_rate((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	if (argc > 4 && !strcmp(argv[1], "--paced"))
		return time_paced((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]), (size_t)atoi(argv[4]));
	if (argc > 2 && !strcmp(argv[1], "--threads")) {
		for (int i = 0; i < atoi(argv[2]); i++) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, work, NULL))
				return 1;
		}
		for (;;)
			pause();
	}
	if (argc > 1 && !strcmp(argv[1], "--spin")) {
		for (;;)
			__asm__ volatile("");
	}
	return time_pairs(argc > 1 ? (unsigned)atoi(argv[1]) : 100000,
			  argc > 2 && atoi(argv[2]) > 0 ? (unsigned)atoi(argv[2]) : 1);
}
