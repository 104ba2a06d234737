/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Connects the model (what is mapped where) with the code (how to unwind and symbolize it). Frame and stack numbers
 * mean the same in every process and at every address: a native frame is a module and an address in it. */
#pragma once

#include "analysis/resolver/known-runtimes.h"
#include "code/elf/module.h"
#include "code/jit/code-timeline.h"
#include "model/processes.h"

/* Symbolizes the JIT code of one process from recorded perf maps and jitdumps, by address and time. */

struct jit_names;

/* Borrows the metadata. */
struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid,
				   struct jit_names **names_ret) MMT_MUST_CHECK;
void jit_names_destroy(struct jit_names *names);

/* Find the JIT code at `address` at this time, in the program that the process has run since `program_ns` (0: from the
 * beginning). Returns a number; 0: unknown. See code_timeline_find(). Jitdumps come before perf maps. Names written by
 * earlier programs of the process do not count. */
uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns, uint64_t program_ns);

/* A number that changes whenever the answer for some address may change. */
uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns);

/* `number` must not be 0. */
struct named_code jit_names_describe(const struct jit_names *names, uint32_t number);

/* The source file of an address in it; NULL: unknown. This searches all lines: use it only for displayed frames. */
const char *jit_names_line(const struct jit_names *names, uint32_t number, uint64_t address, uint32_t *line_ret);

/* The row that covers an address in it; NULL: none. */
const struct cfi_row *jit_names_cfi(struct jit_names *names, uint32_t number, uint64_t address);

struct jit_names_state jit_names_state(const struct jit_names *names);

struct resolver;

/* Borrows the metadata, which must outlive the resolver. Once there are more stacks than `stacks_max`, no further ones
 * are unwound, unless callchains are kept: they get this number. */
struct mmt_error *resolver_create(const struct reader_metadata *metadata, bool demangle, uint64_t stacks_max,
				  struct resolver **resolver_ret) MMT_MUST_CHECK;
void resolver_destroy(struct resolver *resolver);

/* Number of a mapping's path, for space_attributes. */
struct mmt_error *resolver_path(struct resolver *resolver, const char *path, uint32_t *path_ret) MMT_MUST_CHECK;

/* Unwind a sample with the code mapped now or, if packed, look up its stack. Stack numbers are small and dense. */
struct mmt_error *resolver_unwind(struct resolver *resolver, const struct process *process,
				  const struct event_stack *stack, uint32_t *stack_ret) MMT_MUST_CHECK;

/* Also intern the callchain of each stack that is unwound from now on: an array of u64 that has the stack's number plus
 * 1, and its instruction pointer and return addresses in the process. Borrowed. resolver_unwind() then returns the
 * callchain's number instead of the stack's. */
void resolver_keep_callchains(struct resolver *resolver, struct intern *callchains);

/* The stack without frames, of calls without a stack (MMT_STACK_END_NOT_RECORDED) or lost calls (STACK_END_LOST). */
struct mmt_error *resolver_empty_stack(struct resolver *resolver, uint32_t end, uint32_t *stack_ret) MMT_MUST_CHECK;

/* The path of a number from resolver_path(); valid until the next one. */
const char *resolver_path_name(const struct resolver *resolver, uint32_t path);

/* The language runtime that runs in the space, recognised by the files that it maps; NULL: none of the known ones. */
const struct runtime *resolver_runtime(struct resolver *resolver, const struct space *space);

/* The ELF files that it has opened. */
struct modules *resolver_modules(const struct resolver *resolver);

/* The mangled name of the C++ type whose vtable is at this offset from the first mapping of the module in the space, by
 * its symbol; NULL: unknown. Valid until the next names are looked up. */
const char *resolver_vtable_type(struct resolver *resolver, const struct space *space, const char *path,
				 uint64_t offset);

/* Whether its program is written in Go: its ELF file shows that or, in a packed recording, some function of any stack.
 */
bool resolver_is_go(struct resolver *resolver, const struct space *space);

/* Whether the space maps code of a module whose file name has one of these prefixes. The last one is NULL. */
bool resolver_has_module(const struct resolver *resolver, const struct space *space, const char *const *names);

/* Frame numbers of a stack, innermost first; valid until the next resolver_unwind(). */
const uint32_t *resolver_stack(const struct resolver *resolver, uint32_t stack, size_t *count_ret,
			       enum mmt_stack_end *end_ret);

/* Whether some frame of the stack is doubtful. */
bool resolver_stack_is_doubtful(const struct resolver *resolver, uint32_t stack);

/* Stack numbers are less than this. */
size_t resolver_stack_count(const struct resolver *resolver);

/* A frame as in packed recordings, still without names. */
struct packed_frame resolver_packed_frame(const struct resolver *resolver, uint32_t frame);

/* Names of a frame, inlined functions first, as long as the resolver lives. The first call symbolizes it. */
struct mmt_error *resolver_names(struct resolver *resolver, uint32_t frame, const struct mmt_frame **frames_ret,
				 size_t *count_ret) MMT_MUST_CHECK;

/* All frames of stacks, by pointer; they live as long as the resolver. */
typedef VECTOR(const struct mmt_frame *) named_frames;

/* Put all frames of a stack, with their names, into the list in place of what it has. */
struct mmt_error *resolver_named_stack(struct resolver *resolver, uint32_t stack, named_frames *list,
				       enum mmt_stack_end *end_ret) MMT_MUST_CHECK;

/* Iterate, with *position starting at 0, over the modules that stacks needed but could not (fully) use; NULL: no more.
 * With MODULE_MISSING_NAMES `*missing_ret` lists the missing files as text, NULL if they are unknown; the caller frees
 * it. `missing_ret` may be NULL. */
const char *resolver_unusable(const struct resolver *resolver, size_t *position, enum module_state *state_ret,
			      char **missing_ret);

/* So begins the module of frames in the assemblies that a .NET program contains. */
#define BUNDLED_ASSEMBLIES "assemblies in "

/* State of the JIT code of a process, as far as its frames have been symbolized. */
struct jit_code_state {
	const struct runtime *runtime;	   /* the runtime that generated it; NULL: unknown, or there is no JIT code */
	bool has_code;			   /* some frame of the reported stacks is in JIT code */
	bool unnamed;			   /* some frame has no name */
	bool unchecked_frames;		   /* some caller was found by frame pointer in code that may keep none, or not
					      at all */
	bool stacks_end_there;		   /* some stack could not be unwound past JIT code */
	const struct runtime *interpreter; /* the runtime whose interpreter has frames without the names of interpreted
					      functions; NULL: none */
	struct jit_names_state names;
};

struct jit_code_state resolver_jit(struct resolver *resolver, uint32_t process);
