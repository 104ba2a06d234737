/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of the resolver, for its own files only: resolver.c unwinds, code-names.c symbolizes frames and reads the
 * tables of packed recordings. */
#pragma once

#include "analysis/resolver/resolver.h"

/* Which module is mapped where. A path, a device and an inode identify a file, because two processes may have different
 * files under one path. Its content is the copy in the recording, or else a path of that file. */

#define NO_IMAGE UINT32_MAX

/* A mapped file. Hashed as bytes, so without padding. */
struct image_key {
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t path;
	uint32_t unused;
};

struct image_state {
	struct image_key key;
	const char *path; /* in `arena` */
	bool opened;
	struct module *module;
	enum module_state to_report; /* MODULE_READABLE: nothing, or reported with another module */
};

enum { RECORDS_BY_INODE, RECORDS_BY_PATH, MODULE_RECORD_ORDERS };

struct next_records {
	uint32_t by[MODULE_RECORD_ORDERS]; /* NO_RECORD: none */
};

struct mapped_modules {
	const struct reader_metadata *metadata;
	struct modules *modules;
	struct intern paths; /* their numbers are those of space_attributes */
	struct intern images;
	VECTOR(struct image_state) image_states;
	struct map build_ids; /* path -> entry of the build-ids */
	struct map reported;  /* path and state of the warnings so far */
	/* The module records: the first one of each inode and of each path, and after each the next one. A hostile
	 * recording has a million records and as many images. */
	struct map first_records[MODULE_RECORD_ORDERS];
	VECTOR(struct next_records) next_records;
	struct arena arena;
};

/* Borrows the metadata. Zero the value before; deinitialise it on error too. */
struct mmt_error *mapped_modules_init(struct mapped_modules *mapped, const struct reader_metadata *metadata,
				      bool demangle) MMT_MUST_CHECK;
void mapped_modules_deinit(struct mapped_modules *mapped);

/* Number of the mapped file. NO_IMAGE: out of memory; the code is then unreadable. */
uint32_t mapped_modules_image(struct mapped_modules *mapped, const struct space_attributes *attributes);

/* Without the memory for some code, stacks would end there as if it were unreadable: the next one fails to be unwound.
 * Other errors have left a state that says why it is unreadable. Destroys the error. */
void mapped_modules_note(struct mmt_error *error);

/* NULL: out of memory. */
struct module *mapped_modules_open(struct mapped_modules *mapped, uint32_t image);

/* The module of a mapped file, and the ELF address at an offset in it; NULL: no readable one. */
struct module *mapped_modules_find(struct mapped_modules *mapped, uint32_t image, uint64_t file_offset,
				   uint64_t *file_address_ret);

/* The number of a module with debug information that has the path's build-id: the file itself, or its separate debug
 * file. NO_IMAGE: there is none. Without `symbols`, do not open files in which only symbols can be expected. */
uint32_t mapped_modules_improved(struct mapped_modules *mapped, const char *path, bool symbols);

/* See resolver_unusable(). */
const char *mapped_modules_unusable(const struct mapped_modules *mapped, size_t *position, enum module_state *state_ret,
				    char **missing_ret);

/* jit-rows.c: the recorded bytes of the JIT code of one program: how to unwind it, and where it calls. They were read
 * only now and then, and are those that were read last, so a sample's code may differ: check every answer against the
 * stack. */

/* Java's interpreter stores its caller's stack pointer: arguments and local variables lie between the frames. */
extern const struct cfi_row jit_rows_interpreter;

/* For one program of `code`. Borrows all arguments. NULL: out of memory. */
struct jit_rows *jit_rows_create(const struct jit_code *code, const struct jit_code_program *program,
				 struct modules *modules);
/* Accepts NULL, as do the functions below. */
void jit_rows_destroy(struct jit_rows *rows);

/* The code runs in the frame of a function with this row: see struct analyzed_code. Call this before asking for rows.
 * NULL: unknown, keep the previous one. */
void jit_rows_use_host(struct jit_rows *rows, const struct cfi_row *host);

/* The row of an address, or of the call before it, unreliable. `start` of the method, 0: unknown. NULL: none. */
const struct cfi_row *jit_rows_find(struct jit_rows *rows, uint64_t start, uint64_t address, bool is_return_address);

/* Whether the function at `start` sets up a frame pointer before `address`. */
bool jit_rows_keep_frame_pointer(const struct jit_rows *rows, uint64_t start, uint64_t address);

/* Same result as module_follows_call(). */
int jit_rows_follow_call(const struct jit_rows *rows, uint64_t return_address);

/* Number of the stack with these frames, innermost first, and this reason why it ends. INTERN_NONE: out of memory. */
uint32_t stacks_put(struct intern *stacks, const uint32_t *frames, size_t count, uint32_t end);

/* Frames of a stack, valid until the next stacks_put(). */
const uint32_t *stacks_get(const struct intern *stacks, uint32_t stack, size_t *count_ret, uint32_t *end_ret);

/* Identity of a frame. Hashed as bytes, so without padding. */
struct frame_key {
	uint64_t address; /* native: in the file's address space; else in the process's */
	uint32_t image;	  /* NO_IMAGE: nothing is mapped there */
	uint32_t process; /* index; 0 for native frames, which processes share */
	uint8_t kind;	  /* enum mmt_frame_kind */
	uint8_t is_return_address;
	uint8_t doubtful;
	uint8_t readable;   /* native: `address` is an ELF address, else a file offset */
	uint32_t generated; /* number of jit_names_find() */
};

/* One record per distinct frame. The first use looks up the names; they do not change afterwards. */
struct frame_record {
	struct frame_key key; /* in packed recordings only what it takes to look up better names, and `doubtful` */
	union {
		uint64_t address;	       /* if name_count is 0: in the process where the frame was first seen */
		const struct mmt_frame *names; /* otherwise: inlined functions first */
	};
	uint32_t process; /* index of the process where the frame was first seen */
	uint32_t name_count : 31;
	uint32_t noted : 1; /* the names were used: note_runtime() */
};

/* What is at an address of a process at a time: the unwinder and the frames of its result ask for the same ones. */
struct location {
	uint64_t address;
	uint32_t generation; /* of struct lookup; 0: an empty slot */
	uint32_t image;	     /* NO_IMAGE: nothing is mapped there, or out of memory */
	bool mapped, executable;
	bool in_jit_memory;    /* memory that belongs to no module */
	bool jit_looked_up;    /* `jit` is set: names are loaded when the first address needs them */
	uint32_t jit;	       /* number of jit_names_find() */
	struct module *module; /* NULL: no readable one */
	uint64_t file_address; /* in the module; without one, the file offset */
};

#define LOCATION_BITS 10

struct process_state {
	int32_t pid;
	bool looked_up, code_looked_up;
	bool interpreted_named;	     /* some frame has the name of an interpreted function */
	struct jit_names *jit_names; /* NULL: not looked up, or out of memory */
	struct jit_rows *rows;	     /* recorded JIT code of the program that began at code_ns; borrowed, NULL: none */
	uint64_t code_ns;
	struct jit_code_state code; /* its `names` only in packed recordings */
	uint64_t looked_at;	    /* code generation in which no runtime was found; 0: none yet */
};

struct resolver {
	const struct reader_metadata *metadata;
	const struct unwind_rules *rules;
	struct mapped_modules mapped;
	struct unwind_cache *unwind_cache;
	struct location locations[1 << LOCATION_BITS]; /* by a hash of the address */
	VECTOR(struct process_state) processes;
	VECTOR(struct jit_rows *) rows; /* by index of the program among those with recorded code */
	struct intern generations;
	struct id_table frames_by_key; /* IDs are frame numbers */
	VECTOR(struct frame_record) frames;
	struct intern stacks;	   /* see stacks_put() */
	uint64_t stacks_max;	   /* see resolver_create() */
	unsigned memory_failures;  /* of this process when the resolver was created */
	VECTOR(uint32_t) resolved; /* packed recordings: number in their table -> number here */
	struct map improved;	   /* packed recordings: texts of paths of modules whose recorded names were replaced */
	struct intern *callchains; /* NULL: not wanted; else the cached values are their numbers, not those of stacks */
	struct arena arena;	   /* names of frames */
	struct unwind_result result; /* scratch buffers, too large for the C stack */
};

/* Without memory for some code or names, stacks and names would lack them as if they could not be read. */
static inline bool resolver_lacks_memory(const struct resolver *resolver)
{
	return resolver->memory_failures != memory_failures();
}

/* Loads the names when the first frame in JIT code needs them. NULL: out of memory, there are no names. */
struct jit_names *resolver_jit_names(struct resolver *resolver, uint32_t process);

/* The recorded bytes of the JIT code of the program that began in the process then (cached); NULL: none. */
struct jit_rows *resolver_jit_rows(struct resolver *resolver, uint32_t process, uint64_t program_ns);

/* Use the tables of a packed recording. Modules are opened only if they may have better names than these. */
struct mmt_error *resolver_take_resolved(struct resolver *resolver, bool demangle) MMT_MUST_CHECK;
