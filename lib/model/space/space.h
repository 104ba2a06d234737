/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The address space of one process: an ordered map of disjoint intervals, changed by memory calls as the kernel
 * changes its own. Pure: no I/O, no clock, no globals. All addresses and lengths are bytes; intervals are page aligned.
 *
 * Every interval knows its allocation (which call mapped it) and its commit (which call made it accessible), both
 * opaque numbers of the caller. Neighbours that are equal in everything are merged. Pages not yet described by a
 * snapshot are unknown: calls may change them, a later snapshot fills the rest.
 */
#ifndef MODEL_SPACE_SPACE_H
#define MODEL_SPACE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/syscall-table.h"
#include "base/errors.h"
#include "model/space/kernel-rules.h"

/* Allocations that are no call's. */
enum {
	ALLOCATION_BEFORE = 0,	/* mapped before the recording began, or inherited by fork */
	ALLOCATION_KERNEL = 1,	/* made by the kernel itself: exec, vdso, stack growth */
	ALLOCATION_UNKNOWN = 2, /* found in a snapshot although no event made it: repaired */
	ALLOCATION_FIRST = 3,	/* the caller's own count from here */
};

/* Commits that are no call's: who made an interval accessible. */
enum {
	COMMIT_NONE = 0,	    /* PROT_NONE */
	COMMIT_WITH_ALLOCATION = 1, /* accessible since the call that mapped it */
	COMMIT_FIRST = 2, /* the caller's own numbers from here: intervals of different numbers do not merge */
};

/* What the kernel compares page by page. */
struct space_attributes {
	uint32_t protection; /* PROT_READ | PROT_WRITE | PROT_EXEC */
	uint8_t hugetlb;     /* from the flags of the call; 0 for snapshots: how many bits the size of its huge pages
				has; 0: ordinary pages */
	bool shared : 1;
	bool growsdown : 1, noreserve : 1; /* from the flags of the call; false for snapshots */
	bool heap : 1;	       /* brk; snapshots and MMAP2 records: set it for "[heap]", whose end is the break */
	bool stack : 1;	       /* snapshots and MMAP2 records: set it for "[stack]", which grows downwards unseen */
	bool thread_stack : 1; /* MAP_STACK, which the kernel ignores: such a mapping does not grow */
	bool shm : 1;	       /* shmat; snapshots and MMAP2 records: set it for "/SYSV..." */
	bool ring : 1;	       /* of an aio context; snapshots and MMAP2 records: set it for "/[aio]" */
	bool zero : 1; /* a private mapping of "/dev/zero": anonymous memory that has a file; its offset follows it when
			  it is moved before the first page fault, which no event shows, so it is not compared */
	bool sealed : 1;   /* mseal: refuses to be changed; not compared */
	bool dontfork : 1; /* madvise(MADV_DONTFORK): not copied by fork; not compared with the kernel */
	bool unknown : 1;  /* mapped, but no snapshot has said yet as what (moved while a snapshot was being read) */
	uint32_t device_major, device_minor; /* 0:0 and inode 0: anonymous */
	uint64_t inode;			     /* SPACE_INODE_UNKNOWN: a file, but no MMAP2 record said which */
	uint64_t file_offset;		     /* of the interval's first byte; 0 when anonymous */
	uint32_t path; /* caller's id of the name ("//anon", "/usr/lib/libc.so.6", "[heap]"); not compared with the
			  kernel; 0 where nothing told a name, so the caller's 0 should mean that */
	uint32_t attachment;	/* the model's own number of the shmat that a piece of a segment comes from; 0: one that
				   was not seen */
	uint32_t segment_pages; /* the segment's; 0: not known */
	uint32_t part;		/* the model's own number of what the kernel keeps apart of an attachment */
};

#define SPACE_INODE_UNKNOWN UINT64_MAX

struct space_interval {
	uint64_t start, end; /* end exclusive */
	struct space_attributes attributes;
	uint32_t allocation;
	uint32_t commit : 31; /* COMMIT_NONE exactly while protection is PROT_NONE */
	bool reconciled : 1;  /* born as ALLOCATION_UNKNOWN, whatever number the observer has given it */
};

/* What an MMAP2 record inside a call, or one outside any, says. The range may reach beyond the call's: the kernel
 * reports it after merging. */
struct space_mmap2 {
	uint64_t start, end;
	struct space_attributes attributes; /* file_offset belongs to `start` */
	bool told;			    /* by space_mmap2(), before its call: it only describes */
};

struct space_call {
	enum call kind;
	uint64_t arguments[6];
	int64_t result; /* negative errno on failure */
	uint64_t time_ns;
	uint64_t returned_ns; /* return time if time_ns is the time of its lock; else 0. A line read in between may show
				 either state */
	int32_t thread;
	uint32_t allocation; /* number for what this call creates; >= ALLOCATION_FIRST */
	uint32_t commit;     /* number for what this call makes accessible of what was PROT_NONE (mprotect); 0 is
				COMMIT_WITH_ALLOCATION */
	const struct space_mmap2 *mmap2_records; /* of this thread since its previous call, oldest first */
	size_t mmap2_count;
};

/*
 * Callbacks for every byte that is mapped or released. `by` is the call that did it; NULL for snapshots and the end of
 * the space; its thread is -1 if the releasing call was not recorded. Bytes released by a call that has not returned
 * are reported when the call returns (see pending-unmaps.h). Callbacks must not use the space.
 */
struct space_observer {
	/* Returns the allocation number (ALLOCATION_FIRST or larger) to use for `interval` instead of
	 * ALLOCATION_UNKNOWN. born() is called afterwards. Intervals with equal numbers merge. May be NULL. */
	uint32_t (*found)(void *context, const struct space_interval *interval);
	/* `interval` was mapped. */
	void (*born)(void *context, const struct space_interval *interval);
	/* `bytes` of `interval` were unmapped or replaced, or the space is destroyed. */
	void (*released)(void *context, const struct space_interval *interval, uint64_t bytes,
			 const struct space_call *by);
	/* `interval` was PROT_NONE and no longer is, or the reverse. May be NULL. */
	void (*protected)(void *context, const struct space_interval *interval);
	void *context;
};

struct space_counts {
	uint64_t intervals;
	uint64_t mapped_bytes, committed_bytes, reserved_bytes; /* allocations ALLOCATION_FIRST and later */
	uint64_t kernel_bytes;					/* ALLOCATION_KERNEL */
	uint64_t before_bytes;					/* ALLOCATION_BEFORE and ALLOCATION_UNKNOWN */
	uint64_t unknown_bytes; /* mapped pages whose attributes no snapshot has given yet */
	uint64_t
	    given_back_bytes; /* of the ranges whose pages madvise() gave back, what was mapped there; it stays so */
	uint64_t ambiguous;   /* calls whose order relative to others is unknown */
	uint64_t
	    reconciled_bytes; /* made or removed because the kernel's maps said so (allocations ALLOCATION_UNKNOWN) */
};

struct space_check {
	bool done;
	uint64_t mappings;	 /* lines of the kernel's maps */
	uint64_t mismatch_bytes; /* pages that differ in presence, protection, shared, device, inode or file offset */
	uint64_t unverifiable_bytes; /* pages that a call changed after the kernel's maps were read: its effect may
				     already be in them */
	uint64_t unread_bytes;	     /* of these: moved while the first snapshot was read, and in no later one */
	uint64_t compared_bytes;     /* size of the mappings in the kernel's maps */
	uint64_t time_ns;	     /* when its last line was read */
	uint64_t first_wrong;	     /* lowest wrong address when mismatch_bytes > 0 */
	bool earlier_program;	     /* exec followed: the maps are those of the program before it */
};

struct space;

struct space_options {
	const struct space_observer *observer; /* may be NULL; copied */
	uint64_t page_bytes;		       /* a power of two */
	const struct kernel_rules *rules;      /* of the recorded kernel; NULL: the newest; copied */
};

/* A new space is unknown everywhere: see space_exec(). */
struct mmt_error *space_create(const struct space_options *options, struct space **space_ret) MMT_MUST_CHECK;

/* Set another observer (NULL: none) and call born() for everything mapped. For the result of space_fork(). */
void space_set_observer(struct space *space, const struct space_observer *observer);

/* Reports every byte as released (by NULL). Accepts NULL. */
void space_destroy(struct space *space);

/* fork: a copy without observer in which every allocation is ALLOCATION_BEFORE, less what is under MADV_DONTFORK. */
struct mmt_error *space_fork(const struct space *space, struct space **space_ret) MMT_MUST_CHECK;

/* exec: everything is unmapped, and the new space is known to be empty. MMAP2 records outside calls fill it
 * (ALLOCATION_KERNEL). The last check stays until there is one of the new program. */
void space_exec(struct space *space);

/* Calls may have been lost up to now. Until the next exec, memory known only from MMAP2 records, and the next growth of
 * the break, get ALLOCATION_UNKNOWN. */
void space_lost(struct space *space);

/* The same for all spaces at once: each growth of `losses`, which must stay, is a loss. For a new space; a copy of it
 * has the same. */
void space_count_losses(struct space *space, const uint64_t *losses);

/*
 * A space with so many intervals that they are not in the processor's caches: what a coming call asks for is brought
 * there while others are applied, first the place, then the interval. It is found at last, just before that call, and
 * its allocation returned (ALLOCATION_BEFORE: none). Nothing changes but how long the call takes.
 */
bool space_is_large(const struct space *space);

void space_fetch_place(const struct space *space, uint64_t address);

void space_fetch_interval(const struct space *space, uint64_t address);

uint32_t space_find_ahead(const struct space *space, uint64_t address);

/* The kernel maps nothing at address 0 unless the caller requests it: a seccomp filter with errno 0, or a tracer, has
 * answered in the kernel's place. */
bool space_call_is_faked(enum call call, const uint64_t arguments[6], int64_t result);

/* Apply a call that returned. Only fails for want of memory: impossible arguments change nothing. */
struct mmt_error *space_apply(struct space *space, const struct space_call *call) MMT_MUST_CHECK;

/* An MMAP2 record that belongs to no call: adds what the model lacks, as ALLOCATION_KERNEL (but see space_lost()). */
struct mmt_error *space_mmap2(struct space *space, const struct space_mmap2 *mmap2_record) MMT_MUST_CHECK;

/*
 * An MMAP2 record of a ring, by `thread`. A ring that the model does not have has just been made by io_setup, at a
 * place that the kernel chose; false in *new_ret: the record belongs to some other call.
 */
struct mmt_error *space_mmap2_ring(struct space *space, const struct space_mmap2 *mmap2_record, int32_t thread,
				   uint64_t time_ns, bool *new_ret) MMT_MUST_CHECK;

/*
 * One line-wise reading of the kernel's maps. Lines come in ascending order, each with the time of the read() that
 * delivered it; nothing is mapped between a line and the previous one. A line may begin before the end of the previous
 * one if the mapping has changed between two reads. Lines and calls come in the order of their times, so a line may
 * already show the effect of calls that come after it: those in flight when it was read. It may also miss the effect of
 * a call that comes before it but returned later: Linux 6.17 and later read maps without the lock that calls hold.
 *
 * DEFINE: pages not known, and those that no call has made, become what the kernel says: new ones with allocation
 * `allocation` (ALLOCATION_BEFORE at attach, ALLOCATION_KERNEL after exec). What a move in flight has moved before the
 * reading is put back for it. What calls have made is compared as in a CHECK, but not counted as wrong.
 *
 * CHECK: the model is compared (space_check_result()). Pages found wrong that no call settles shortly after, and that
 * the next CHECK does not find right, are then made as the kernel has them: missing ones are born as
 * ALLOCATION_UNKNOWN, others released by NULL, both counted as repaired.
 */
enum space_snapshot_mode { SPACE_SNAPSHOT_DEFINE, SPACE_SNAPSHOT_CHECK };

struct mmt_error *space_snapshot_begin(struct space *space, enum space_snapshot_mode mode, uint32_t allocation,
				       uint64_t time_ns) MMT_MUST_CHECK;

struct mmt_error *space_snapshot_line(struct space *space, uint64_t time_ns, uint64_t start, uint64_t end,
				      const struct space_attributes *attributes) MMT_MUST_CHECK;

struct mmt_error *space_snapshot_end(struct space *space, uint64_t time_ns) MMT_MUST_CHECK;

/*
 * The snapshot at work is the last: the recorder has waited until the calls in flight had returned, however long that
 * took. So what it finds wrong waits for them, and is repaired by space_finish().
 */
void space_snapshot_is_last(struct space *space);

/* Of the last finished CHECK, with the calls applied since then taken into account. */
struct space_check space_check_result(const struct space *space);

/* Whether everything that is mapped is known: a DEFINE snapshot has been read to its end, or an exec was seen. */
bool space_is_described(const struct space *space);

/*
 * The recording is over. Report the bytes that calls in flight have unmapped as released.
 */
void space_finish(struct space *space);

/* The process has ended: what a snapshot shortly before found gone may be the end itself, and is not repaired. */
void space_end(struct space *space, uint64_t time_ns);

/* Change the allocation number of everything mapped in [start, end), which must be boundaries of intervals. The
 * observer is not called. */
struct mmt_error *space_set_allocation(struct space *space, uint64_t start, uint64_t end,
				       uint32_t allocation) MMT_MUST_CHECK;

/* Replace every commit number from COMMIT_FIRST on by the result of `rename`, and merge neighbours that become equal.
 * The observer is not called. Returns the number of intervals before. */
size_t space_rename_commits(struct space *space, uint32_t (*rename)(void *context, uint32_t commit), void *context);

/* The process has ended: report every byte as released (by NULL) and free it. The result of the last check stays
 * available. */
void space_release(struct space *space);

/* What has to be known of a released space to go on as if it was still there, with another one that is new. */
struct space_remains {
	uint64_t code_generation : 63; /* one word, as every process that ended keeps it */
	uint64_t described : 1;
};

struct space_remains space_remains(const struct space *space);

void space_go_on(struct space *space, const struct space_remains *remains);

struct space_counts space_counts(const struct space *space);

/* The interval that holds `address`; NULL: nothing is mapped there. Valid until the space changes. */
const struct space_interval *space_find(const struct space *space, uint64_t address);

/* Iterate upwards: the first interval that ends after `address`. */
const struct space_interval *space_next(const struct space *space, uint64_t address);

/* Changes whenever an executable interval of a file comes, goes or is replaced: stacks unwound before may unwind
 * differently after. */
uint64_t space_code_generation(const struct space *space);

/* False, and a static sentence in *why_ret, when an invariant is broken (for tests and fuzzing). */
bool space_valid(const struct space *space, const char **why_ret);

#endif
