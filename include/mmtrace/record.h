/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records live processes. Sizes are in bytes, times in nanoseconds. The library only reads the options and the objects
 * that they point to, and only until mmt_record() returns. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <mmtrace/error.h>

/* Recordings contain these numbers. */
enum mmt_call_graph {
	/* Kernel callchain, registers and a stack dump; while the call rate is low, another of
	   MMT_STACK_DUMP_BYTES_MAX. */
	MMT_CALL_GRAPH_AUTO = 0,
	MMT_CALL_GRAPH_FP = 1, /* kernel callchain, registers and the few stack bytes that contain the caller of mmap */
	MMT_CALL_GRAPH_DWARF = 2, /* kernel callchain, registers and a dump of stack_dump_bytes */
	MMT_CALL_GRAPH_NONE = 3,  /* no call stacks */
};

/* Modules to copy into the recording, up to 256 MiB in total. */
enum mmt_images {
	MMT_IMAGES_MISSING, /* those that cannot be opened by their path: in containers, or replaced */
	MMT_IMAGES_ALL,	    /* so that stacks can be unwound and symbolized on another machine */
	MMT_IMAGES_NONE,
};

/* JIT code to copy into the recording, up to 64 MiB in total. */
enum mmt_code {
	MMT_CODE_ALL, /* of the processes that are alive when the recording ends */
	MMT_CODE_NONE,
};

#define MMT_STACK_DUMP_BYTES_DEFAULT 8192 /* with MMT_CALL_GRAPH_AUTO and MMT_CALL_GRAPH_DWARF */
#define MMT_STACK_DUMP_BYTES_LEAN 1024	  /* with MMT_CALL_GRAPH_AUTO and `lean` */
#define MMT_STACK_DUMP_BYTES_MAX 65280

/* Recordings contain these numbers. */
enum mmt_record_end {
	MMT_RECORD_END_STOPPED = 0,	 /* the stop descriptor became readable */
	MMT_RECORD_END_DURATION = 1,	 /* duration_ns has elapsed */
	MMT_RECORD_END_TARGET_ENDED = 2, /* all target processes have ended */
	MMT_RECORD_END_WRITE_FAILED = 3, /* for instance because the disk is full; what was written before is intact */
	MMT_RECORD_END_SIZE = 4,	 /* the recording has reached max_bytes */
};

/* A later recording with the same name renames this one to OUTPUT.old, even while it is still being written. */
enum mmt_record_place {
	MMT_RECORD_AT_OUTPUT,
	MMT_RECORD_AT_OLD,    /* OUTPUT.old */
	MMT_RECORD_ELSEWHERE, /* renamed to an unknown name, or deleted */
};

/* Resident size of all recorded or selected processes, including files and shared memory, from /proc/PID/statm. */
struct mmt_resident_reading {
	uint64_t time_ns;
	uint64_t resident_bytes;
	uint64_t swapped_bytes; /* VmSwap of /proc/PID/status */
};

struct mmt_record_progress {
	uint64_t elapsed_ns;
	uint64_t events; /* memory system calls so far */
	uint64_t file_bytes;
	uint64_t lost_events; /* as reported by the rings so far; the summary has the kernel's count */
	uint64_t lost_stack_dumps;
	/* Since the start, in time order; valid during the call. */
	const struct mmt_resident_reading *resident_readings;
	size_t resident_reading_count;
	size_t resident_processes; /* in the last of these: their resident size counts shared memory once for each */
	/* The Pss of several processes at some of these times; none of one process, or if the kernel does not say. */
	const struct mmt_resident_reading *pss_readings;
	size_t pss_reading_count;
	/* Anonymous, shared and kernel memory of the control group that is nearest to its limit, and that limit; 0:
	 * there is none, or it is unknown. */
	uint64_t group_bytes, group_limit_bytes;
	/* With mmt_record_options.reading_interval_ns, if the kernel says so: time since the first reading in which
	 * processes waited for memory; of each interval, that of the control group whose processes waited longest or,
	 * if none is known, of the machine. */
	uint64_t stalled_ns;
	bool stalled_known;
	/* Of the process that has most, with mmt_record_options.counts_mappings, and vm.max_map_count; 0: unknown. */
	uint64_t mappings, mapping_limit;
	bool oom_killed; /* the OOM killer ended a recorded process, or one in a control group that limits one */
};

/* Where the events are opened. Events on CPUs see all processes, or those of control groups; mmtrace discards those of
   processes not recorded. */
enum mmt_record_scope {
	MMT_SCOPE_AUTO, /* for each thread; with many threads or CPUs, in the targets' control group or on CPUs */
	MMT_SCOPE_THREADS,
	MMT_SCOPE_CPUS,
	MMT_SCOPE_CGROUP, /* on every CPU, in the control groups of the targets */
};

enum mmt_faults {
	/* Sampled, if they can be sampled on CPUs or in a control group, with stacks: for each thread they would slow
	 * down its mappings. On CPUs, direct reclaim is recorded beside them, as with MMT_FAULTS_SAMPLED. */
	MMT_FAULTS_AUTO,
	MMT_FAULTS_NONE,
	MMT_FAULTS_SAMPLED, /* every 97th page fault, with its stack */
	MMT_FAULTS_ALL,	    /* every page fault: doubles the cost of touching memory for the first time */
};

struct mmt_record_options {
	/* Targets: processes, all processes, a control group, or a command to start. A command can be
	   combined with all_cpus or a control group; the recording then ends with the command. */
	const pid_t *pids;
	size_t pid_count;
	bool all_cpus;	    /* all processes of the system */
	const char *cgroup; /* all processes in it and below: its directory, or its path below the mount point; NULL:
			       none */
	enum mmt_record_scope scope;
	char *const *command; /* NULL-terminated argument vector; NULL: none */
	/* Signals that the command ignores in addition to those that the caller ignores, and signals that it blocks.
	   Each list ends with 0. The command ignores SIGPIPE only if it is listed. For callers that have changed their
	   own signal dispositions. NULL: none. */
	const int *command_ignores, *command_blocks;
	/* Path of the recording; an existing file is renamed to OUTPUT.old. "-": standard output, in perf's pipe
	   format. The standard output of the command is then redirected to standard error. The caller must handle
	   SIGPIPE. */
	const char *output;
	const char *const *command_line; /* NULL-terminated, for the CMDLINE section of the file; NULL: none */
	uint64_t ring_bytes; /* per CPU, divided between the rings of syscall events and of stack dumps; 0: default */
	enum mmt_call_graph call_graph;
	uint32_t stack_dump_bytes; /* for MMT_CALL_GRAPH_DWARF: a multiple of 8, from 8 to MMT_STACK_DUMP_BYTES_MAX */
	uint64_t duration_ns;	   /* 0: no limit */
	uint64_t max_bytes; /* stop when this much is written; data written at the end is not counted. 0: no limit */
	bool lean; /* no callchains, so that stacks end with the dump, and no MMAP2 records of data mappings; not with
		      MMT_CALL_GRAPH_FP */
	bool no_compress; /* write uncompressed records, for tools that cannot read others: a much larger file */
	bool tree;	  /* also record all existing descendants of the targets */
	/* Interval at which mmtrace reads the mappings of all processes, for checks, and which of their pages are
	   resident. 0: only the mappings of a command and its children, at increasing intervals: a tenth of the time
	   since the start. */
	uint64_t snapshot_interval_ns;
	enum mmt_images images;
	enum mmt_code code;
	bool ask_runtime; /* make .NET and Java write perf maps if they have none; see mmtrace-record(1) */
	int stop_fd;	  /* stops recording when it is readable; more bytes shorten the work at the end; -1: none */

	/* Prints a line, which ends without a newline: a warning, the processes that `tree` has found, or information
	 * if `verbose`. May be NULL. */
	void (*message)(void *context, bool warning, const char *text);
	/* Called once, when all events are enabled and the command runs, or the process is waited for. May be NULL. */
	void (*started)(void *context);
	/* Called once a second while recording, and once when it ends. May be NULL. */
	void (*progress)(void *context, const struct mmt_record_progress *progress);
	void *context;
	bool verbose;
	bool no_madvise; /* record only the calls of madvise(2) that affect fork(2) */
	/* For `progress`: the longest interval between two readings of RSS and of control groups (0: a share of the
	 * elapsed time), and whether to count mappings every ten seconds. */
	uint64_t reading_interval_ns;
	bool counts_mappings;
	bool no_census; /* do not count the chunks of malloc heaps */
	/* Instead of a target: record the next process that executes a program of this name, from its exec on. It is a
	   command name or a pattern as for mmt_find_processes(). With events on CPUs. NULL: none. */
	const char *wait_name;
	enum mmt_faults faults;
};

enum mmt_event_count {
	MMT_COUNT_MMAP,
	MMT_COUNT_MUNMAP,
	MMT_COUNT_MREMAP,
	MMT_COUNT_BRK,
	MMT_COUNT_MPROTECT, /* and pkey_mprotect */
	MMT_COUNT_SHMAT,
	MMT_COUNT_SHMDT,
	MMT_COUNT_MADVISE, /* with mmt_record_options.no_madvise only MADV_DONTFORK and MADV_DOFORK */
	MMT_COUNT_PROCESS_MADVISE,
	MMT_COUNT_OTHER_CALLS, /* io_destroy, remap_file_pages ... */
	MMT_COUNT_KINDS,
};

/* For instance "mmap". Static. */
MMT_PUBLIC const char *mmt_event_count_name(enum mmt_event_count kind);

MMT_PUBLIC uint64_t mmt_event_count_sum(const uint64_t counts[MMT_COUNT_KINDS]);

struct mmt_record_summary {
	enum mmt_record_end end;
	uint64_t duration_ns;
	uint64_t events[MMT_COUNT_KINDS]; /* recorded memory system calls */
	uint64_t stack_dumps;
	uint64_t deep_stacks;	   /* that are larger than their dump; the callchain may complete them */
	uint64_t cut_callchains;   /* truncated at the kernel's limit of frames */
	uint64_t lost_events;	   /* of system calls: mappings may be missing */
	uint64_t lost_stack_dumps; /* stacks may be truncated */
	uint64_t large_stack_dumps, lost_large_stack_dumps; /* of MMT_CALL_GRAPH_AUTO, in addition to stack_dumps */
	uint64_t large_dump_switches;			    /* how often they were switched on or off */
	uint64_t large_dumps_off_ns;
	uint64_t fault_samples;	    /* of page faults */
	uint64_t lost_faults;	    /* page faults whose samples were lost, estimated from their period */
	uint64_t file_bytes;	    /* 0: the file was deleted during the recording */
	uint64_t processes;	    /* recorded, including children */
	bool on_cpus;		    /* the events were opened on CPUs, not for threads */
	char scope[256];	    /* where they were, in words: "on every CPU" */
	uint64_t passed_over_calls; /* on_cpus: calls of processes not recorded, which were discarded */
	uint64_t threads;
	uint64_t missed_threads; /* not attached to: started too fast, or after an error */
	uint64_t missed_cpus; /* CPUs that came online during the recording: some or all of their events are missing */
	uint64_t left_processes;    /* left the control group; their later calls were not recorded */
	uint64_t guarded_processes; /* whose maps cannot be read: their earlier mappings are unknown */
	/* Cost: processor time and peak memory of this process in mmt_record(), and the rings in addition. */
	uint64_t recorder_cpu_ns;
	uint64_t recorder_memory_bytes;
	uint64_t ring_bytes;	     /* over all CPUs */
	const char *priority;	     /* the scheduling priority it had, in words; static */
	bool restricted;	     /* without CAP_PERFMON, flags of clone(2) are not recorded: see mmtrace(1) */
	enum mmt_record_place place; /* where the recording is at the end */
	bool earlier_kept;	     /* an existing file was renamed to OUTPUT.old */
	bool older_replaced;	     /* ... and replaced an existing OUTPUT.old */
	uint64_t oom_kills; /* recorded processes that the kernel's OOM killer ended; 0, too, without CAP_PERFMON */
	pid_t oom_pid;	    /* the first of them */
	char oom_name[16];
	uint64_t left_running;	/* recorded processes that were running when the command or the targets had ended */
	pid_t left_running_pid; /* the largest of them */
	int command_status;	/* wait status of the command if it has ended; otherwise -1 */
	int target_status; /* ... of another target, the last that did not exit with status 0; 0: none, or not known */
};

/* Find the processes with this command name, which is that of /proc/PID/comm, or whose name matches it as a pattern of
 * fnmatch(3), in ascending order. The kernel stores 15 bytes of a name: only the first 15 of a longer one count. Kernel
 * threads, processes that have ended and the calling process are left out. The caller frees *pids_ret with free();
 * *count_ret may be 0. */
MMT_PUBLIC struct mmt_error *mmt_find_processes(const char *name, pid_t **pids_ret, size_t *count_ret) MMT_MUST_CHECK;

/* The PID that the process has in its own PID namespace, such as its container; `pid` if that is not known. */
MMT_PUBLIC pid_t mmt_pid_in_container(pid_t pid);

/* Set the defaults: stop_fd -1, output "mmtrace.data", everything else 0. */
MMT_PUBLIC void mmt_record_options_init(struct mmt_record_options *options);

/*
 * Record until stopped. A command starts without blocked signals. If the recording ends before the command, the command
 * gets SIGTERM and has one second to end.
 *
 * Side effects on this process: the soft limit of open files is raised to the hard limit, and stays raised. If
 * permitted, the calling thread and the thread that reads the rings run with real-time priority (SCHED_RR), or else at
 * nice -20, until the function returns; a calling thread with a policy other than SCHED_OTHER keeps it. The library
 * starts threads with all signals blocked; they end before the function returns. It calls the callbacks in the calling
 * thread or in one of these, one at a time: they must not block.
 *
 * After a write error the function returns NULL, because there is a usable recording: the summary has
 * MMT_RECORD_END_WRITE_FAILED, and `write_error_ret` is set. If the function returns an error, it leaves no recording.
 */
MMT_PUBLIC struct mmt_error *mmt_record(const struct mmt_record_options *options,
					struct mmt_record_summary *summary_ret,
					struct mmt_error **write_error_ret) MMT_MUST_CHECK;
