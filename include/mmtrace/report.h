/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Analyses a recording: unfreed bytes by call stack. Reads only the recording and the modules that it names, whose
 * build-ids it compares.
 *
 * A `struct mmt_report` owns all its strings and arrays; they live as long as the report. Strings come from the
 * recording and can contain any byte except NUL: use mmt_write_escaped() of mmtrace/output.h to print them. Times are
 * nanoseconds of the recording's clock (CLOCK_MONOTONIC if mmtrace recorded it). Addresses are those of the recorded
 * process. Sizes are in bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mmtrace/error.h>
#include <mmtrace/figures.h>
#include <mmtrace/heap.h>
#include <mmtrace/progress.h>
#include <mmtrace/record.h>
#include <mmtrace/words.h>

#define MMT_UNKNOWN UINT64_MAX	   /* the recording does not have the data for this figure */
#define MMT_RATE_UNKNOWN INT64_MIN /* likewise, for bytes per minute */

/* How a time of the recording is given. */
enum mmt_timestamp_kind {
	MMT_TIMESTAMP_DEFAULT,	   /* the start (from) or the end (to) of the recording */
	MMT_TIMESTAMP_SINCE_START, /* ns after the start of the recording */
	MMT_TIMESTAMP_BEFORE_END,  /* ns before the end of the recording */
	MMT_TIMESTAMP_REALTIME,	   /* ns since the epoch */
	MMT_TIMESTAMP_TIME_OF_DAY, /* ns since midnight, local time; the first after the start of the recording */
	MMT_TIMESTAMP_CLOCK,	   /* ns of the recording's clock */
};

struct mmt_timestamp {
	enum mmt_timestamp_kind kind;
	uint64_t ns;
};

#define MMT_LIFETIME_STEPS_MAX 65534

struct mmt_report_options {
	const char *input;   /* path of the recording */
	const int32_t *pids; /* only these processes, also by PIDs that one has inside its container; NULL: all */
	size_t pid_count;
	bool no_demangle;
	const struct mmt_progress *progress; /* NULL: none */
	enum mmt_row_key by;
	/* Rows of pairs of keys: MMT_BY_STACK, the default, means one key. Otherwise neither key is MMT_BY_STACK, both
	 * differ, MMT_BY_THREAD means the thread, and lifetime_steps is 0. */
	enum mmt_row_key then_by;
	uint32_t classes; /* bits 1 << enum mmt_class of the classes to report; 0: all */
	/* The time window. Mappings count if they were mapped in [from, to - min_age). They count as freed if they were
	 * unmapped before `to`, so that allocated - freed = unfreed in every window. */
	struct mmt_timestamp from, to;
	uint64_t min_age_ns;
	uint64_t every_ns; /* interval of `steps` of the report and `step_bytes` of its rows; 0: none */
	/* Divide the window into at most this many steps, from 16 to MMT_LIFETIME_STEPS_MAX, and report `parts` with
	 * the lifetimes of the mappings; 0: none. There are fewer and longer steps if there would be more than 262,144
	 * lifetimes, which bounds the memory; sums stay exact. Without every_ns and with more than 16 steps, the report
	 * then has about 200 `steps` if the end of the recording is known. */
	uint32_t lifetime_steps;
	/* Only the memory that these patterns select: "KEY=PATTERN", or a pattern alone, of the shell. KEY is function
	 * or module (of any frame of the stack), file (which is mapped: its path or base name), class, or thread (which
	 * mapped it: its name at that time, or its ID). A pattern alone is one of functions and modules. Memory is
	 * selected if for each KEY given in `focus` one of its patterns matches, and none of those in `ignore`. */
	const char *const *focus;
	size_t focus_count;
	const char *const *ignore;
	size_t ignore_count;
	/* Stacks that differ only in lines or inlining are one row: for mmt_diff_create(). */
	bool merge_lines;
	/* True: if the recorded command or all processes have ended, count each program that did as just before its
	 * end, so that a leak of one of many shows; only copies, such as a server forks for requests, can be
	 * `released`. For mmt_diff_create(). False: programs can, too. In a report: whether it was so. */
	bool keep_ended;
	/* For a recording with stack dumps that still grows; NULL: report it as it is. Called when it has been read to
	 * its end. Returns true to read on; false: the report is of what has been read. A caller who wants a report and
	 * to go on forks, and the child returns false: nothing starts a thread before. `new_names`: the recorder has
	 * written names since the call of mmt_report_create(), which reports made by it do not have. */
	bool (*follow)(void *context, bool new_names);
	void *follow_context;
};

/* True if the stack reached the entry of the thread or of a coroutine. Otherwise the stack is truncated. */
MMT_PUBLIC bool mmt_stack_end_is_complete(enum mmt_stack_end end);

/* Recordings contain these numbers. */
enum mmt_frame_kind {
	MMT_FRAME_NATIVE = 0,  /* in a module */
	MMT_FRAME_JIT = 1,     /* in JIT code, with or without a name */
	MMT_FRAME_UNKNOWN = 2, /* in no known mapping */
};

struct mmt_frame {
	enum mmt_frame_kind kind;
	bool inlined;		  /* the function was inlined into the next frame */
	bool doubtful;		  /* a guess: it follows no call instruction, or frames before it may be missing */
	const char *function;	  /* demangled and normalised; NULL: no symbol */
	const char *raw_function; /* as in the symbol table or perf map; NULL: no symbol */
	const char *module;	  /* base name, "[jit]", "[vdso]"; NULL for MMT_FRAME_UNKNOWN */
	const char *module_path;  /* as the kernel reported it; NULL for MMT_FRAME_UNKNOWN */
	const char *source_file;  /* NULL: unknown */
	uint32_t source_line;	  /* 0: unknown */
	uint64_t address;	  /* in one of its processes; a return address, except in the innermost frame */
	uint64_t module_offset;	  /* MMT_FRAME_NATIVE: ELF virtual address in the module */
};

/* True if the frame is in a module of a language runtime, unless it is a main function that only starts the runtime. */
MMT_PUBLIC bool mmt_frame_is_runtime(const struct mmt_frame *frame);

/* True for code that is compiled into the program, but that its author did not write: allocators that only call malloc,
 * the containers of C++ and Rust, and the runtime of Go. */
MMT_PUBLIC bool mmt_frame_is_language_library(const struct mmt_frame *frame);

/* True if the frame is in a file of an interpreter (Python, PHP, Ruby), or an extension module of Python's library.
 * is_loop_ret: whether it is in the function that interprets the program's code; may be NULL. */
MMT_PUBLIC bool mmt_frame_is_interpreter(const struct mmt_frame *frame, bool *is_loop_ret);

/* Of an ELF file that was mapped. */
struct mmt_module {
	const char *path;     /* as in mmt_frame.module_path */
	const char *build_id; /* in hexadecimal digits */
};

struct mmt_thread {
	int32_t pid;
	int32_t tid;
	const char *name;
};

#define MMT_TREND_POINTS 32

/* Known reason why memory that looks like a leak may be none, derived from the names in the stack. */
enum mmt_pattern {
	MMT_PATTERN_NONE,
	MMT_PATTERN_ARENA,	   /* address space that malloc reserves for a thread, mostly PROT_NONE */
	MMT_PATTERN_THREAD_STACK,  /* the C library caches the stacks of finished threads */
	MMT_PATTERN_HEAP,	   /* the heap (brk), which malloc grows and rarely shrinks */
	MMT_PATTERN_GC_HEAP,	   /* heap of a managed runtime */
	MMT_PATTERN_CODE,	   /* code that a runtime or the loader maps */
	MMT_PATTERN_DIRECT_BUFFER, /* memory of Java outside its heap: direct ByteBuffers and Unsafe */
	MMT_PATTERN_JVM_NATIVE,	   /* mapped by malloc for the JVM itself */
	MMT_PATTERN_ARRAY_BUFFER,  /* contents of Node's Buffers and ArrayBuffers */
	MMT_PATTERN_FILE,
	MMT_PATTERN_MEMFD,
	MMT_PATTERN_SHM,
	MMT_PATTERN_AIO,       /* contexts of io_setup() */
	MMT_PATTERN_METASPACE, /* what HotSpot knows of Java's classes */
	MMT_PATTERN_PYTHON,    /* arenas of Python's objects */
	MMT_PATTERN_KINDS,
};

/* Memory that an allocator or a runtime keeps by design, so that its stack is not what leaks. */
MMT_PUBLIC bool mmt_pattern_is_by_design(enum mmt_pattern pattern);

/* The word of documents, and an explanation of one sentence. Static; NULL for MMT_PATTERN_NONE. */
MMT_PUBLIC const char *mmt_pattern_name(enum mmt_pattern pattern);
MMT_PUBLIC const char *mmt_pattern_explanation(enum mmt_pattern pattern);

/* LEAK, PART_OF_LEAK and KEEPS_GROWING. */
MMT_PUBLIC bool mmt_row_leaks(enum mmt_row_verdict verdict);

/* Private anonymous memory in transparent huge pages when recording ended. A huge page is resident as a whole as soon
 * as a byte of it is written. The recorder compares a sample of these pages with zero. */
struct mmt_huge_pages {
	uint64_t bytes;		/* 0: none, or unknown */
	uint64_t sampled_bytes; /* size of the pages in the sample; 0: there is none */
	uint64_t zero_bytes;	/* estimate from the sample: only zeros, so most likely never written; the sum of the
				   processes that have a sample */
	const char *hint;	/* what helps if that is a large part; otherwise NULL */
};

/* Sums stop here: this value means "this much or more". */
#define MMT_BYTES_MAX (UINT64_MAX - 1)

/* One row of a report. */
struct mmt_row {
	uint32_t id;	  /* from 1, in the order of memory_bytes in the whole window */
	const char *name; /* of the function, module, file, class or process; NULL: the row is a stack */
	const struct mmt_frame *const *frames; /* innermost first; only if the row is a stack. Rows share frames */
	size_t frame_count;
	size_t origin; /* place in `frames` of the innermost function of the program, outside the C library, the loader,
			  and the libraries of C++, Rust and Go; frame_count: there is none */
	bool lines_differ; /* with `merge_lines`: `frames` are those of one of several merged stacks */
	/* A stack of the same functions has the same number in every recording: their modules and names or, of
	 * functions without a name, build-id and place. 0: the row has a name. Hostile recordings can choose it. */
	uint64_t identity;
	enum mmt_stack_end stack_end;
	enum mmt_pattern pattern;
	const char *hint; /* what this memory is, whether it is likely a leak, and what helps; NULL: none */
	uint64_t class_bytes[MMT_CLASS_KINDS]; /* unfreed bytes by class */
	bool lost; /* mapped by calls that were lost: known only from the kernel's maps, as is allocated_bytes */

	MMT_ROW_FIGURES(MMT_MEMBER)
	uint32_t reserved_by; /* id of the row that reserved most of what this one made accessible; 0: itself, none */
	uint32_t joined_to;   /* id of the largest row that made accessible what this one only reserved; 0: none */
	uint64_t trend[MMT_TREND_POINTS];	   /* unfreed bytes at equal intervals; the last at the end */
	uint64_t survivor_trend[MMT_TREND_POINTS]; /* the same, only of bytes that are unfreed at the end */
	const uint64_t *committed_trend; /* MMT_TREND_POINTS integers: committed bytes at these times, also in memory
					    mapped before; NULL: as `trend` */
	/* From the lifetimes of its mappings, or from committed_trend if it has no mappings of its own. */
	enum mmt_row_verdict verdict;
	enum mmt_class memory_class; /* of most of the unfreed bytes, or of the committed bytes if there are none */
	const char *file;	     /* with most of these bytes, if the class is MMT_CLASS_FILE; otherwise NULL */
	size_t file_count;	     /* number of files with unfreed bytes */
	const uint64_t *step_bytes;  /* unfreed bytes at each step of the report */
	size_t step_count;	     /* as in the report; 0: not requested, or too many for all rows */

	uint32_t cause;			  /* place in the report's causes, from 1; 0: none */
	const struct mmt_thread *threads; /* threads that mapped the unfreed bytes, most bytes first */
	size_t thread_count;
	const int32_t *pids;
	size_t pid_count;
};

#define MMT_STILL_MAPPED UINT32_MAX

/* Bytes of a part that were mapped in one step and unmapped in another: one for each piece of a mapping. */
struct mmt_lifetime {
	uint32_t allocated_step; /* from 0; step N of the report starts at from_ns + lifetime_step_ns * N */
	uint32_t released_step;	 /* MMT_STILL_MAPPED: not unmapped in the window */
	uint64_t bytes;
	uint64_t count; /* number of mappings, counted at their last piece */
};

/* The memory of a row that one thread mapped, of one class and file. The figures of the parts of a row add up to the
 * row's. The lifetimes of a part add up to its allocated_bytes, those with MMT_STILL_MAPPED to its unfreed_bytes. */
struct mmt_part {
	size_t row;	/* index in the report's rows */
	size_t process; /* index in the report's processes */
	/* tid 0 and name "" if unknown: for memory known only from the kernel's maps, and for memory that was made
	 * accessible by another stack than the one that mapped it. */
	struct mmt_thread thread;
	enum mmt_class memory_class;
	const char *file; /* path of the mapped file; NULL: none, or unknown */
	MMT_PART_FIGURES(MMT_MEMBER)
	const struct mmt_lifetime *lifetimes; /* sorted by allocated_step, then released_step */
	size_t lifetime_count;
};

/* Rows of one function or pattern, with those that committed what these reserved; leaks of a function are separate. */
struct mmt_cause {
	const char *name;	     /* of the innermost function of the program, with its module; NULL: see pattern */
	enum mmt_pattern pattern;    /* that more than half of its bytes have */
	enum mmt_class memory_class; /* of the first row, as is the file */
	const char *file;
	/* Of memory that malloc keeps, and of thread stacks: the function in whose calls most of it was mapped or made
	 * accessible, which need not keep it. Of a function that several others call: that of these with most. NULL:
	 * not known, or none has a quarter. caller_bytes: memory_bytes of its rows. */
	const char *caller;
	uint64_t caller_bytes;
	enum mmt_row_verdict verdict; /* a leak if 1/16 of the memory is; otherwise of the largest row */
	bool leaks_together;	      /* the rows are a leak together, although some or all are none by themselves */
	MMT_CAUSE_FIGURES(MMT_MEMBER) /* sums of the rows */
	const uint32_t *rows;	      /* ids, from the largest on */
	size_t row_count;
};

/* The first and the last reading of a process in the window; see resident_readings. */
struct mmt_process_readings {
	uint64_t start_ns, end_ns;
	MMT_READINGS_FIGURES(MMT_MEMBER)
	/* The most RSS and swap in the last quarter of the readings, and in the last three: a program that ends may
	 * free much just before. */
	uint64_t late_bytes;
	bool private_known; /* the verdict on all processes goes by Pss */
	/* In the window; known of several processes only. Of resident and swapped memory or, if `private_known`, of
	 * private memory, unless only the process's anonymous memory is GROWING, which it may share with children. */
	bool growth_known;
	enum mmt_verdict verdict;
	int64_t growth_bytes;
	int64_t bytes_per_minute; /* as in struct mmt_growth */
	bool grows;		  /* alive and GROWING, by enough to make that the verdict on all processes */
	bool rising;		  /* ... and still rising at the end */
	bool brief;		  /* one of several that came and went: not in the verdict */
};

struct mmt_process {
	int32_t pid;
	int32_t parent_pid;    /* 0: unknown */
	int32_t container_pid; /* in its own PID namespace; 0: unknown */
	bool ended : 1; /* ended during the recording: the figures are those just before; a bit, to keep this small */
	bool released : 1; /* it ended, and rows and totals have none of its memory, because others ran on or later */
	bool unnamed_code : 1; /* some JIT code has no name: see the warnings */
	bool checked : 1; /* compared with the kernel's maps at the end, or earlier ones if it has ended */
	bool checked_before_exec : 1; /* compared with maps from before its last exec */
	const char *name;
	const char *program;	   /* path of the executed file, as the kernel's maps name it; NULL: unknown */
	const char *control_group; /* path in its hierarchy, as in /proc/PID/cgroup; "": unknown, or the root */
	const char *runtime; /* that produced the JIT code: "dotnet", "java", "node" ...; NULL: none, or unknown */
	MMT_PROCESS_FIGURES(MMT_MEMBER)
	uint32_t threads;	  /* all that it ever had */
	uint32_t peak_kib; /* the most accessible memory mapped since its exec, without thread stacks; up to 4 TiB */
	uint64_t start_boot_ns;	  /* start time since boot; 0: unknown. PID and start time identify a process */
	uint64_t started_ns;	  /* or the recorded command's exec; as times of events; 0: before the recording */
	uint64_t ended_ns;	  /* likewise; UINT64_MAX: it did not end */
	const struct mmt_process_readings *readings; /* NULL: none */
};

/* readings->growth_bytes or, if that is not known, the change of resident and swapped memory; 0 without readings. */
MMT_PUBLIC int64_t mmt_process_growth(const struct mmt_process *process);

/* What is missing in a recording. */
struct mmt_completeness {
	bool incomplete;	     /* the recorder did not finish, or the file is truncated */
	bool truncated;		     /* the file is truncated, which `damage` says */
	uint64_t unfinished_records; /* discarded at the end, because records from other CPUs are missing */
	uint64_t unfinished_ns;	     /* duration of the discarded records */
	bool damaged;		     /* some data cannot be decoded; only the events before it are used */
	const char *damage;	     /* description; NULL if not damaged */
	uint64_t lost_events;	     /* of system calls */
	uint64_t lost_stack_dumps;
	uint64_t lost_large_stack_dumps; /* in addition to lost_stack_dumps */
	uint64_t large_dumps_off_ns;	 /* how long large dumps were switched off because of high call rates */
	uint64_t missed_threads;	 /* whose calls were not recorded */
	uint64_t missed_cpus;		 /* came online during recording: some or all of their events are missing */
	uint64_t left_processes;	 /* left the recorded control group; their later calls are missing */
	uint64_t ambiguous_events;	 /* calls that ran at the same time, in unknown order */
	uint64_t out_of_order_events;	 /* older than the previous event: the clock jumped, or records were late */
	uint64_t lost_faults;		 /* page faults whose samples were lost; with events on CPUs: of any process */
	uint64_t lost_reclaims;		 /* begins and ends of what mmt_stall counts, likewise */
	uint64_t reconciled_bytes;	 /* see struct mmt_process */
	bool reconciled_by_loss;	 /* because events were lost; false: because the model was wrong */
	uint64_t stacks_by_end[MMT_STACK_END_KINDS]; /* of calls that mapped memory or made it accessible */
	/* Of the same; doubtful: complete, with doubtful frames. */
	uint64_t complete_stacks, doubtful_stacks, truncated_stacks;
	uint64_t frames, frames_without_name;			       /* in the rows */
	uint64_t jit_frames_without_name, runtime_frames_without_name; /* part of these */
	const char *const *warnings; /* sentences: what is missing ("no munmap events: ...") and how to fix it */
	const enum mmt_warning *warning_codes; /* of the warnings, in the same order */
	size_t warning_count;
};

struct mmt_limit {
	enum mmt_limit_kind kind;
	uint64_t value, used;
};

/* Failed calls of one stack. */
struct mmt_failure {
	enum mmt_event_count call;
	int error; /* errno */
	uint64_t count;
	uint64_t asked_bytes; /* sum of the requested lengths, at most UINT64_MAX */
	uint64_t first_ns, last_ns;
	const struct mmt_frame *const *frames;
	size_t frame_count;
	size_t origin; /* place in `frames`, as in struct mmt_row */
	enum mmt_stack_end stack_end;
	const int32_t *pids;
	size_t pid_count;
	bool refused;		/* the kernel refused memory, rather than arguments */
	struct mmt_limit limit; /* which the first of them met */
};

/* Times in which threads of a process freed memory themselves, because there was too little for their own allocations:
 * direct reclaim, of the machine or of a control group. */
struct mmt_stall {
	int32_t pid;
	uint64_t count;
	uint64_t total_ns, longest_ns;
	const struct mmt_frame *const *frames;
	size_t frame_count;
	size_t origin; /* place in `frames`, as in struct mmt_row */
	enum mmt_stack_end stack_end;
};

/* A process chosen by the OOM killer, not always a recorded one. */
struct mmt_oom_kill {
	uint64_t time_ns;
	int32_t pid;   /* of the victim */
	char name[16]; /* of the victim; "": not known */
};
#define MMT_OOM_KILL_TEXT 64

/* How the recorded command or a target that the user named ended, unless with status 0: a signal comes before a status,
 * the last first. */
struct mmt_command_end {
	uint64_t time_ns; /* 0: with status 0, not in the window, none has ended, or not known */
	int32_t pid;
	int status; /* as wait(2) returns it; see mmt_format_status() */
};

/* Code that touched memory of a part: a function, with the stack that touched most of it. */
struct mmt_toucher {
	const char *name;
	uint64_t bytes, error_bytes; /* an estimate, if page faults were sampled; 95 % of all errors are smaller */
	const struct mmt_frame *const *frames;
	size_t frame_count;
	size_t origin; /* place in `frames`, as in struct mmt_row */
	enum mmt_stack_end stack_end;
};

struct mmt_growth_part {
	enum mmt_growth_place place;
	enum mmt_class memory_class; /* for MMT_GROWTH_BEFORE; otherwise MMT_CLASS_KINDS */
	bool arena;		     /* a malloc arena, recognised by its size and address */
	const char *name;	     /* of the file; NULL: none */
	enum mmt_pattern pattern;    /* of MMT_GROWTH_BEFORE */
	const char *runtime;	     /* label of the runtime whose heap it is, for instance "Java"; NULL */
	const char *hint;	     /* as in the rows */
	int64_t bytes;
	/* Of MMT_GROWTH_BEFORE, the mappings of which more is resident than before: their size, and how much of it. */
	uint64_t mapped_bytes, filled_bytes;
	int64_t copied_bytes; /* of `bytes`: in private and writable mappings of a file */
	uint64_t order;	      /* sorts parts with equal bytes */
	/* The code that brought in pages that are still there, largest first; none for the heaps of malloc and of
	 * runtimes, where the code that needs the next page is rarely the one that keeps it. */
	const struct mmt_toucher *touchers;
	size_t toucher_count;
	uint64_t touched_bytes, touched_error_bytes; /* of all of these */
	/* In pages that no recorded fault brought in, although page faults can show who does: few faults bring in
	 * huge pages, so that sampling may see none. */
	uint64_t unattributed_bytes;
};

/* Resident memory of one kind, as the kernel's maps alone show it, so that two recordings can be compared. */
struct mmt_resident_kind {
	enum mmt_class memory_class;
	bool arena; /* as in struct mmt_growth_part, as are name and runtime */
	const char *name;
	const char *runtime;
	uint64_t start_bytes, end_bytes; /* when recording began and when it ended */
};

struct mmt_growth {
	enum mmt_verdict verdict;
	/* Of resident and swapped memory together, as the verdict. parts_known: end_bytes - start_bytes, or in a window
	 * pages_end_bytes - pages_start_bytes, is the sum of the parts, changing_bytes and unexplained_bytes. */
	MMT_GROWTH_FIGURES(MMT_MEMBER)
	/* Of several processes that share memory, the verdict and the figures below go by their proportional set size
	 * (by_pss), in which shared memory counts once, and otherwise by RSS; in both cases without processes that only
	 * come and go, such as those that a server forks for each request. Swap is that of the same processes. */
	bool by_pss;
	bool pss_missing; /* the Pss of some process is not known, so that shared memory may count several times */
	uint64_t sharers; /* processes that count, at the end */
	/* MMT_VERDICT_GROWING because some processes grow, although that on all together would be `sum_verdict`. */
	bool by_process;
	enum mmt_verdict sum_verdict;
	bool parts_known; /* residency was recorded near the start of the window, and later in it */
	/* With by_pss, if it was recorded which pages are private: the parts and the sizes below are of private pages
	 * only, and add up to end_private_bytes - start_private_bytes. The rest of the change of Pss is in pages that
	 * several processes have mapped. */
	bool parts_private;
	bool faults_recorded; /* page faults, which show who touched the parts */
	bool faults_sampled;  /* not every one */
	bool pages_at_ends;   /* read when start_bytes and end_bytes were; otherwise they are not compared with these */
	const struct mmt_growth_part *parts; /* sorted by absolute size, largest first */
	size_t part_count;
	/* Resident memory of the processes by kind. kinds_at_start, kinds_at_end: the pages of all are known then. */
	bool kinds_at_start, kinds_at_end;
	const struct mmt_resident_kind *kinds;
	size_t kind_count;
};

/* What readings in time order show, for instance those of a recording in progress. The parts are not known. */
MMT_PUBLIC struct mmt_growth mmt_growth_judge(const struct mmt_resident_reading *readings, size_t count);

/* Whether processes with this sum of resident sizes share so much memory that their growth goes by Pss. */
MMT_PUBLIC bool mmt_growth_goes_by_pss(uint64_t resident_bytes, uint64_t pss_bytes);

/* floor_bytes as a rate since rate_from_ns: smaller rates are noise. 0 if it is unknown. */
MMT_PUBLIC int64_t mmt_growth_rate_noise(const struct mmt_growth *growth);

/* By how much the judged memory, with swap and without outside_bytes, changed over the readings; 0 if it is unknown. */
MMT_PUBLIC int64_t mmt_growth_change(const struct mmt_growth *growth);

/* Blocks of one type, or of near sizes if no type is known. */
struct mmt_heap_kind {
	enum mmt_heap_content content;
	const char *name;  /* of the C++ type, or the path of the module; NULL: none */
	uint64_t offset;   /* in the module */
	bool is_one_block; /* one large block that grew, such as a vector or a hash table */
	MMT_HEAP_KIND_FIGURES(MMT_MEMBER)
};

/* The malloc heap of one process. */
struct mmt_heap {
	const struct mmt_process *process;
	/* The first and the last census in the window in which blocks were walked. start NULL: there is one only, so
	 * that growth is unknown; it is all 0 if the program started in the recording. If census_count is 0, no heap
	 * was walked: see end->result and end->allocator. */
	const struct mmt_heap_census *start, *end;
	size_t census_count;
	enum mmt_heap_verdict verdict;
	const struct mmt_heap_kind *kinds; /* those that grew most first */
	size_t kind_count;
};

/* All free bytes of a census. */
MMT_PUBLIC uint64_t mmt_heap_free_bytes(const struct mmt_heap_census *census);

struct mmt_thread_total {
	struct mmt_thread thread;
	uint64_t allocated_bytes, allocated_count;
	uint64_t freed_by_itself_bytes;
	uint64_t freed_by_others_bytes; /* including by the end of the process, and by lost calls */
	uint64_t unfreed_bytes, unfreed_count;
	uint64_t released_bytes; /* unmapped by this thread, mapped by any thread */
};

/* Memory that one thread mapped and another one unmapped. */
struct mmt_release {
	size_t owner; /* index in thread_totals, as releaser */
	size_t releaser;
	uint64_t bytes;
};

/* State at one time. */
struct mmt_step {
	uint64_t to_ns;
	uint64_t unfreed_bytes, committed_bytes, reserved_bytes;
	uint64_t resident_bytes;	 /* of the pages read in this step; MMT_UNKNOWN: none were read */
	uint64_t process_resident_bytes; /* from the last resident reading before to_ns; MMT_UNKNOWN: there is none */
	/* In malloc heaps, by the last census of each before to_ns, at least; MMT_UNKNOWN: there is none. */
	uint64_t heap_in_use_bytes, heap_free_bytes;
};

/* Counters of a control group. Files include those on tmpfs and shared memory, which SHMEM has alone. */
enum mmt_group_figure {
	MMT_GROUP_CURRENT,
	MMT_GROUP_ANON,
	MMT_GROUP_FILE,
	MMT_GROUP_SHMEM,
	MMT_GROUP_KERNEL,
	MMT_GROUP_LIMIT,     /* MMT_UNKNOWN: none */
	MMT_GROUP_OOM_KILLS, /* processes of the group that the kernel's OOM killer has killed so far */
	MMT_GROUP_STALLED,   /* microseconds so far in which some thread waited for memory (PSI) */
	MMT_GROUP_HIGH,	     /* MMT_UNKNOWN: no memory.high, above which the kernel slows the group down */
	MMT_GROUP_THROTTLED, /* how often it has done so */
	MMT_GROUP_FIGURES
};

/* At the first and the last reading in the window: bytes, but for OOM_KILLS, STALLED and THROTTLED; MMT_UNKNOWN: the
 * kernel does not have this counter. */
struct mmt_control_group {
	const char *path; /* of its directory; "": not recorded */
	bool selected;	  /* the recording is of this group; false: a target is in it, or below it */
	uint64_t start_ns, end_ns;
	uint64_t start[MMT_GROUP_FIGURES], end[MMT_GROUP_FIGURES];
	uint64_t peak_bytes; /* the largest MMT_GROUP_CURRENT */
};

struct mmt_report {
	const char *input;
	const char *command_line;   /* of the recorder; "": unknown */
	const char *host, *kernel;  /* "": unknown */
	const char *recorded_by;    /* "mmtrace 0.1.0", "perf 6.1" */
	uint64_t start_ns, end_ns;  /* of the recording */
	uint64_t from_ns, to_ns;    /* the window */
	uint64_t allocations_to_ns; /* mappings made in [from_ns, allocations_to_ns) count */
	bool windowed;		    /* the options select a part of the recording */
	enum mmt_row_key by, then_by;
	struct mmt_report_options options;	 /* as requested */
	bool stacks_recorded;			 /* for every call; false: not, or unknown */
	uint32_t mapping_limit;			 /* vm.max_map_count when it was recorded; 0: not known */
	const struct mmt_process *most_mappings; /* the process that has most of them; NULL: there is none */
	uint32_t stack_dump_bytes;		 /* requested size for every call; 0: none, or unknown */
	uint64_t start_realtime_ns;		 /* since the epoch; 0: unknown */
	uint64_t events[MMT_COUNT_KINDS]; /* calls in the window, of the selected processes; by enum mmt_event_count */
	uint64_t failed_calls;		  /* total of `failures` */
	struct mmt_completeness completeness;
	const struct mmt_process *processes;
	size_t process_count;
	size_t left_out_process_count; /* number of processes that the options do not select */
	const struct mmt_row *rows;    /* by id: largest memory_bytes first, then the largest without memory */
	size_t row_count;
	const struct mmt_cause *causes; /* leaks of some size first, then by memory_bytes; only if rows are stacks */
	size_t cause_count;
	MMT_REPORT_FIGURES(MMT_MEMBER) /* sums of the rows, or of the processes */
	/* The recorded group, or else `limiting_group`. NULL: none was recorded, or it has no counters. */
	const struct mmt_control_group *control_group;
	/* Of this group, those of the targets, and those above: in which the OOM killer ended most processes, or whose
	 * limit was the nearest at the end. NULL: as above. */
	const struct mmt_control_group *limiting_group;
	bool swapped_known;		 /* which pages are swapped out; false: not read, or the window ends earlier */
	uint64_t resident_hugetlb_bytes; /* of resident_bytes: huge pages of hugetlbfs, which are not in RSS */
	uint64_t every_ns;		 /* from the options, or chosen for `lifetime_steps` */
	const struct mmt_step *steps;	 /* at intervals of every_ns; the last at to_ns */
	size_t step_count;
	const struct mmt_module *modules; /* whose build-ids are known; of several at one path the first */
	size_t module_count;
	const struct mmt_part *parts; /* sorted by row; only if the options have `lifetime_steps` */
	size_t part_count;
	uint64_t lifetime_step_ns;
	uint32_t lifetime_steps;      /* number of steps; the last one includes to_ns */
	const struct mmt_oom_kill *oom_kills; /* up to the end of the window, in time order */
	size_t oom_kill_count;
	struct mmt_command_end command_end;
	const struct mmt_report *before_end; /* set by the caller: JSON has the answer of this one, too; or NULL */
	const struct mmt_resident_reading *resident_readings; /* in the window, in time order; none: not recorded */
	size_t resident_reading_count;
	/* What the verdict is about: these, or Pss, or RSS without short-lived processes. */
	const struct mmt_resident_reading *judged_readings;
	size_t judged_reading_count;
	struct mmt_growth growth;
	const struct mmt_heap *heaps; /* of malloc, whose size changed most first; none: not recorded */
	size_t heap_count;
	bool huge_pages_known;		    /* of all selected processes that were alive when recording ended */
	struct mmt_huge_pages huge_pages;   /* of these processes, in any memory */
	const struct mmt_failure *failures; /* in the window, most frequent first */
	size_t failure_count;
	const struct mmt_stall *stalls; /* that end in the window, the longest sum first; NULL: not recorded */
	size_t stall_count;
	const struct mmt_thread_total *thread_totals; /* most unfreed bytes first */
	size_t thread_total_count;
	const struct mmt_release *releases; /* most bytes first */
	size_t release_count;
};

/* Set the defaults: input "mmtrace.data", everything else 0. */
MMT_PUBLIC void mmt_report_options_init(struct mmt_report_options *options);

/*
 * Create a report. Damage and lost events are not errors: see `completeness`. MMT_ERROR_FORMAT: the input is not a
 * recording, or has no memory events. MMT_ERROR_INVALID: the window is empty, or a pattern of
 * `focus` or `ignore` has an unknown key.
 *
 * The objects that the options point to must live as long as the report. Only one thread at a time may use a report;
 * different reports are independent. The function starts threads with all signals blocked, which end before it returns,
 * and calls malloc_trim(3).
 */
MMT_PUBLIC struct mmt_error *mmt_report_create(const struct mmt_report_options *options,
					       struct mmt_report **report_ret) MMT_MUST_CHECK;

/* Accepts NULL. */
MMT_PUBLIC void mmt_report_destroy(struct mmt_report *report);

/* The word for readings alone: "GROWING", "PLATEAU", ... Static. */
MMT_PUBLIC const char *mmt_verdict_headline(enum mmt_verdict verdict);
/* The word that the report begins with, and `record` ends with: also "LEAK" and "NOTHING TO SEE". Static. */
MMT_PUBLIC const char *mmt_report_headline(const struct mmt_report *report);
/* Whether so short a recording has only what programs map when they start. */
MMT_PUBLIC bool mmt_report_has_nothing_to_see(const struct mmt_report *report);
/* The causes or, of a report that has none, the rows, from 0: memory of one function, file and so on is a cause itself.
 */
MMT_PUBLIC struct mmt_cause mmt_report_cause(const struct mmt_report *report, size_t place);
/* The first of them that is a leak and holds memory, of a heap that only grows at least 1/64 of the growth;
 * memory_bytes is 0: there is none. */
MMT_PUBLIC struct mmt_cause mmt_report_first_leak(const struct mmt_report *report);
/* Whether there is one, and whether the kernel refused a call for want of memory. */
MMT_PUBLIC bool mmt_report_has_leak(const struct mmt_report *report);

/* Is the headline that of the first leak, because it holds much of what grows? */
MMT_PUBLIC bool mmt_report_goes_by_rows(const struct mmt_report *report);
MMT_PUBLIC bool mmt_report_was_refused_memory(const struct mmt_report *report);

/* All of its processes have ended. */
MMT_PUBLIC bool mmt_report_has_ended(const struct mmt_report *report);

/* How much the processes, all of which grew, or ran too briefly to tell, and ended, unmapped in their last moments, or
 * how much was given back when the command ended before what it had started: the rows do not have it. 0: little, and
 * `since_ns_ret` is unchanged. */
MMT_PUBLIC uint64_t mmt_report_freed_at_end(const struct mmt_report *report, uint64_t *since_ns_ret);

/* "OOM kill of NAME (pid 12)". */
MMT_PUBLIC const char *mmt_oom_kill_describe(const struct mmt_oom_kill *oom_kill, char text[MMT_OOM_KILL_TEXT]);

/* The selected process that an OOM kill ended; NULL: another one. */
MMT_PUBLIC const struct mmt_process *mmt_oom_kill_victim(const struct mmt_report *report, const struct mmt_oom_kill *oom_kill);

/* Processes of the group that the OOM killer ended in the window; 0, too, if that is not known. `group` may be NULL. */
MMT_PUBLIC uint64_t mmt_control_group_oom_kills(const struct mmt_control_group *group);

/* Bytes at the end that the kernel cannot drop as it drops the page cache; counters that are not known count as 0. */
MMT_PUBLIC uint64_t mmt_control_group_used(const struct mmt_control_group *group);

/* The limit at the end, or memory.high if that is less; MMT_UNKNOWN: there is none. */
MMT_PUBLIC uint64_t mmt_control_group_limit(const struct mmt_control_group *group);

/* Bytes up to that limit at the end, with page cache in use; MMT_UNKNOWN: there is no limit. */
MMT_PUBLIC uint64_t mmt_control_group_room(const struct mmt_control_group *group);

/* Nanoseconds after the end in which the growth of the processes fills the limiting group up to its limit; MMT_UNKNOWN:
 * they do not grow, are not all in the group, or there is no limit. */
MMT_PUBLIC uint64_t mmt_control_group_full_ns(const struct mmt_report *report);

/* Is most of the limiting group's limit in use, or will it be soon? */
MMT_PUBLIC bool mmt_control_group_is_near(const struct mmt_report *report);
