/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The memory syscalls that mmtrace records: the one table of them. A new syscall is a row here, a rule in
 * lib/model/space/syscall-rules.c and a test of that rule; the recorder, the reader and the warnings read the table.
 * enum mmt_event_count in mmtrace/record.h lists the public counters.
 */
#ifndef BASE_SYSCALL_TABLE_H
#define BASE_SYSCALL_TABLE_H

#include <mmtrace/record.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

/* What a call does to mappings when it succeeds. */
enum call_effect {
	CALL_RELEASES, /* it only unmaps; its stack is not needed */
	CALL_MAPS,     /* its samples carry the stack, as those of the next */
	CALL_PROTECTS, /* argument 3 becomes the protection of its range */
	CALL_MARKS,    /* mappings stay; what the kernel knows about them changes */
};

/* Where the range of a call begins. */
enum call_place {
	CALL_AT_ARGUMENT,  /* at the first argument */
	CALL_AT_RESULT,	   /* the kernel chooses the place */
	CALL_BELOW_RESULT, /* brk: the result is the end. Returning less than was asked for is its way to fail. */
};

/* Arguments count from 1; 0: the call has none of that kind. */
struct call_description {
	const char *name;	      /* as in syscalls:sys_exit_NAME */
	const char *filter;	      /* of the tracepoint, in the kernel's words; NULL: every call is recorded */
	const char *missing;	      /* what a report does not know without its events, for a warning; NULL: nothing */
	const char *unknown;	      /* what its events do not record, for a warning; NULL: nothing */
	enum mmt_event_count counter; /* under which its calls are counted */
	enum call_effect effect;
	enum call_place place;
	unsigned arguments;   /* how many it takes */
	unsigned length;      /* which of them is the size of the memory asked for */
	unsigned conditional; /* which of them it reads only with one of the flags below */
	unsigned flags;	      /* which of them are the flags */
	unsigned advice;      /* which of them is MADV_* */
	uint64_t condition;   /* and the flags */
	bool rare;	      /* the kernel may not have its tracepoint; its stack needs no event of its own */
	bool at_entry;	      /* recorded when it is entered: its arguments are all that is needed */
	bool with_madvise;    /* its exit is recorded, without the filter, with the option --madvise alone */
	bool mmap2;	      /* the kernel writes MMAP2 records about its range */
};

/* CALL(constant, syscall, rule, fields of struct call_description) */
/* clang-format off */
#define CALL_TABLE(CALL)                                                                                               \
	CALL(MMAP, mmap, mmap, .effect = CALL_MAPS, .place = CALL_AT_RESULT, .arguments = 6, .length = 2,              \
	     .counter = MMT_COUNT_MMAP, .mmap2 = true, .missing = "new mappings are not seen")                         \
	CALL(MUNMAP, munmap, munmap, .effect = CALL_RELEASES, .arguments = 2, .length = 2,                             \
	     .counter = MMT_COUNT_MUNMAP,                                                                              \
	     .missing = "nothing is ever seen to be unmapped, so that everything looks unfreed")                       \
	CALL(MREMAP, mremap, mremap, .effect = CALL_MAPS, .arguments = 5, .length = 3, .conditional = 5, .flags = 4,   \
	     .condition = MREMAP_FIXED | MREMAP_DONTUNMAP, .counter = MMT_COUNT_MREMAP,                                \
	     .missing = "mappings that grow, shrink or move are wrong")                                                \
	CALL(BRK, brk, brk, .effect = CALL_MAPS, .place = CALL_BELOW_RESULT, .arguments = 1,                           \
	     .counter = MMT_COUNT_BRK, .mmap2 = true, .missing = "growth of the heap is not seen")                     \
	CALL(MPROTECT, mprotect, mprotect, .effect = CALL_PROTECTS, .arguments = 3, .length = 2,                       \
	     .counter = MMT_COUNT_MPROTECT, .mmap2 = true,                                                             \
	     .missing = "reserved memory that became usable still counts as reserved")                                 \
	CALL(PKEY_MPROTECT, pkey_mprotect, mprotect, .effect = CALL_PROTECTS, .arguments = 4, .length = 2,             \
	     .counter = MMT_COUNT_MPROTECT, .mmap2 = true, .rare = true)                                               \
	CALL(SHMAT, shmat, shmat, .effect = CALL_MAPS, .place = CALL_AT_RESULT, .arguments = 3,                        \
	     .counter = MMT_COUNT_SHMAT, .mmap2 = true, .rare = true,                                                  \
	     .missing = "System V shared memory is not seen")                                                          \
	CALL(SHMDT, shmdt, shmdt, .effect = CALL_RELEASES, .arguments = 1, .counter = MMT_COUNT_SHMDT, .rare = true)   \
	CALL(REMAP_FILE_PAGES, remap_file_pages, remap_file_pages, .effect = CALL_MAPS, .arguments = 5, .length = 2,   \
	     .counter = MMT_COUNT_OTHER_CALLS, .mmap2 = true, .rare = true)                                            \
	CALL(IO_SETUP, io_setup, io_setup, .effect = CALL_MAPS, .arguments = 2, .counter = MMT_COUNT_OTHER_CALLS,      \
	     .rare = true)                                                                                             \
	CALL(IO_DESTROY, io_destroy, io_destroy, .effect = CALL_RELEASES, .arguments = 1,                              \
	     .counter = MMT_COUNT_OTHER_CALLS, .rare = true)                                                           \
	/* MADV_DONTFORK, MADV_DOFORK. The int that a syscall takes has no other bits set in its register. */          \
	CALL(MADVISE, madvise, madvise, .effect = CALL_MARKS, .arguments = 3, .length = 2, .advice = 3,                \
	     .counter = MMT_COUNT_MADVISE, .rare = true, .at_entry = true, .with_madvise = true,                       \
	     .filter = "behavior == 10 || behavior == 11")                                                             \
	CALL(MSEAL, mseal, mseal, .effect = CALL_MARKS, .arguments = 3, .length = 2,                                   \
	     .counter = MMT_COUNT_OTHER_CALLS, .rare = true, .filter = "ret == 0")                                     \
	CALL(PROCESS_MADVISE, process_madvise, process_madvise, .effect = CALL_MARKS, .arguments = 5, .advice = 4,     \
	     .counter = MMT_COUNT_PROCESS_MADVISE, .rare = true, .with_madvise = true,                                 \
	     .unknown = "what they gave back is not known")
/* clang-format on */

enum call {
#define CALL(constant, ...) CALL_##constant,
	CALL_TABLE(CALL)
#undef CALL
	    CALL_KINDS,
};

extern const struct call_description call_descriptions[CALL_KINDS];

static inline const struct call_description *call_describe(enum call call)
{
	return &call_descriptions[call];
}

/* Whether it can make bytes mapped or accessible: its samples carry the stack. */
static inline bool call_has_stack(enum call call)
{
	return call_describe(call)->effect == CALL_MAPS || call_describe(call)->effect == CALL_PROTECTS;
}

/* A bit for each argument that the call reads. Where it reads none, the register holds something else of the program.
 */
unsigned call_arguments_used(enum call call, const uint64_t arguments[6]);

/* Whether a syscall that returns `result` has failed: a negative errno. */
static inline bool call_is_error(int64_t result)
{
	return result < 0 && result >= -4095;
}

/* The same of a call of the table, one of which fails in its own way. */
bool call_has_failed(enum call call, const uint64_t arguments[6], int64_t result);

/* Of a call that has failed: errno. */
int32_t call_errno(enum call call, int64_t result);

/* The size of the memory that a call asked for, and, of brk, did not get; 0: not known. */
uint64_t call_bytes_asked(enum call call, const uint64_t arguments[6], int64_t result);

/* False: no call of the table. */
bool call_find(const char *name, enum call *call_ret);

/* The same of "sys_exit_NAME" or "sys_enter_NAME"; `enter_ret` says which. */
bool call_find_tracepoint(const char *tracepoint, enum call *call_ret, bool *enter_ret);

#endif
