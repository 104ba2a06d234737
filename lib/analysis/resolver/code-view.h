/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the model (what is mapped where) meets the code (how to unwind it, what it is called). Frames and stacks get
 * numbers that mean the same in every process and at every address: a native frame is a program and an address in it.
 */
#ifndef ANALYSIS_RESOLVER_CODE_VIEW_H
#define ANALYSIS_RESOLVER_CODE_VIEW_H

#include <mmtrace/report.h>

#include "analysis/report/known-runtimes.h"
#include "analysis/resolver/jit-names.h"
#include "code/elf/disassembly.h"
#include "code/elf/module.h"
#include "model/processes.h"
#include "trace/format/event.h"
#include "trace/read/reader.h"

struct code_view;

/* Borrows the metadata, which must outlive the view. */
struct mmt_error *code_view_create(const struct reader_metadata *metadata, bool demangle, const char *cache_directory,
				   struct code_view **view_ret) MMT_MUST_CHECK;
void code_view_destroy(struct code_view *view);

/* Number of a mapping's path, for space_attributes. */
struct mmt_error *code_view_path(struct code_view *view, const char *path, uint32_t *path_ret) MMT_MUST_CHECK;

/* Unwind a sample with the code as it is mapped in `process` now; the number is small and dense. */
struct mmt_error *code_view_unwind(struct code_view *view, const struct process *process,
				   const struct event_stack *stack, uint32_t *stack_ret) MMT_MUST_CHECK;

/* The stack of a call whose sample holds none. */
struct mmt_error *code_view_no_stack(struct code_view *view, uint32_t *stack_ret) MMT_MUST_CHECK;

/* What stands for the stacks of calls that were lost: a number of its own, without frames. */
struct mmt_error *code_view_lost_stack(struct code_view *view, uint32_t *stack_ret) MMT_MUST_CHECK;

/* The path behind a number of code_view_path(); valid until the next one. */
const char *code_view_path_name(const struct code_view *view, uint32_t path);

/* Frame numbers of a stack, innermost first; valid until the next code_view_unwind(). */
const uint32_t *code_view_stack(const struct code_view *view, uint32_t stack, size_t *count_ret,
				enum mmt_stack_end *end_ret);

/* Whether some frame of the stack is doubtful. */
bool code_view_stack_is_doubtful(const struct code_view *view, uint32_t stack);

/* Stack numbers are less than this. */
size_t code_view_stack_count(const struct code_view *view);

/* Index of the process in which a frame was first seen. */
uint32_t code_view_frame_process(const struct code_view *view, uint32_t frame);

/*
 * Names of a frame: one or more, inlined functions first. They are looked up the first time, and live as long as the
 * view.
 */
struct mmt_error *code_view_names(struct code_view *view, uint32_t frame, const struct mmt_frame **frames_ret,
				  size_t *count_ret) MMT_MUST_CHECK;

/* Note what a frame says about missing names, without looking up its own. */
void code_view_pass_over(struct code_view *view, uint32_t frame);

/* The code that a frame is in. */
struct viewed_code {
	struct listed_code code;
	struct disassembly *disassembly;
	bool is_copy; /* as it was last seen */
};

/* False: neither the recording nor a module has the code. Borrowed until the next call. */
bool code_view_code(struct code_view *view, uint32_t frame, struct viewed_code *code_ret);

/* No frame has code, because the recording was packed without. */
bool code_view_code_left_out(const struct code_view *view);

/* Source of an address in the code of a frame; NULL: unknown. */
const char *code_view_line(struct code_view *view, uint32_t frame, uint64_t address, uint32_t *line_ret);

/* The next module, counted on in *position from 0, that stacks led into but that could not be used, or
 * not all of it; NULL: no more. The caller frees `*missing_ret`: with PROGRAM_MISSING_NAMES the files that are missing,
 * as a text, NULL when that is not known. It may be NULL. */
const char *code_view_unusable(const struct code_view *view, size_t *position, enum program_state *state_ret,
			       char **missing_ret);

/* What is known of the JIT code of a process, as far as its frames have been named. */
struct jit_code_state {
	const struct runtime *runtime; /* that made it; NULL: none that is known, or there is no such code */
	bool unnamed;		       /* some frame has no name */
	bool unchecked_frames;	       /* some caller was found by frame pointer, in code that was not recorded */
	bool stacks_end_there;	       /* some stack could not be unwound beyond such code */
	bool changed_too_often;	       /* the code was replaced too often to unwind all stacks through it */
	bool unnamed_precompiled;      /* some frame in precompiled .NET code has no name */
	const struct runtime *
	    interpreter; /* the runtime whose interpreter has frames without the program's function names; NULL: none */
	struct jit_names_state names;
};

struct jit_code_state code_view_jit(struct code_view *view, uint32_t process);

#endif
