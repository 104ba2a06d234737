/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of the memory syscalls that mmtrace records. A new syscall needs a row here, a rule in
 * lib/model/space/syscall-rules.c and a test of that rule; the recorder, the reader and the warnings read the table.
 * enum mmt_event_count in mmtrace/record.h lists the public counters. */
#pragma once

#include <mmtrace/record.h>
#include <sys/mman.h>

/* What a call does to mappings when it succeeds. */
enum call_effect {
	CALL_RELEASES, /* it only unmaps; its stack is not needed */
	CALL_MAPS,     /* its samples carry the stack, like those of CALL_PROTECTS */
	CALL_PROTECTS, /* argument 3 becomes the protection of its range */
	CALL_MARKS,    /* mappings stay; what the kernel knows about them changes */
};

/* Where the address range of a call begins. */
enum call_place {
	CALL_AT_ARGUMENT,  /* at the first argument */
	CALL_AT_RESULT,	   /* at the result: the kernel chooses the address */
	CALL_BELOW_RESULT, /* brk: the result is the end of the range. A failing brk returns less than requested. */
};

/* Arguments count from 1; 0: the call has no such argument. */
struct call_description {
	const char *name;	      /* as in syscalls:sys_exit_NAME */
	const char *filter;	      /* tracepoint filter, in the kernel's syntax; NULL: every call is recorded */
	const char *missing;	      /* what a report misses without its events, for a warning; NULL: nothing */
	const char *unknown;	      /* what its events do not record, for a warning; NULL: nothing */
	enum mmt_event_count counter; /* the counter of its calls */
	enum call_effect effect;
	enum call_place place;
	unsigned arguments;	 /* number of arguments */
	const char *kinds;	 /* a letter each: address, number (or int), PROT_*, MAP_*, MREMAP_*, SHM_*, MADV_* */
	unsigned length;	 /* number of the argument that is the size of the memory */
	unsigned conditional;	 /* number of the argument that it reads only with one of the flags in `condition` */
	unsigned flags;		 /* number of the flags argument */
	unsigned advice;	 /* number of the MADV_* argument */
	uint64_t condition;	 /* the flags with which it reads argument `conditional` */
	bool rare;		 /* the kernel may not have its tracepoint; its stack needs no separate event */
	const char *exit_filter; /* of a call with `at_entry`: of its exit */
	/* Of the entry, where the exit does not have the first argument; NULL: the call always reads that argument. */
	const char *entry_filter;
	bool at_entry;	 /* with --no-madvise it is recorded at entry: its arguments are sufficient */
	bool unrecorded; /* only older recordings have it */
	bool mmap2;	 /* the kernel writes MMAP2 records about its range */
};

#define ARGUMENTS(kinds_) .kinds = kinds_, .arguments = sizeof(kinds_) - 1

/* CALL(constant, syscall, rule, fields of struct call_description) */
/* clang-format off */
#define CALL_TABLE(CALL)                                                                                               \
	/* MAP_FIXED, MAP_FIXED_NOREPLACE: see call_reads_first_argument(). */                                         \
	CALL(MMAP, mmap, mmap, .effect = CALL_MAPS, .place = CALL_AT_RESULT, ARGUMENTS("anPMix"), .length = 2,         \
	     .entry_filter = "flags & 0x100010",                                                                       \
	     .counter = MMT_COUNT_MMAP, .mmap2 = true, .missing = "new mappings are missing")                          \
	CALL(MUNMAP, munmap, munmap, .effect = CALL_RELEASES, ARGUMENTS("an"), .length = 2,                            \
	     .counter = MMT_COUNT_MUNMAP,                                                                              \
	     .missing = "no unmapping is recorded, so all memory looks unfreed")                                       \
	CALL(MREMAP, mremap, mremap, .effect = CALL_MAPS, ARGUMENTS("annRa"), .length = 3, .conditional = 5, .flags = 4,\
	     .condition = MREMAP_FIXED | MREMAP_DONTUNMAP, .counter = MMT_COUNT_MREMAP,                                \
	     .missing = "mappings that grow, shrink or move are wrong")                                                \
	CALL(BRK, brk, brk, .effect = CALL_MAPS, .place = CALL_BELOW_RESULT, ARGUMENTS("a"),                           \
	     .counter = MMT_COUNT_BRK, .mmap2 = true, .missing = "growth of the heap is missing")                      \
	CALL(MPROTECT, mprotect, mprotect, .effect = CALL_PROTECTS, ARGUMENTS("anP"), .length = 2,                     \
	     .counter = MMT_COUNT_MPROTECT, .mmap2 = true,                                                             \
	     .missing = "reserved memory that was made accessible still counts as reserved")                           \
	CALL(PKEY_MPROTECT, pkey_mprotect, mprotect, .effect = CALL_PROTECTS, ARGUMENTS("anPi"), .length = 2,          \
	     .counter = MMT_COUNT_MPROTECT, .mmap2 = true, .rare = true)                                               \
	CALL(SHMAT, shmat, shmat, .effect = CALL_MAPS, .place = CALL_AT_RESULT, ARGUMENTS("iaS"),                      \
	     .counter = MMT_COUNT_SHMAT, .mmap2 = true, .rare = true,                                                  \
	     .missing = "System V shared memory is missing")                                                           \
	CALL(SHMDT, shmdt, shmdt, .effect = CALL_RELEASES, ARGUMENTS("a"), .counter = MMT_COUNT_SHMDT, .rare = true)   \
	CALL(REMAP_FILE_PAGES, remap_file_pages, remap_file_pages, .effect = CALL_MAPS, ARGUMENTS("anPnM"), .length = 2,\
	     .counter = MMT_COUNT_OTHER_CALLS, .mmap2 = true, .rare = true)                                            \
	CALL(IO_SETUP, io_setup, io_setup, .effect = CALL_MAPS, ARGUMENTS("na"), .counter = MMT_COUNT_OTHER_CALLS,     \
	     .rare = true)                                                                                             \
	CALL(IO_DESTROY, io_destroy, io_destroy, .effect = CALL_RELEASES, ARGUMENTS("a"),                              \
	     .counter = MMT_COUNT_OTHER_CALLS, .rare = true)                                                           \
	/* MADV_DONTFORK, MADV_DOFORK: the int that a syscall takes has no other bits set in its register. ENOMEM: the \
	   range has a hole, around which the advice was taken. */                                                     \
	CALL(MADVISE, madvise, madvise, .effect = CALL_MARKS, ARGUMENTS("anA"), .length = 2, .advice = 3,              \
	     .counter = MMT_COUNT_MADVISE, .rare = true, .at_entry = true,                                             \
	     .filter = "behavior == 10 || behavior == 11", .exit_filter = "ret == 0 || ret == -12")                    \
	CALL(MSEAL, mseal, mseal, .effect = CALL_MARKS, ARGUMENTS("anx"), .length = 2,                                 \
	     .counter = MMT_COUNT_OTHER_CALLS, .rare = true, .filter = "ret == 0")                                     \
	CALL(PROCESS_MADVISE, process_madvise, process_madvise, .effect = CALL_MARKS, ARGUMENTS("ianAx"), .advice = 4, \
	     .counter = MMT_COUNT_PROCESS_MADVISE, .rare = true, .unrecorded = true,                                   \
	     .unknown = "the ranges that they gave back are not known")
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

/* Whether the call can map memory or make it accessible: its samples then carry the stack. */
static inline bool call_has_stack(enum call call)
{
	return call_describe(call)->effect == CALL_MAPS || call_describe(call)->effect == CALL_PROTECTS;
}

/* The first call with this counter; NULL: none. */
const struct call_description *call_of_counter(enum mmt_event_count counter);

/* A bit for each argument that the call reads. The registers of other arguments hold unrelated values. */
unsigned call_arguments_used(enum call call, const uint64_t arguments[6]);

/* Without these flags, the first argument of mmap is a hint. */
static inline bool call_reads_first_argument(enum call call, const uint64_t arguments[6])
{
	return call != CALL_MMAP || arguments[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE);
}

/* Whether a syscall that returns `result` has failed: a negative errno. */
static inline bool call_is_error(int64_t result)
{
	return result < 0 && result >= -4095;
}

/* Whether a call of the table has failed; brk fails in its own way. */
bool call_has_failed(enum call call, const uint64_t arguments[6], int64_t result);

/* The errno of a failed call. */
int32_t call_errno(enum call call, int64_t result);

/* The number of bytes that a call requested; for brk, those that it did not get. 0: not known. */
uint64_t call_bytes_asked(enum call call, const uint64_t arguments[6], int64_t result);

/* "MADV_DONTNEED"; NULL: it has no name. */
const char *call_advice_name(uint64_t advice);

/* False: the table has no such call. */
bool call_find(const char *name, enum call *call_ret);

/* The same for "sys_exit_NAME" or "sys_enter_NAME"; *enter_ret: it is the latter. */
bool call_find_tracepoint(const char *tracepoint, enum call *call_ret, bool *enter_ret);
