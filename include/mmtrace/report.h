/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The analysis of one recording: unfreed bytes by stack. Reads the recording, the modules it names (build-ids are
 * checked) and nothing else.
 *
 * All strings and arrays of a `struct mmt_report` belong to it and live as long as it does. Strings come from the
 * recording and may hold any byte but NUL: whoever prints them escapes control characters (mmtrace/output.h does).
 * Times are nanoseconds of the recording's clock (CLOCK_MONOTONIC for our own files); addresses are those of the traced
 * process.
 */
#ifndef MMTRACE_REPORT_H
#define MMTRACE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mmtrace/error.h>
#include <mmtrace/progress.h>
#include <mmtrace/record.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MMT_UNKNOWN UINT64_MAX /* a figure that the recording cannot give */

/* What kind of memory a mapping is, told from the call that made it, what backs it and what became of it. */
enum mmt_class {
	MMT_CLASS_ANON,		/* anonymous memory of no kind below */
	MMT_CLASS_FILE,		/* a file, memfd or device */
	MMT_CLASS_HEAP,		/* brk */
	MMT_CLASS_SHM,		/* System V and anonymous shared memory */
	MMT_CLASS_THREAD_STACK, /* MAP_STACK, or mapped by a function that makes thread stacks */
	MMT_CLASS_HUGETLB,
	MMT_CLASS_JIT,	      /* anonymous or memfd, executable now or once */
	MMT_CLASS_GC_RESERVE, /* a reservation of a managed heap: large, mapped PROT_NONE and MAP_NORESERVE */
	MMT_CLASS_KINDS,
};

/* Word of options and documents, for instance "thread-stack". Static. */
MMT_PUBLIC const char *mmt_class_name(enum mmt_class memory_class);

/* What a report's groups stand for. */
enum mmt_group_by {
	MMT_BY_STACK,
	MMT_BY_FUNCTION, /* the innermost one outside the C library and the loader */
	MMT_BY_MODULE,	 /* of that function */
	MMT_BY_FILE,	 /* what is mapped: the path of the file, or the class in brackets: "[anon]" */
	MMT_BY_CLASS,
	MMT_BY_PROCESS,
	MMT_BY_THREAD, /* `thread_totals` and `releases` of the report; its groups are as by stack */
};

/* A moment of the recording. */
enum mmt_timestamp_kind {
	MMT_TIMESTAMP_DEFAULT,	   /* the start or the end of the recording */
	MMT_TIMESTAMP_SINCE_START, /* ns after its start */
	MMT_TIMESTAMP_BEFORE_END,  /* ns before its end */
	MMT_TIMESTAMP_REALTIME,	   /* ns since the epoch */
	MMT_TIMESTAMP_TIME_OF_DAY, /* ns since midnight, local time: the first such moment not before the recording's
				      start */
	MMT_TIMESTAMP_CLOCK,	   /* ns of the recording's own clock */
	MMT_TIMESTAMP_MARK,	   /* of the mark with the number `ns` */
};

struct mmt_timestamp {
	enum mmt_timestamp_kind kind;
	uint64_t ns;
};

#define MMT_LIFETIME_STEPS_MAX 65534

struct mmt_report_options {
	size_t size;	     /* of the struct; mmt_report_options_init() sets it */
	const char *input;   /* path of the recording */
	const int32_t *pids; /* only these processes; NULL: all */
	size_t pid_count;
	bool no_demangle;
	/* Keep names of functions here from one report to the next; made when missing, never believed when others may
	   write there. NULL: do not. */
	const char *cache_directory;
	const struct mmt_progress *progress; /* NULL: nobody waits */
	/* Frames whose function or module (its base name) is one of these, or matches it as a pattern of the shell, are
	   left out of all stacks; those that are then the same are one. */
	const char *const *hide;
	size_t hide_count;
	enum mmt_group_by by;
	uint32_t classes; /* bit 1 << enum mmt_class: only these; 0: all */
	/*
	 * The window. A mapping counts when it was mapped in [from, to - min_age - tail), whatever is freed until `to`
	 * counts as freed: so allocated - freed = unfreed in every window.
	 */
	struct mmt_timestamp from, to;
	uint64_t min_age_ns;
	uint64_t
	    every_ns; /* the development in such steps: `steps` of the report and `step_bytes` of its groups; 0: none */
	double tail;  /* share of the window's length, 0 to 1, whose mappings are too young to judge */
	/*
	 * Also give `parts` of the groups with the lifetimes of their mappings, the window divided into this many steps
	 * at most: 16 to MMT_LIFETIME_STEPS_MAX; 0: none. There are fewer, longer steps when there would be more than
	 * 262,144 lifetimes: that bounds the memory, and sums stay exact. Without every_ns, the report then has some 200
	 * `steps` if the recording says when it ended.
	 */
	uint32_t lifetime_steps;
};

/* Where and why a stack ends. */
enum mmt_stack_end {
	MMT_STACK_END_ENTRY,	      /* reached the thread's entry: _start, clone, start_thread */
	MMT_STACK_END_DUMP_EXHAUSTED, /* the dump ended and the kernel's callchain did not continue it */
	MMT_STACK_END_DEPTH_LIMIT,    /* kernel.perf_event_max_stack or our own limit */
	MMT_STACK_END_NO_UNWIND_DATA, /* a frame whose caller nothing describes */
	MMT_STACK_END_CALLCHAIN,      /* the kernel's frame-pointer chain ended before an entry was seen */
	MMT_STACK_END_INVALID,	      /* the stack did not advance or pointed nowhere */
	MMT_STACK_END_NOT_RECORDED,   /* no stack in the recording (--call-graph none, or the sample was lost) */
	MMT_STACK_END_OTHER_STACK,    /* the callers are on a stack that was not copied: alternate signal stack, Go's */
	MMT_STACK_END_COROUTINE,      /* reached the function that makecontext() began */
	MMT_STACK_END_KINDS,
};

/* For the user, for instance "stack dump exhausted". Static. */
MMT_PUBLIC const char *mmt_stack_end_name(enum mmt_stack_end end);

/* True if the stack reached the thread's entry or the start of a coroutine. Otherwise it is truncated. */
MMT_PUBLIC bool mmt_stack_end_is_complete(enum mmt_stack_end end);

enum mmt_frame_kind {
	MMT_FRAME_NATIVE,  /* in a module */
	MMT_FRAME_JIT,	   /* JIT code, named by a perf map or not at all */
	MMT_FRAME_UNKNOWN, /* an address in no known mapping */
};

struct mmt_frame {
	enum mmt_frame_kind kind;
	bool inlined;		  /* the function was inlined into the next frame */
	bool doubtful;		  /* a guess: follows no call, or callers before it may be missing */
	const char *function;	  /* demangled and normalised; NULL: no symbol */
	const char *raw_function; /* as the file has it; NULL: no symbol */
	const char *module;	  /* base name, "[jit]", "[vdso]"; NULL for MMT_FRAME_UNKNOWN */
	const char *module_path;  /* as the kernel named it; NULL as above */
	const char *source_file;  /* NULL: unknown */
	uint32_t source_line;	  /* 0: unknown */
	uint32_t code;	  /* for mmt_report_annotate(): frames with the same number are at the same instruction */
	uint64_t address; /* of the instruction in one process that had this frame; a return address unless first in the
			     stack */
	uint64_t module_offset; /* MMT_FRAME_NATIVE: address in the file's own numbering (ELF virtual address) */
};

/* Whether the frame is in a language runtime's own files, except for a main function that only starts the runtime. */
MMT_PUBLIC bool mmt_frame_is_runtime(const struct mmt_frame *frame);

struct mmt_thread {
	int32_t pid;
	int32_t tid;
	const char *name;
};

#define MMT_TREND_POINTS 32

/* What is known of a group's kind of memory although it looks like a leak; told from the names in its stack. */
enum mmt_pattern {
	MMT_PATTERN_NONE,
	MMT_PATTERN_ARENA,	  /* malloc's own reservation for a thread: mostly PROT_NONE */
	MMT_PATTERN_THREAD_STACK, /* the C library keeps stacks of ended threads for new ones */
	MMT_PATTERN_HEAP,	  /* grown by malloc: freed blocks stay with it */
	MMT_PATTERN_GC_HEAP,	  /* a managed runtime's heap */
	MMT_PATTERN_CODE,	  /* code a runtime or the loader maps */
	MMT_PATTERN_KINDS,
};

/* Word of documents, and one sentence for the user. Static; MMT_PATTERN_NONE: NULL. */
MMT_PUBLIC const char *mmt_pattern_name(enum mmt_pattern pattern);
MMT_PUBLIC const char *mmt_pattern_explanation(enum mmt_pattern pattern);

/* What the lifetimes of a group's mappings show. mmtrace-report(1) has the rule. */
enum mmt_lifetime_verdict {
	MMT_LIFETIME_UNKNOWN,	/* nothing is unfreed, or nobody knows since when */
	MMT_LIFETIME_TOO_SHORT, /* the recording is too short to tell, or there are too few mappings */
	MMT_LIFETIME_LEAK,	/* allocated throughout, older than freed ones became */
	MMT_LIFETIME_CACHE,	/* allocated early, and kept */
	MMT_LIFETIME_TRAFFIC,	/* as young as those that were freed */
	MMT_LIFETIME_KINDS,
};

/* Word of documents, for instance "too-short". Static. */
MMT_PUBLIC const char *mmt_lifetime_verdict_name(enum mmt_lifetime_verdict verdict);

/* The maximum of sums over a recording: this much or more. */
#define MMT_BYTES_MAX (UINT64_MAX - 1)

struct mmt_group {
	uint32_t id;			       /* from 1, by rank of memory_bytes in the whole window */
	const char *name;		       /* of a function, module, file, class or process; NULL: a stack */
	const struct mmt_frame *const *frames; /* innermost first; none unless a stack. Groups share them */
	size_t frame_count;
	size_t hidden_frame_count; /* left out by `hide`; of the first of the stacks that are one without them */
	enum mmt_stack_end stack_end;
	enum mmt_pattern pattern;
	uint64_t class_bytes[MMT_CLASS_KINDS]; /* of the unfreed bytes */
	bool lost; /* mapped by calls that were lost: no stack, known from the kernel's maps alone; its allocated_bytes
		      are what the maps showed */

	uint64_t unfreed_bytes;	 /* mapped at the end of the window, born in it */
	uint64_t unfreed_count;	 /* mappings with any byte left */
	uint64_t original_bytes; /* their size when they were mapped; more than unfreed_bytes: parts were given back */
	/*
	 * Accessible bytes are credited to the stack that made them so (mprotect, or the call that mapped them): the
	 * sum over all groups is right, and a group may have committed bytes in memory that another one reserved.
	 */
	uint64_t committed_bytes;
	/* Beside these: made accessible in memory mapped before the window, or by a process that is left out. */
	uint64_t committed_before_bytes;
	uint64_t reserved_bytes; /* PROT_NONE, of the unfreed */
	uint32_t
	    reserved_by; /* id of the group that reserved most of what this one made accessible; 0: itself or none */
	uint64_t resident_bytes;	/* of the committed; MMT_UNKNOWN without a snapshot of residency */
	uint64_t resident_before_bytes; /* of committed_before_bytes; MMT_UNKNOWN likewise */
	/* What the group holds in memory: resident_bytes and resident_before_bytes, or committed_bytes and
	 * committed_before_bytes where residency is not known. */
	uint64_t memory_bytes;
	uint64_t peak_bytes, peak_ns;		   /* most that was unfreed at once, and when first */
	uint64_t allocated_bytes, allocated_count; /* all that this stack ever mapped */
	uint64_t freed_bytes, freed_count;	   /* count: mappings of which nothing is left */
	uint64_t smallest_bytes, largest_bytes;	   /* what is left of each unfreed mapping */
	uint64_t first_ns, last_ns;		   /* allocation of the oldest and youngest unfreed mapping */
	uint64_t trend[MMT_TREND_POINTS]; /* unfreed bytes at equal steps; the last is the end of the recording */
	uint64_t survivor_trend[MMT_TREND_POINTS]; /* the same of those bytes that are unfreed in the end */
	enum mmt_lifetime_verdict verdict;	   /* from the lifetimes of its mappings */
	uint64_t outlived_count; /* unfreed mappings that are older than outlived_ns */
	uint64_t outlived_ns;	 /* nearly all freed mappings lived shorter; 0: none was freed */
	uint64_t bytes_per_minute;  /* memory_bytes, by the length of the window; MMT_UNKNOWN: less than a second */
	enum mmt_class memory_class; /* that most of the unfreed or, without any, of the committed bytes have */
	const char *file;	     /* the path with most of these, where the class is MMT_CLASS_FILE; NULL */
	size_t file_count;	     /* how many files have unfreed bytes */
	uint64_t mapping_count;	     /* what the kernel counts for vm.max_map_count: mappings after merging */
	const uint64_t *step_bytes;	  /* unfreed at the end of each of the report's steps */
	size_t step_count;		  /* as the report's, or 0: not asked for, or too many for all groups */

	const struct mmt_thread *threads; /* that mapped the unfreed bytes, most bytes first */
	size_t thread_count;
	const int32_t *pids;
	size_t pid_count;
};

#define MMT_STILL_MAPPED UINT32_MAX

/* Bytes of one part that were mapped in one step and unmapped in another. Of a mapping that is unmapped piece by piece
 * there is one for each piece. */
struct mmt_lifetime {
	uint32_t allocated_step; /* from 0; a step begins at from_ns + lifetime_step_ns * step of the report */
	uint32_t released_step;	 /* MMT_STILL_MAPPED: never, or after the window */
	uint64_t bytes;
	uint64_t count; /* mappings that ended, or are still there, with these bytes: those of the last piece */
};

/*
 * What one thread mapped of a group's memory, of one class and file. The sums over a group's parts are the group's, and
 * those over a part's lifetimes the part's: all are allocated_bytes, those with MMT_STILL_MAPPED unfreed_bytes.
 */
struct mmt_part {
	size_t group;	/* place in the report's groups */
	size_t process; /* place in the report's processes */
	/* tid 0, name "": not known, as for what is known from the kernel's maps alone, and for who made accessible
	 * what another stack had mapped. */
	struct mmt_thread thread;
	enum mmt_class memory_class;
	const char *file; /* path of what is mapped; NULL: no file, or not known */
	uint64_t unfreed_bytes, unfreed_count;
	uint64_t allocated_bytes, allocated_count;
	uint64_t freed_bytes, freed_count;
	uint64_t committed_bytes, committed_before_bytes, reserved_bytes;
	uint64_t resident_bytes;	      /* MMT_UNKNOWN, as in the group */
	const struct mmt_lifetime *lifetimes; /* by allocated_step, then released_step */
	size_t lifetime_count;
};

struct mmt_process {
	int32_t pid;
	int32_t parent_pid; /* 0: not known */
	const char *name;
	const char *runtime; /* "dotnet", "java", "node" ... that made the JIT code in its stacks; NULL: none known */
	uint64_t threads;
	uint64_t unfreed_bytes, committed_bytes, reserved_bytes; /* as in the groups */
	uint64_t resident_bytes;				 /* of all its memory; MMT_UNKNOWN */
	uint64_t before_bytes;	   /* mapped before the window (or the fork) and still there */
	uint64_t kernel_bytes;	   /* mapped by the kernel itself: executed programs, stack growth, vdso */
	uint64_t given_back_bytes; /* how much the ranges of madvise(2) held when it gave their pages back */
	uint64_t reconciled_bytes; /* set right from the kernel's maps: mapped or gone although no event told */
	uint64_t checked_ns;	   /* when these were read */
	uint64_t check_age_ns;	   /* from the check to the process's end, its exec, or the recording's end */
	uint64_t checked_mappings;
	uint64_t mismatch_bytes;     /* pages on which the model and the kernel differ */
	uint64_t unverifiable_bytes; /* changed by calls in flight while the kernel's maps were read */
	uint64_t unread_bytes;	     /* of these: moved while the first maps were read, and in no later ones */
	uint64_t compared_bytes;     /* size of the mappings in the kernel's maps */
	uint64_t mapping_count; /* at the end of the window, as the kernel counts them for vm.max_map_count */
	uint64_t unknown_bytes;	     /* pages never seen in any snapshot */
	bool ended;		     /* ended by itself while recorded: figures are those just before */
	bool unnamed_code;	     /* some of that code has no name in the recording: see lacks */
	bool checked;		     /* against the kernel's maps: the final ones, or those read while it still lived */
	bool checked_before_exec;    /* the maps are those of the program before its last exec */
};

/* Why a report may be incomplete. The values are stable; later versions add some at the end. */
enum mmt_warning {
	MMT_WARNING_MISSING_SYSCALL,	    /* no events of a system call, named in the text */
	MMT_WARNING_NO_SNAPSHOTS,	    /* the mappings of the process were never read */
	MMT_WARNING_NO_STACKS,		    /* recorded without call stacks */
	MMT_WARNING_NO_STACK_DUMPS,	    /* recorded without registers and stack memory */
	MMT_WARNING_RECORDED_BY_PERF,	    /* no resident sizes and perf maps */
	MMT_WARNING_VFORK_CHILDREN,	    /* children of vfork(2) may count twice */
	MMT_WARNING_MISSING_ARGUMENTS,	    /* calls without arguments are ignored */
	MMT_WARNING_UNKNOWN_EFFECT,	    /* events do not hold what these calls did */
	MMT_WARNING_FAKED_CALLS,	    /* a seccomp filter or a tracer answered calls */
	MMT_WARNING_UNEXPLAINED_MISMATCH,   /* differs from the kernel's maps, with no event lost */
	MMT_WARNING_SUMS_NOT_EXACT,	    /* 16 EiB or more */
	MMT_WARNING_SET_USER_ID,	    /* calls of set-user-ID programs are missing */
	MMT_WARNING_JIT_CODE_UNNAMED,	    /* no names for JIT code */
	MMT_WARNING_PERF_MAP_LIMIT,	    /* lines of a perf map were ignored */
	MMT_WARNING_JITDUMP_CLOCK,	    /* a jitdump has times of another clock */
	MMT_WARNING_JITDUMP_RECORDS,	    /* records of a jitdump were ignored */
	MMT_WARNING_JITDUMP_CUT,	    /* a jitdump ends within a record */
	MMT_WARNING_JITDUMP_UNUSABLE,	    /* a jitdump was ignored */
	MMT_WARNING_FRAME_POINTERS_UNKNOWN, /* JIT code may have no frame pointers: callers may be missing */
	MMT_WARNING_STACKS_END_IN_JIT_CODE,
	MMT_WARNING_JIT_CODE_REPLACED,	      /* JIT code was replaced too often: callers may be missing */
	MMT_WARNING_PRECOMPILED_CODE_UNNAMED, /* no names for precompiled .NET code */
	MMT_WARNING_INTERPRETED_CODE_UNNAMED, /* no names for interpreted functions */
	MMT_WARNING_MODULE_UNUSABLE,	      /* an ELF file is missing or another one */
	MMT_WARNING_MODULES_NOT_KEPT,	      /* advice for such files */
	MMT_WARNING_DEBUG_INFORMATION,	      /* debug information is damaged or incomplete */
	MMT_WARNING_MORE_WARNINGS,	      /* how many were left out */
};

/* The word in JSON documents, for instance "no-snapshots". Static; "unknown" for other values. */
MMT_PUBLIC const char *mmt_warning_name(enum mmt_warning warning);

/* What a recording cannot say, for the first screen of a report. */
struct mmt_completeness {
	bool incomplete;	     /* the recorder did not finish (killed, file cut short) */
	uint64_t unfinished_records; /* at the end of what was written or can be read, where others of that time are
					missing: left out */
	uint64_t unfinished_ns;	     /* how long that time is */
	bool damaged;		     /* undecodable bytes were met; what lies before them is used */
	const char *damage;	     /* what and where; NULL when not damaged */
	uint64_t lost_events;	     /* syscall events */
	uint64_t lost_stack_dumps;
	uint64_t lost_large_stack_dumps; /* in addition to the others */
	uint64_t large_dumps_off_ns;	 /* how long they were off because of high call rates */
	uint64_t missed_threads;	 /* made calls unseen: not attached to */
	uint64_t missed_cpus;		 /* came online during recording: some or all of their events are missing */
	uint64_t left_processes;	 /* left the control group that was recorded: what they did then was not seen */
	uint64_t ambiguous_events;	 /* order of racing calls could not be told */
	uint64_t
	    out_of_order_events; /* stood in the recording behind younger ones: its clock jumped, or records are late */
	uint64_t reconciled_bytes;		     /* see struct mmt_process */
	bool reconciled_by_loss;		     /* events were lost: that is why; else the model was wrong */
	uint64_t stacks_by_end[MMT_STACK_END_KINDS]; /* of all calls that mapped memory or made it accessible */
	uint64_t complete_stacks, doubtful_stacks, truncated_stacks; /* of the same: doubtful ones are complete, but
									have doubtful frames */
	uint64_t frames, frames_without_name;			     /* of the groups */
	uint64_t jit_frames_without_name,
	    runtime_frames_without_name; /* of these: in JIT code, in a runtime's own files */
	const char *const
	    *warnings; /* sentences: what this file does not hold ("no munmap events: ...") and what to do */
	const enum mmt_warning *warning_codes; /* of the warnings, in the same order */
	size_t warning_count;
};

/* Calls that failed, by stack: they mapped nothing. */
struct mmt_failure {
	enum mmt_event_count call;
	int error; /* errno */
	uint64_t count;
	uint64_t asked_bytes; /* sum of the lengths asked for, UINT64_MAX when it is more */
	uint64_t first_ns, last_ns;
	const struct mmt_frame *const *frames;
	size_t frame_count, hidden_frame_count;
	enum mmt_stack_end stack_end;
	const int32_t *pids;
	size_t pid_count;
};

/* Made while recording: see mmt_record_options.mark_fd. */
struct mmt_mark {
	uint64_t number; /* from 1 */
	uint64_t time_ns;
};

/* What all processes asked for had in memory, files and shared memory included, as /proc/PID/statm tells. */
struct mmt_resident_reading {
	uint64_t time_ns;
	uint64_t resident_bytes;
};

/* What the resident sizes of a recording show. mmtrace-report(1) has the rule. */
enum mmt_verdict {
	MMT_VERDICT_UNKNOWN,   /* no resident sizes were recorded */
	MMT_VERDICT_TOO_SHORT, /* too short to tell: see advised_ns */
	MMT_VERDICT_GROWING,
	MMT_VERDICT_PLATEAU, /* grew, then level: see settled_ns */
	MMT_VERDICT_STEADY,
	MMT_VERDICT_SHRINKING,
	MMT_VERDICT_KINDS,
};

/* Word of documents, for instance "too-short". Static. */
MMT_PUBLIC const char *mmt_verdict_name(enum mmt_verdict verdict);

/* What a page that was resident at one of the two times, and not at the other, belongs to. */
enum mmt_growth_place {
	MMT_GROWTH_MADE,      /* a mapping made in the recording */
	MMT_GROWTH_COMMITTED, /* one from before, of which the recording shows who made it accessible */
	MMT_GROWTH_BEFORE,    /* one that was accessible before */
	MMT_GROWTH_KERNEL,    /* mapped by the kernel itself: programs, stacks */
	MMT_GROWTH_UNMAPPED,  /* one from before that is gone */
	MMT_GROWTH_PLACES,
};

/* Word of documents, for instance "before". Static. */
MMT_PUBLIC const char *mmt_growth_place_name(enum mmt_growth_place place);

struct mmt_growth_part {
	enum mmt_growth_place place;
	enum mmt_class memory_class; /* of MMT_GROWTH_BEFORE; otherwise MMT_CLASS_KINDS */
	bool arena;		     /* of malloc, told from its size and address */
	const char *name;	     /* of a file; NULL */
	int64_t bytes;
	uint64_t order; /* among parts of equal bytes */
};

struct mmt_growth {
	enum mmt_verdict verdict;
	uint64_t start_bytes, end_bytes, peak_bytes; /* resident, of the window; MMT_UNKNOWN */
	uint64_t start_ns, end_ns, peak_ns;	     /* of these readings */
	int64_t bytes_per_minute;		     /* from the first reading to the last */
	int64_t late_bytes_per_minute;		     /* in the second half, of the lowest sizes */
	uint64_t floor_bytes;			     /* changes up to this are noise; 0: not known */
	uint64_t settled_ns;			     /* of a plateau: when it was reached */
	uint64_t advised_ns;			     /* too short: how long a recording should be */
	/* Residency was read at the start and at the end. Then pages_end_bytes - pages_start_bytes, which the kernel
	 * reported at these times, is the sum of the parts and unexplained_bytes. */
	bool parts_known;
	uint64_t pages_start_bytes, pages_end_bytes;
	int64_t unexplained_bytes;
	const struct mmt_growth_part *parts; /* largest first, whatever their sign */
	size_t part_count;
};

struct mmt_thread_total {
	struct mmt_thread thread;
	uint64_t allocated_bytes, allocated_count;
	uint64_t freed_by_itself_bytes;
	uint64_t freed_by_others_bytes; /* and by the end of a process, and by calls that were lost */
	uint64_t unfreed_bytes, unfreed_count;
	uint64_t released_bytes; /* by this thread, whoever had mapped them */
};

/* Which thread released whose memory. */
struct mmt_release {
	size_t owner; /* places in thread_totals */
	size_t releaser;
	uint64_t bytes;
};

/* The state at one moment: everything before it has happened. */
struct mmt_step {
	uint64_t to_ns;
	uint64_t unfreed_bytes, committed_bytes, reserved_bytes;
	uint64_t resident_bytes; /* MMT_UNKNOWN, as for the end alone a snapshot may tell */
	uint64_t
	    process_resident_bytes; /* of the last of the resident readings until then; MMT_UNKNOWN: there was none */
};

struct mmt_report {
	const char *input;
	const char *command_line;   /* of the recorder; "" unknown */
	const char *host, *kernel;  /* "" unknown */
	const char *recorded_by;    /* "mmtrace 0.1.0", "perf 6.1" */
	uint64_t start_ns, end_ns;  /* of the recording */
	uint64_t from_ns, to_ns;    /* the window */
	uint64_t allocations_to_ns; /* mappings of [from_ns, allocations_to_ns) count */
	bool windowed;		    /* less than the whole recording was asked for */
	enum mmt_group_by by;
	uint32_t classes;	 /* as asked for */
	const char *const *hide; /* as asked for */
	size_t hide_count;
	bool exact_order;	    /* recorded with lock events */
	bool stacks_recorded;	    /* stacks were recorded for every call; false if not, or if that is not known */
	uint32_t mapping_limit;	    /* vm.max_map_count when it was recorded; 0: not known */
	uint32_t stack_dump_bytes;  /* requested for every call; 0: none, or not known */
	uint64_t start_realtime_ns; /* since the epoch; 0 unknown */
	uint64_t events[MMT_COUNT_KINDS]; /* calls of the window, of the processes asked for; by enum mmt_event_count */
	uint64_t failed_calls;		  /* those of `failures` */
	struct mmt_completeness completeness;
	const struct mmt_process *processes;
	size_t process_count;
	size_t left_out_process_count;	/* not selected by the options */
	const struct mmt_group *groups; /* by id: largest memory_bytes first, then the largest without memory */
	size_t group_count;
	uint64_t unfreed_bytes, committed_bytes, reserved_bytes, resident_bytes; /* sums; resident MMT_UNKNOWN */
	uint64_t ended_bytes;  /* unfreed in children that ended while a target lived on; in no other unfreed figure */
	uint64_t before_bytes; /* mapped before the window and still there */
	uint64_t kernel_bytes; /* mapped by the kernel itself and still there */
	uint64_t too_recent_bytes; /* mapped in [allocations_to_ns, to_ns) and still there */
	uint64_t committed_before_bytes;
	uint64_t allocated_bytes, freed_bytes;
	uint64_t peak_bytes, peak_ns;
	uint64_t every_ns;	      /* as asked for, or chosen for `lifetime_steps` */
	const struct mmt_step *steps; /* each every_ns later; the last at to_ns, with the figures above */
	size_t step_count;
	const struct mmt_part *parts; /* by group; none unless `lifetime_steps` was asked for */
	size_t part_count;
	uint64_t lifetime_step_ns;
	uint32_t lifetime_steps;      /* how many there are; the last includes to_ns */
	const struct mmt_mark *marks; /* until the end of the window, in order */
	size_t mark_count;
	const struct mmt_resident_reading *resident_readings; /* of the window, in order; none: not recorded */
	size_t resident_reading_count;
	struct mmt_growth growth;	    /* of these */
	const struct mmt_failure *failures; /* most frequent first; those of the window */
	size_t failure_count;
	const struct mmt_thread_total *thread_totals; /* most unfreed first */
	size_t thread_total_count;
	const struct mmt_release *releases; /* most bytes first */
	size_t release_count;
};

/* Set everything to 0, then the defaults: the size, and the input "mmtrace.data". */
MMT_PUBLIC void mmt_report_options_init_size(struct mmt_report_options *options, size_t size);

static inline void mmt_report_options_init(struct mmt_report_options *options)
{
	mmt_report_options_init_size(options, sizeof(*options));
}

/*
 * Damage and loss are no errors: see completeness. An error means that there is nothing to report. MMT_ERROR_FORMAT:
 * the input is no recording, or has no memory events. MMT_ERROR_INVALID: the window is empty or names a mark that is
 * missing.
 *
 * What the options point to is needed until the report is destroyed. One thread at a time may use a report;
 * different reports are independent. Threads that are started, with all signals blocked, have ended when it returns,
 * and malloc_trim() was called.
 */
MMT_PUBLIC struct mmt_error *mmt_report_create(const struct mmt_report_options *options,
					       struct mmt_report **report_ret) MMT_MUST_CHECK;

struct mmt_instruction {
	uint64_t address;	 /* as mmt_frame.module_offset, or in the process where that is not known */
	const char *text;	 /* "call 0x1234" */
	const char *source_file; /* NULL: unknown */
	uint32_t source_line;
	bool here; /* the call that the frame is in, or the instruction that was executed */
};

struct mmt_annotation {
	const struct mmt_frame *frame;
	const struct mmt_instruction *instructions; /* none: the code is not at hand */
	size_t instruction_count;
	bool left_out; /* none: the recording was packed without code */
	bool is_copy;  /* JIT code as it was last seen */
};

/* As many before and behind are shown, and packed recordings have no more. */
#define MMT_ANNOTATION_AROUND 8

/* The instructions around the place of a frame of the report, at most `around` before and behind. Belongs to the
 * report. */
MMT_PUBLIC struct mmt_error *mmt_report_annotate(struct mmt_report *report, const struct mmt_frame *frame,
						 size_t around, struct mmt_annotation *annotation_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
MMT_PUBLIC void mmt_report_destroy(struct mmt_report *report);

#ifdef __cplusplus
}
#endif

#endif
