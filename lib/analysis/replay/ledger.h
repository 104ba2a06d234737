/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts allocated and freed bytes: one account per stack, process and kind of memory (and thread, if the options ask
 * for it), one allocation per call that mapped memory. An allocation lives as long as any of its bytes. Memory use
 * therefore depends on what is mapped and on the number of distinct accounts and threads, not on the length of the
 * recording.
 *
 * The window: allocations outside [from_ns, allocations_to_ns) belong to no account.
 */
#pragma once

#include "analysis/replay/row-history.h"
#include "model/space/space.h"

#define LEDGER_BUCKETS 64
#define LEDGER_COMMIT_BUCKETS 128 /* each half as long as those of rows */
#define LEDGER_NO_ACCOUNT UINT32_MAX
#define LEDGER_NO_ROW UINT32_MAX
#define LEDGER_NO_THREAD UINT32_MAX
#define LEDGER_OUTSIDE_COMMIT COMMIT_FIRST /* of all calls outside the window; then one for each account */

/* Whether an allocation was made inside, before or after the window. */
enum ledger_side { LEDGER_INSIDE, LEDGER_BEFORE, LEDGER_YOUNGER };

struct allocation {
	uint32_t account; /* LEDGER_NO_ACCOUNT: it has no bytes yet, or it is outside the window */
	uint32_t stack;
	uint32_t process;     /* index */
	uint32_t thread;      /* the caller's number; LEDGER_NO_THREAD: unknown */
	uint32_t kind;	      /* the caller's number for the kind of memory: class and file */
	uint32_t part, whole; /* see ledger_split(); ALLOCATION_BEFORE: none */
	uint32_t reserver;    /* account whose PROT_NONE bytes it replaced (MAP_FIXED); LEDGER_NO_ACCOUNT: none */
	uint64_t time_ns;
	uint64_t original_bytes, live_bytes;
	uint64_t uncommitted_bytes; /* see ledger_uncommitted() */
	uint8_t side;		    /* enum ledger_side */
	bool open;		    /* its call is being applied */
	bool found;		    /* belongs to lost calls, see ledger_found() */
	bool in_use;
};

struct account {
	uint32_t stack;
	uint32_t process; /* index */
	uint32_t kind;
	uint32_t thread;		       /* LEDGER_NO_THREAD unless accounts are per thread, and for lost calls */
	uint32_t row;			       /* LEDGER_NO_ROW: excluded by a filter */
	uint32_t pattern;		       /* enum mmt_pattern, from the stack and the kind */
	uint8_t memory_class, stack_end;       /* enum mmt_class, likewise, and enum mmt_stack_end */
	bool doubtful;			       /* its stack is complete, with doubtful frames */
	uint32_t trend;			       /* place in `commit_trends` plus 1; 0: none */
	uint32_t lifetimes;		       /* place in `freed_lifetimes` plus 1; 0: none was freed */
	uint64_t allocated_bytes, freed_bytes; /* at most MMT_BYTES_MAX */
	uint64_t allocated_count, freed_count;
	uint64_t committed_count; /* calls that made reserved memory accessible */
};

/* The accounts that a report shows as one row; they share one peak. Row LEDGER_ROW_TOTAL is the sum of all rows. */
#define LEDGER_ROW_TOTAL 0

struct row {
	uint64_t unfreed_bytes;
	uint64_t peak_bytes, peak_ns;
};

/* What a failed call would have added, and what its process had mapped then: see refused-calls.c. */
struct refused_call {
	uint64_t grows_bytes; /* 0: it adds nothing, or it is not known how much */
	struct space_size size;
	bool is_data, is_huge, noreserve;
};

struct failure {
	uint32_t stack;
	uint32_t process; /* index */
	uint32_t call;	  /* enum mmt_event_count */
	int32_t error;	  /* errno */
	uint64_t count, asked_bytes, first_ns, last_ns;
	struct refused_call refused; /* the first one */
};

/* Times in which threads freed memory, so that they could allocate some. */
struct stall {
	uint32_t stack;
	uint32_t process; /* index */
	uint64_t count, total_ns, longest_ns;
};

struct thread_account {
	uint64_t allocated_bytes, freed_by_itself_bytes, freed_by_others_bytes;
	uint64_t released_bytes; /* memory that it unmapped, of any thread */
	uint64_t allocated_count, freed_count;
};

struct ledger_options {
	uint64_t from_ns, allocations_to_ns;
	size_t allocations_max;	 /* more that live are an error; 0: no limit */
	uint64_t every_ns;	 /* 0: do not keep `steps` */
	uint32_t lifetime_steps; /* see lifetimes_init() */
	bool by_thread;		 /* each thread has its own accounts */
	/* Sets row, from 1 (LEDGER_NO_ROW excludes it), and `pattern` to `doubtful`. NULL: all are row 1. */
	struct mmt_error *(*find_row)(void *context, struct account *account);
	void *context;
};

struct ledger {
	struct ledger_options options;
	VECTOR(struct allocation) allocations; /* number - ALLOCATION_FIRST */
	VECTOR(uint32_t) free_allocations;
	VECTOR(struct account) accounts;
	struct intern account_keys; /* stack, process, kind and thread; IDs are indexes into `accounts` */
	VECTOR(struct row) rows;
	struct trends trends;				   /* of unfreed bytes, by row number + 1 */
	VECTOR(struct lifetime_histogram) freed_lifetimes; /* of what one stack has of one pattern, in a row */
	struct intern lifetime_keys;			   /* row, stack, pattern; IDs: places of these */
	struct steps_of_rows steps;			   /* since from_ns, each every_ns long */
	struct steps_of_rows reserved_steps;		   /* PROT_NONE bytes of the total: row LEDGER_ROW_TOTAL only */
	struct lifetimes lifetimes;			   /* of released bytes; see ledger_end_lifetimes() */
	/* By account: bytes made accessible by other calls than those that mapped them, less the bytes that it
	 * mapped and did not make accessible itself. With its unfreed bytes, these are its committed bytes. */
	struct trends commit_trends;
	VECTOR(struct failure) failures;
	struct intern failure_keys;
	VECTOR(struct stall) stalls;
	struct intern stall_keys;
	struct intern found_keys;	       /* process, kind and side; IDs are indexes into `found` */
	VECTOR(uint32_t) found;		       /* allocations */
	VECTOR(struct thread_account) threads; /* by the caller's number */
	struct map releases;		       /* owner << 32 | releaser -> bytes, if both are known */
	uint64_t now_ns;		       /* set by the caller before each change */
	bool out_of_memory;		       /* sticky: observers cannot return errors */
};

/* The recording, or the window, begins: later than the options say. Call this before any change. */
void ledger_begin(struct ledger *ledger, uint64_t from_ns);

/* Copies the options. */
void ledger_init(struct ledger *ledger, const struct ledger_options *options);

void ledger_deinit(struct ledger *ledger);

/* Allocate a number for what the next call creates. It has no bytes yet. */
struct mmt_error *ledger_open(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t stack,
			      uint32_t *allocation_ret) MMT_MUST_CHECK;

/* The call has been applied. Return whether it created something inside the window. */
bool ledger_close(struct ledger *ledger, uint32_t allocation);

/* Add bytes of `kind`, which the first ones decide, or remove what `releaser` released; not below ALLOCATION_FIRST. */
struct mmt_error *ledger_born(struct ledger *ledger, uint32_t allocation, uint32_t kind, uint64_t bytes) MMT_MUST_CHECK;

void ledger_released(struct ledger *ledger, uint32_t allocation, uint64_t bytes, uint32_t releaser);

/* Add PROT_NONE bytes (modulo 2^64) to steps of the total, after ledger_born() and before ledger_released(). */
void ledger_reserved(struct ledger *ledger, uint32_t allocation, uint64_t bytes);

/* `allocation` replaces PROT_NONE bytes of `reserved`. */
void ledger_replaces(struct ledger *ledger, uint32_t allocation, uint32_t reserved);

/* Move `bytes` that became code to another kind: to a separate allocation, of which each allocation has at most one. */
struct mmt_error *ledger_split(struct ledger *ledger, uint32_t allocation, uint32_t kind, uint64_t bytes,
			       uint32_t *part_ret) MMT_MUST_CHECK;

/* Commit number of a stack's account: only one, so that intervals merge. All calls outside the window share one. */
struct mmt_error *ledger_commit(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t kind, uint32_t stack,
				uint32_t *commit_ret) MMT_MUST_CHECK;

/* The account of a commit number; LEDGER_NO_ACCOUNT: none. */
uint32_t ledger_commit_account(const struct ledger *ledger, uint32_t commit);

/* Add to (modulo 2^64: subtract from) the accessible bytes of a commit. Numbers below COMMIT_FIRST are ignored. */
void ledger_committed(struct ledger *ledger, uint32_t commit, uint64_t bytes);

/* Add to (modulo 2^64: subtract from) the bytes of an allocation that are not accessible by its own call: they are
 * PROT_NONE, or a commit counts them. `since_call`: since that call, which may have returned earlier. */
void ledger_uncommitted(struct ledger *ledger, uint32_t allocation, uint64_t bytes, bool since_call);

/* Find the allocation for bytes that only a snapshot showed. `stack` stands for the lost calls, whose count and threads
 * are unknown, so the bytes have no counts and no owner. There is one allocation for each process, kind and side of the
 * window. It grows with each ledger_born() and is never freed. */
struct mmt_error *ledger_found(struct ledger *ledger, uint32_t process, uint32_t kind, uint32_t stack,
			       uint32_t *allocation_ret) MMT_MUST_CHECK;

/* Count a failed call if now_ns lies in the window. */
struct mmt_error *ledger_fail(struct ledger *ledger, const struct failure *failure) MMT_MUST_CHECK;

/* Add it to those of its stack, or to those of `rest` if there are too many stacks, if now_ns lies in the window. */
struct mmt_error *ledger_stall(struct ledger *ledger, const struct stall *stall, uint32_t rest) MMT_MUST_CHECK;

/* The account with this number if a row counts it, else NULL. */
const struct account *ledger_counted(const struct ledger *ledger, uint32_t account);

/* NULL: the number is not in use. */
struct allocation *ledger_allocation(const struct ledger *ledger, uint32_t allocation);

/* Call this last: adds the lifetimes of what is still mapped. Does nothing if lifetimes are not kept. */
struct mmt_error *ledger_end_lifetimes(struct ledger *ledger) MMT_MUST_CHECK;

/* Rows: what they have now, at their peak, and over time. In row-history.c. */

/* Add `bytes` to a row (a decrease modulo 2^64). They count from `trend_ns` in its trend, and from now in its steps. */
void ledger_rows_change(struct ledger *ledger, uint32_t row, uint64_t trend_ns, uint64_t bytes);

/* Unfreed bytes of a row at `points` equal steps between from_ns and `end_ns`. */
void ledger_trend(const struct ledger *ledger, uint32_t row, uint64_t end_ns, uint64_t *points_ret, unsigned points);
