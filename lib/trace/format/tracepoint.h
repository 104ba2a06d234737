/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Layout of the RAW bytes of tracepoints, from the kernel's format texts. */
#pragma once

#include "base/bytes.h"
#include "base/vector.h"

struct tracepoint {
	char *system, *name; /* owned */
	uint32_t id;
	char *format; /* owned: the text of .../events/SYSTEM/NAME/format */
};

struct tracepoints {
	VECTOR(struct tracepoint) items;
	char *header_page, *header_event; /* owned: .../events/header_page and header_event */
};

struct tracepoint_field {
	uint32_t offset, size;
	bool is_signed;
};

void tracepoints_deinit(struct tracepoints *tracepoints);

/* FEATURE_TRACING_DATA as perf reads and writes it. */
void tracepoints_encode(const struct tracepoints *tracepoints, uint32_t page_bytes, struct buffer *buffer);
struct mmt_error *tracepoints_decode(struct bytes *bytes, struct tracepoints *tracepoints_ret) MMT_MUST_CHECK;

/* NULL: absent. */
const struct tracepoint *tracepoints_find(const struct tracepoints *tracepoints, uint32_t id);

/* False: the format text has no such field. */
bool tracepoint_field(const struct tracepoint *tracepoint, const char *field, struct tracepoint_field *field_ret);

/* The arguments of a sys_enter tracepoint, in order: the fields behind __syscall_nr. Return how many were found. */
size_t tracepoint_arguments(const struct tracepoint *tracepoint, struct tracepoint_field fields_ret[6]);
