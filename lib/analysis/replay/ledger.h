/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who mapped how much, and how much of it is gone: one account per stack, process and kind of memory (and thread, if
 * the options say so), one allocation per call that mapped something. An allocation lives as long as any of its bytes,
 * so memory follows what is mapped and how many different accounts and threads there are, not the length of the
 * recording.
 *
 * An allocation's bytes count from its call, in rows and their peaks too, although the row is known only with the
 * stack.
 *
 * The window: allocations outside [from_ns, allocations_to_ns) belong to no account.
 */
#ifndef ANALYSIS_REPLAY_LEDGER_H
#define ANALYSIS_REPLAY_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/replay/lifetime-histogram.h"
#include "analysis/replay/lifetimes.h"
#include "analysis/replay/row-history.h"
#include "base/errors.h"
#include "base/map.h"
#include "base/vector.h"
#include "base/wide-sum.h"

#define LEDGER_BUCKETS 64
#define LEDGER_NO_ACCOUNT UINT32_MAX
#define LEDGER_NO_ROW UINT32_MAX
#define LEDGER_NO_THREAD UINT32_MAX
#define LEDGER_FREE_COMMIT (LEDGER_NO_ACCOUNT - 1) /* in place of an account: the number is not in use */
#define LEDGER_SWEEP_COMMITS 4096

/* When an allocation was made, as far as the window is concerned. */
enum ledger_side { LEDGER_INSIDE, LEDGER_BEFORE, LEDGER_YOUNGER };

struct allocation {
	uint32_t account;     /* LEDGER_NO_ACCOUNT: its stack is not told yet, or it is outside the window */
	uint32_t process;     /* index */
	uint32_t thread;      /* the caller's number; LEDGER_NO_THREAD: nobody knows */
	uint32_t kind;	      /* the caller's number of what it mapped: class and file */
	uint32_t part, whole; /* see ledger_split(); ALLOCATION_BEFORE: none */
	uint32_t reserver;    /* account whose PROT_NONE bytes it replaced (MAP_FIXED); LEDGER_NO_ACCOUNT: none */
	uint32_t early; /* place + 1 in the ledger of what was released before the stack was told, the latest first; 0:
			   none */
	uint64_t time_ns;
	uint64_t original_bytes, live_bytes;
	uint64_t reserved_bytes; /* of the live ones, PROT_NONE; kept where steps are */
	uint64_t last_change;	 /* number of its last row change that waits for its stack; 0: none */
	uint8_t side;		 /* enum ledger_side */
	bool unordered;		 /* its stack was waited for too long: its bytes come to their row when it is told */
	bool settled;		 /* its stack is told */
	bool found;		 /* of calls that were lost, see ledger_found() */
	bool in_use;
};

/* Of one allocation by one thread; a list of them. */
struct early_release {
	uint64_t bytes;
	uint64_t time_ns; /* the latest; where lifetimes are kept there is one for each release */
	uint32_t releaser;
	uint32_t next; /* as in struct allocation; also of those that are free */
};

struct account {
	uint32_t stack;
	uint32_t process; /* index */
	uint32_t kind;
	uint32_t thread; /* LEDGER_NO_THREAD unless accounts are by thread, and for calls that were lost */
	uint32_t row;	 /* LEDGER_NO_ROW: left out by a filter */
	uint32_t commit; /* its own commit number; COMMIT_NONE: none has been asked for yet */
	struct wide_sum allocated_bytes, freed_bytes;
	uint64_t allocated_count, freed_count;
	uint64_t committed_count; /* calls that made reserved memory accessible */
};

/* What a report shows as one: its peak needs all its accounts together. Row LEDGER_ROW_TOTAL is the sum of all rows. */
#define LEDGER_ROW_TOTAL 0

struct row {
	uint64_t unfreed_bytes;
	uint64_t peak_bytes, peak_ns;
	uint64_t latest_change; /* in the latest bucket, not yet in that of its trend; nearly all changes go here */
};

/* Of a row, apart from it: what every event changes stays small. */
struct row_trend {
	uint64_t change[LEDGER_BUCKETS]; /* of unfreed bytes, by time since from_ns; modulo 2^64, so a decrease is a
					    large number */
	struct lifetime_histogram freed; /* lifetimes of freed allocations */
};

struct failure {
	uint32_t stack;
	uint32_t process; /* index */
	uint32_t call;	  /* enum mmt_event_count */
	int32_t error;	  /* errno */
	uint64_t count, asked_bytes, first_ns, last_ns;
};

struct thread_account {
	struct wide_sum allocated_bytes, freed_by_itself_bytes, freed_by_others_bytes;
	struct wide_sum released_bytes; /* memory of any thread that it unmapped */
	uint64_t allocated_count, freed_count;
};

#define LEDGER_RECENT_ACCOUNTS 1024

struct recent_account {
	uint32_t stack, process, kind, thread;
	uint32_t number; /* of the account, plus 1; 0: none */
};

#define LEDGER_RECENT_RELEASES 128

struct recent_release {
	uint64_t key;
	uint64_t *sum; /* NULL: none */
};

struct ledger_options {
	uint64_t from_ns, allocations_to_ns;
	uint64_t every_ns;	 /* 0: `steps` are not kept */
	uint32_t lifetime_steps; /* see lifetimes_init() */
	bool by_thread;		 /* each thread has accounts of its own */
	/* Row of a new account, from 1; LEDGER_NO_ROW: left out. NULL: all accounts are row 1. */
	struct mmt_error *(*find_row)(void *context, const struct account *account, uint32_t *row_ret);
	void *context;
};

struct ledger {
	struct ledger_options options;
	VECTOR(struct allocation) allocations; /* number - ALLOCATION_FIRST */
	VECTOR(uint32_t) free_allocations;
	VECTOR(struct early_release) early_releases;
	uint32_t free_early;
	VECTOR(struct account) accounts;
	struct intern account_keys;	     /* stack, process, kind and thread; its ids are places in `accounts` */
	VECTOR(uint32_t) accounts_of_stacks; /* by stack: the latest of its accounts, plus 1; 0: none */
	struct recent_account recent_accounts[LEDGER_RECENT_ACCOUNTS]; /* by what their keys are mixed to */
	VECTOR(struct row) rows;
	VECTOR(struct row_trend) trends;     /* of the rows, by the same number */
	struct steps_of_rows steps;	     /* since from_ns, each as long as every_ns */
	struct steps_of_rows reserved_steps; /* what of the total is PROT_NONE: row LEDGER_ROW_TOTAL alone */
	struct lifetimes lifetimes;	     /* of what has been released; see ledger_end_lifetimes() */
	struct row_changes changes;	     /* of rows, behind the first whose row is not known */
	VECTOR(uint32_t)
	commits; /* number - COMMIT_FIRST -> account; LEDGER_NO_ACCOUNT: outside the window, or not told yet */
	VECTOR(uint32_t) free_commits;
	size_t opened_commits, sweep_at; /* since they were swept last, and how many it takes until the next time */
	VECTOR(struct failure) failures;
	struct intern failure_keys;
	struct intern found_keys; /* process, kind and side; its ids are places in `found` */
	VECTOR(uint32_t) found;	  /* allocations */
	uint32_t outside_commit;  /* the one number for what happened outside the window; COMMIT_NONE: none yet */
	VECTOR(struct thread_account) threads; /* by the caller's number */
	struct map releases;		       /* owner << 32 | releaser -> bytes, where that is known */
	struct recent_release recent_releases[LEDGER_RECENT_RELEASES]; /* by what their keys are mixed to */
	uint64_t now_ns;					       /* set by the caller before each change */
	uint64_t bucket_ns;					       /* doubles when the buckets are full */
	unsigned latest_bucket;			 /* the last with any change, which most changes are in */
	uint64_t latest_from_ns, latest_last_ns; /* its bounds, both in it */
	bool out_of_memory;			 /* sticky: observers cannot return errors */
};

/* Copies the options. */
void ledger_init(struct ledger *ledger, const struct ledger_options *options);

void ledger_deinit(struct ledger *ledger);

/* A number for what the next call creates, without a stack and without bytes. */
struct mmt_error *ledger_open(struct ledger *ledger, uint32_t process, uint32_t thread,
			      uint32_t *allocation_ret) MMT_MUST_CHECK;

/* Bytes of `kind` come to an allocation (the first decides its kind), or go from it, released by `releaser`. Numbers
 * below ALLOCATION_FIRST are ignored. */
void ledger_born(struct ledger *ledger, uint32_t allocation, uint32_t kind, uint64_t bytes);

void ledger_released(struct ledger *ledger, uint32_t allocation, uint64_t bytes, uint32_t releaser);

/* Bytes of an allocation are PROT_NONE now or, modulo 2^64, no longer are; told after their allocation and before their
 * release.
 */
void ledger_reserved(struct ledger *ledger, uint32_t allocation, uint64_t bytes);

/* `allocation` takes the place of PROT_NONE bytes of `reserved`. */
void ledger_replaces(struct ledger *ledger, uint32_t allocation, uint32_t reserved);

/* The call is over and has created nothing. */
void ledger_drop(struct ledger *ledger, uint32_t allocation);

/* The call has created something and its stack is known. */
struct mmt_error *ledger_resolve(struct ledger *ledger, uint32_t allocation, uint32_t stack) MMT_MUST_CHECK;

/* `bytes` of what an allocation holds have turned into another kind (code: they were made executable). They go to an
 * allocation of their own, one for all such bytes of this allocation. */
struct mmt_error *ledger_split(struct ledger *ledger, uint32_t allocation, uint32_t kind, uint64_t bytes,
			       uint32_t *part_ret) MMT_MUST_CHECK;

/* Commit number of a stack's account; one per account, so that intervals merge. Outside the window: one number for all.
 */
struct mmt_error *ledger_commit(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t kind, uint32_t stack,
				uint32_t *commit_ret) MMT_MUST_CHECK;

/* A commit number whose stack is told later by ledger_resolve_commit(). */
struct mmt_error *ledger_open_commit(struct ledger *ledger, uint32_t *commit_ret) MMT_MUST_CHECK;

struct mmt_error *ledger_resolve_commit(struct ledger *ledger, uint32_t commit, uint32_t process, uint32_t thread,
					uint32_t kind, uint32_t stack) MMT_MUST_CHECK;

/*
 * Each number that was opened is another, until it is swept: whoever holds one that is told takes that of its account
 * instead, and when all have done so the numbers can be used again. Worth the work when so many have been opened as
 * were looked at the last time.
 */
bool ledger_wants_sweep(const struct ledger *ledger);

uint32_t ledger_own_commit(const struct ledger *ledger, uint32_t commit);

/* `holders`: how many were asked. */
struct mmt_error *ledger_end_sweep(struct ledger *ledger, size_t holders) MMT_MUST_CHECK;

/*
 * The allocation of bytes that a repair found mapped: `stack` stands for the calls that were lost, whose number and
 * threads nobody knows, so the bytes have no counts and no owner. There is one for each process, kind and side of the
 * window; it grows with each ledger_born(), and lasts.
 */
struct mmt_error *ledger_found(struct ledger *ledger, uint32_t process, uint32_t kind, uint32_t stack,
			       uint32_t *allocation_ret) MMT_MUST_CHECK;

/* Counted when now_ns lies in the window. */
struct mmt_error *ledger_fail(struct ledger *ledger, const struct failure *failure) MMT_MUST_CHECK;

/* The account with this number, if it belongs to a row; else NULL. */
const struct account *ledger_counted(const struct ledger *ledger, uint32_t account);

/* For an allocation that is asked for soon: bring it into the processor's caches. */
void ledger_fetch(const struct ledger *ledger, uint32_t allocation);

/* NULL: not an allocation in use. */
const struct allocation *ledger_allocation(const struct ledger *ledger, uint32_t allocation);

/* After everything: the lifetimes of what is still mapped. Nothing where none are kept. */
struct mmt_error *ledger_end_lifetimes(struct ledger *ledger) MMT_MUST_CHECK;

/* Unfreed bytes of a row at `points` equal steps from from_ns up to `end_ns`. */
void ledger_trend(const struct ledger *ledger, uint32_t row, uint64_t end_ns, uint64_t *points_ret, unsigned points);

#endif
