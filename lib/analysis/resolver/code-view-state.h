/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of the code view, for its own files: code-view.c unwinds, code-names.c symbolizes frames and reads the
 * tables of packed recordings. */
#ifndef ANALYSIS_RESOLVER_CODE_VIEW_STATE_H
#define ANALYSIS_RESOLVER_CODE_VIEW_STATE_H

#include "analysis/resolver/code-view.h"
#include "analysis/resolver/copied-code.h"
#include "analysis/resolver/mapped-modules.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/vector.h"
#include "code/unwind/unwind.h"
#include "model/stack-table.h"

#define STACK_END_LOST MMT_STACK_END_KINDS

/* Identity of a frame. Hashed as bytes, so without padding. */
struct frame_key {
	uint64_t address; /* native: in the file's numbering; else in the process */
	uint32_t image;	  /* NO_IMAGE: nothing is mapped there */
	uint32_t process; /* index; 0 for native frames, which processes share */
	uint8_t kind;	  /* enum mmt_frame_kind */
	uint8_t is_return_address;
	uint8_t doubtful;
	uint8_t readable;   /* native: `address` is an ELF address, else a file offset */
	uint32_t generated; /* number of jit_names_find() */
};

/* One for each distinct frame. The names are looked up when they are first asked for; nothing changes afterwards. */
struct frame_record {
	struct frame_key key; /* zero in packed recordings, apart from `doubtful` */
	union {
		uint64_t address;	       /* name_count 0: in the process where the frame was first seen */
		const struct mmt_frame *names; /* else: inlined functions first */
	};
	uint32_t process; /* where the frame was first seen: its index */
	uint32_t name_count;
};

struct process_state {
	int32_t pid;
	uint64_t program_ns; /* of the last program that was met in it */
	bool looked_up;
	struct jit_names *jit_names; /* NULL: not looked up, or out of memory */
	struct copied_code *code;    /* recorded JIT code of the program that began at code_ns; borrowed, NULL: none */
	uint64_t code_ns;
	bool code_looked_up;
	bool unnamed;	       /* has frames that a perf map would have named */
	bool unchecked_frames; /* as in struct jit_code_state, like the next one */
	bool stacks_end_there;
	bool changed_too_often; /* in a packed recording, or in a program that ran before */
	bool unnamed_precompiled;
	bool interpreted_named;		   /* some frame is named after an interpreted function */
	const struct runtime *interpreter; /* the runtime whose interpreter has frames; NULL: none */
	const struct runtime *runtime;
	uint64_t looked_at;			 /* generation of the code in which no runtime was found; 0: none yet */
	const struct resolved_process *resolved; /* of a packed recording; else NULL */
};

struct code_view {
	const struct reader_metadata *metadata;
	const struct unwind_rules *rules;
	struct mapped_modules mapped;
	struct unwind_cache *memo;
	struct unwind_places *places;
	VECTOR(struct process_state) processes;
	VECTOR(struct copied_code *) copied_codes; /* by the place of a program among those whose code was recorded */
	struct intern generations;
	uint64_t last_generation_key[5]; /* mostly that of the next stack too */
	uint32_t last_generation;
	bool has_last_generation;
	struct id_table frames_by_key; /* its ids are frame numbers */
	VECTOR(struct frame_record) frames;
	struct stacks stacks;
	VECTOR(uint32_t) resolved;   /* packed recordings: number in their table -> number here */
	struct arena arena;	     /* names of frames */
	struct unwind_result result; /* scratch: too large for the C stack */
};

/* Read when the first frame in JIT code is met. NULL: without memory for it there are no names. */
struct jit_names *code_view_jit_names(struct code_view *view, uint32_t process);

/* The recorded bytes of the JIT code of the program that began in the process then, looked for once; NULL: none.
 */
struct copied_code *code_view_copied_code(struct code_view *view, uint32_t process, uint64_t program_ns);

/* The tables of a packed recording take the place of all that is found out otherwise: nothing is unwound or opened. */
struct mmt_error *code_view_take_resolved(struct code_view *view, bool demangle) MMT_MUST_CHECK;

/* Call this when a frame of the process has been named: the name may reveal its runtime. */
void code_view_note_runtime(struct process_state *state, const struct mmt_frame *frame);

/* As code_view_code() and code_view_line(), from the tables. */
bool code_view_resolved_code(const struct code_view *view, uint32_t frame, struct viewed_code *viewed);
const char *code_view_resolved_line(const struct code_view *view, uint32_t frame, uint64_t address, uint32_t *line_ret);

/* As code_view_unusable() and code_view_jit(), from the tables. */
const char *code_view_resolved_unusable(const struct code_view *view, size_t *position, enum program_state *state_ret,
					char **missing_ret);
struct jit_names_state code_view_resolved_names(const struct code_view *view, uint32_t process);

#endif
