/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The machine code around the places of frames, of packed recordings: a part of FEATURE_MMTRACE_STACKS. */
#ifndef TRACE_RESOLVED_CODE_H
#define TRACE_RESOLVED_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vector.h"

/* From this byte of the code on; texts are numbers. */
struct resolved_line {
	uint32_t offset;
	uint32_t source_file, source_line;
};

/* Whole instructions. */
struct resolved_code {
	uint64_t address; /* of the first byte: in the numbering of the program file, or in the process */
	uint64_t site;	  /* the frame's instruction, or with `is_return_address` the one behind its call */
	bool is_return_address;
	bool is_copy;	      /* of generated code, as it was last seen */
	const uint8_t *bytes; /* borrowed */
	uint32_t size;
	uint32_t line_count;
	uint32_t first_line; /* in `lines` */
};

/* Those that were read. Zero initialisation makes an empty value. */
struct resolved_codes {
	VECTOR(struct resolved_code) items;
	VECTOR(struct resolved_line) lines;
};

void resolved_codes_deinit(struct resolved_codes *codes);

/* Number of a code, equal ones have the same, in a table whose items are as in the file; `lines` are all of its own. */
struct mmt_error *resolved_code_put(struct intern *table, const struct resolved_code *code,
				    const struct resolved_line *lines, uint32_t *number_ret) MMT_MUST_CHECK;

void resolved_codes_encode(const struct intern *table, struct buffer *buffer);
/* With a failure of `bytes` where one goes beyond its code, or names a text that is not among `text_count`. */
struct mmt_error *resolved_codes_decode(struct bytes *bytes, size_t text_count,
					struct resolved_codes *codes) MMT_MUST_CHECK;

/* The line of an address; NULL: none is known. */
const struct resolved_line *resolved_codes_line(const struct resolved_codes *codes, const struct resolved_code *code,
						uint64_t address);

#endif
