/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of a packed recording: its stacks with their names, and the instructions around their frames. */
#ifndef TRACE_SECTIONS_PACKED_STACKS_H
#define TRACE_SECTIONS_PACKED_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "trace/format/wire.h"

/* The machine code around the places of frames, of packed recordings: a part of FEATURE_MMTRACE_STACKS. */

/* From this byte of the code on; texts are numbers. */
struct resolved_line {
	uint32_t offset;
	uint32_t source_file, source_line;
};

/* Whole instructions. */
struct resolved_code {
	uint64_t address; /* of the first byte: in the numbering of the module, or in the process */
	uint64_t site;	  /* the frame's instruction, or with `is_return_address` the one behind its call */
	bool is_return_address;
	bool is_copy;	      /* of JIT code, as it was last seen */
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

/*
 * FEATURE_MMTRACE_STACKS, of packed recordings: what every stack is, with all names, in place of the bytes that it
 * would be unwound from and of the programs and maps that it would be named by. Samples say the number of their stack.
 */

#define RESOLVED_NO_TEXT UINT32_MAX

/* As struct mmt_frame has it; texts are numbers. */
struct resolved_name {
	uint64_t address, module_offset;
	uint32_t function, raw_function, module, module_path, source_file;
	uint32_t source_line;
	enum wire_frame_kind kind;
	bool inlined, doubtful;
};

/* Its names stand one after the other, inlined functions first. */
struct resolved_frame {
	uint32_t first_name, name_count;
	uint32_t process; /* index */
	uint32_t code;	  /* number plus 1; 0: none */
};

struct resolved_stack {
	enum wire_stack_end end;
	uint32_t first_frame, frame_count; /* in stack_frames */
};

struct resolved_process {
	uint32_t runtime; /* text */
	bool has_perf_map, has_jitdump;
	bool other_clock;		     /* of the jitdump */
	bool unchecked_frames;		     /* callers of its JIT code were found by frame pointer alone */
	bool stacks_end_there;		     /* in its JIT code, whose callers are unknown */
	bool changed_too_often;		     /* its JIT code, back and forth, to follow stacks through it */
	uint64_t dropped_lines;		     /* of the perf map */
	uint64_t lost_records, unread_bytes; /* of the jitdumps */
	uint32_t jitdump_failure;	     /* text */
};

/* That could not be used. */
struct resolved_program {
	uint32_t path; /* text */
	enum wire_program_state state;
	uint32_t missing; /* text: the files whose lack makes the state; or none */
};

/* Zero initialisation makes an empty one. */
struct resolved_stacks {
	struct intern texts; /* of one that is being made */
	struct intern codes; /* likewise: see resolved_code_put() */
	uint8_t *content;    /* of one that was read */
	VECTOR(const char *) read_texts;
	struct resolved_codes read_codes;
	VECTOR(struct resolved_name) names;
	VECTOR(struct resolved_frame) frames;
	VECTOR(uint32_t) stack_frames;
	VECTOR(struct resolved_stack) stacks;
	VECTOR(struct resolved_process) processes;
	VECTOR(struct resolved_program) programs;
	uint32_t damage;			    /* text: what was wrong with the recording that was packed */
	bool code_left_out;			    /* on request: no frame has any */
	uint64_t unfinished_records, unfinished_ns; /* left out of that recording: see struct order_unfinished */
};

void resolved_stacks_deinit(struct resolved_stacks *stacks);

/* Number of a text, which may be NULL; false: out of memory. */
bool resolved_stacks_put_text(struct resolved_stacks *stacks, const char *text, uint32_t *number_ret);

/* Of one that was read; NULL for RESOLVED_NO_TEXT. Lives as long as the value. */
const char *resolved_stacks_text(const struct resolved_stacks *stacks, uint32_t number);

/* The code of a frame of one that was read, NULL: none. */
const struct resolved_code *resolved_stacks_code(const struct resolved_stacks *stacks, size_t frame);

/* Compressed with zstd inside. All numbers of what is decoded lead to something. */
struct mmt_error *resolved_stacks_encode(const struct resolved_stacks *stacks, struct buffer *buffer) MMT_MUST_CHECK;

struct mmt_error *resolved_stacks_decode(struct bytes *bytes, size_t *room,
					 struct resolved_stacks *stacks_ret) MMT_MUST_CHECK;

#endif
