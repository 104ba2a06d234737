// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The cost of each part of an event set to the traced thread: event sets are opened one part at a time on a child that
 * maps and unmaps 24 frames deep (churn.c). No process reads their rings, so this is the kernel's share; the recorder's
 * processing comes on top. Prints the lower quartile of ROUNDS rounds, with all sets in each. Needs root and tracefs.
 *
 *     event-prices ROUNDS PAIRS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAPPED_BYTES 65536
#define RING_BYTES (8u << 20)
#define CPUS_MAX 64
#define EVENTS_MAX 260
#define SETS_MAX 64
#define ROUNDS_MAX 64

#define IDENTITY (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)
#define FIXED (IDENTITY | PERF_SAMPLE_IP | PERF_SAMPLE_CPU)
#define RAW PERF_SAMPLE_RAW
#define REGISTERS PERF_SAMPLE_REGS_USER
#define CHAIN PERF_SAMPLE_CALLCHAIN
#define DUMP PERF_SAMPLE_STACK_USER

#define SYSCALL_REGISTERS 0x701f8ULL /* bp sp ip di si dx r8 r9 r10 */
#define TWO_REGISTERS 0x30ULL	     /* si di */
#define DUMP_REGISTERS 0xf001c2ULL   /* bx bp sp ip r12-r15 */

enum trace { EXIT_MMAP, ENTER_MMAP, EXIT_MUNMAP, ENTER_MUNMAP, ENTER_MADVISE, EXIT_SHMAT, SIDE_BAND, TRACES };

static const char *const trace_names[TRACES] = {
    [EXIT_MMAP] = "syscalls/sys_exit_mmap",	     [ENTER_MMAP] = "syscalls/sys_enter_mmap",
    [EXIT_MUNMAP] = "syscalls/sys_exit_munmap",	     [ENTER_MUNMAP] = "syscalls/sys_enter_munmap",
    [ENTER_MADVISE] = "syscalls/sys_enter_madvise",  [EXIT_SHMAT] = "syscalls/sys_exit_shmat",
};

struct part {
	enum trace trace;
	uint64_t sample_type;
	uint64_t registers;
	uint32_t dump_bytes;
	bool second_ring;
	bool mmap_data;
	const char *filter;
	unsigned more;	    /* of the same, as for other calls that are not made */
	bool on_every_cpu;  /* and not only where the pairs are made */
	bool all_processes; /* not only the traced one */
};

struct set {
	const char *name;
	bool elsewhere; /* opened on another process than the measured one */
	bool calls;	/* getppid() is measured, not pairs */
	struct part parts[EVENTS_MAX];
	size_t part_count;
};

#define PARTS(...) .parts = {__VA_ARGS__}, .part_count = sizeof((struct part[]){__VA_ARGS__}) / sizeof(struct part)
#define PLAIN(event, type)                                                                                             \
	{                                                                                                              \
		.trace = (event), .sample_type = (type)                                                                \
	}
#define FILTERED(event, type, condition)                                                                               \
	{                                                                                                              \
		.trace = (event), .sample_type = (type), .filter = (condition)                                         \
	}
#define WITH_REGISTERS(event, type, mask)                                                                              \
	{                                                                                                              \
		.trace = (event), .sample_type = (type) | REGISTERS, .registers = (mask)                               \
	}
#define SYSCALL_MMAP(type, bytes)                                                                                      \
	{                                                                                                              \
		.trace = EXIT_MMAP, .sample_type = FIXED | RAW | REGISTERS | (type), .registers = SYSCALL_REGISTERS,   \
		.dump_bytes = (bytes)                                                                                  \
	}
#define DUMP_MMAP(type, bytes)                                                                                         \
	{                                                                                                              \
		.trace = EXIT_MMAP, .sample_type = (type) | REGISTERS | DUMP, .registers = DUMP_REGISTERS,             \
		.dump_bytes = (bytes), .second_ring = true                                                             \
	}
#define SYSCALL_MUNMAP WITH_REGISTERS(EXIT_MUNMAP, FIXED | RAW, SYSCALL_REGISTERS)
/* Events of calls that the pairs do not make: `count` events on each CPU. */
#define IDLE(count, any_process)                                                                                       \
	{                                                                                                              \
		.trace = EXIT_SHMAT, .sample_type = FIXED | RAW, .more = (count)-1, .on_every_cpu = true,              \
		.all_processes = (any_process)                                                                         \
	}
#define MMAP_DATA                                                                                                      \
	{                                                                                                              \
		.trace = SIDE_BAND, .sample_type = FIXED, .mmap_data = true                                            \
	}

static const struct set sets[] = {
    {.name = "nothing"},
    {.name = "exit mmap: identity", PARTS(PLAIN(EXIT_MMAP, IDENTITY))},
    {.name = "  + ip, cpu", PARTS(PLAIN(EXIT_MMAP, FIXED))},
    {.name = "  + raw", PARTS(PLAIN(EXIT_MMAP, FIXED | RAW))},
    {.name = "  + 9 registers", PARTS(SYSCALL_MMAP(0, 0))},
    {.name = "  + 64 B of stack", PARTS(SYSCALL_MMAP(DUMP, 64))},
    {.name = "  + callchain", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 64))},
    {.name = "    callchain, no stack", PARTS(SYSCALL_MMAP(CHAIN, 0))},
    {.name = "    callchain, 256 B", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 256))},
    {.name = "    callchain, 1 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 1024))},
    {.name = "    callchain, 2 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 2048))},
    {.name = "    callchain, 4 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 4096))},
    {.name = "    callchain, 8 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 8192))},
    {.name = "chain + twin 1 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 64), DUMP_MMAP(FIXED | RAW, 1024))},
    {.name = "chain + twin 2 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 64), DUMP_MMAP(FIXED | RAW, 2048))},
    {.name = "chain + twin 4 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 64), DUMP_MMAP(FIXED | RAW, 4096))},
    {.name = "chain + twin 8 KiB", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 64), DUMP_MMAP(FIXED | RAW, 8192))},
    {.name = "  2 KiB without raw", PARTS(SYSCALL_MMAP(DUMP | CHAIN, 64), DUMP_MMAP(FIXED, 2048))},
    {.name = "exit munmap: identity", PARTS(PLAIN(EXIT_MUNMAP, IDENTITY))},
    {.name = "  + raw, ip, cpu", PARTS(PLAIN(EXIT_MUNMAP, FIXED | RAW))},
    {.name = "  + 2 registers", PARTS(WITH_REGISTERS(EXIT_MUNMAP, FIXED | RAW, TWO_REGISTERS))},
    {.name = "  + 9 registers", PARTS(SYSCALL_MUNMAP)},
    {.name = "enter munmap: raw", PARTS(PLAIN(ENTER_MUNMAP, FIXED | RAW))},
    {.name = "  + exit failed", PARTS(PLAIN(ENTER_MUNMAP, FIXED | RAW), FILTERED(EXIT_MUNMAP, FIXED | RAW, "ret < 0"))},
    {.name = "exit mmap, all filtered", PARTS(FILTERED(EXIT_MMAP, FIXED | RAW, "ret < 0"))},
    {.name = "MMAP2 with data", PARTS(MMAP_DATA)},
    {.name = "  + 8 idle events of the thread", PARTS(MMAP_DATA, IDLE(8, false))},
    {.name = "  + 64 idle events", PARTS(MMAP_DATA, IDLE(64, false))},
    {.name = "  + 256 idle events", PARTS(MMAP_DATA, IDLE(256, false))},
    {.name = "  + 8 idle events of all processes", PARTS(MMAP_DATA, IDLE(8, true))},
    {.name = "truth, chain, twin 8 KiB, MMAP2",
     PARTS(MMAP_DATA, SYSCALL_MMAP(DUMP | CHAIN, 64), DUMP_MMAP(FIXED | RAW, 8192), SYSCALL_MUNMAP)},
    {.name = "truth, chain, twin 2 KiB, MMAP2",
     PARTS(MMAP_DATA, SYSCALL_MMAP(DUMP | CHAIN, 64), DUMP_MMAP(FIXED | RAW, 2048), SYSCALL_MUNMAP)},
    {.name = "truth, chain, MMAP2", PARTS(MMAP_DATA, SYSCALL_MMAP(DUMP | CHAIN, 64), SYSCALL_MUNMAP)},
    {.name = "one event 8 KiB, MMAP2", PARTS(MMAP_DATA, SYSCALL_MMAP(DUMP | CHAIN, 8192), SYSCALL_MUNMAP)},
    {.name = "one event 2 KiB, MMAP2", PARTS(MMAP_DATA, SYSCALL_MMAP(DUMP | CHAIN, 2048), SYSCALL_MUNMAP)},
    {.name = "no chain, one event 1 KiB", PARTS(SYSCALL_MMAP(DUMP, 1024), SYSCALL_MUNMAP)},
    {.name = "no chain, one event 2 KiB", PARTS(SYSCALL_MMAP(DUMP, 2048), SYSCALL_MUNMAP)},
    {.name = "no chain, twin 1 KiB", PARTS(SYSCALL_MMAP(DUMP, 64), DUMP_MMAP(FIXED, 1024), SYSCALL_MUNMAP)},
    {.name = "perf -g",
     PARTS(PLAIN(ENTER_MMAP, FIXED | RAW | CHAIN), PLAIN(EXIT_MMAP, FIXED | RAW | CHAIN),
	   PLAIN(ENTER_MUNMAP, FIXED | RAW | CHAIN), PLAIN(EXIT_MUNMAP, FIXED | RAW | CHAIN))},
    {.name = "perf without -g",
     PARTS(PLAIN(ENTER_MMAP, FIXED | RAW), PLAIN(EXIT_MMAP, FIXED | RAW), PLAIN(ENTER_MUNMAP, FIXED | RAW),
	   PLAIN(EXIT_MUNMAP, FIXED | RAW))},
    {.name = "getppid, nothing", .calls = true},
    {.name = "  exits in use elsewhere", .calls = true, .elsewhere = true, PARTS(SYSCALL_MUNMAP)},
    {.name = "  entries as well",
     .calls = true,
     .elsewhere = true,
     PARTS(SYSCALL_MUNMAP, PLAIN(ENTER_MADVISE, FIXED | RAW))},
    {.name = "  of the target, exits", .calls = true, PARTS(SYSCALL_MUNMAP)},
    {.name = "  of the target, both", .calls = true, PARTS(SYSCALL_MUNMAP, PLAIN(ENTER_MADVISE, FIXED | RAW))},
    {.name = "pair, exits in use elsewhere", .elsewhere = true, PARTS(SYSCALL_MUNMAP)},
};
#define SET_COUNT (sizeof(sets) / sizeof(sets[0]))

static unsigned trace_ids[TRACES];
static int cpu_count;

struct ring {
	int fd;
	struct perf_event_mmap_page *control;
};

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd;

	attr->size = sizeof(*attr);
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
	attr->watermark = 1;
	attr->wakeup_watermark = RING_BYTES / 4;
	fd = (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		fail("perf_event_open");
	return fd;
}

static void stay_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		fail("sched_setaffinity");
}

static struct ring open_ring(int cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .exclude_kernel = 1};
	struct ring ring = {.fd = open_event(&attr, 0, cpu)};

	ring.control =
	    mmap(NULL, RING_BYTES + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, 0);
	if (ring.control == MAP_FAILED)
		fail("mmap of a ring");
	return ring;
}

static int open_one(const struct part *part, pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_TRACEPOINT,
	    .config = trace_ids[part->trace],
	    .sample_period = 1,
	    .sample_type = part->sample_type,
	    .sample_regs_user = part->registers,
	    .sample_stack_user = part->dump_bytes,
	    .exclude_callchain_kernel = 1,
	    .sample_id_all = 1,
	    .inherit = !part->all_processes,
	};

	if (part->trace == SIDE_BAND) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.exclude_kernel = 1;
		attr.mmap = attr.mmap2 = attr.comm = attr.task = 1;
		attr.mmap_data = part->mmap_data;
	}
	return open_event(&attr, part->all_processes ? -1 : pid, cpu);
}

static void open_part(const struct part *part, pid_t pid, struct ring rings[][2], int *fds, size_t *fd_count)
{
	for (int cpu = part->on_every_cpu ? 0 : cpu_count - 1; cpu < cpu_count; cpu++) {
		for (unsigned i = 0; i <= part->more; i++) {
			int fd = open_one(part, pid, cpu);

			if (part->filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, part->filter) < 0)
				fail(part->filter);
			if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings[cpu][part->second_ring].fd) < 0)
				fail("PERF_EVENT_IOC_SET_OUTPUT");
			fds[(*fd_count)++] = fd;
		}
	}
}

__attribute__((noinline)) static void map_and_unmap(unsigned depth)
{
	if (depth) {
		map_and_unmap(depth - 1);
	} else {
		void *memory = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			abort();
		munmap(memory, MAPPED_BYTES);
	}
	__asm__ volatile("" ::: "memory"); /* a call in tail position would be no frame */
}

/* In a separate thread, whose stack is the same for all sets. */
static uint64_t run_calls(const struct set *set, unsigned count)
{
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	if (set->calls)
		for (unsigned i = 0; i < 10 * count; i++)
			syscall(SYS_getppid);
	else
		for (unsigned i = 0; i < count; i++)
			map_and_unmap(22);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return ((uint64_t)(end.tv_sec - start.tv_sec) * 1000000000 + (uint64_t)(end.tv_nsec - start.tv_nsec)) /
	       (set->calls ? 10 : 1);
}

static void empty_rings(struct ring rings[][2])
{
	for (int cpu = 0; cpu < cpu_count; cpu++) {
		for (int i = 0; i < 2; i++) {
			struct perf_event_mmap_page *control = rings[cpu][i].control;

			__atomic_store_n(&control->data_tail, __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELEASE);
		}
	}
}

static double measure(const struct set *set, struct ring rings[][2], unsigned count)
{
	static int fds[EVENTS_MAX * CPUS_MAX];
	int go[2], done[2];
	size_t fd_count = 0;
	uint64_t ns;
	pid_t pid;

	if (pipe(go) < 0 || pipe(done) < 0)
		fail("pipe");
	pid = fork();
	if (pid == 0) {
		char byte;

		stay_on(cpu_count - 1);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		run_calls(set, count / 5);
		ns = run_calls(set, count);
		_exit(write(done[1], &ns, sizeof(ns)) != sizeof(ns));
	}
	for (size_t i = 0; i < set->part_count; i++)
		open_part(&set->parts[i], set->elsewhere ? getpid() : pid, rings, fds, &fd_count);
	if (write(go[1], "", 1) != 1)
		fail("write");
	close(done[1]);
	for (;;) {
		int flags = fcntl(done[0], F_GETFL);
		ssize_t result;

		fcntl(done[0], F_SETFL, flags | O_NONBLOCK);
		result = read(done[0], &ns, sizeof(ns));
		if (result == (ssize_t)sizeof(ns))
			break;
		if (result == 0)
			fail("the child ended");
		empty_rings(rings);
		usleep(2000);
	}
	waitpid(pid, NULL, 0);
	for (size_t i = 0; i < fd_count; i++)
		close(fds[i]);
	empty_rings(rings);
	close(go[0]);
	close(go[1]);
	close(done[0]);
	return (double)ns / count;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		fail("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		fail("setrlimit");
}

int main(int argc, char **argv)
{
	static struct ring rings[CPUS_MAX][2];
	static double times[SET_COUNT][ROUNDS_MAX];
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 5, count = argc > 2 ? (unsigned)atoi(argv[2]) : 20000;
	double base = 0, reference = 0;

	cpu_count = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (cpu_count > CPUS_MAX || rounds < 1 || rounds > ROUNDS_MAX || count < 10)
		return 2;
	raise_file_limit();
	for (int i = 0; i < TRACES; i++) {
		char path[128];
		FILE *stream;

		if (!trace_names[i])
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", trace_names[i]);
		stream = fopen(path, "re");
		if (!stream || fscanf(stream, "%u", &trace_ids[i]) != 1)
			fail(path);
		fclose(stream);
	}
	for (int cpu = 0; cpu < cpu_count; cpu++)
		for (int i = 0; i < 2; i++)
			rings[cpu][i] = open_ring(cpu);
	stay_on(0);
	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < SET_COUNT; i++)
			times[i][round] = measure(&sets[i], rings, count);
	for (size_t i = 0; i < SET_COUNT; i++) {
		qsort(times[i], rounds, sizeof(double), compare);
		if (strcmp(sets[i].name, "perf -g") == 0)
			reference = times[i][rounds / 4] - times[0][rounds / 4];
	}
	printf("%-34s %10s %10s %10s\n", "event set", "ns", "added", "of perf -g");
	for (size_t i = 0; i < SET_COUNT; i++) {
		double ns = times[i][rounds / 4];

		if (!sets[i].part_count)
			base = ns;
		if (strcmp(sets[i].name, "pair, exits in use elsewhere") == 0)
			base = times[0][rounds / 4];
		printf("%-34s %10.0f %10.0f %10.2f\n", sets[i].name, ns, ns - base, (ns - base) / reference);
	}
	return 0;
}
