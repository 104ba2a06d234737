/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the code view share: code-view.c unwinds, code-names.c names frames and reads the tables of
 * packed recordings. Nobody else includes this. */
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

/* Identity of a frame; interned, so without padding. */
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

struct frame_names {
	const struct mmt_frame *frames; /* NULL: not asked for yet, or not kept */
	uint64_t address;		/* in the process where the frame was first seen */
	uint32_t process;		/* index */
	uint32_t count : 29;		/* of the frames that are kept */
	bool looked_up : 1;		/* before */
	bool behind_no_call : 1;	/* a return address that is looked up as it is */
	bool nameless : 1;		/* its program has no name for it */
};

struct process_state {
	int32_t pid;
	uint64_t program_ns; /* of the last program that was met in it */
	bool looked_up;
	struct jit_names *jit_names;   /* NULL: not looked up, or out of memory */
	struct map code_of_program;    /* by program_ns, once looked up: in copied_of_program, borrowed; 0: none */
	struct copied_code *last_code; /* of those, looked up last: of the program that began at last_code_ns */
	uint64_t last_code_ns;
	bool has_last_code;
	bool unnamed;	       /* has frames that a perf map would have named */
	bool unchecked_frames; /* as in struct generated_code, like the next one */
	bool stacks_end_there;
	bool changed_too_often; /* in a packed recording */
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
	struct map copied_of_program; /* by the place of a program among those whose code was recorded */
	struct intern generations;
	uint64_t last_generation_key[5]; /* mostly that of the next stack too */
	uint32_t last_generation;
	bool has_last_generation;
	struct intern frames;
	VECTOR(struct frame_names) names;
	size_t kept_names;		  /* how many of them have their frames */
	VECTOR(const char *) image_paths; /* of frames that have been named; NULL: not yet */
	struct stacks stacks;
	VECTOR(uint32_t) resolved;   /* packed recordings: number in their table -> number here */
	struct arena arena;	     /* of the names in their table, and of image_paths */
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
