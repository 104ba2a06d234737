/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Internals of struct space, for the files of this directory, and for processes.c. */
#pragma once

#include "base/map.h"
#include "model/space/intervals.h"

struct range {
	uint64_t start, end;
};

typedef VECTOR(struct space_interval) pieces;

/* See pending_unmaps_place(). */
struct pending_unmap {
	struct range range;
	uint64_t time_ns;
	int32_t thread;		/* the thread that mapped the range */
	struct intervals saved; /* the contents that the unmap in flight released */
};

/* An aio context. The kernel unmaps as many bytes as it mapped, from where a piece of the ring was last moved to. */
struct aio_ring {
	uint64_t start, bytes;
	uint64_t inode;
	uint64_t made_ns;
	int32_t maker; /* thread */
	bool settled;  /* its io_setup has returned */
};

struct snapshot {
	bool open;
	enum space_snapshot_mode mode;
	uint32_t allocation;
	uint64_t position;   /* everything below has been read */
	uint64_t read_start; /* the current reading covers the addresses from here on */
	uint64_t line_time_ns;
	struct intervals touched; /* by calls since the latest reading */
	uint64_t heap_end;	  /* end of the highest line of the heap so far; 0: none */
	uint64_t heap_losses;	  /* value of space_losses() at that line */
	struct space_check check; /* in progress */
};

struct space {
	struct process *owner;		/* NULL: none */
	struct space_observer observer; /* not called for what a fork copied, which is ALLOCATION_BEFORE */
	uint64_t page_bytes;
	struct intervals mapped;
	struct intervals unknown; /* pages that may or may not be mapped */
	struct space_counts counts;
	uint64_t code_generation;

	const uint64_t *losses;			  /* counted by the caller; may be NULL */
	uint64_t losses_at_exec, losses_at_break; /* values of space_losses() at the last exec and the last break */
	bool break_known;
	uint64_t program_break;	  /* page aligned */
	uint64_t break_before;	  /* shortly before the recording began; 0: not known */
	uint64_t lowest_break;	  /* that a call of this program returned; UINT64_MAX: none did */
	uint64_t undecided_bytes; /* of the first growth of the break: it may be older than the recording */
	uint64_t older_bytes;	  /* heap that the model has from calls, but the first snapshot shows to be older */
	uint64_t first_older;	  /* its lowest address */
	bool read_implies_exec;	  /* the process's personality, deduced from MMAP2 records */
	struct kernel_rules rules;

	VECTOR(struct aio_ring) rings; /* oldest first */
	uint32_t parts;		       /* number of attachment parts numbered so far */
	uint32_t attachments;	       /* number of segments attached so far */

	VECTOR(struct pending_unmap) pending_unmaps;
	struct map last_exits; /* thread -> time of its last call, kept while pending unmaps or snapshot races need
				  it */

	struct snapshot snapshot;
	bool described; /* a DEFINE snapshot or an exec has described the whole space */

	struct intervals snapshot_races; /* see snapshot_race_change() */
	uint64_t snapshot_races_ns;	 /* end of the last reading that left any */

	/* See reconcile_presumed(): ranges where the model differs from the kernel's maps, with the time of the first
	 * reading that showed it. Of the last complete snapshot, and of the open one. */
	struct intervals found, finding;
	bool last_snapshot;	/* the last snapshot has begun: nothing is reconciled before space_finish() */
	uint64_t reconcile_ns;	/* when the first of `found` was read; UINT64_MAX: there are none */
	uint64_t reconciled_ns; /* time of the last reconciliation */
	struct space_check check;
	uint64_t now_ns; /* time of the call being applied; 0: none */
	pieces released; /* by the call being applied; empty between calls, but keeps its
			    memory */
};

static inline uint64_t space_losses(const struct space *space)
{
	return space->losses ? *space->losses : 0;
}

/* Calls were lost since exec. */
static inline bool space_is_lossy(const struct space *space)
{
	return space_losses(space) != space->losses_at_exec;
}

/* The only functions that change the intervals of a space. Each updates the counts, merges equal neighbours and leaves
 * a valid space. */

/* Attributes of the same mapping at an address higher by `bytes`. */
struct space_attributes space_edit_advance(const struct space_attributes *attributes, uint64_t bytes);

/* The part of a mapping that lies in [start, end); its end is not above its start if there is none. */
struct space_interval space_edit_clip(const struct space_interval *interval, uint64_t start, uint64_t end);

/* Whether two descriptions of a page agree in what the kernel compares. */
bool space_edit_agree(const struct space_attributes *left, const struct space_attributes *right);

/* Whether two mappings are of the same kind and map the same page of the same file. */
bool space_edit_same(const struct space_attributes *left, const struct space_attributes *right);

/* Whether the two are one mapping in the kernel; their allocations may differ. */
bool space_edit_continues(const struct space_interval *left, const struct space_interval *right);

static inline bool space_edit_accessible(const struct space_attributes *attributes)
{
	return attributes->protection != 0;
}

/* The commit of a mapping whose protection has not changed since its allocation. */
static inline uint32_t space_edit_commit(const struct space_attributes *attributes)
{
	return space_edit_accessible(attributes) ? COMMIT_WITH_ALLOCATION : COMMIT_NONE;
}

/* Insert `interval`, whose range must be free, without calling the observer. False: out of memory. */
bool space_edit_put(struct space *space, const struct space_interval *interval);

/* The same, but call allocated(). */
bool space_edit_allocate(struct space *space, const struct space_interval *interval);

/* Remove [start, end) and append the pieces to `taken`, without calling the observer. */
bool space_edit_take(struct space *space, uint64_t start, uint64_t end, pieces *taken);

/* Remove [start, end) and report it as released by `by`. */
bool space_edit_release(struct space *space, uint64_t start, uint64_t end, const struct space_call *by);

void space_edit_notify_released(struct space *space, const struct space_interval *interval,
				const struct space_call *by);

/* Apply `change` to every interval in [start, end), cut to that range. */
bool space_edit_change(struct space *space, uint64_t start, uint64_t end,
		       void (*change)(void *context, struct space_interval *interval), void *context);

/* A call has determined these pages: they are known, and earlier snapshots no longer apply. */
bool space_edit_touch_some(struct space *space, uint64_t start, uint64_t end);

static inline bool space_edit_touch(struct space *space, uint64_t start, uint64_t end)
{
	/* Fast path: long after a snapshot nothing is left to resolve. */
	return !(space->unknown.count | space->snapshot_races.count | space->found.count | space->finding.count |
		 space->snapshot.open) ||
	       space_edit_touch_some(space, start, end);
}

/* Helpers shared by the rules of the memory syscalls. */

/* Whether the record covers whole pages and is not empty. */
bool space_calls_valid_mmap2(const struct space *space, const struct space_mmap2 *mmap2_record);

/* Insert a new mapping of the call into a free range. */
bool space_calls_allocate(struct space *space, const struct space_call *call, const struct range *range,
			  const struct space_attributes *attributes);

/* The same, where other mappings may be: with `replace` the call unmaps them, otherwise an munmap that has not returned
 * yet has. */
bool space_calls_place(struct space *space, const struct space_call *call, const struct range *range,
		       const struct space_attributes *attributes, bool replace);

/* Unmap [start, end), for the call. */
bool space_calls_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* The first address from `start` on where nothing is mapped, at most `end`. */
uint64_t space_calls_gap(const struct space *space, uint64_t start, uint64_t end);

/* Whether a mapping in [start, end) is sealed. */
bool space_calls_sealed(const struct space *space, uint64_t start, uint64_t end);

/* `unit`: a power of two. 0: there is no such number. */
static inline uint64_t space_calls_round_up(uint64_t bytes, uint64_t unit)
{
	return bytes + unit - 1 < bytes ? 0 : (bytes + unit - 1) & ~(unit - 1);
}

static inline bool space_calls_failed(const struct space_call *call)
{
	return call_is_error(call->result);
}

/* Apply what the MMAP2 record shows from `start` on. */
void space_calls_take_mmap2(struct space_attributes *attributes, const struct space_mmap2 *mmap2_record,
			    uint64_t start);

/* Functions of the files with the same names. False: out of memory. */
bool space_mremap_apply(struct space *space, const struct space_call *call);

bool space_shm_attach(struct space *space, const struct space_call *call);

bool space_shm_detach(struct space *space, const struct space_call *call);

/* Call this before `change` is applied to [start, end): numbers the parts of attached segments that the kernel will
 * keep as separate mappings. */
bool space_shm_part(struct space *space, uint64_t start, uint64_t end,
		    void (*change)(void *context, struct space_interval *interval), void *context);

/* Call this before a moved piece is inserted: the piece joins the adjacent part of its attachment. *part: initially
 * SPACE_PART_NONE. Kernels that do not merge with all neighbours move one mapping at a time, whose pieces share this
 * number. */
#define SPACE_PART_NONE UINT32_MAX

void space_shm_join(struct space *space, struct space_interval *piece, uint32_t *part);

/*
 * Unmaps in flight. The model applies calls when they return, but they take effect earlier: the kernel may map a range
 * again, and that call may return, before the munmap that freed the range returns. The model can detect this. The
 * kernel never chooses an occupied address, so bytes that the model still holds there were unmapped by a call that has
 * not returned yet.
 *
 * The model then moves the old bytes to a pending unmap over the range of the new mapping, and inserts the new mapping.
 * It recognises the unmap when that returns: the call covers bytes of the pending unmap, and its thread returns from a
 * call for the first time since the pending unmap was created (it was in flight then). The call releases those bytes,
 * and leaves alone what was mapped since in the range. If no such call returns within ten seconds, the pending unmap was a
 * mistake or the call was lost; it counts as ambiguous.
 */

/* Make [start, end) free for a mapping that the kernel placed there; `attributes` are those of its first byte. */
bool pending_unmaps_place(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			  const struct space_attributes *attributes);

/* `call` unmaps [start, end). Returns the pieces that it took, in ascending order, without those mapped after it took
 * effect. The caller reports or moves them. */
bool pending_unmaps_take(struct space *space, const struct space_call *call, uint64_t start, uint64_t end,
			 pieces *taken);

/* The same, and report them as released. */
bool pending_unmaps_release(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* Whether `call` was in flight when `thread`, at `time_ns`, mapped a range that has a pending unmap. */
bool pending_unmaps_in_flight(const struct space *space, int32_t thread, uint64_t time_ns,
			      const struct space_call *call);

/* Whether a pending unmap holds a part of [start, end). */
bool pending_unmaps_wait_for(const struct space *space, uint64_t start, uint64_t end);

/* Call this before a call is applied: gives up pending unmaps that are too old. */
void pending_unmaps_expire(struct space *space, uint64_t now_ns);
/* Call this after a call was applied. */
bool pending_unmaps_note(struct space *space, const struct space_call *call);

/* Give up all pending unmaps. */
void pending_unmaps_give_up(struct space *space);

/* Compares a space with a snapshot of /proc/PID/maps (SPACE_SNAPSHOT_CHECK), or fills it from one
 * (SPACE_SNAPSHOT_DEFINE). Calls in flight while a snapshot is read race with it: the model marks the pages that they
 * change until a later snapshot resolves them. */

/* The call being applied changed [start, end). */
bool space_snapshot_touch(struct space *space, uint64_t start, uint64_t end);

/* A DEFINE snapshot may already show the effect of calls in flight when the maps were read; the model applies those
 * when they return. Most calls have the same effect whatever they find, but a move carries its source along. The model
 * therefore remembers the state of each page before the reading, and restores it for a move that may have been in
 * flight: a thread's first call to return since then. */

/* A call has changed the mappings in [start, end) in place: change the remembered states too. */
bool snapshot_race_change(struct space *space, uint64_t start, uint64_t end,
			  void (*change)(void *context, struct space_interval *interval), void *context);

/* The call is about to move [start, end): restore what it may have moved before the reading. */
bool snapshot_race_undo(struct space *space, const struct space_call *call, uint64_t start, uint64_t end);

/* `copy` is a copy of `space`. Restore in the copy what the current reading has shown, because that may be newer than
 * the fork. */
bool snapshot_race_undo_in_copy(const struct space *space, struct space *copy);

/* Whether `call` may have been in flight when the page at `address` was read. */
bool snapshot_race_covers(const struct space *space, const struct space_call *call, uint64_t address);

/* Call this before a call is applied: forgets states that no call in flight needs any more. */
void snapshot_race_expire(struct space *space, uint64_t now_ns);

/* Reconciles the model with the kernel where a snapshot differs. A call that returns shortly after a page was read may
 * have been in flight then and resolves the difference; so does the next snapshot if it matches. Any difference left
 * after three seconds is reconciled to what the kernel had. */

/* The call being applied requires mappings in [start, end): first add those that only the kernel has. */
bool reconcile_presumed(struct space *space, uint64_t start, uint64_t end);

/* Reconcile differences old enough that all calls in flight have returned. */
bool reconcile_late(struct space *space, uint64_t now_ns);

/* Drop all pending differences. */
void reconcile_forget(struct space *space);
