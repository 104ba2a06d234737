/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recording a live process into a file. Sizes are bytes, times are nanoseconds. Options, and what they point to, are only
 * read, and only until mmt_record() returns.
 */
#ifndef MMTRACE_RECORD_H
#define MMTRACE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <mmtrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum mmt_call_graph {
	MMT_CALL_GRAPH_AUTO,  /* kernel callchain, registers and a stack dump; while the call rate is low also one of
				 MMT_STACK_DUMP_BYTES_MAX */
	MMT_CALL_GRAPH_FP,    /* kernel callchain and registers with the few stack bytes that hold the caller of mmap */
	MMT_CALL_GRAPH_DWARF, /* as auto, with a dump of stack_dump_bytes */
	MMT_CALL_GRAPH_NONE,  /* no stacks */
};

/* Which modules are copied into the recording; at most 256 MiB of them. */
enum mmt_images {
	MMT_IMAGES_MISSING, /* those that their path does not lead to on this machine: of containers, or replaced since
			     */
	MMT_IMAGES_ALL,	    /* so that stacks can be unwound and named on another machine */
	MMT_IMAGES_NONE,
};

/* Whether the bytes of JIT code are copied into the recording; at most 64 MiB of them. */
enum mmt_code {
	MMT_CODE_ALL, /* of the processes that live when recording ends */
	MMT_CODE_NONE,
};

#define MMT_STACK_DUMP_BYTES_DEFAULT 8192 /* of MMT_CALL_GRAPH_AUTO and _DWARF */
#define MMT_STACK_DUMP_BYTES_LEAN 1024	  /* of MMT_CALL_GRAPH_AUTO with `lean` */
#define MMT_STACK_DUMP_BYTES_MAX 65280

enum mmt_record_end {
	MMT_RECORD_END_STOPPED,	     /* the stop descriptor became readable */
	MMT_RECORD_END_DURATION,     /* duration_ns is over */
	MMT_RECORD_END_TARGET_ENDED, /* every process asked for has ended */
	MMT_RECORD_END_WRITE_FAILED, /* it failed on the way, of a full disk for instance: what was written before is
					intact */
	MMT_RECORD_END_SIZE,	     /* the recording has max_bytes */
};

/* Another recording to the same name renames the existing file to OUTPUT.old, even while it is being written. */
enum mmt_record_place {
	MMT_RECORD_AT_OUTPUT,
	MMT_RECORD_AT_OLD,    /* OUTPUT.old */
	MMT_RECORD_ELSEWHERE, /* another name, which is not known, or none */
};

struct mmt_record_progress {
	uint64_t elapsed_ns;
	uint64_t events;	    /* memory calls so far */
	uint64_t events_per_second; /* since the last time */
	uint64_t file_bytes;
	uint64_t lost_events; /* as far as the rings told by now: the summary has the kernel's count */
	uint64_t lost_stack_dumps;
};

/* Where the events are opened for processes. On CPUs they see every process: what others do is passed over. */
enum mmt_record_scope {
	MMT_SCOPE_AUTO, /* for each thread; on CPUs when there are too many threads for that */
	MMT_SCOPE_THREADS,
	MMT_SCOPE_CPUS,
};

struct mmt_record_options {
	size_t size; /* of the struct; mmt_record_options_init() sets it */
	/* Whom to record: processes and threads, everybody, a control group; or a command to start, which may also go
	   with the last two and then ends the recording. */
	const pid_t *pids;
	size_t pid_count;
	const pid_t
	    *tids; /* threads, and whom they start; what else their processes do is not seen, and counts as missed */
	size_t tid_count;
	bool all_cpus;	    /* every process there is */
	const char *cgroup; /* every process in it and below it: its directory, or its path under the mount; or NULL */
	enum mmt_record_scope scope;
	char *const *command; /* a NULL-terminated argument vector */
	/* Numbers of the signals that the command ignores, beside those that the caller does (of these SIGPIPE only if
	   it is named here), and of those that it blocks, each list with a 0 behind: for a caller that has changed what
	   it was started with. NULL: none. */
	const int *command_ignores, *command_blocks;
	/* Path of the recording; an existing file becomes OUTPUT.old. "-": standard output, in perf's pipe format; that
	   of the command is then standard error. The caller takes care of SIGPIPE. */
	const char *output;
	const char *const *command_line; /* NULL-terminated words for the file's CMDLINE feature, or NULL */
	uint64_t ring_bytes; /* per CPU, shared by the rings of syscall events and of stack dumps; 0: default */
	enum mmt_call_graph call_graph;
	uint32_t stack_dump_bytes; /* for MMT_CALL_GRAPH_DWARF: multiple of 8, 8 to MMT_STACK_DUMP_BYTES_MAX */
	uint64_t duration_ns;	   /* 0: no limit */
	uint64_t max_bytes;	   /* stop when so much is written; what belongs to the end comes on top. 0: no limit */
	/* Record when each call takes the lock of its address space: the order of racing calls is then known, for about
	   a quarter more cost. */
	bool exact_order;
	/* The least that finds the call stacks: no callchain, so stacks end with the dump, and no MMAP2 records of data
	   mappings. Not with MMT_CALL_GRAPH_FP. */
	bool lean;
	/* Record every call of madvise(2) and process_madvise(2), and not only what a fork depends on. */
	bool madvise;
	bool no_compress; /* records as the kernel wrote them: a much larger file, for tools that cannot read others */
	bool no_inherit;  /* leave out the children of the processes; their new threads are recorded all the same */
	/* Interval at which the mappings of every process are read for checks, and its resident size; 0: only the
	   mappings of a command and its children, at growing intervals of a tenth of the time since the start. */
	uint64_t snapshot_interval_ns;
	enum mmt_images images;
	enum mmt_code code;
	/* Check the command and its children against their maps at exit, where ptrace(2) holds each meanwhile. Only
	   with a command; mmtrace-record(1) describes the side effects. */
	bool check_exit;
	bool ask_runtime; /* have .NET and Java write perf maps when they have none; mmtrace-record(1) says what that
			     does */
	/* A pipe: each uint64_t read from it, nanoseconds of CLOCK_MONOTONIC, makes a mark of that time in the
	   recording; does not block; -1: none. */
	int mark_fd;
	int stop_fd; /* recording stops when this becomes readable, and what takes long after it when there are
			more bytes; -1: none */

	/* Messages for the user: warnings and, when `verbose`, progress; one line each without a newline. May be NULL.
	 */
	void (*message)(void *context, bool warning, const char *text);
	/* Called once when every event is enabled (and the command, if any, has been let go). May be NULL. */
	void (*started)(void *context);
	/* Called once a second while recording. May be NULL. */
	void (*progress)(void *context, const struct mmt_record_progress *progress);
	void *context;
	bool verbose;
};

enum mmt_event_count {
	MMT_COUNT_MMAP,
	MMT_COUNT_MUNMAP,
	MMT_COUNT_MREMAP,
	MMT_COUNT_BRK,
	MMT_COUNT_MPROTECT, /* pkey_mprotect too */
	MMT_COUNT_SHMAT,
	MMT_COUNT_SHMDT,
	MMT_COUNT_MADVISE, /* without mmt_record_options.madvise only MADV_DONTFORK and MADV_DOFORK */
	MMT_COUNT_PROCESS_MADVISE,
	MMT_COUNT_OTHER_CALLS, /* io_destroy, remap_file_pages ... */
	MMT_COUNT_KINDS,
};

/* Name for the user, for instance "mmap". Static. */
MMT_PUBLIC const char *mmt_event_count_name(enum mmt_event_count kind);

struct mmt_record_summary {
	enum mmt_record_end end;
	uint64_t duration_ns;
	uint64_t events[MMT_COUNT_KINDS]; /* memory calls recorded */
	uint64_t side_band_events;	  /* mappings, names, forks, exits */
	uint64_t stack_dumps;
	uint64_t
	    deep_stacks; /* go on beyond their dump, but not always their frames, and the callchain may have these */
	uint64_t cut_callchains;			    /* at the kernel's limit of frames */
	uint64_t lost_events;				    /* syscall event: mappings may be missing */
	uint64_t lost_stack_dumps;			    /* depth only */
	uint64_t large_stack_dumps, lost_large_stack_dumps; /* of MMT_CALL_GRAPH_AUTO, in addition to the others */
	uint64_t large_dump_switches;			    /* off at high call rates, and on again */
	uint64_t large_dumps_off_ns;
	uint64_t file_bytes;	    /* 0: the file was removed while it was written */
	uint64_t processes;	    /* recorded, children included */
	bool on_cpus;		    /* the events were on CPUs, not those of threads */
	uint64_t passed_over_calls; /* there: of other processes, not written */
	uint64_t threads;
	/* Threads that made calls unseen, because they were not attached to: none, unless something is wrong or the
	   target starts threads faster than they can be attached to. */
	uint64_t missed_threads;
	uint64_t missed_cpus;	    /* came online during recording: some or all of their events are missing */
	uint64_t left_processes;    /* left the control group: what they did then was not seen */
	uint64_t guarded_processes; /* whose maps may not be read: what they had mapped before is not known */
	/* What recording took: processor time of this process since mmt_record() began, its memory at most, and the
	   rings beside that. */
	uint64_t recorder_cpu_ns;
	uint64_t recorder_memory_bytes;
	uint64_t ring_bytes; /* over all CPUs */
	uint64_t marks;
	bool restricted; /* without CAP_PERFMON: how processes are made is not recorded, see mmtrace-record(1) */
	enum mmt_record_place place; /* where the recording is now */
	bool earlier_kept;	     /* an existing file became OUTPUT.old */
	bool older_replaced;	     /* ... where another one had been, which is gone */
	int command_status;	     /* wait status of the command, when it has ended; else -1 */
};

/* Set everything to 0, then the defaults: the size, stop_fd and mark_fd -1, output "mmtrace.data". */
MMT_PUBLIC void mmt_record_options_init_size(struct mmt_record_options *options, size_t size);

static inline void mmt_record_options_init(struct mmt_record_options *options)
{
	mmt_record_options_init_size(options, sizeof(*options));
}

/*
 * Record until stopped. A command starts with no signal blocked; when the recording ends before it, it gets SIGTERM and a
 * second to end.
 *
 * Effects on this process: the soft limit of open files is raised to the hard one, and stays. If permitted, the calling
 * thread and one that reads the rings have real-time priority (SCHED_RR), or else nice -20, until the function returns; a
 * calling thread of another policy than SCHED_OTHER keeps it. Threads are started with all signals blocked, and end before
 * that. The callbacks of the options are called in the calling thread: they must return soon.
 *
 * MMT_RECORD_END_WRITE_FAILED is reported in the summary with `write_error_ret` set, because there is a recording all
 * the same. On error no file is left in place of an earlier one.
 */
MMT_PUBLIC struct mmt_error *mmt_record(const struct mmt_record_options *options,
					struct mmt_record_summary *summary_ret,
					struct mmt_error **write_error_ret) MMT_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
