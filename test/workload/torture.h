/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The torture program's parts: workers that change mappings at random, and checkpoints at which the kernel's maps are
 * written down.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TORTURE_THREADS 6
#define TORTURE_SLOTS 64
#define TORTURE_RANGES 48
#define TORTURE_SEGMENTS 4
#define TORTURE_CONTEXTS 4
#define TORTURE_ADDRESSES 8
#define TORTURE_ARENA_PAGES 256

/* Page aligned; pages 0: none. */
struct torture_range {
	uintptr_t start;
	size_t pages;
};

/* What all workers of the program share. */
struct torture_program {
	size_t page_bytes;
	int file, read_only_file, memory, zero, unmappable; /* descriptors */
	uint64_t excluded;				    /* bit n: operation n is left out */
	_Atomic uint64_t slots[TORTURE_SLOTS];		    /* ranges handed from thread to thread, packed; 0: empty */
	_Atomic uint64_t *checkpoints; /* shared with the children: gives every checkpoint its number */
	_Atomic uint64_t *operations;  /* likewise: how many were made */
	_Atomic uint64_t *failures;    /* likewise: how many of them failed */
	uintptr_t break_start;
	const char *directory;
};

extern struct torture_program torture_program;

struct torture_worker {
	uint64_t random;
	uintptr_t arena; /* TORTURE_ARENA_PAGES at a place the kernel never chooses */
	bool exact;	 /* other threads use what this one has released: touch nothing but what it owns */
	bool hands_over;
	bool moves_break;
	struct torture_range ranges[TORTURE_RANGES]; /* at places that the kernel chose */
	size_t range_count;
	int segments[TORTURE_SEGMENTS];
	size_t segment_pages[TORTURE_SEGMENTS];
	uintptr_t attached[TORTURE_ADDRESSES];	    /* where segments are, or were */
	uint64_t contexts[TORTURE_CONTEXTS];	    /* of io_setup; 0: none */
	uint64_t context_headers[TORTURE_CONTEXTS]; /* what their rings begin with: their number and size */
	uintptr_t huge;				    /* a mapping of huge pages; 0: none */
	size_t huge_bytes;
};

uint64_t torture_random(struct torture_worker *worker, uint64_t below);
uint64_t torture_pack(struct torture_range range);
struct torture_range torture_unpack(uint64_t packed);

/* torture-ranges.c: what a worker may change. */
/* A new range at an address that the kernel chose. Parts of the arena are the worker's anyway. */
void torture_give(struct torture_worker *worker, struct torture_range range);
/* What others have released of the worker's. */
void torture_take(struct torture_worker *worker, struct torture_range range);
struct torture_range torture_pick_arena(struct torture_worker *worker, size_t most_pages);
/* In the arena, or part of a range. */
struct torture_range torture_pick(struct torture_worker *worker, size_t most_pages);
bool torture_in_arena(const struct torture_worker *worker, struct torture_range range);
void torture_hand_over(struct torture_worker *worker);

/* torture-operations.c, torture-kinds.c */
void torture_worker_open(struct torture_worker *worker, uint64_t seed, uintptr_t arena);
void torture_worker_close(struct torture_worker *worker);
void torture_operate(struct torture_worker *worker);
/* Omits the operation of this name; false: there is none. */
bool torture_exclude(const char *name);
/* True: it failed. */
typedef bool torture_operation(struct torture_worker *worker);
torture_operation torture_move_break, torture_attach, torture_detach, torture_remap_pages, torture_setup_io,
    torture_destroy_io, torture_advise, torture_fail, torture_refuse_map, torture_refuse_move, torture_grow_down,
    torture_map_huge, torture_seal;

/* torture-checkpoint.c */
/* Makes it visible in the recording that this thread is between two calls. */
void torture_arrive(void);
/* The marker, and the kernel's maps of this process. No other thread may change a mapping meanwhile. */
void torture_checkpoint(void);
/* After fork, in the child. */
void torture_checkpoint_forked(void);
