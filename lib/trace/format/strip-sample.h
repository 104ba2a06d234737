/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Samples for packed recordings: without the bytes of the stack and without registers but those that hold the arguments
 * of the call. Instead of them the sample says the number of its stack, in the field that perf calls weight.
 */
#ifndef TRACE_FORMAT_STRIP_SAMPLE_H
#define TRACE_FORMAT_STRIP_SAMPLE_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/calls.h"
#include "base/errors.h"
#include "trace/format/architecture.h"

/* What the attribute becomes; `numbered`: its samples are calls that have stacks. */
struct perf_event_attr strip_attribute(const struct perf_event_attr *attr, const struct architecture *architecture,
				       bool numbered);

/* What a sample is given. */
struct stripped_stack {
	uint32_t number; /* of its stack, plus 1; 0: none */
	const uint64_t *callchain;
	size_t callchain_count;
};

/*
 * A sample of `attr` becomes one of strip_attribute(attr, ..., stack != NULL), appended. Argument registers that `call`
 * does not use are zero.
 */
struct mmt_error *strip_sample(const struct perf_event_attr *attr, const struct architecture *architecture,
			       const void *record, enum call call, const struct stripped_stack *stack,
			       struct buffer *buffer) MMT_MUST_CHECK;

#endif
