/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Helpers shared by the rules of the memory syscalls. */
#ifndef MODEL_SPACE_SYSCALL_RULES_H
#define MODEL_SPACE_SYSCALL_RULES_H

#include "model/space/space-state.h"

/* Whether the record covers whole pages and is not empty. */
bool space_calls_valid_mmap2(const struct space *space, const struct space_mmap2 *mmap2_record);

/* Insert a new mapping of the call into a free range. */
bool space_calls_allocate(struct space *space, const struct space_call *call, const struct range *range,
			  const struct space_attributes *attributes);

/* The same, where other mappings may be: with `replace` the call unmaps them, otherwise an munmap that has not returned
 * yet has. */
bool space_calls_place(struct space *space, const struct space_call *call, const struct range *range,
		       const struct space_attributes *attributes, bool replace);

/* Unmap [start, end), for the call. */
bool space_calls_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* The first address from `start` on where nothing is mapped, at most `end`. */
uint64_t space_calls_gap(const struct space *space, uint64_t start, uint64_t end);

/* Whether a mapping in [start, end) is sealed. */
bool space_calls_sealed(const struct space *space, uint64_t start, uint64_t end);

/* `unit`: a power of two. 0: there is no such number. */
static inline uint64_t space_calls_round_up(uint64_t bytes, uint64_t unit)
{
	return bytes + unit - 1 < bytes ? 0 : (bytes + unit - 1) & ~(unit - 1);
}

static inline bool space_calls_failed(const struct space_call *call)
{
	return call_is_error(call->result);
}

/* Apply what the MMAP2 record shows from `start` on. */
void space_calls_take_mmap2(struct space_attributes *attributes, const struct space_mmap2 *mmap2_record,
			    uint64_t start);

/* Functions of the files with the same names. False: out of memory. */
bool space_mremap_apply(struct space *space, const struct space_call *call);

bool space_shm_attach(struct space *space, const struct space_call *call);

bool space_shm_detach(struct space *space, const struct space_call *call);

/* Call this before `change` is applied to [start, end): numbers the parts of attached segments that the kernel will
 * keep as separate mappings. */
bool space_shm_part(struct space *space, uint64_t start, uint64_t end,
		    void (*change)(void *context, struct space_interval *interval), void *context);

/*
 * Call this before a moved piece is inserted: the piece joins the adjacent part of its attachment. *part: initially
 * SPACE_PART_NONE. Kernels that do not merge with all neighbours move one mapping at a time, whose pieces share this
 * number.
 */
#define SPACE_PART_NONE UINT32_MAX

void space_shm_join(struct space *space, struct space_interval *piece, uint32_t *part);

/* A piece of a ring was moved to `piece`: from now on the context has this address. */
void space_rings_move(struct space *space, const struct space_interval *piece);

#endif
