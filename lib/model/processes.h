/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes and threads over time: who shares which address space. Pure. Follows FORK, task_newtask (CLONE_VM), exec
 * (COMM) and EXIT. A process whose last thread has ended keeps its space as it was just before (`ended`); a PID used
 * again gets a new `struct process`.
 */
#ifndef MODEL_PROCESSES_H
#define MODEL_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "model/space/space.h"

struct process {
	uint32_t index;		 /* from 0, in the order of appearance */
	int32_t pid, parent_pid; /* parent 0: not known */
	bool recorded;		 /* asked for or child of such: false for those only mentioned */
	bool ended;
	bool borrows_space;	       /* vfork, CLONE_VM: `space` belongs to another process */
	bool named_by_ended;	       /* one that has ended names the same space, and borrowed it; told to its owner */
	struct process *next_sharer;   /* ring of the live processes that use `space`; itself when it is alone */
	uint64_t started_ns, ended_ns; /* 0: before the recording; UINT64_MAX: alive at the end */
	uint64_t program_ns;	       /* what it runs began: its fork, or exec; 0: before the recording */
	uint64_t thread_count;	       /* ever seen */
	uint64_t live_threads;
	struct thread *threads;	      /* the live ones */
	struct space *space;	      /* never NULL */
	uint32_t holder;	      /* for processes_holder() */
	uint32_t forked_from;	      /* index of the process that forked it; its own: not known */
	struct space_remains remains; /* of the space that it had when it was let go */
	uint32_t name;		      /* of its main thread: for processes_name() */
};

struct thread {
	int32_t tid;
	uint32_t process; /* index */
	uint32_t name;	  /* index for processes_name() */
	bool ended;
	void *context;			/* the caller's: NULL at first */
	struct thread *next, *previous; /* in the list of live threads */
};

struct processes;

/* `observe` gives the observer for each new space; may be NULL. */
struct processes_options {
	uint64_t page_bytes;
	const struct kernel_rules *rules; /* as of space_create() */
	const uint64_t *losses;		  /* for space_count_losses(); may be NULL */
	size_t processes_max;		  /* having more is an error; 0: no limit */
	bool (*observe)(void *context, struct process *process, struct space_observer *observer_ret);
	void *context;
};

struct mmt_error *processes_create(const struct processes_options *options,
				   struct processes **processes_ret) MMT_MUST_CHECK;
void processes_destroy(struct processes *processes);

/* The live thread with this TID, made (with its process) when it is not known yet. pid -1: only known ones, else NULL.
 * `time_ns`: now; one of another process has ended by then. Pointers stay valid. */
struct mmt_error *processes_thread(struct processes *processes, int32_t pid, int32_t tid, uint64_t time_ns,
				   struct thread **thread_ret) MMT_MUST_CHECK;

struct process *processes_at(const struct processes *processes, uint32_t index);
size_t processes_count(const struct processes *processes);
/* Index of the process whose memory is what this one maps: its own; of a child of vfork, until it executes a program,
 * its parent's, who has the space back then. */
uint32_t processes_holder(const struct processes *processes, const struct process *process);
/* The live process of this PID, or the last one that ended; NULL: none. */
struct process *processes_find(const struct processes *processes, int32_t pid);

struct mmt_error *processes_comm(struct processes *processes, struct thread *thread, const char *name, bool exec,
				 uint64_t time_ns) MMT_MUST_CHECK;
/* Of a new process the flags tell whether it shares the space or has got a copy of it; a copy is made as soon as
 * anything else happens to any thread. */
struct mmt_error *processes_fork(struct processes *processes, int32_t pid, int32_t tid, int32_t parent_pid,
				 int32_t parent_tid, uint64_t time_ns) MMT_MUST_CHECK;
/* task_newtask for a thread just announced by processes_fork(). */
struct mmt_error *processes_new_task(struct processes *processes, int32_t tid, uint64_t clone_flags) MMT_MUST_CHECK;
struct mmt_error *processes_exit(struct processes *processes, int32_t pid, int32_t tid,
				 uint64_t time_ns) MMT_MUST_CHECK;

/*
 * The process has ended and what was in its space has been released: nobody asks for it any more. Unless another one
 * names that space too, it is freed, and the process names an empty one that is the same for all. Should it turn out to
 * live, it gets a new one.
 */
void processes_release_space(struct processes *processes, struct process *process);

/* Of a thread, or of a process by its main thread's. "" unknown. */
const char *processes_name(const struct processes *processes, uint32_t name);
const char *process_name(const struct processes *processes, const struct process *process);

#endif
