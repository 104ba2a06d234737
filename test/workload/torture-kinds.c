// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random operations: the break, shared memory segments, aio rings, and calls that fail. */
#include <linux/aio_abi.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "support/stage.h"
#include "torture.h"

#define BREAK_PAGES 64
#define MOST_PAGES 12
#define HUGE_BYTES (torture_program.page_bytes * torture_program.page_bytes / 8)
#define STACK_DISTANCE (512UL << 20)

#ifndef SHM_EXEC
#define SHM_EXEC 0100000
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static size_t bytes_of(struct torture_range range)
{
	return range.pages * torture_program.page_bytes;
}

/* Anywhere above its start, also between pages; mappings at hints may be in the way. */
bool torture_move_break(struct torture_worker *worker)
{
	uintptr_t wanted =
	    torture_program.break_start + torture_random(worker, BREAK_PAGES * torture_program.page_bytes);

	if (!worker->moves_break)
		return false;
	return (uintptr_t)syscall(SYS_brk, wanted) != wanted;
}

static int pick_attach_flags(struct torture_worker *worker)
{
	static const int flags[] = {0, 0, SHM_RDONLY, SHM_EXEC, SHM_RDONLY | SHM_EXEC};

	return flags[torture_random(worker, sizeof(flags) / sizeof(flags[0]))];
}

bool torture_attach(struct torture_worker *worker)
{
	size_t segment = torture_random(worker, TORTURE_SEGMENTS);
	struct torture_range at = {.pages = worker->segment_pages[segment]};
	int flags = pick_attach_flags(worker);
	long result;

	if (torture_random(worker, 3)) {
		size_t room = TORTURE_ARENA_PAGES - at.pages + 1;

		at.start = worker->arena + torture_random(worker, room) * torture_program.page_bytes;
		flags |= torture_random(worker, 3) ? SHM_REMAP : 0;
	}
	result = syscall(SYS_shmat, worker->segments[segment], at.start, flags);
	if (result == -1)
		return true;
	at.start = (uintptr_t)result;
	torture_give(worker, at);
	/* A thread unmaps memory from the kernel like any other range: by then, parts of it may belong to others. */
	if (!worker->exact || torture_in_arena(worker, at))
		worker->attached[torture_random(worker, TORTURE_ADDRESSES)] = at.start;
	return false;
}

bool torture_detach(struct torture_worker *worker)
{
	uintptr_t address = worker->attached[torture_random(worker, TORTURE_ADDRESSES)];

	return syscall(SYS_shmdt, address ? address : worker->arena) == -1;
}

bool torture_remap_pages(struct torture_worker *worker)
{
	struct torture_range range = torture_pick_arena(worker, 6);

	return syscall(SYS_remap_file_pages, range.start, bytes_of(range), 0, torture_random(worker, 32), 0) == -1;
}

/* The ring starts with its own description: its second word is the number of 32-byte events that follow another such
 * header. */
static size_t ring_pages(aio_context_t ring)
{
	size_t bytes = (((const uint32_t *)ring)[1] + 1) * 32;

	return (bytes + torture_program.page_bytes - 1) / torture_program.page_bytes;
}

bool torture_setup_io(struct torture_worker *worker)
{
	size_t i = torture_random(worker, TORTURE_CONTEXTS);
	aio_context_t made = 0;

	if (worker->contexts[i])
		return false;
	if (syscall(SYS_io_setup, 1 + torture_random(worker, 300), &made) == -1)
		return true;
	worker->contexts[i] = made;
	worker->context_headers[i] = *(const uint64_t *)made;
	if (!worker->exact)
		torture_give(worker, (struct torture_range){.start = made, .pages = ring_pages(made)});
	return false;
}

/*
 * The kernel identifies a context by what it reads at its address. If something else is mapped there by now, it may
 * find any other context, even one whose ring was unmapped there before.
 */
static bool is_intact(uint64_t context, uint64_t header)
{
	uint64_t found;
	struct iovec to = {.iov_base = &found, .iov_len = sizeof(found)};
	struct iovec from = {.iov_base = (void *)(uintptr_t)context, .iov_len = sizeof(found)};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof(found) && found == header;
}

static bool destroy_context(struct torture_worker *worker, size_t i)
{
	uint64_t made = worker->contexts[i];

	worker->contexts[i] = 0;
	return made && is_intact(made, worker->context_headers[i]) && syscall(SYS_io_destroy, made) == -1;
}

bool torture_destroy_io(struct torture_worker *worker)
{
	return destroy_context(worker, torture_random(worker, TORTURE_CONTEXTS));
}

bool torture_advise(struct torture_worker *worker)
{
	struct torture_range range = torture_pick(worker, MOST_PAGES);
	int advice = torture_random(worker, 2) ? MADV_DONTFORK : MADV_DOFORK;

	return syscall(SYS_madvise, range.start, bytes_of(range), advice) == -1;
}

/* Arguments that the kernel refuses, over mapped memory. */
bool torture_fail(struct torture_worker *worker)
{
	struct torture_range range = torture_pick(worker, MOST_PAGES);
	size_t bytes = bytes_of(range);
	int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;

	switch (torture_random(worker, 12)) {
	case 0:
		return syscall(SYS_mmap, range.start + 1, bytes, PROT_READ, anonymous | MAP_FIXED, -1, 0) == -1;
	case 1:
		return syscall(SYS_mmap, range.start, 0, PROT_READ, anonymous | MAP_FIXED, -1, 0) == -1;
	case 2:
		return syscall(SYS_mmap, range.start, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0) == -1;
	case 3:
		return syscall(SYS_mmap, range.start, 1UL << 60, PROT_READ, anonymous | MAP_FIXED, -1, 0) == -1;
	case 4:
		return syscall(SYS_mmap, range.start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			       torture_program.read_only_file, 0) == -1;
	case 5:
		return syscall(SYS_munmap, range.start + 1, bytes) == -1;
	case 6:
		return syscall(SYS_mprotect, range.start + 1, bytes, PROT_NONE) == -1;
	case 7:
		return syscall(SYS_mprotect, range.start, bytes, PROT_NONE | 0x40) == -1;
	case 8:
		return syscall(SYS_mremap, range.start, bytes, 1UL << 60, MREMAP_MAYMOVE, 0) == -1;
	case 9:
		return syscall(SYS_mremap, range.start, bytes, bytes, MREMAP_FIXED, worker->arena) == -1;
	case 10:
		return syscall(SYS_shmat, -1, 0, 0) == -1;
	default:
		return syscall(SYS_shmdt, range.start + 1) == -1;
	}
}

/* Refused by the file, after the kernel has made room. */
bool torture_refuse_map(struct torture_worker *worker)
{
	struct torture_range range = torture_pick_arena(worker, MOST_PAGES);

	return syscall(SYS_mmap, range.start, bytes_of(range), PROT_READ, MAP_FIXED | MAP_PRIVATE,
		       torture_program.unmappable, 0) == -1;
}

/* Refused by a limit on address space, which is checked after the target has been unmapped. */
bool torture_refuse_move(struct torture_worker *worker)
{
	struct torture_range from = torture_pick_arena(worker, 4), to = torture_pick_arena(worker, MOST_PAGES);
	struct rlimit limit, low;
	bool failed;

	if (worker->exact)
		return false;
	stage_need_call(getrlimit(RLIMIT_AS, &limit), "getrlimit");
	low = limit;
	low.rlim_cur = torture_program.page_bytes;
	stage_need_call(setrlimit(RLIMIT_AS, &low), "setrlimit");
	failed = syscall(SYS_mremap, from.start, bytes_of(from), bytes_of(to), MREMAP_MAYMOVE | MREMAP_FIXED,
			 to.start) == -1;
	stage_need_call(setrlimit(RLIMIT_AS, &limit), "setrlimit");
	return failed;
}

/* Far from other mappings, so that it really grows when written below its start. */
static bool grow_stack(struct torture_worker *worker)
{
	size_t page_bytes = torture_program.page_bytes, below = torture_random(worker, 6) + 1;
	uintptr_t start = worker->arena + STACK_DISTANCE;

	syscall(SYS_munmap, start - 8 * page_bytes, 10 * page_bytes);
	if (syscall(SYS_mmap, start, 2 * page_bytes, PROT_READ | PROT_WRITE,
		    MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) == -1)
		return true;
	for (size_t page = 1; page <= below; page++)
		*(volatile char *)(start - page * page_bytes) = 1;
	if (torture_random(worker, 2))
		return false;
	return syscall(SYS_munmap, start - (below - 1) * page_bytes, below * page_bytes) == -1;
}

/* A mapping that grows downwards, and an mprotect that reaches down to its start. */
bool torture_grow_down(struct torture_worker *worker)
{
	struct torture_range range = torture_pick_arena(worker, MOST_PAGES);

	if (!worker->exact && torture_random(worker, 4) == 0)
		return grow_stack(worker);
	if (torture_random(worker, 2))
		return syscall(SYS_mmap, range.start, bytes_of(range), PROT_READ | PROT_WRITE,
			       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0) == -1;
	return syscall(SYS_mprotect, range.start, bytes_of(range),
		       PROT_GROWSDOWN | (torture_random(worker, 2) ? PROT_READ : PROT_READ | PROT_WRITE)) == -1;
}

/* Lengths that are not a multiple of the huge page size. Nothing is reserved, so it works without any. */
bool torture_map_huge(struct torture_worker *worker)
{
	size_t bytes = torture_random(worker, 3 * HUGE_BYTES) + 1;
	uintptr_t second = worker->huge + HUGE_BYTES;
	long address;

	if (worker->huge && torture_random(worker, 3) == 0)
		return syscall(SYS_munmap, worker->huge, torture_program.page_bytes) == -1;
	if (worker->huge && worker->huge_bytes > HUGE_BYTES && torture_random(worker, 2))
		return syscall(SYS_mprotect, second, HUGE_BYTES, PROT_NONE) == -1;
	if (worker->huge) {
		address = (long)worker->huge;
		worker->huge = 0;
		return syscall(SYS_munmap, address, worker->huge_bytes) == -1;
	}
	address = syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE, -1, 0);
	if (address == -1)
		return true;
	worker->huge = (uintptr_t)address;
	worker->huge_bytes = (bytes + HUGE_BYTES - 1) & ~(HUGE_BYTES - 1);
	return false;
}

/* Sealed memory stays forever: one page beside the arena, and calls that must leave it alone but not its neighbours. */
bool torture_seal(struct torture_worker *worker)
{
	uintptr_t sealed = worker->arena - TORTURE_ARENA_PAGES * torture_program.page_bytes;
	size_t before = (1 + torture_random(worker, 4)) * torture_program.page_bytes;
	size_t bytes = before + 2 * torture_program.page_bytes;
	uintptr_t start = sealed - before;

	syscall(SYS_mmap, start, before, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	syscall(SYS_mmap, sealed, torture_program.page_bytes, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		0);
	syscall(SYS_mseal, sealed, torture_program.page_bytes, 0);
	switch (torture_random(worker, 4)) {
	case 0:
		return syscall(SYS_mprotect, start, bytes, PROT_NONE) == -1;
	case 1:
		return syscall(SYS_munmap, start, bytes) == -1;
	case 2:
		return syscall(SYS_mremap, sealed, torture_program.page_bytes, 2 * torture_program.page_bytes,
			       MREMAP_MAYMOVE, 0) == -1;
	default:
		return syscall(SYS_mmap, start, bytes, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == -1;
	}
}

static const size_t segment_pages[TORTURE_SEGMENTS] = {1, 2, 5, 11};

void torture_worker_open(struct torture_worker *worker, uint64_t seed, uintptr_t arena)
{
	*worker = (struct torture_worker){.random = seed, .arena = arena};
	for (size_t i = 0; i < TORTURE_SEGMENTS; i++) {
		size_t bytes = segment_pages[i] * torture_program.page_bytes;

		worker->segments[i] = stage_need_call(shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0700), "shmget");
		worker->segment_pages[i] = segment_pages[i];
	}
	/* The page after the arena keeps memory that grows in place inside it. */
	stage_need(mmap((void *)(arena + TORTURE_ARENA_PAGES * torture_program.page_bytes), torture_program.page_bytes,
			PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		   "the end of an arena");
}

void torture_worker_close(struct torture_worker *worker)
{
	for (size_t i = 0; i < TORTURE_CONTEXTS; i++)
		destroy_context(worker, i);
	if (worker->huge)
		syscall(SYS_munmap, worker->huge, worker->huge_bytes);
	while (worker->range_count) {
		struct torture_range range = worker->ranges[--worker->range_count];

		syscall(SYS_munmap, range.start, bytes_of(range));
	}
	syscall(SYS_munmap, worker->arena, (TORTURE_ARENA_PAGES + 1) * torture_program.page_bytes);
	for (size_t i = 0; i < TORTURE_SEGMENTS; i++)
		shmctl(worker->segments[i], IPC_RMID, NULL);
}
