/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a row holds, and the sums of figures for which mmtrace/figures.h says SUM. */
#pragma once

#include <mmtrace/report.h>

#include "base/vector.h"

/* What is unknown adds nothing. */
static inline void figure_add(uint64_t *sum, uint64_t value)
{
	if (value != MMT_UNKNOWN)
		*sum = saturating_add(*sum == MMT_UNKNOWN ? 0 : *sum, value, MMT_BYTES_MAX);
}

/* The bytes that the row holds, or uses in memory that others reserved. */
static inline uint64_t figures_held_bytes(const struct mmt_row *row)
{
	return larger_of(row->unfreed_bytes, row->committed_bytes + row->committed_before_bytes);
}

/* Initialisers: the stack of a row, a failure, a stall or a toucher in another one of these. */
#define FIGURES_STACK(of)                                                                                              \
	.frames = (of)->frames, .frame_count = (of)->frame_count, .origin = (of)->origin, .stack_end = (of)->stack_end

#define FIGURE_ADD_SUM(name) figure_add(&sum->name, of->name);
#define FIGURE_ADD__(name)
#define FIGURE_ADD(name, unit, known, how, ...) FIGURE_ADD_##how(name)

static inline void figures_add_to_report(struct mmt_report *sum, const struct mmt_row *of)
{
	MMT_REPORT_FIGURES(FIGURE_ADD)
}

static inline void figures_add_to_part(struct mmt_part *sum, const struct mmt_part *of)
{
	MMT_PART_FIGURES(FIGURE_ADD)
}

/* Causes have no figures of their own for memory that was mapped before. */
static inline void figures_add_to_cause(struct mmt_cause *sum, const struct mmt_row *of)
{
	MMT_CAUSE_FIGURES(FIGURE_ADD)
	figure_add(&sum->committed_bytes, of->committed_before_bytes);
	figure_add(&sum->resident_bytes, of->resident_before_bytes);
}
