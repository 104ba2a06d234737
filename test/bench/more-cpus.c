// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a thread costs on a machine with more CPUs: opens EVENTS inherited events of itself on CPU, where it does not
 * run. So its context has as many events as it would have there.
 *
 *     more-cpus EVENTS CPU COMMAND...   with these events, executes the command
 *     more-cpus EVENTS CPU              prints the microseconds to open an event and to create a thread that inherits
 * them
 *
 * Needs root, and tracefs in /sys/kernel/tracing.
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 50

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void *end_at_once(void *context)
{
	return context;
}

int main(int argc, char **argv)
{
	const struct rlimit most = {1 << 20, 1 << 20};
	struct perf_event_attr attribute = {.type = PERF_TYPE_TRACEPOINT,
					    .size = sizeof(attribute),
					    .inherit = 1,
					    .sample_period = 1,
					    .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW};
	FILE *file = fopen("/sys/kernel/tracing/events/syscalls/sys_exit_mremap/id", "r");
	unsigned long long id;
	double start, opened;
	int count;

	if (argc < 3 || !file || fscanf(file, "%llu", &id) != 1)
		return 2;
	attribute.config = id;
	count = atoi(argv[1]);
	(void)setrlimit(RLIMIT_NOFILE, &most);
	start = now_us();
	for (int i = 0; i < count; i++) {
		if (syscall(SYS_perf_event_open, &attribute, 0, atoi(argv[2]), -1, 0) < 0) {
			perror("perf_event_open");
			return 1;
		}
	}
	if (argc > 3) {
		execvp(argv[3], argv + 3);
		perror(argv[3]);
		return 1;
	}
	opened = now_us();
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, end_at_once, NULL) != 0)
			return 1;
		pthread_join(thread, NULL);
	}
	printf("%.1f %.1f\n", count ? (opened - start) / count : 0, (now_us() - opened) / THREADS);
	return 0;
}
