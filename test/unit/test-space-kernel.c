// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel as the oracle: a child performs random memory calls, the model applies them, and after each of them the
 * model must equal the child's /proc/PID/maps in every page. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "support/emulator.h"
#include "support/suite.h"
#include "support/space-child.h"

#define RW (PROT_READ | PROT_WRITE)
#define ARENA_PAGES 96
#define STEPS 2000 /* unless KERNEL_STEPS is set: for emulated machines */
#define PLACES 64

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct place {
	uint64_t start, bytes;
};

/* One run: its random numbers and what it has mapped outside the arena. */
struct run {
	struct child child;
	uint32_t random;
	uint64_t arena;
	uint64_t first_break;
	struct place places[PLACES]; /* where the kernel put things */
	uint64_t segments[PLACES];   /* shared memory attached at */
	uint64_t rings[4];	     /* aio contexts, out of the reach of the other calls */
};

static uint32_t draw(struct run *run, uint32_t below)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 17;
	run->random ^= run->random << 5;
	return run->random % below;
}

static uint64_t draw_address(struct run *run)
{
	return run->arena + draw(run, ARENA_PAGES) * PAGE;
}

/* An address of memory that the kernel placed, or in the arena. */
static struct place draw_place(struct run *run)
{
	struct place place = run->places[draw(run, PLACES)];

	if (draw(run, 3) || !place.bytes)
		place = (struct place){draw_address(run), (1 + draw(run, 12)) * PAGE};
	else if (!draw(run, 2)) {
		uint64_t skipped = draw(run, (uint32_t)(place.bytes / PAGE)) * PAGE;

		place.start += skipped;
		place.bytes -= skipped;
	}
	return place;
}

static int draw_protection(struct run *run)
{
	static const int protections[] = {PROT_NONE, PROT_READ, RW, RW, RW, PROT_READ | PROT_EXEC};

	return protections[draw(run, 6)];
}

static void remember(struct run *run, int64_t result, uint64_t bytes)
{
	if (result > 0)
		run->places[draw(run, PLACES)] = (struct place){(uint64_t)result, bytes};
}

static void do_mmap(struct run *run)
{
	static const int types[] = {MAP_PRIVATE, MAP_PRIVATE, MAP_SHARED, MAP_SHARED_VALIDATE};
	uint64_t bytes = (1 + draw(run, 10)) * PAGE - draw(run, 2), address = 0, offset = draw(run, 8) * PAGE;
	int flags = types[draw(run, 4)], fd = -1, choice = (int)draw(run, 8), protection = draw_protection(run);
	int64_t result;

	if (draw(run, 3)) {
		address = draw_address(run);
		flags |= draw(run, 3) ? MAP_FIXED : draw(run, 2) ? MAP_FIXED_NOREPLACE : 0;
	}
	if (choice < CHILD_FILES)
		fd = run->child.files[choice];
	if (fd < 0) {
		flags |= MAP_ANONYMOUS;
		flags |= draw(run, 8) ? 0 : MAP_NORESERVE;
		flags |= draw(run, 16) || flags & MAP_SHARED ? 0 : MAP_GROWSDOWN;
	}
	result = child_call(&run->child, CALL_MMAP, address, bytes, (uint64_t)protection, (uint64_t)flags, (uint64_t)fd,
			    offset);
	if (!address)
		remember(run, result, (bytes + PAGE - 1) / PAGE * PAGE);
}

static void do_munmap(struct run *run)
{
	struct place place = draw_place(run);

	child_call(&run->child, CALL_MUNMAP, place.start, place.bytes - draw(run, 2), 0, 0, 0, 0);
}

static void do_mprotect(struct run *run)
{
	struct place place = draw_place(run);

	child_call(&run->child, CALL_MPROTECT, place.start, place.bytes, (uint64_t)draw_protection(run), 0, 0, 0);
}

static void do_mremap(struct run *run)
{
	struct place place = draw_place(run);
	uint64_t old_bytes = draw(run, 12) ? place.bytes : 0;
	uint64_t new_bytes = draw(run, 3) ? old_bytes : (1 + draw(run, 16)) * PAGE;
	uint64_t flags = draw(run, 4) ? MREMAP_MAYMOVE : 0, target = 0;
	int64_t result;

	if (!new_bytes)
		new_bytes = PAGE;
	if (flags && draw(run, 2)) {
		flags |= MREMAP_FIXED;
		target = draw_address(run);
	}
	if (flags && !draw(run, 5)) {
		flags |= MREMAP_DONTUNMAP;
		new_bytes = old_bytes;
	}
	result = child_call(&run->child, CALL_MREMAP, place.start, old_bytes, new_bytes, flags, target, 0);
	remember(run, result, new_bytes);
}

static void do_brk(struct run *run)
{
	uint64_t address = draw(run, 5) ? run->first_break + draw(run, 40 * PAGE) : 0;

	child_call(&run->child, CALL_BRK, address, 0, 0, 0, 0, 0);
}

static void do_shm(struct run *run)
{
	uint64_t *segment = &run->segments[draw(run, PLACES)];
	uint64_t flags = draw(run, 3) ? 0 : SHM_RDONLY, address = 0;
	int64_t result;

	if (*segment && draw(run, 2)) {
		child_call(&run->child, CALL_SHMDT, *segment, 0, 0, 0, 0, 0);
		*segment = 0;
		return;
	}
	if (draw(run, 3)) {
		address = draw_address(run) + (draw(run, 2) ? 0 : 24);
		flags |= SHM_RND | (draw(run, 2) ? SHM_REMAP : 0);
	}
	result = child_call(&run->child, CALL_SHMAT, (uint64_t)run->child.shared_memory[draw(run, 2)], address, flags,
			    0, 0, 0);
	if (result > 0)
		*segment = (uint64_t)result;
}

static void do_remap_file_pages(struct run *run)
{
	struct place place = draw_place(run);

	child_call(&run->child, CALL_REMAP_FILE_PAGES, place.start, place.bytes, 0, draw(run, 16), 0, 0);
}

static void do_seal(struct run *run)
{
	/* Few, because sealed mappings stay. */
	if (!draw(run, 40))
		child_syscall(&run->child, 462 /* mseal */, draw_address(run), PAGE, 0, 0, 0, 0);
}

static void do_limit(struct run *run)
{
	child_limit(&run->child, draw(run, 3) != 0, draw(run, 20) * PAGE);
}

typedef void (*operation)(struct run *run);

static void perform(struct run *run, uint32_t steps, const operation *operations, uint32_t count)
{
	for (uint32_t step = 0; step < steps; step++) {
		operations[draw(run, count)](run);
		child_compare(&run->child, step);
	}
}

static uint32_t steps(void)
{
	const char *text = getenv("KERNEL_STEPS");

	return text ? (uint32_t)strtoul(text, NULL, 10) : STEPS;
}

static void start_run(struct run *run, uint32_t seed)
{
	memset(run, 0, sizeof(*run));
	run->random = seed * 2654435761u + 1;
	child_start(&run->child);
	run->first_break = (uint64_t)child_call(&run->child, CALL_BRK, 0, 0, 0, 0, 0, 0);
	run->arena = (uint64_t)child_call(&run->child, CALL_MMAP, 0, (ARENA_PAGES + 32) * PAGE, PROT_NONE,
					  MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);
	for (size_t i = 0; i < sizeof(run->rings) / sizeof(*run->rings); i++)
		run->rings[i] = child_io_setup(&run->child, 1);
	child_call(&run->child, CALL_MUNMAP, run->arena, (ARENA_PAGES + 32) * PAGE, 0, 0, 0, 0);
	child_compare(&run->child, 0);
}

static void stop_run(struct run *run)
{
	for (size_t i = 0; i < sizeof(run->rings) / sizeof(*run->rings); i++) {
		if (run->rings[i])
			ck_assert_int_eq(child_call(&run->child, CALL_IO_DESTROY, run->rings[i], 0, 0, 0, 0, 0), 0);
		child_compare(&run->child, STEPS);
	}
	child_stop(&run->child);
}

START_TEST(random_calls_match_the_kernel)
{
	static const operation operations[] = {
	    do_mmap,	 do_mmap,   do_mmap,   do_mmap, do_munmap, do_munmap,	       do_mprotect,
	    do_mprotect, do_mremap, do_mremap, do_brk,	do_shm,	   do_remap_file_pages};
	struct run run;

	start_run(&run, (uint32_t)_i);
	perform(&run, steps(), operations, sizeof(operations) / sizeof(*operations));
	ck_assert_uint_eq(space_counts(run.child.space).ambiguous, 0);
	stop_run(&run);
}
END_TEST

START_TEST(sealing_and_limits_match_the_kernel)
{
	static const operation operations[] = {do_mmap,	  do_mmap,   do_mmap,	do_munmap, do_mprotect, do_mprotect,
					       do_mremap, do_mremap, do_mremap, do_brk,	   do_seal,	do_limit};
	struct run run;

	start_run(&run, (uint32_t)_i);
	perform(&run, steps(), operations, sizeof(operations) / sizeof(*operations));
	stop_run(&run);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("space against the kernel");
	TCase *random = add_tcase(suite, "random");

	if (emulator_hides("the memory maps of other processes"))
		exit(EXIT_SKIP);
	tcase_set_timeout(random, 600);
	tcase_add_loop_test(random, random_calls_match_the_kernel, 1, 5);
	tcase_add_loop_test(random, sealing_and_limits_match_the_kernel, 101, 103);
	/* A limit stops the move of mappings that the model has joined. */
	tcase_add_loop_test(random, sealing_and_limits_match_the_kernel, 228101, 228102);
	return suite;
}
