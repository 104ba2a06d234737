// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random operations: the table of all, and the common ones. The others are in torture-kinds.c. */
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/stage.h"
#include "torture.h"

#define MOST_PAGES 12
#define FILE_PAGES 64 /* offsets reach this far */

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static int pick_protection(struct torture_worker *worker)
{
	static const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE,
					  PROT_READ | PROT_EXEC};

	return protections[torture_random(worker, sizeof(protections) / sizeof(protections[0]))];
}

static bool map(struct torture_worker *worker, struct torture_range at, int protection, int flags, int fd, size_t page)
{
	size_t bytes = at.pages * torture_program.page_bytes;
	long result =
	    syscall(SYS_mmap, at.start, bytes, protection, flags, fd, fd < 0 ? 0 : page * torture_program.page_bytes);

	if (result == -1)
		return true;
	if (!(flags & MAP_FIXED))
		torture_give(worker, (struct torture_range){.start = (uintptr_t)result, .pages = at.pages});
	return false;
}

static int pick_anonymous_flags(struct torture_worker *worker)
{
	int flags = MAP_ANONYMOUS | (torture_random(worker, 4) ? MAP_PRIVATE : MAP_SHARED);

	return flags | (torture_random(worker, 4) ? 0 : MAP_NORESERVE);
}

static bool map_anonymous(struct torture_worker *worker)
{
	struct torture_range at = {.pages = 1 + torture_random(worker, MOST_PAGES)};
	int flags = pick_anonymous_flags(worker);

	return map(worker, at, pick_protection(worker), flags, -1, 0);
}

static bool map_anonymous_fixed(struct torture_worker *worker)
{
	struct torture_range at = torture_pick(worker, MOST_PAGES);

	return map(worker, at, pick_protection(worker), MAP_FIXED | pick_anonymous_flags(worker), -1, 0);
}

static int pick_file(struct torture_worker *worker)
{
	const int files[] = {torture_program.file, torture_program.file, torture_program.memory, torture_program.zero,
			     torture_program.read_only_file};

	return files[torture_random(worker, sizeof(files) / sizeof(files[0]))];
}

static bool map_file(struct torture_worker *worker)
{
	struct torture_range at = {.pages = 1 + torture_random(worker, MOST_PAGES)};
	int fd = pick_file(worker), sharing = torture_random(worker, 2) ? MAP_PRIVATE : MAP_SHARED;

	if (fd == torture_program.zero)
		sharing = MAP_SHARED;
	return map(worker, at, pick_protection(worker), sharing, fd, torture_random(worker, FILE_PAGES));
}

static bool map_file_fixed(struct torture_worker *worker)
{
	struct torture_range at = torture_pick_arena(worker, MOST_PAGES);
	int fd = pick_file(worker), sharing = torture_random(worker, 2) ? MAP_PRIVATE : MAP_SHARED;

	if (fd == torture_program.zero)
		sharing = MAP_SHARED;
	return map(worker, at, pick_protection(worker), MAP_FIXED | sharing, fd, torture_random(worker, FILE_PAGES));
}

/* Anonymous memory that has a file. */
static bool map_zero_private(struct torture_worker *worker)
{
	struct torture_range at = torture_pick_arena(worker, MOST_PAGES);
	int fixed = torture_random(worker, 2) ? MAP_FIXED : 0;

	if (!fixed)
		at.start = 0;
	return map(worker, at, pick_protection(worker), MAP_PRIVATE | fixed, torture_program.zero,
		   torture_random(worker, FILE_PAGES));
}

/* The next pages of a file, next to its mapping, so that mappings merge. */
static bool map_file_along(struct torture_worker *worker)
{
	struct torture_range at = torture_pick_arena(worker, 4);
	size_t page = (at.start - worker->arena) / torture_program.page_bytes;

	return map(worker, at, PROT_READ, MAP_FIXED | MAP_SHARED, torture_program.memory, page);
}

/* Where others have just released something, or next to it. */
static uintptr_t pick_hint(struct torture_worker *worker)
{
	struct torture_range near = torture_pick(worker, MOST_PAGES);

	if (torture_random(worker, 3) == 0)
		return torture_program.break_start + torture_random(worker, 128) * torture_program.page_bytes;
	return near.start + (torture_random(worker, 2) ? near.pages * torture_program.page_bytes : 0);
}

static bool map_at_hint(struct torture_worker *worker)
{
	struct torture_range at = {.start = pick_hint(worker), .pages = 1 + torture_random(worker, MOST_PAGES)};

	/* Memory that the hint could get near the arena's end or the heap is the worker's like any other. */
	return map(worker, at, pick_protection(worker), pick_anonymous_flags(worker), -1, 0);
}

static bool map_no_replace(struct torture_worker *worker)
{
	struct torture_range at = torture_pick_arena(worker, MOST_PAGES);

	if (torture_random(worker, 2))
		at.start = pick_hint(worker);
	return map(worker, at, pick_protection(worker), MAP_FIXED_NOREPLACE | pick_anonymous_flags(worker), -1, 0);
}

static bool unmap_range(struct torture_worker *worker, struct torture_range range)
{
	torture_take(worker, range);
	return syscall(SYS_munmap, range.start, range.pages * torture_program.page_bytes) == -1;
}

static bool unmap(struct torture_worker *worker)
{
	return unmap_range(worker, torture_pick(worker, MOST_PAGES));
}

static bool unmap_many(struct torture_worker *worker)
{
	return unmap_range(worker, torture_pick_arena(worker, TORTURE_ARENA_PAGES / 4));
}

static bool unmap_all(struct torture_worker *worker)
{
	if (!worker->range_count)
		return unmap(worker);
	return unmap_range(worker, worker->ranges[torture_random(worker, worker->range_count)]);
}

/* old_pages 0 duplicates. Memory at `from` is the worker's only as far as the call leaves it. */
static bool remap(struct torture_worker *worker, struct torture_range from, size_t pages, int flags, uintptr_t target)
{
	size_t page_bytes = torture_program.page_bytes;
	long result = syscall(SYS_mremap, from.start, from.pages * page_bytes, pages * page_bytes, flags, target);
	struct torture_range to = {.start = (uintptr_t)result, .pages = pages};

	if (result == -1)
		return true;
	if (!(flags & MREMAP_DONTUNMAP))
		torture_take(worker, from);
	if (!(flags & MREMAP_FIXED))
		torture_give(worker, to);
	return false;
}

static bool remap_size(struct torture_worker *worker)
{
	struct torture_range from = torture_pick(worker, MOST_PAGES);

	return remap(worker, from, 1 + torture_random(worker, MOST_PAGES),
		     torture_random(worker, 4) ? MREMAP_MAYMOVE : 0, 0);
}

static bool remap_fixed(struct torture_worker *worker)
{
	struct torture_range from = torture_pick(worker, MOST_PAGES), to = torture_pick_arena(worker, MOST_PAGES);

	return remap(worker, from, to.pages, MREMAP_MAYMOVE | MREMAP_FIXED, to.start);
}

/* Several mappings at once if the kernel supports it: equal lengths. */
static bool remap_several(struct torture_worker *worker)
{
	struct torture_range from = torture_pick_arena(worker, 48), to = torture_pick_arena(worker, 1);
	uintptr_t most = worker->arena + (TORTURE_ARENA_PAGES - from.pages) * torture_program.page_bytes;

	if (to.start > most)
		to.start = most;
	return remap(worker, from, from.pages, MREMAP_MAYMOVE | MREMAP_FIXED, to.start);
}

static bool remap_keeping(struct torture_worker *worker)
{
	struct torture_range from = torture_pick(worker, MOST_PAGES), to = torture_pick_arena(worker, 1);
	uintptr_t most = worker->arena + (TORTURE_ARENA_PAGES - from.pages) * torture_program.page_bytes;
	int fixed = torture_random(worker, 2) ? MREMAP_FIXED : 0;

	if (to.start > most)
		to.start = most;
	return remap(worker, from, from.pages, MREMAP_MAYMOVE | MREMAP_DONTUNMAP | fixed, to.start);
}

/* old_size 0 duplicates a shared mapping. */
static bool remap_again(struct torture_worker *worker)
{
	struct torture_range from = torture_pick(worker, 1), to = torture_pick_arena(worker, MOST_PAGES);
	int fixed = torture_random(worker, 2) ? MREMAP_FIXED : 0;

	from.pages = 0;
	return remap(worker, from, to.pages, MREMAP_MAYMOVE | fixed, to.start);
}

static bool protect(struct torture_worker *worker)
{
	struct torture_range range = torture_pick(worker, MOST_PAGES);

	return syscall(SYS_mprotect, range.start, range.pages * torture_program.page_bytes, pick_protection(worker)) ==
	       -1;
}

static bool protect_many(struct torture_worker *worker)
{
	struct torture_range range = torture_pick_arena(worker, TORTURE_ARENA_PAGES / 4);

	return syscall(SYS_mprotect, range.start, range.pages * torture_program.page_bytes, pick_protection(worker)) ==
	       -1;
}

static bool protect_by_key(struct torture_worker *worker)
{
	struct torture_range range = torture_pick(worker, MOST_PAGES);

	return syscall(SYS_pkey_mprotect, range.start, range.pages * torture_program.page_bytes,
		       pick_protection(worker), -1) == -1;
}

static bool hand_over(struct torture_worker *worker)
{
	if (worker->hands_over)
		torture_hand_over(worker);
	return false;
}

static const struct {
	const char *name;
	torture_operation *operate;
	unsigned weight;
} operations[] = {
    {"map-anonymous", map_anonymous, 10},
    {"map-anonymous-fixed", map_anonymous_fixed, 12},
    {"map-file", map_file, 6},
    {"map-file-fixed", map_file_fixed, 8},
    {"map-zero-private", map_zero_private, 3},
    {"map-file-along", map_file_along, 4},
    {"map-at-hint", map_at_hint, 4},
    {"map-no-replace", map_no_replace, 4},
    {"map-refused", torture_refuse_map, 1},
    {"map-huge", torture_map_huge, 1},
    {"grow-down", torture_grow_down, 2},
    {"unmap", unmap, 12},
    {"unmap-many", unmap_many, 1},
    {"unmap-all", unmap_all, 6},
    {"remap-size", remap_size, 8},
    {"remap-fixed", remap_fixed, 6},
    {"remap-several", remap_several, 3},
    {"remap-keeping", remap_keeping, 3},
    {"remap-again", remap_again, 3},
    {"remap-refused", torture_refuse_move, 1},
    {"protect", protect, 10},
    {"protect-many", protect_many, 2},
    {"protect-by-key", protect_by_key, 2},
    {"break", torture_move_break, 5},
    {"attach", torture_attach, 4},
    {"detach", torture_detach, 4},
    {"remap-pages", torture_remap_pages, 3},
    {"io-setup", torture_setup_io, 2},
    {"io-destroy", torture_destroy_io, 2},
    {"advise-fork", torture_advise, 3},
    {"fail", torture_fail, 3},
    {"seal", torture_seal, 1},
    {"hand-over", hand_over, 12},
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

bool torture_exclude(const char *name)
{
	for (size_t i = 0; i < OPERATIONS; i++) {
		if (strcmp(operations[i].name, name))
			continue;
		torture_program.excluded |= 1ULL << i;
		return true;
	}
	return false;
}

void torture_operate(struct torture_worker *worker)
{
	unsigned total = 0;
	size_t chosen = 0;
	uint64_t number;

	for (size_t i = 0; i < OPERATIONS; i++)
		total += operations[i].weight;
	number = torture_random(worker, total);
	while (number >= operations[chosen].weight)
		number -= operations[chosen++].weight;
	if (torture_program.excluded >> chosen & 1)
		return;
	atomic_fetch_add(torture_program.operations, 1);
	if (operations[chosen].operate(worker))
		atomic_fetch_add(torture_program.failures, 1);
}
