/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where records of one kind of ring were lost: each CPU has its own, and a loss is told by the next record that finds
 * room in it. What happened on other CPUs is not in doubt. Pure.
 */
#ifndef ANALYSIS_LOSSES_H
#define ANALYSIS_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vector.h"

/* Zero initialisation makes an empty one. */
struct losses {
	VECTOR(uint64_t) latest; /* by CPU: sequence of the event that told it; 0: none */
	uint64_t anywhere;	 /* of the latest on any CPU */
	uint64_t everywhere;	 /* of the latest on a CPU that is not known */
};

void losses_deinit(struct losses *losses);

/* cpu -1: not known. False: out of memory. */
bool losses_note(struct losses *losses, int32_t cpu, uint64_t sequence);

/* Whether records of this CPU (-1: any) were lost after the event with this sequence. */
bool losses_since(const struct losses *losses, int32_t cpu, uint64_t sequence);

#endif
