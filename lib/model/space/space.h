/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The address space of one process: an ordered map of disjoint intervals. Memory calls change it as they change the
 * kernel's. Pure: no I/O, no clock, no globals. Addresses and lengths are in bytes; intervals are page aligned.
 *
 * Every interval has its allocation (the call that mapped it) and its commit (the call that made it accessible); both
 * are opaque numbers of the caller. Neighbours that are equal in every field are merged. Pages not yet described by a
 * snapshot are unknown: calls may change them, and a later snapshot fills the rest.
 */
#pragma once

#include "base/syscall-table.h"
#include "base/errors.h"
#include "model/space/kernel-rules.h"

/* Allocations that belong to no call. */
enum {
	ALLOCATION_BEFORE = 0,	/* mapped before the recording began, or inherited by fork */
	ALLOCATION_KERNEL = 1,	/* made by the kernel itself: exec, vdso, stack growth */
	ALLOCATION_UNKNOWN = 2, /* found in a snapshot although no event mapped it: reconciled */
	ALLOCATION_FIRST = 3,	/* the caller's own numbers start here */
};

/* Commits that belong to no call. A commit is the call that made an interval accessible. */
enum {
	COMMIT_NONE = 0,	    /* PROT_NONE */
	COMMIT_WITH_ALLOCATION = 1, /* accessible since the call that mapped it */
	COMMIT_FIRST = 2, /* the caller's own numbers start here; intervals with different numbers do not merge */
};

/* What the kernel compares page by page. */
struct space_attributes {
	uint32_t protection; /* PROT_READ | PROT_WRITE | PROT_EXEC */
	uint8_t hugetlb;     /* log2 of the huge page size, from the flags of the call; 0 for ordinary pages and in
				snapshots */
	bool shared : 1;
	bool growsdown : 1, noreserve : 1; /* from the flags of the call; false for snapshots */
	bool heap : 1;	       /* brk; snapshots and MMAP2 records: set it for "[heap]", whose end is the break */
	bool stack : 1;	       /* snapshots and MMAP2 records: set it for "[stack]", which grows downwards without an
				  event */
	bool thread_stack : 1; /* MAP_STACK, which the kernel ignores: such a mapping does not grow */
	bool shm : 1;	       /* shmat; snapshots and MMAP2 records: set it for "/SYSV..." */
	bool ring : 1;	       /* of an aio context; snapshots and MMAP2 records: set it for "/[aio]" */
	bool hugetlbfs : 1; /* snapshots and MMAP2 records: the device is that of hugetlbfs; not compared, as the device
			       is */
	bool zero : 1;	 /* a private mapping of "/dev/zero": anonymous memory that has a file. A move before the first
			    page fault changes its offset without an event, so offsets are not compared */
	bool sealed : 1; /* mseal: protected from changes; not compared */
	bool dontfork : 1; /* madvise(MADV_DONTFORK): not copied by fork; not compared with the kernel */
	bool unknown : 1;  /* mapped, but with unknown attributes until the next snapshot (moved while a snapshot was
			      being read) */
	uint32_t device_major, device_minor; /* 0:0 and inode 0: anonymous */
	uint64_t inode;			     /* SPACE_INODE_UNKNOWN: a file, but no MMAP2 record identified it */
	uint64_t file_offset;		     /* of the interval's first byte; 0 when anonymous */
	uint32_t path; /* the caller's ID of the name ("//anon", "/usr/lib/libc.so.6", "[heap]"); not compared with the
			  kernel; 0 if no name is known */
	uint32_t attachment;	/* the model's own number of the shmat that a piece of a segment comes from; 0: not
				   recorded */
	uint32_t segment_pages; /* size of the segment; 0: unknown */
	uint32_t part;		/* the model's own number of a part that the kernel keeps as a separate mapping */
};

#define SPACE_INODE_UNKNOWN UINT64_MAX

struct space_interval {
	uint64_t start, end; /* end exclusive */
	struct space_attributes attributes;
	uint32_t allocation;
	uint32_t commit : 31; /* COMMIT_NONE if and only if protection is PROT_NONE */
	bool reconciled : 1;  /* created as ALLOCATION_UNKNOWN, whatever number the observer assigned */
};

/* The contents of an MMAP2 record, inside or outside a call. The range may extend beyond the call's, because the kernel
 * reports it after merging. */
struct space_mmap2 {
	uint64_t start, end;
	struct space_attributes attributes; /* file_offset belongs to `start` */
	bool applied;			    /* space_mmap2() has applied it before its call: it only adds a
					       description */
};

struct space_call {
	enum call kind;
	uint64_t arguments[6];
	int64_t result; /* negative errno on failure */
	uint64_t time_ns;
	int32_t thread;
	uint32_t allocation; /* number for what this call creates; >= ALLOCATION_FIRST */
	uint32_t commit;     /* number for the PROT_NONE memory that this call makes accessible (mprotect); 0 is
				COMMIT_WITH_ALLOCATION */
	const struct space_mmap2 *mmap2_records; /* of this thread since its previous call, oldest first */
	size_t mmap2_count;
};

/* Callbacks for every byte that is mapped or released. `by` is the call that did it; NULL for snapshots and the end of
 * the space. `by->thread` is -1 if the call that unmapped was not recorded. Bytes unmapped by a call that has not
 * returned are reported when it returns (see pending-unmaps.c). Callbacks must not use the space. */
struct space_observer {
	/* Returns the allocation number (ALLOCATION_FIRST or larger) to use for `interval` instead of
	 * ALLOCATION_UNKNOWN. allocated() follows. Intervals with equal numbers merge. May be NULL. */
	uint32_t (*found)(void *context, const struct space_interval *interval);
	/* `interval` was mapped. */
	void (*allocated)(void *context, const struct space_interval *interval);
	/* `bytes` of `interval` were unmapped or replaced, or the space is destroyed. */
	void (*released)(void *context, const struct space_interval *interval, uint64_t bytes,
			 const struct space_call *by);
	/* `interval` changed from PROT_NONE to accessible, or the reverse; its commit was `commit_before`. May be NULL.
	 */
	void (*protected)(void *context, const struct space_interval *interval, uint32_t commit_before);
	void *context;
};

struct space_counts {
	uint64_t intervals;
	uint64_t mapped_bytes; /* allocations ALLOCATION_FIRST and later */
	/* Of these: accessible, but for stacks of threads; and the most of that since the exec. */
	uint64_t peaking_bytes, peak_bytes;
	uint64_t kernel_bytes;	   /* ALLOCATION_KERNEL */
	uint64_t before_bytes;	   /* ALLOCATION_BEFORE and ALLOCATION_UNKNOWN */
	uint64_t data_bytes;	   /* see space_is_data() */
	uint64_t unknown_bytes;	   /* mapped pages with unknown attributes */
	uint64_t given_back_bytes; /* mapped bytes of the ranges whose pages madvise() released; they still count as
				      mapped */
	uint64_t ambiguous;	   /* calls whose order relative to others is unknown */
	uint64_t reconciled_bytes; /* added or removed to match the kernel's maps (allocations ALLOCATION_UNKNOWN) */
};

struct space_check {
	bool done;
	uint64_t mappings;	 /* lines of the kernel's maps */
	uint64_t mismatch_bytes; /* pages that differ in presence, protection, shared, device, inode or file offset; and
				    those of the first snapshot that the model credits to a call, wrongly */
	uint64_t unverifiable_bytes; /* pages changed by a call after the kernel's maps were read: the maps may already
					show its effect; and heap growth that may be older than the recording */
	uint64_t unread_bytes;	     /* part of these: moved while the first snapshot was read, and in no later
					snapshot */
	uint64_t compared_bytes;     /* size of the mappings in the kernel's maps */
	uint64_t began_ns;	     /* when its first line was read */
	uint64_t time_ns;	     /* when its last line was read */
	uint64_t first_wrong;	     /* lowest differing address if mismatch_bytes > 0 */
	bool earlier_program;	     /* an exec followed: the maps are those of the program before it */
};

struct space;

struct space_options {
	const struct space_observer *observer; /* may be NULL; copied */
	uint64_t page_bytes;		       /* a power of two */
	const struct kernel_rules *rules;      /* of the recorded kernel; NULL: the newest; copied */
	/* NULL, or the caller's number of losses, which must outlive the space. After each increment calls may be
	 * missing: until the next exec, memory known only from MMAP2 records, and the next growth of the break, get
	 * ALLOCATION_UNKNOWN. */
	const uint64_t *losses;
};

/* A new space is completely unknown: see space_exec(). */
struct mmt_error *space_create(const struct space_options *options, struct space **space_ret) MMT_MUST_CHECK;

/* Report every byte as released (by NULL) and free the space. Accepts NULL. */
void space_destroy(struct space *space);

/* fork: a copy without an observer. Every allocation becomes ALLOCATION_BEFORE; MADV_DONTFORK mappings are left out. */
struct mmt_error *space_fork(const struct space *space, struct space **space_ret) MMT_MUST_CHECK;

/* exec: everything is unmapped, and the new space is known to be empty. MMAP2 records outside calls fill it
 * (ALLOCATION_KERNEL). The last check stays valid until there is one of the new program. */
void space_exec(struct space *space);

/* Whether the result is one that the kernel cannot have returned. The kernel maps nothing at address 0 unless the
 * caller requests it: a seccomp filter with errno 0, or a tracer, answered instead. */
bool space_call_is_faked(enum call call, const uint64_t arguments[6], int64_t result);

/* Whether such a call of madvise() gives pages back. */
bool space_advice_gives_back(uint32_t advice);

/* Apply a call that returned. Fails only when out of memory: impossible arguments change nothing. */
struct mmt_error *space_apply(struct space *space, const struct space_call *call) MMT_MUST_CHECK;

/* The break was `address` shortly before the recording began. The first growth of the break may be older than the
 * recording down to there. */
void space_break_before(struct space *space, uint64_t address);

/* Apply an MMAP2 record that belongs to no call: adds what is missing in the model, as ALLOCATION_KERNEL (but see
 * space_options.losses). */
struct mmt_error *space_mmap2(struct space *space, const struct space_mmap2 *mmap2_record) MMT_MUST_CHECK;

/* Apply an MMAP2 record of an aio ring, by `thread`. If the model does not have the ring, io_setup has just created it,
 * at an address chosen by the kernel. *new_ret false: the record belongs to some other call. */
struct mmt_error *space_mmap2_ring(struct space *space, const struct space_mmap2 *mmap2_record, int32_t thread,
				   uint64_t time_ns, bool *new_ret) MMT_MUST_CHECK;

/*
 * A snapshot: the kernel's maps, read line by line. Lines come in ascending order, each with the timestamp of the
 * read() that returned it; the range between two lines is unmapped. A line may begin before the end of the previous one
 * if the mapping changed between two reads. Lines and calls come in timestamp order, so a line may already show the
 * effect of later calls: those in flight when it was read. It may also miss the effect of an earlier call that returned
 * later: Linux 6.17 and later read maps without the lock that calls hold.
 *
 * DEFINE: unknown pages, and those that no call has mapped, become what the kernel shows. New ones get allocation
 * `allocation` (ALLOCATION_BEFORE at attach, ALLOCATION_KERNEL after exec). What a move in flight had moved before the
 * reading is restored for it. Pages mapped by calls are compared as in a CHECK, but do not count as mismatches. In the
 * first one, heap below every break that a call returned is older than the calls: a mismatch if the model has it from
 * one.
 *
 * CHECK: compare the model (space_check_result()). Mismatching pages that no call resolves shortly after, and that
 * still differ in the next CHECK, are reconciled to what the kernel has: missing ones are created as
 * ALLOCATION_UNKNOWN, others are released by NULL, and both count as reconciled.
 */
enum space_snapshot_mode { SPACE_SNAPSHOT_DEFINE, SPACE_SNAPSHOT_CHECK };

struct mmt_error *space_snapshot_begin(struct space *space, enum space_snapshot_mode mode, uint32_t allocation,
				       uint64_t time_ns) MMT_MUST_CHECK;

struct mmt_error *space_snapshot_line(struct space *space, uint64_t time_ns, uint64_t start, uint64_t end,
				      const struct space_attributes *attributes) MMT_MUST_CHECK;

struct mmt_error *space_snapshot_end(struct space *space, uint64_t time_ns) MMT_MUST_CHECK;

/* The current snapshot is the last: the recorder has waited until the calls in flight returned, however long that took.
 * Mismatches therefore wait for those calls, and space_finish() reconciles the rest. */
void space_snapshot_is_last(struct space *space);

/* The result of the last complete CHECK, adjusted for the calls applied since. */
struct space_check space_check_result(const struct space *space);

/* Whether all mappings are known: a DEFINE snapshot is complete, or an exec was seen. */
bool space_is_described(const struct space *space);

/* Call this when the recording is over. Reports bytes that calls in flight have unmapped as released. */
void space_finish(struct space *space);

/* The process has ended. Mappings missing in a snapshot from shortly before may be the effect of that end and are not
 * reconciled. */
void space_end(struct space *space, uint64_t time_ns);

/* Change the allocation number of all mappings in [start, end), which must be interval boundaries. Does not call the
 * observer. */
struct mmt_error *space_set_allocation(struct space *space, uint64_t start, uint64_t end,
				       uint32_t allocation) MMT_MUST_CHECK;

/* The process has ended: report every byte as released (by NULL) and free it. The result of the last check stays
 * available. */
void space_release(struct space *space);

/* State of a released space from which a new space can continue. */
struct space_remains {
	uint64_t code_generation : 63; /* one word, because every ended process keeps it */
	uint64_t described : 1;
};

void space_go_on(struct space *space, const struct space_remains *remains);

struct space_counts space_counts(const struct space *space);

/* Whether the kernel counts `right`, the next interval after `left`, as a part of the same mapping. */
bool space_continues_mapping(const struct space_interval *left, const struct space_interval *right);

/* Whether RLIMIT_DATA limits such memory: private, writable, and not a stack that grows. */
bool space_is_data(const struct space_attributes *attributes);

/* What the kernel limits. */
struct space_size {
	uint64_t bytes, data_bytes, mappings;
};

/* Walks over all intervals, for the number of mappings. */
struct space_size space_measure(const struct space *space);

/* The interval that holds `address`; NULL: nothing is mapped there. Valid until the space changes. */
const struct space_interval *space_find(const struct space *space, uint64_t address);

/* Iterate in ascending order: the first interval that ends after `address`. */
const struct space_interval *space_next(const struct space *space, uint64_t address);

/* Loop over all intervals as long as the condition holds. Do not change the space in the loop. */
#define space_each(interval, space, condition)                                                                         \
	for (const struct space_interval *interval = NULL;                                                             \
	     (condition) && (interval = space_next(space, interval ? interval->end : 0));)

/* Changes whenever an executable file mapping is added, removed or replaced: equal stacks may unwind differently from
 * then on. */
uint64_t space_code_generation(const struct space *space);
