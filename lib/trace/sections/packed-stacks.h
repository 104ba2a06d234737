/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables of a packed recording: its symbolized stacks. */
#pragma once

#include <mmtrace/report.h>

#include "base/map.h"
#include "trace/sections/section-codec.h"

/* FEATURE_MMTRACE_STACKS, of packed recordings: all symbolized stacks. They replace the stack dumps needed to unwind
 * them, and the modules and maps needed to symbolize them. Samples have the number of their stack. */

#define RESOLVED_NO_TEXT UINT32_MAX

/* As in struct mmt_frame; texts are numbers. */
struct packed_name {
	uint64_t address, module_offset;
	uint32_t function, raw_function, module, module_path, source_file;
	uint32_t source_line;
	enum mmt_frame_kind kind;
	bool inlined, doubtful;
};

/* How to find better names than the recorded ones: `module_offset` of the names is an ELF address in the module. */
enum packed_lookup {
	PACKED_LOOKUP_NONE = 0, /* it is not, or the recording is older */
	PACKED_LOOKUP_ADDRESS = 1,
	PACKED_LOOKUP_RETURN_ADDRESS = 2
};

/* The names of a frame are contiguous, inlined functions first. */
struct packed_frame {
	uint32_t first_name, name_count;
	uint32_t process; /* index */
	enum packed_lookup lookup;
};

#define STACK_END_LOST 255 /* instead of an enum mmt_stack_end: for the stacks of calls that were lost */

struct packed_stack {
	uint32_t end;
	uint32_t first_frame, frame_count; /* in stack_frames */
};

struct packed_process {
	uint32_t runtime; /* text */
	bool has_perf_map, has_jitdump;
	bool other_clock;		     /* the jitdump uses another clock */
	bool unchecked_frames;		     /* callers of its JIT code were found only by frame pointer */
	bool stacks_end_there;		     /* stacks end in its JIT code, because its callers are unknown */
	bool released;			     /* after its end others ran: it no longer counts */
	bool released_known;		     /* older recordings do not have that */
	uint64_t dropped_lines;		     /* of the perf map */
	uint64_t lost_records, unread_bytes; /* of the jitdumps */
	uint32_t jitdump_failure;	     /* text */
};

/* A module that could not be used. */
struct packed_module {
	uint32_t path;	  /* text */
	uint32_t state;	  /* enum module_state */
	uint32_t missing; /* text: the missing files that cause the state; or none */
};

/* Zero-initialise an empty value. */
struct packed_stacks {
	struct intern texts; /* while encoding */
	uint8_t *content;    /* of a decoded value */
	VECTOR(const char *) read_texts;
	VECTOR(struct packed_name) names;
	VECTOR(struct packed_frame) frames;
	VECTOR(uint32_t) stack_frames;
	VECTOR(struct packed_stack) stacks;
	VECTOR(struct packed_process) processes;
	VECTOR(struct packed_module) modules;
	uint32_t damage;			    /* text: damage of the recording that was packed */
	uint64_t unfinished_records, unfinished_ns; /* discarded from that recording: see struct reorder_unfinished */
};

/* For section_read() and section_write(). All numbers in a decoded value are valid. */
extern const struct section_kind section_stacks;

void packed_stacks_deinit(void *value);

/* Returns the number of a text, which may be NULL; false: out of memory. */
bool packed_stacks_put_text(struct packed_stacks *stacks, const char *text, uint32_t *number_ret);

/* A text of a decoded value; NULL for RESOLVED_NO_TEXT. Lives as long as the value. */
const char *packed_stacks_text(const struct packed_stacks *stacks, uint32_t number);
