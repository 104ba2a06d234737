/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes and threads over time: which of them share an address space. Pure. Follows FORK, task_newtask (CLONE_VM),
 * exec (COMM) and EXIT. A process whose last thread has ended keeps its space as of just before that (`ended`). A
 * reused PID gets a new `struct process`. */
#pragma once

#include "base/map.h"
#include "base/vector.h"
#include "model/space/space.h"

struct process {
	uint32_t index;		 /* from 0, in order of appearance */
	int32_t pid, parent_pid; /* parent 0: unknown */
	bool recorded;		 /* selected by the user, or descended from a selected process; false for processes that
				    are only mentioned */
	bool ended;
	bool borrows_space;  /* vfork, CLONE_VM: `space` belongs to another process */
	bool named_by_ended; /* an ended process that borrowed the space still refers to it; set on the
				owner */
	struct process *next_sharer, *previous_sharer; /* circular list of the live processes that use `space` */
	uint64_t started_ns, ended_ns;		       /* 0: before the recording; UINT64_MAX: alive at the end */
	uint64_t program_ns;	      /* start of its program: its fork or exec; 0: before the recording */
	uint32_t thread_count;	      /* all threads ever seen; UINT32_MAX: this many or more */
	uint32_t name;		      /* name of its main thread: in processes.names */
	uint32_t holder;	      /* for processes_holder() */
	uint32_t forked_from;	      /* index of the process that forked it; its own index: unknown */
	uint32_t last_child;	      /* likewise, that it forked last; its own index: none */
	struct thread *threads;	      /* the live ones */
	struct space *space;	      /* never NULL */
	struct space_remains remains; /* of its space when that was released */
};

struct thread {
	int32_t tid;
	uint32_t process; /* index */
	uint32_t name;	  /* in processes.names */
	bool ended;
	void *context;	     /* the caller's; initially NULL */
	struct thread *next; /* in the list of live threads */
	union {
		struct thread *previous;
		uint64_t ended_ns; /* of a thread that ended */
	};
};

/* `observe` returns the observer for each new space; may be NULL. */
struct processes_options {
	uint64_t page_bytes;
	const struct kernel_rules *rules; /* see space_create() */
	const uint64_t *losses;		  /* for space_create(); may be NULL */
	/* More processes whose spaces were not released are an error, or six times as many of all; 0: no limit. */
	size_t processes_max;
	size_t threads_max;	/* more are an error; 0: no limit */
	uint64_t intervals_max; /* of all spaces: see processes.not_copied; 0: no limit */
	uint64_t copies_max;	/* intervals copied by all forks */
	bool (*observe)(void *context, struct process *process, struct space_observer *observer_ret);
	void *context;
};

/* A paged array for the PIDs that Linux assigns; other PIDs are rare and go into a map. */
#define PAGED_PIDS (1u << 22)
#define PAGE_PIDS 1024

struct processes {
	VECTOR(struct process *) all; /* by index */
	/* Forked processes that began with an unknown space instead of a copy, because the limits of the options were
	 * reached. */
	uint64_t not_copied;
	struct intern names; /* of threads; 0 is "": unknown */
	/* The others are for processes.c alone. */
	struct processes_options options;
	struct kernel_rules rules;
	VECTOR(struct thread *) threads;	  /* all processes ever created */
	uint32_t *latest[PAGED_PIDS / PAGE_PIDS]; /* by pid: index of its latest process, plus 1 */
	struct map latest_odd;			  /* the same for larger PIDs */
	struct map live;			  /* tid -> struct thread * */
	struct process *undecided;		  /* just forked: its clone flags decide whether it shares or copies */
	VECTOR(struct space *) retired;		  /* empty; ended processes may still refer to these spaces */
	struct space *let_go;			  /* empty space of all released processes */
	uint64_t copied, held, recount_at;	  /* intervals: copied by all forks so far; at most in all spaces */
	size_t released;			  /* processes that refer to `let_go` */
};

struct mmt_error *processes_create(const struct processes_options *options,
				   struct processes **processes_ret) MMT_MUST_CHECK;
void processes_destroy(struct processes *processes);

/* Find the live thread with this TID; create it, and its process, if it is unknown. pid -1: return NULL if it is
 * unknown. `time_ns`: now. A thread with this TID in another process must have ended by then. Pointers stay valid. */
struct mmt_error *processes_thread(struct processes *processes, int32_t pid, int32_t tid, uint64_t time_ns,
				   struct thread **thread_ret) MMT_MUST_CHECK;

/* Iterate: the process after this one. NULL: the first, or there is none. */
struct process *processes_next(const struct processes *processes, const struct process *process);
/* Index of the process that holds what this process maps: itself. A child of vfork, until it executes a program, maps
 * for its parent, which gets the space back. */
uint32_t processes_holder(const struct processes *processes, const struct process *process);
/* The process whose space this live process uses: itself, unless it borrows one. */
const struct process *processes_space_owner(const struct processes *processes, const struct process *process);
/* The live process with this PID, or the last one that ended; NULL: none. */
struct process *processes_find(const struct processes *processes, int32_t pid);

struct mmt_error *processes_comm(struct processes *processes, struct thread *thread, const char *name, bool exec,
				 uint64_t time_ns) MMT_MUST_CHECK;
/* The clone flags decide whether a new process shares the space or copies it. If the next event of any thread is not a
 * task_newtask, the space is copied. */
struct mmt_error *processes_fork(struct processes *processes, int32_t pid, int32_t tid, int32_t parent_pid,
				 int32_t parent_tid, uint64_t time_ns) MMT_MUST_CHECK;
/* task_newtask for a thread just announced by processes_fork(). */
struct mmt_error *processes_new_task(struct processes *processes, int32_t tid, uint64_t clone_flags) MMT_MUST_CHECK;
struct mmt_error *processes_exit(struct processes *processes, int32_t pid, int32_t tid,
				 uint64_t time_ns) MMT_MUST_CHECK;

/* Free the space of an ended process after its contents were reported as released. The process then refers to an empty
 * space that all such processes share. The space stays if another process refers to it too. If the process turns out to
 * be alive, it gets a new space. */
void processes_release_space(struct processes *processes, struct process *process);
