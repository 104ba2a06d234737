/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The first pass of packing: which stack each call has, and what all stacks are called. */
#ifndef ANALYSIS_PACK_STACKS_H
#define ANALYSIS_PACK_STACKS_H

#include <stdint.h>
#include <stdio.h>

#include "analysis/replay.h"
#include "base/arena.h"
#include "base/map.h"
#include "trace/resolved-stacks.h"

/*
 * By event. What a call's stack is becomes known later than the call, so it cannot be written in order: the numbers lie
 * in a temporary file, and memory depends on the different stacks alone.
 */
struct pack_stacks {
	FILE *numbers;
	struct intern callchains;	 /* without what is no address of code */
	struct resolved_stacks resolved; /* no code is found for it when it has `code_left_out` */
	struct arena arena;
};

void pack_stacks_deinit(struct pack_stacks *stacks);

/* The pass; then the same recording from its start, whatever has its name by now. */
struct mmt_error *pack_stacks_find(struct pack_stacks *stacks, const char *input, const struct mmt_progress *progress,
				   struct reader **reader_ret) MMT_MUST_CHECK;

/* Of an event by its sequence: number of its stack plus 1, 0: none. The callchain is valid as long as the value. */
struct mmt_error *pack_stacks_get(const struct pack_stacks *stacks, uint64_t sequence, uint32_t *number_ret,
				  const uint64_t **callchain_ret, size_t *callchain_count_ret) MMT_MUST_CHECK;

#endif
