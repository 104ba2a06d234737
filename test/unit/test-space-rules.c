// SPDX-License-Identifier: LGPL-2.1-or-later
/* Every rule once, by name, with the kernel as the oracle: after each call the model equals the child's maps. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "support/emulator.h"
#include "support/suite.h"
#include "support/space-child.h"

#define RW (PROT_READ | PROT_WRITE)
#define ARENA_PAGES 2048
#define PRIVATE (MAP_PRIVATE | MAP_ANONYMOUS)
#define HUGE_PAGE (2ULL << 20)
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef PROT_GROWSDOWN
#define PROT_GROWSDOWN 0x01000000
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static struct child child;
static uint64_t arena;
static unsigned int step;

static uint64_t at(uint64_t page)
{
	return arena + page * PAGE;
}

/* One call with its expected result, and the comparison. */
static void expect(int64_t expected, enum call kind, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
		   uint64_t a5)
{
	int64_t result = child_call(&child, kind, a0, a1, a2, a3, a4, a5);

	ck_assert_msg(result == expected, "%s, expected %#lx", child.last, (unsigned long)expected);
	child_compare(&child, ++step);
}

static void map_file(uint64_t page, uint64_t pages, int protection, int flags, int file, uint64_t file_page)
{
	expect((int64_t)at(page), CALL_MMAP, at(page), pages * PAGE, (uint64_t)protection,
	       (uint64_t)(flags | MAP_FIXED), (uint64_t)file, file_page * PAGE);
}

static int open_zero(void)
{
	return (int)child_syscall(&child, SYS_openat, (uint64_t)AT_FDCWD, (uint64_t)(uintptr_t) "/dev/zero", O_RDWR, 0,
				  0, 0);
}

static void map(uint64_t page, uint64_t pages, int protection)
{
	map_file(page, pages, protection, PRIVATE, -1, 0);
}

static void unmap(uint64_t page, uint64_t pages)
{
	expect(0, CALL_MUNMAP, at(page), pages * PAGE, 0, 0, 0, 0);
}

static void protect(int64_t expected, uint64_t page, uint64_t pages, int protection)
{
	expect(expected, CALL_MPROTECT, at(page), pages * PAGE, (uint64_t)protection, 0, 0, 0);
}

static void remap(int64_t expected, uint64_t page, uint64_t old_pages, uint64_t new_pages, int flags,
		  uint64_t target_page)
{
	expect(expected, CALL_MREMAP, at(page), old_pages * PAGE, new_pages * PAGE, (uint64_t)flags, at(target_page),
	       0);
}

static uint32_t allocation_at(uint64_t page)
{
	const struct space_interval *interval = space_find(child.space, at(page));

	return interval ? interval->allocation : UINT32_MAX;
}

static void setup(void)
{
	child_start(&child);
	step = 0;
	arena = (uint64_t)child_call(&child, CALL_MMAP, 0, ARENA_PAGES * PAGE + HUGE_PAGE, PROT_NONE, PRIVATE,
				     UINT64_MAX, 0);
	expect(0, CALL_MUNMAP, arena, ARENA_PAGES * PAGE + HUGE_PAGE, 0, 0, 0, 0);
	arena = (arena + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
}

static void teardown(void)
{
	ck_assert_uint_eq(space_counts(child.space).reconciled_bytes, 0);
	child_stop(&child);
}

START_TEST(munmap_over_several_mappings_and_holes)
{
	map(10, 4, RW);
	map(16, 4, PROT_READ);
	map_file(24, 4, PROT_READ, MAP_PRIVATE, child.files[0], 2);
	unmap(12, 14);
	unmap(0, 8);
	unmap(10, 40);
}
END_TEST

START_TEST(map_fixed_replaces_several)
{
	map(10, 4, RW);
	map_file(16, 4, PROT_READ, MAP_SHARED, child.files[2], 1);
	map(12, 6, PROT_READ | PROT_EXEC);
	map(0, 40, PROT_NONE);
}
END_TEST

START_TEST(map_fixed_noreplace_is_refused_or_maps)
{
	map(10, 4, RW);
	expect(-EEXIST, CALL_MMAP, at(12), 4 * PAGE, RW, PRIVATE | MAP_FIXED_NOREPLACE, UINT64_MAX, 0);
	expect((int64_t)at(14), CALL_MMAP, at(14), 4 * PAGE, RW, PRIVATE | MAP_FIXED_NOREPLACE, UINT64_MAX, 0);
	ck_assert_uint_ne(allocation_at(13), allocation_at(14));
}
END_TEST

START_TEST(occupied_hint_maps_elsewhere)
{
	int64_t result;

	map(10, 4, RW);
	result = child_call(&child, CALL_MMAP, at(10), 4 * PAGE, RW, PRIVATE, UINT64_MAX, 0);
	ck_assert_int_ne(result, (int64_t)at(10));
	child_compare(&child, ++step);
}
END_TEST

START_TEST(mremap_shrinks_grows_in_place_and_moves)
{
	int64_t moved;

	map(10, 8, RW);
	remap((int64_t)at(10), 10, 8, 5, 0, 0);
	remap((int64_t)at(10), 10, 5, 9, 0, 0);
	ck_assert_uint_ne(allocation_at(14), allocation_at(15));
	map(19, 1, PROT_READ);
	remap(-ENOMEM, 10, 9, 12, 0, 0);
	/* It ends where the mapping ends: one mapping grows, although the model knows of two allocations in it. */
	moved = child_call(&child, CALL_MREMAP, at(10), 9 * PAGE, 12 * PAGE, MREMAP_MAYMOVE, 0, 0);
	ck_assert_int_gt(moved, 0);
	child_compare(&child, ++step);
	ck_assert_ptr_null(space_find(child.space, at(10)));
}
END_TEST

START_TEST(mremap_fixed_over_several_targets)
{
	map_file(10, 4, PROT_READ, MAP_PRIVATE, child.files[0], 3);
	map(20, 2, RW);
	map(23, 5, PROT_NONE);
	remap((int64_t)at(21), 10, 4, 6, MREMAP_MAYMOVE | MREMAP_FIXED, 21);
}
END_TEST

START_TEST(mremap_fixed_shrinks_to_its_target)
{
	map(10, 6, RW);
	map(20, 6, PROT_READ);
	remap((int64_t)at(22), 10, 6, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 22);
}
END_TEST

START_TEST(mremap_fixed_moves_several_mappings_at_once)
{
	map(10, 2, RW);
	map(14, 2, PROT_READ);
	map(17, 1, PROT_NONE);
	map(30, 8, PROT_READ | PROT_EXEC);
	/* Before 6.17 it is refused if there is room for it. */
	remap(child_rules().mremap_moves_several ? (int64_t)at(30) : -EFAULT, 10, 8, 8, MREMAP_MAYMOVE | MREMAP_FIXED,
	      30);
	ck_assert_int_eq(space_find(child.space, at(37)) != NULL, child_rules().mremap_moves_several);
	ck_assert_uint_eq(space_counts(child.space).ambiguous, 0);
}
END_TEST

static void move_several(int64_t expected, uint64_t page, uint64_t pages, int more_flags, uint64_t target_page)
{
	remap(expected, page, pages, pages, MREMAP_MAYMOVE | MREMAP_FIXED | more_flags, target_page);
	ck_assert_uint_eq(space_counts(child.space).ambiguous, 0);
}

START_TEST(move_of_several_stops_at_a_mapping_that_moves_only_alone)
{
	int zero = open_zero();

	if (!child_rules().mremap_moves_several)
		SKIP_TEST("before Linux 6.17, mremap moves only one mapping");
	map(10, 2, RW);
	expect((int64_t)at(14), CALL_SHMAT, (uint64_t)child.shared_memory[0], at(14), 0, 0, 0, 0);
	map(20, 2, PROT_READ);
	map(40, 20, PROT_READ | PROT_EXEC);
	move_several(-EFAULT, 10, 12, 0, 40);
	ck_assert_ptr_null(space_find(child.space, at(10)));
	/* As the first of several it prevents all from being moved; alone it may be moved. */
	move_several(-EFAULT, 14, 8, 0, 44);
	move_several((int64_t)at(44), 14, 5, 0, 44);
	map_file(70, 2, RW, MAP_PRIVATE, child.files[0], 3);
	map_file(72, 2, RW, MAP_PRIVATE, zero, 5);
	move_several(-EFAULT, 70, 4, MREMAP_DONTUNMAP, 50);
	move_several(-EFAULT, 72, 4, 0, 50);
	/* A gap first. */
	map(80, 2, RW);
	move_several(-EFAULT, 78, 4, 0, 50);
}
END_TEST

START_TEST(move_of_several_stops_at_a_seal)
{
	if (!child_rules().mremap_moves_several)
		SKIP_TEST("before Linux 6.17, mremap moves only one mapping");
	map(10, 2, RW);
	map(14, 2, PROT_READ);
	map(40, 20, PROT_READ | PROT_EXEC);
	expect(0, CALL_MSEAL, at(15), PAGE, 0, 0, 0, 0);
	move_several(-EPERM, 10, 6, 0, 40);
	ck_assert_ptr_null(space_find(child.space, at(14)));
	ck_assert_ptr_nonnull(space_find(child.space, at(15)));
	/* One in the way of the second. */
	map(20, 2, RW);
	map(24, 2, PROT_READ);
	expect(0, CALL_MSEAL, at(55), PAGE, 0, 0, 0, 0);
	move_several(-EPERM, 20, 6, 0, 50);
	/* And of the first. */
	move_several(-EPERM, 24, 2, 0, 55);
}
END_TEST

/* A ring of two pages: its context follows the page that was moved last. */
START_TEST(ring_whose_context_is_gone_cannot_be_moved)
{
	uint64_t context = child_io_setup(&child, 100 * PAGE / 4096);
	int64_t result;

	ck_assert_uint_ne(context, 0);
	/* To where the surrounding pages are free. */
	expect((int64_t)at(30), CALL_MREMAP, context, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(30), 0);
	context = at(30);
	map(50, 20, PROT_READ);
	if (child_rules().protects_rings) {
		expect(-EINVAL, CALL_MREMAP, context + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(52), 0);
		ck_assert_ptr_null(space_find(child.space, at(52)));
		expect(-EINVAL, CALL_MREMAP, context, 2 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(54), 0);
		ck_assert_ptr_null(space_find(child.space, at(54)));
		ck_assert_ptr_null(space_find(child.space, context + PAGE));
		ck_assert_ptr_nonnull(space_find(child.space, context));
		ck_assert_uint_eq(space_counts(child.space).ambiguous, 0);
		return;
	}
	expect((int64_t)at(12), CALL_MREMAP, context + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(12), 0);
	expect(-EINVAL, CALL_IO_DESTROY, context, 0, 0, 0, 0, 0);
	/* Before 6.17 there is room for it by the time it is refused. */
	expect(-EINVAL, CALL_MREMAP, context, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, at(60), 0);
	ck_assert_int_eq(space_find(child.space, at(60)) != NULL, child_rules().mremap_moves_several);
	expect(0, CALL_IO_DESTROY, at(12), 0, 0, 0, 0, 0);
	/* The first page stays, and its target is free now. */
	expect(-EINVAL, CALL_MREMAP, context, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(55), 0);
	ck_assert_ptr_null(space_find(child.space, at(55)));
	ck_assert_ptr_nonnull(space_find(child.space, context));
	ck_assert_uint_eq(space_counts(child.space).ambiguous, 0);
	if (!child_rules().mremap_moves_several)
		SKIP_TEST("before Linux 6.17, mremap moves only one mapping");
	result = (int64_t)(context - PAGE);
	expect(result, CALL_MMAP, context - PAGE, PAGE, RW, PRIVATE | MAP_FIXED_NOREPLACE, UINT64_MAX, 0);
	expect(-EINVAL, CALL_MREMAP, context - PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at(60), 0);
	ck_assert_ptr_null(space_find(child.space, context - PAGE));
	ck_assert_ptr_nonnull(space_find(child.space, at(60)));
	ck_assert_ptr_null(space_find(child.space, at(61)));
	ck_assert_uint_eq(space_counts(child.space).ambiguous, 0);
}
END_TEST

START_TEST(move_that_shortens_fails_at_a_sealed_tail_with_its_target_unmapped)
{
	map(10, 4, RW);
	map(40, 4, PROT_READ);
	if (child_call(&child, CALL_MSEAL, at(13), PAGE, 0, 0, 0, 0) != 0)
		SKIP_TEST("before Linux 6.10, there is no mseal"); /* before 6.10 */
	remap(-EPERM, 10, 4, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
	ck_assert_uint_eq(space_counts(child.space).ambiguous, 0);
}
END_TEST

START_TEST(mremap_dontunmap_leaves_its_source)
{
	uint32_t allocation;

	map(10, 4, RW);
	allocation = allocation_at(10);
	remap((int64_t)at(30), 10, 4, 4, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, 30);
	ck_assert_uint_eq(allocation_at(10), allocation);
	ck_assert_uint_ne(allocation_at(30), allocation);
}
END_TEST

START_TEST(mremap_of_old_size_0_duplicates)
{
	map_file(10, 4, RW, MAP_SHARED, child.files[2], 2);
	remap((int64_t)at(30), 11, 0, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 30);
	map(50, 4, RW);
	remap(-EINVAL, 50, 0, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 60);
}
END_TEST

START_TEST(mremap_fixed_that_fails_at_the_limit_has_unmapped_its_target)
{
	map(10, 4, RW);
	map(30, 8, PROT_READ);
	child_limit(&child, true, 0);
	remap(-ENOMEM, 10, 4, 4, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, 36);
	child_limit(&child, false, 0);
}
END_TEST

START_TEST(brk_grows_and_shrinks_the_heap)
{
	uint64_t first = (uint64_t)child_call(&child, CALL_BRK, 0, 0, 0, 0, 0, 0);

	expect((int64_t)(first + 10 * PAGE + 8), CALL_BRK, first + 10 * PAGE + 8, 0, 0, 0, 0, 0);
	expect((int64_t)(first + 10 * PAGE + 16), CALL_BRK, first + 10 * PAGE + 16, 0, 0, 0, 0, 0);
	ck_assert(space_find(child.space, first + 10 * PAGE)->attributes.heap);
	expect((int64_t)(first + 3 * PAGE), CALL_BRK, first + 3 * PAGE, 0, 0, 0, 0, 0);
	/* Below the start of the heap brk fails and returns the break. */
	expect((int64_t)(first + 3 * PAGE), CALL_BRK, PAGE, 0, 0, 0, 0, 0);
	expect((int64_t)(first + 20 * PAGE), CALL_BRK, first + 20 * PAGE, 0, 0, 0, 0, 0);
	expect((int64_t)first, CALL_BRK, first, 0, 0, 0, 0, 0);
}
END_TEST

START_TEST(brk_over_unmapped_parts_of_the_heap)
{
	uint64_t first = (uint64_t)child_call(&child, CALL_BRK, 0, 0, 0, 0, 0, 0);
	uint64_t page = (first + PAGE - 1) & ~(PAGE - 1);

	expect((int64_t)(page + 10 * PAGE), CALL_BRK, page + 10 * PAGE, 0, 0, 0, 0, 0);
	expect(0, CALL_MUNMAP, page + 4 * PAGE, 2 * PAGE, 0, 0, 0, 0);
	expect(0, CALL_MPROTECT, page + 7 * PAGE, PAGE, PROT_NONE, 0, 0, 0);
	expect((int64_t)(page + 12 * PAGE), CALL_BRK, page + 12 * PAGE, 0, 0, 0, 0, 0);
	expect((int64_t)(page + 2 * PAGE), CALL_BRK, page + 2 * PAGE, 0, 0, 0, 0, 0);
}
END_TEST

START_TEST(mprotect_splits_and_merges)
{
	map(10, 8, PROT_NONE);
	protect(0, 12, 2, RW);
	protect(0, 11, 4, PROT_READ);
	protect(0, 10, 8, PROT_NONE);
	ck_assert_ptr_eq(space_find(child.space, at(10)), space_find(child.space, at(17)));
}
END_TEST

START_TEST(pkey_mprotect_is_an_mprotect)
{
	int64_t result;

	map(10, 4, RW);
	result = child_call_as(&child, SYS_pkey_mprotect, CALL_MPROTECT, at(11), PAGE, PROT_READ,
			       UINT64_MAX /* no key */, 0, 0);
	if (result == -ENOSYS)
		SKIP_TEST("the kernel has no protection keys for this architecture");
	ck_assert_int_eq(result, 0);
	child_compare(&child, ++step);
}
END_TEST

START_TEST(mprotect_growsdown_reaches_the_start)
{
	map_file(400, 6, RW, PRIVATE | MAP_GROWSDOWN, -1, 0);
	protect(0, 404, 1, PROT_READ | PROT_GROWSDOWN);
	map(700, 6, RW);
	protect(-EINVAL, 704, 1, PROT_READ | PROT_GROWSDOWN);
}
END_TEST

START_TEST(mapping_that_grows_down_is_recorded)
{
	map_file(800, 2, RW, PRIVATE | MAP_GROWSDOWN, -1, 0);
	/* The kernel's own access grows it too. */
	ck_assert_int_eq(child_syscall(&child, SYS_pread64, (uint64_t)child.files[0], at(799), 1, 0, 0, 0), 1);
	child_mmap2(&child, at(799));
	child_compare(&child, ++step);
	ck_assert_int_eq(child_syscall(&child, SYS_pread64, (uint64_t)child.files[0], at(790), 1, 0, 0, 0), 1);
	child_mmap2(&child, at(790));
	child_compare(&child, ++step);
	unmap(780, 22);
}
END_TEST

START_TEST(read_implies_exec_holds_for_mmap_mprotect_and_brk)
{
	ck_assert_int_ge(child_syscall(&child, SYS_personality, READ_IMPLIES_EXEC, 0, 0, 0, 0, 0), 0);
	map(10, 4, PROT_READ);
	map(20, 4, PROT_NONE);
	protect(0, 21, 2, RW);
	map(30, 4, PROT_WRITE);
	map_file(40, 4, PROT_READ, MAP_PRIVATE, child.files[0], 0);
	protect(0, 40, 1, PROT_NONE);
	protect(0, 40, 2, PROT_READ);
}
END_TEST

START_TEST(files_shared_and_private_with_their_offsets)
{
	int zero = open_zero();

	ck_assert_int_ge(zero, 0);
	map_file(10, 6, RW, MAP_PRIVATE, child.files[0], 1);
	map_file(16, 2, RW, MAP_PRIVATE, child.files[0], 7);
	map_file(20, 6, RW, MAP_SHARED, child.files[0], 3);
	map_file(30, 6, PROT_READ, MAP_SHARED, child.files[1], 0);
	map_file(40, 6, RW, MAP_SHARED, child.files[2], 5);
	map_file(50, 6, RW, MAP_PRIVATE, zero, 0);
	map_file(60, 6, RW, MAP_SHARED, zero, 0);
	map_file(70, 6, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	map_file(80, 6, RW, MAP_SHARED_VALIDATE, child.files[2], 9);
	for (uint64_t page = 10; page < 90; page += 10)
		unmap(page + 2, 2);
}
END_TEST

START_TEST(shm_is_attached_replaced_moved_and_detached)
{
	uint64_t segment = (uint64_t)child.shared_memory[0];

	expect((int64_t)at(10), CALL_SHMAT, segment, at(10), 0, 0, 0, 0);
	expect(-EINVAL, CALL_SHMAT, segment, at(12), 0, 0, 0, 0);
	expect((int64_t)at(12), CALL_SHMAT, segment, at(12), SHM_REMAP | SHM_RDONLY, 0, 0, 0);
	remap((int64_t)at(40), 14, 1, 1, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
	expect(0, CALL_SHMDT, at(12), 0, 0, 0, 0, 0);
	/* The moved piece is found by the address at which the segment would start. */
	expect(0, CALL_SHMDT, at(38), 0, 0, 0, 0, 0);
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	expect(-EINVAL, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	ck_assert_ptr_null(space_find(child.space, at(40)));
}
END_TEST

START_TEST(shm_of_two_segments_one_detached)
{
	expect((int64_t)at(10), CALL_SHMAT, (uint64_t)child.shared_memory[0], at(10), 0, 0, 0, 0);
	expect((int64_t)at(15), CALL_SHMAT, (uint64_t)child.shared_memory[1], at(15), 0, 0, 0, 0);
	expect((int64_t)at(30), CALL_SHMAT, (uint64_t)child.shared_memory[0], at(30), 0, 0, 0, 0);
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	protect(0, 16, 1, PROT_NONE);
	expect(0, CALL_SHMDT, at(15), 0, 0, 0, 0, 0);
	expect(0, CALL_SHMDT, at(30), 0, 0, 0, 0, 0);
}
END_TEST

START_TEST(shmdt_leaves_pieces_of_another_attachment)
{
	uint64_t segment = (uint64_t)child.shared_memory[0];

	expect((int64_t)at(10), CALL_SHMAT, segment, at(10), 0, 0, 0, 0);
	expect((int64_t)at(30), CALL_SHMAT, segment, at(30), 0, 0, 0, 0);
	unmap(12, 2);
	remap((int64_t)at(12), 32, 1, 1, MREMAP_MAYMOVE | MREMAP_FIXED, 12);
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	ck_assert_ptr_nonnull(space_find(child.space, at(12)));
	/* Now it is the first that fits. */
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	expect(0, CALL_SHMDT, at(30), 0, 0, 0, 0, 0);
}
END_TEST

START_TEST(shmdt_stops_at_a_mapping_beyond_the_segment)
{
	uint64_t segment = (uint64_t)child.shared_memory[0];

	expect((int64_t)at(10), CALL_SHMAT, segment, at(10), 0, 0, 0, 0);
	remap((int64_t)at(10), 10, 5, 11, MREMAP_MAYMOVE, 10);
	map(11, 8, RW);
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	ck_assert_ptr_nonnull(space_find(child.space, at(19)));
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	ck_assert_ptr_null(space_find(child.space, at(19)));
	/* A grown mapping stays one mapping, and a call that starts within it may end beyond. */
	expect((int64_t)at(50), CALL_SHMAT, segment, at(50), 0, 0, 0, 0);
	remap((int64_t)at(50), 50, 5, 8, MREMAP_MAYMOVE, 50);
	map(50, 4, RW);
	expect(0, CALL_SHMDT, at(50), 0, 0, 0, 0, 0);
	ck_assert_ptr_null(space_find(child.space, at(56)));
	/* Also if it is not part of the segment. */
	expect((int64_t)at(30), CALL_SHMAT, segment, at(30), 0, 0, 0, 0);
	map(32, 4, RW);
	expect(0, CALL_SHMDT, at(30), 0, 0, 0, 0, 0);
}
END_TEST

START_TEST(shmdt_detaches_the_first_piece_after_a_split)
{
	uint64_t segment = (uint64_t)child.shared_memory[0];

	expect((int64_t)at(10), CALL_SHMAT, segment, at(10), 0, 0, 0, 0);
	remap((int64_t)at(10), 10, 5, 11, MREMAP_MAYMOVE, 10);
	protect(0, 16, 5, PROT_READ);
	protect(0, 16, 5, RW);
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	ck_assert_ptr_nonnull(space_find(child.space, at(19)));
	/* Piece by piece the changed part is changed back, except for its last page. */
	expect((int64_t)at(50), CALL_SHMAT, segment, at(50), 0, 0, 0, 0);
	remap((int64_t)at(50), 50, 5, 11, MREMAP_MAYMOVE, 50);
	protect(0, 56, 5, PROT_READ);
	protect(0, 56, 4, RW);
	protect(0, 60, 1, RW);
	expect(0, CALL_SHMDT, at(50), 0, 0, 0, 0, 0);
	ck_assert_int_eq(space_find(child.space, at(59)) != NULL, child_rules().shm_merging == SHM_NEVER_MERGES);
	ck_assert_ptr_nonnull(space_find(child.space, at(60)));
	/* The same on the other side. */
	expect((int64_t)at(90), CALL_SHMAT, segment, at(90), 0, 0, 0, 0);
	remap((int64_t)at(90), 90, 5, 11, MREMAP_MAYMOVE, 90);
	protect(0, 90, 4, PROT_READ);
	protect(0, 91, 3, RW);
	protect(0, 90, 1, RW);
	expect(0, CALL_SHMDT, at(90), 0, 0, 0, 0, 0);
	ck_assert_int_eq(space_find(child.space, at(91)) != NULL, child_rules().shm_merging == SHM_MERGES_INTO_BOTH);
	ck_assert_ptr_nonnull(space_find(child.space, at(94)));
}
END_TEST

/* A piece that is moved or created next to one that it continues is one mapping with it, or not. */
START_TEST(shmdt_detaches_a_piece_that_was_merged_again)
{
	uint64_t segment = (uint64_t)child.shared_memory[0];
	enum shm_merging merging = child_rules().shm_merging;

	expect((int64_t)at(10), CALL_SHMAT, segment, at(10), 0, 0, 0, 0);
	remap((int64_t)at(10), 10, 5, 11, MREMAP_MAYMOVE, 10);
	remap((int64_t)at(40), 16, 5, 5, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
	remap((int64_t)at(16), 40, 5, 5, MREMAP_MAYMOVE | MREMAP_FIXED, 16);
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	ck_assert_int_eq(space_find(child.space, at(20)) != NULL, merging == SHM_NEVER_MERGES);
	/* The lower part, of two allocations. */
	expect((int64_t)at(50), CALL_SHMAT, segment, at(50), 0, 0, 0, 0);
	remap((int64_t)at(50), 50, 5, 11, MREMAP_MAYMOVE, 50);
	remap((int64_t)at(80), 50, 6, 6, MREMAP_MAYMOVE | MREMAP_FIXED, 80);
	remap((int64_t)at(50), 80, 6, 6, MREMAP_MAYMOVE | MREMAP_FIXED, 50);
	expect(0, CALL_SHMDT, at(50), 0, 0, 0, 0, 0);
	ck_assert_int_eq(space_find(child.space, at(60)) != NULL, merging != SHM_MERGES_INTO_BOTH);
	ck_assert_ptr_null(space_find(child.space, at(55)));
	/* Two views, one next to the other. */
	expect((int64_t)at(90), CALL_SHMAT, segment, at(90), 0, 0, 0, 0);
	remap((int64_t)at(110), 90, 0, 3, MREMAP_MAYMOVE | MREMAP_FIXED, 110);
	remap((int64_t)at(113), 93, 0, 8, MREMAP_MAYMOVE | MREMAP_FIXED, 113);
	expect(0, CALL_SHMDT, at(110), 0, 0, 0, 0, 0);
	ck_assert_int_eq(space_find(child.space, at(120)) != NULL, merging == SHM_NEVER_MERGES);
}
END_TEST

START_TEST(shmdt_leaves_sealed_pages)
{
	uint64_t segment = (uint64_t)child.shared_memory[0];

	expect((int64_t)at(10), CALL_SHMAT, segment, at(10), 0, 0, 0, 0);
	if (child_call(&child, CALL_MSEAL, at(12), PAGE, 0, 0, 0, 0) != 0)
		SKIP_TEST("before Linux 6.10, there is no mseal"); /* before 6.10 */
	expect(0, CALL_SHMDT, at(10), 0, 0, 0, 0, 0);
	ck_assert_ptr_nonnull(space_find(child.space, at(12)));
	ck_assert_ptr_null(space_find(child.space, at(13)));
}
END_TEST

/* The offset follows the mapping if no page fault came before: no record reports page faults. */
START_TEST(private_mapping_of_dev_zero_has_an_uncertain_offset)
{
	int zero = open_zero();

	ck_assert_int_ge(zero, 0);
	map_file(10, 4, RW, MAP_PRIVATE, zero, 5);
	map_file(20, 4, RW, MAP_PRIVATE, zero, 5);
	ck_assert_int_eq(child_syscall(&child, SYS_pread64, (uint64_t)child.files[0], at(21), 1, 0, 0, 0), 1);
	remap((int64_t)at(40), 10, 2, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
	remap((int64_t)at(50), 20, 2, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 50);
	ck_assert_uint_eq(child_file_offset(&child, at(40)), at(40));
	ck_assert_uint_eq(child_file_offset(&child, at(50)), 5 * PAGE);
	remap((int64_t)at(60), 12, 2, 2, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, 60);
	remap((int64_t)at(70), 22, 2, 5, MREMAP_MAYMOVE | MREMAP_FIXED, 70);
	unmap(41, 2);
	protect(0, 70, 2, PROT_READ);
}
END_TEST

START_TEST(remap_file_pages_changes_offsets)
{
	map_file(10, 8, RW, MAP_SHARED, child.files[2], 0);
	expect(0, CALL_REMAP_FILE_PAGES, at(12), 3 * PAGE, 0, 9, 0, 0);
	expect(0, CALL_REMAP_FILE_PAGES, at(12), 3 * PAGE, 0, 2, 0, 0);
	map(30, 4, RW);
	expect(-EINVAL, CALL_REMAP_FILE_PAGES, at(30), PAGE, 0, 1, 0, 0);
}
END_TEST

START_TEST(io_setup_maps_a_ring_and_io_destroy_unmaps_it)
{
	uint64_t context = child_io_setup(&child, 100 * PAGE / 4096);

	ck_assert_uint_ne(context, 0);
	child_compare(&child, ++step);
	ck_assert_uint_eq(space_find(child.space, context)->allocation, ALLOCATION_KERNEL);
	expect(0, CALL_IO_DESTROY, context, 0, 0, 0, 0, 0);
	ck_assert_ptr_null(space_find(child.space, context));
	expect(-EINVAL, CALL_IO_DESTROY, context, 0, 0, 0, 0, 0);
}
END_TEST

START_TEST(io_destroy_of_a_sealed_ring_leaves_it)
{
	uint64_t context = child_io_setup(&child, 100 * PAGE / 4096);

	ck_assert_uint_ne(context, 0);
	if (child_call(&child, CALL_MSEAL, context, PAGE, 0, 0, 0, 0) != 0)
		SKIP_TEST("before Linux 6.10, there is no mseal"); /* before 6.10 */
	expect(0, CALL_IO_DESTROY, context, 0, 0, 0, 0, 0);
	ck_assert_ptr_nonnull(space_find(child.space, context));
}
END_TEST

START_TEST(sealed_mappings_refuse_changes)
{
	map(10, 6, RW);
	if (child_syscall(&child, SYS_mseal, at(12), 2 * PAGE, 0, 0, 0, 0) != 0)
		SKIP_TEST("before Linux 6.10, there is no mseal"); /* before 6.10 */
	expect(-EPERM, CALL_MUNMAP, at(10), 6 * PAGE, 0, 0, 0, 0);
	protect(-EPERM, 12, 1, PROT_READ);
	protect(-EPERM, 10, 6, PROT_READ);
	remap(-EPERM, 12, 2, 1, 0, 0);
	map(40, 2, RW);
	remap(-EPERM, 12, 2, 2, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
	remap(-EPERM, 12, 2, 1, MREMAP_MAYMOVE | MREMAP_FIXED, 40);
	expect(-EPERM, CALL_MMAP, at(11), 2 * PAGE, RW, PRIVATE | MAP_FIXED, UINT64_MAX, 0);
}
END_TEST

START_TEST(failed_mprotect_keeps_its_partial_effect)
{
	map(10, 4, RW);
	map_file(14, 4, PROT_READ, MAP_SHARED, child.files[1], 0);
	protect(-EACCES, 12, 6, RW | PROT_EXEC);
	map(20, 4, RW);
	map(26, 4, RW);
	protect(-ENOMEM, 22, 8, PROT_READ);
	protect(-ENOMEM, 24, 4, PROT_READ);
}
END_TEST

START_TEST(map_fixed_refused_by_the_driver_leaves_a_hole)
{
	map(10, 4, RW);
	if (child.files[3] < 0)
		SKIP_TEST("packet sockets are not permitted here");
	expect(-EINVAL, CALL_MMAP, at(11), 2 * PAGE, RW, MAP_SHARED | MAP_FIXED, (uint64_t)child.files[3], 0);
	ck_assert_ptr_null(space_find(child.space, at(11)));
	ck_assert_ptr_nonnull(space_find(child.space, at(13)));
}
END_TEST

START_TEST(anonymous_hugetlb_is_rounded)
{
	int64_t result = child_call(&child, CALL_MMAP, at(0), 5 * PAGE, RW,
				    PRIVATE | MAP_FIXED | MAP_HUGETLB | MAP_NORESERVE, UINT64_MAX, 0);

	child_compare(&child, ++step);
	if (result < 0)
		SKIP_TEST("the kernel provides no huge pages");
	ck_assert_uint_eq(space_find(child.space, at(0))->end, at(0) + HUGE_PAGE);
	expect(0, CALL_MUNMAP, at(0), HUGE_PAGE, 0, 0, 0, 0);
}
END_TEST

START_TEST(hugetlb_memfd_is_rounded_without_map_hugetlb)
{
	int64_t result,
	    file = child_syscall(&child, SYS_memfd_create, (uint64_t)(uintptr_t) "huge", MFD_HUGETLB, 0, 0, 0, 0);

	if (file < 0)
		SKIP_TEST("the kernel provides no huge pages");
	result = child_call(&child, CALL_MMAP, at(0), 5 * PAGE, RW, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
			    (uint64_t)file, 0);
	child_compare(&child, ++step);
	if (result < 0)
		SKIP_TEST("the kernel provides no huge pages");
	map(512, 4, PROT_READ);
	expect(0, CALL_MUNMAP, at(0), HUGE_PAGE, 0, 0, 0, 0);
}
END_TEST

START_TEST(madvise_changes_no_page)
{
	map(10, 8, RW);
	expect(0, CALL_MADVISE, at(12), 2 * PAGE, MADV_DONTFORK, 0, 0, 0);
	expect(-ENOMEM, CALL_MADVISE, at(16), 6 * PAGE, MADV_DONTFORK, 0, 0, 0);
	expect(0, CALL_MADVISE, at(10), 8 * PAGE, MADV_DOFORK, 0, 0, 0);
	expect(0, CALL_MADVISE, at(10), 8 * PAGE, MADV_DONTNEED, 0, 0, 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("space: rules");
	TCase *rules = add_tcase(suite, "rules");

	if (emulator_hides("the memory maps of other processes"))
		exit(EXIT_SKIP);
	tcase_add_checked_fixture(rules, setup, teardown);
	tcase_add_tests(
	    rules, munmap_over_several_mappings_and_holes, map_fixed_replaces_several,
	    map_fixed_noreplace_is_refused_or_maps, occupied_hint_maps_elsewhere,
	    mremap_shrinks_grows_in_place_and_moves, mremap_fixed_over_several_targets,
	    mremap_fixed_shrinks_to_its_target, mremap_fixed_moves_several_mappings_at_once,
	    move_of_several_stops_at_a_mapping_that_moves_only_alone, move_of_several_stops_at_a_seal,
	    ring_whose_context_is_gone_cannot_be_moved,
	    move_that_shortens_fails_at_a_sealed_tail_with_its_target_unmapped, mremap_dontunmap_leaves_its_source,
	    mremap_of_old_size_0_duplicates, mremap_fixed_that_fails_at_the_limit_has_unmapped_its_target,
	    brk_grows_and_shrinks_the_heap, brk_over_unmapped_parts_of_the_heap, mprotect_splits_and_merges,
	    pkey_mprotect_is_an_mprotect, mprotect_growsdown_reaches_the_start, mapping_that_grows_down_is_recorded,
	    read_implies_exec_holds_for_mmap_mprotect_and_brk, files_shared_and_private_with_their_offsets,
	    shm_is_attached_replaced_moved_and_detached, shm_of_two_segments_one_detached,
	    shmdt_leaves_pieces_of_another_attachment, shmdt_stops_at_a_mapping_beyond_the_segment,
	    shmdt_leaves_sealed_pages, shmdt_detaches_the_first_piece_after_a_split,
	    shmdt_detaches_a_piece_that_was_merged_again, private_mapping_of_dev_zero_has_an_uncertain_offset,
	    io_destroy_of_a_sealed_ring_leaves_it, remap_file_pages_changes_offsets,
	    io_setup_maps_a_ring_and_io_destroy_unmaps_it, sealed_mappings_refuse_changes,
	    failed_mprotect_keeps_its_partial_effect, map_fixed_refused_by_the_driver_leaves_a_hole,
	    anonymous_hugetlb_is_rounded, hugetlb_memfd_is_rounded_without_map_hugetlb, madvise_changes_no_page);
	return suite;
}
