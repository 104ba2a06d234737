/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The limits of memory and time for hostile or huge input. Each comment says what is bounded, why the number is what it
 * is, and what happens beyond it, where that differs from the first line of its group. mmtrace-internals(7) lists them.
 */
#pragma once

/* A recording: beyond these, mmtrace refuses the file, the section or the record. */

#define LIMIT_RECORD_TYPE 256		/* Type of a record; the kernel's types end at 63, perf's are far below this */
#define LIMIT_ATTRIBUTES 4096		/* Events of a file: far more than perf opens */
#define LIMIT_IDS (1u << 24)		/* Event IDs of a file: 2,048 events on each of 8,192 CPUs */
#define LIMIT_SECTION_BYTES (1u << 30)	/* A section, packed or not */
#define LIMIT_UNPACKED_BYTES (1u << 30) /* All sections of a file together, decompressed; and ... */
#define LIMIT_UNPACKED_ANYWHERE_BYTES (48ULL << 20) /* ... this, plus LIMIT_UNPACKED_EXPANSION times its size */
#define LIMIT_UNPACKED_EXPANSION 12   /* Far beyond what text of perf maps reaches; a small file must not fill memory */
#define LIMIT_FRAME_BYTES (64u << 20) /* A compressed record, decompressed; mmtrace writes at most 8 MiB */
#define LIMIT_PLAIN_RECORDS_ANYWHERE (2u << 20) /* Decompressed records of any file: some seconds; and ... */
#define LIMIT_PLAIN_BYTES_ANYWHERE (1ull << 30) /* ... their bytes; a larger file may have ... */
#define LIMIT_PLAIN_EXPANSION 600		/* ... this many times its size: beyond what real records reach */
#define LIMIT_CALLCHAIN 8192			/* Entries of a callchain: a record of 64 KiB has no more */
#define LIMIT_HEAD_BYTES (256u << 20)		/* What the recorder writes before the data */
#define LIMIT_PATH_BYTES 4096			/* A path: the kernel's PATH_MAX */
#define LIMIT_PROCESSES (1u << 22)		/* Processes in a section: the kernel's largest PID */
#define LIMIT_RESIDENT_BYTES (1ULL << 56) /* End of addresses with 5-level page tables; larger sizes are cut to it */
#define LIMIT_RESIDENT_RUNS (1u << 24)	  /* Runs of resident pages in memory: 256 MiB; later readings are invalid */
#define LIMIT_INCREMENTAL_METADATA (1u << 24)	/* Pieces of metadata */
#define LIMIT_IMAGE_BYTES (1u << 30)		/* All kept ELF files, decompressed; the recorder keeps 256 MiB */
#define LIMIT_IMAGE_INDEX_BYTES (256u << 20)	/* Their index: a million entries with paths of 200 bytes */
#define LIMIT_PERF_MAP_BYTES (1u << 30)		/* A perf map that came in pieces; the recorder copies 256 MiB */
#define LIMIT_JITDUMP_BYTES (1u << 30)		/* A jitdump that came in pieces; the recorder copies 256 MiB */
#define LIMIT_CODE_BYTES (256u << 20)		/* All JIT code; the recorder keeps 64 MiB */
#define LIMIT_HEAP_GROUPS 512			/* Groups of chunks in a heap census; the recorder sums smaller ones */
#define LIMIT_HEAP_TYPES 64			/* Vtables of a census that get names: the largest groups */
#define LIMIT_HEAP_CENSUSES 65536		/* Heap censuses */
#define LIMIT_FIELD_BYTES 65535			/* Offset or size of a tracepoint's field: a record has no more bytes */
#define LIMIT_ATTRIBUTE_BYTES 4096		/* A perf_event_attr: the kernel refuses more than a page */
#define LIMIT_COMMAND_LINE_BYTES (64u << 20)	/* The recorded command line; the kernel allows 6 MiB */
#define LIMIT_ORDER_WINDOW_BYTES (32u << 20)	/* Waiting records, without rounds; then the older half is handed out */
#define LIMIT_ORDER_ROUNDS_BYTES (512u << 20)	/* ... in a file whose rounds do not end, or, of a small one, ... */
#define LIMIT_ORDER_ANYWHERE_BYTES (128u << 20) /* ... this, plus LIMIT_UNPACKED_EXPANSION times its size */

/* Replay: beyond these, the report counts or leaves out what exceeds them, unless the line says otherwise. */

/* Processes of any file, each some KiB; beyond them the file is refused; plus one for each ... */
#define LIMIT_PROCESSES_ANYWHERE 24576
/* ... of these bytes, which count twice beyond LIMIT_SMALL_FILE_BYTES; of processes that ended, there may be six
 * times as many: their records take 45, compressed */
#define LIMIT_PROCESS_BYTES 250
/* Threads of any file, of some 600 bytes; beyond them the file is refused; plus one for each ... */
#define LIMIT_THREADS_ANYWHERE (224u << 10)
#define LIMIT_THREAD_BYTES 64 /* ... of these bytes, and each byte beyond LIMIT_SMALL_FILE_BYTES */
/* Mappings of calls that live at once, of some 600 bytes; beyond them the file is refused; plus one for each ... */
#define LIMIT_LIVE_ANYWHERE (64u << 10)
#define LIMIT_LIVE_BYTES 12 /* ... of these bytes: a packed call takes more; and each byte beyond ... */
#define LIMIT_INTERVALS_ANYWHERE (768u << 10) /* Mappings that forks inherit: 100 MB; plus one for each ... */
#define LIMIT_INTERVAL_BYTES 16		      /* ... of these bytes of the file, and one for each byte beyond ... */
#define LIMIT_SMALL_FILE_BYTES (5u << 20)     /* ... this size */
/* Different stacks of any file, of 3 KB; calls with further ones count as without a stack; plus one for each ... */
#define LIMIT_STACKS_ANYWHERE (48u << 10)
/* ... of these bytes of the file, and one for each byte beyond LIMIT_SMALL_FILE_BYTES: no real program of that size has
 * as many */
#define LIMIT_STACK_BYTES 160
#define LIMIT_COPIES_PER_INTERVAL 12	/* Copies made for each of these mappings: a second */
#define LIMIT_UNDECIDED_INTERVALS (1u << 17) /* Of ended processes that may not count: 16 MB; of more, it is decided at once */
#define LIMIT_KEPT_PROCESSES 8192 /* If all that ended count: of more, those below 1 MiB do not */
#define LIMIT_FAULT_PERIOD 100000	/* Page faults per sample; other recordings have no page faults */
#define LIMIT_EARLY_SAMPLES 20000	/* Stacks that wait for their call, or calls for their stack; the oldest goes */
#define LIMIT_EARLY_BYTES (256u << 20)	/* ... and their dumps */
#define LIMIT_ANCESTORS 64		/* Parents that are searched for limits of memory; deeper trees are rare */
#define LIMIT_LIFETIME_CELLS (1u << 18) /* Cells of all matrices of lifetimes; then their steps get longer */
#define LIMIT_CHILDREN 4096		/* Children from before the recording, which a warning names */
#define LIMIT_GROUPS 64			/* Control groups with counters, in the recorder, too */
#define LIMIT_STARTS 4096		/* Processes whose start is noted */
#define LIMIT_OOM_KILLS 65536		/* OOM kills */
#define LIMIT_LOST (1ULL << 48)		/* Losses of one kind; more are damage: a year of nine million a second */
#define LIMIT_CPUS 8192			/* CPU numbers; a higher one is damage: Linux supports 8,192 */
#define LIMIT_READ_PROCESSES 4096	/* Processes whose RSS is kept over time */
#define LIMIT_READINGS 1024		/* Readings of RSS; then every second one is dropped */
#define LIMIT_READING_POINTS (1u << 19) /* ... of all processes together */
#define LIMIT_AIO_RINGS 1024		/* Contexts of io_setup of a process; fs.aio-max-nr allows 65,536 events */
#define LIMIT_SNAPSHOT_TOUCHED 4096	/* Ranges changed between two reads of maps; others count as unchanged */
#define LIMIT_MEASURED_MAPPINGS (1u << 24) /* Mappings counted for refused calls: 1 s; later sizes are older ones */
#define LIMIT_PENDING_UNMAPS 1024	   /* Unmaps of a process that wait: one per thread; the oldest goes */

/* Report: beyond these, a figure is left out or computed more coarsely. */

#define LIMIT_DIFF_STACKS 20000 /* Stacks of a side that diff compares with similar ones, the largest first */
#define LIMIT_DIFF_WORK (UINT64_C(1) << 27) /* Cells of the edit distances; with the others here, about a second */
#define LIMIT_DIFF_FRAMES 1024		    /* Frames of a stack that are compared: as many as the unwinder finds */
#define LIMIT_DIFF_WORDS 64		    /* Functions of a stack by which similar ones are found, innermost first */
#define LIMIT_DIFF_LISTED 64		    /* Stacks that are looked at for one function */
#define LIMIT_DIFF_HEAPS 1024		    /* Heaps that diff compares: those that changed most */
#define LIMIT_STEPS 10000		    /* Steps of --every; more is an error: nobody reads them */
#define LIMIT_STEP_FIGURES (1u << 24)	    /* Figures of all rows in these steps: 128 MiB; lower ranks have none */
#define LIMIT_TOUCHED_RUNS (1u << 20)	    /* Runs of touched pages: 128 MiB; beyond, who touched more is not known */
#define LIMIT_USE_CHANGES (1u << 21)	    /* Changes of what rows use: 32 MiB; beyond, rates follow the mappings */
#define LIMIT_STALLS 20000		    /* Stacks of threads that freed memory themselves; the rest is summed */
#define LIMIT_TOUCHERS 20000		    /* Stacks that are named as touchers of memory; the rest is summed */
#define LIMIT_MOVE_STEPS (1u << 26)	    /* Steps for pages that mremap moved; then they are left out */
#define LIMIT_HTML_STRING_BYTES (1u << 20)  /* A string of HTML; the rest is cut */
#define LIMIT_HTML_LIFETIMES 20000	    /* Lifetimes of 12 bytes, or twice the number of parts; then coarser */
#define LIMIT_HTML_READINGS 1000	    /* Points of RSS on a page: as many as a screen has columns */
#define LIMIT_EXPORT_BYTES (64u << 20)	    /* A table of an export: strings, frames, ...; more is an error */
#define LIMIT_EXPORT_ROWS 200		    /* Stacks, and executables, in rows for databases; the rest is summed */

/* ELF files, debug information, JIT code: beyond these, a name, line or rule is missing. No compiler comes near. */

#define LIMIT_SEGMENTS 4096		     /* Program headers; the rest is ignored */
#define LIMIT_VDSO_BYTES (64u << 10)	     /* A copied vdso; real ones have a few pages */
#define LIMIT_GO_FUNCTIONS (1u << 24)	     /* Functions of a Go program */
#define LIMIT_GO_NAME_BYTES 4096	     /* A name: many functions of a hostile file may share one of megabytes */
#define LIMIT_GO_VALUES (1u << 18)	     /* Changes of a value within one function */
#define LIMIT_GO_FUNCTION_DATA 64	     /* Tables of a function */
#define LIMIT_COMPARED_NAME_BYTES 1024	     /* Bytes of a symbol's name that count in the choice among several */
#define LIMIT_ZSTD_EXPANSION 32768	     /* Expansion with zstd: more than it reaches with debug information */
#define LIMIT_INFLATION 1032		     /* Expansion of a section: the most that deflate reaches; more is a lie */
#define LIMIT_BUILD_ID_BYTES 64		     /* A build-id; linkers write 8 to 32 bytes */
#define LIMIT_DWARF_NESTING 64		     /* Nested entries; deeper ones are ignored */
#define LIMIT_DWARF_REFERENCES 8	     /* References from an entry to its declaration */
#define LIMIT_DWARF_LOOKUP_RANGES (1u << 20) /* Ranges that are checked for one address */
#define LIMIT_DWARF_NAME_BYTES 2048	     /* A name with its scopes */
/* One question to the names helper: it may have a copied module */
#define LIMIT_NAMES_REQUEST_BYTES (UINT64_C(1) << 32)
#define LIMIT_INLINED_FRAMES 64 /* Functions inlined at one address */
/* Processor time for one answer of the names helper: debug information of some GB takes tens of seconds */
#define LIMIT_NAMES_PROCESSOR_SECONDS 60
#define LIMIT_NAMES_SECONDS 600	      /* All time for it, such as for downloads */
#define LIMIT_NAMES_ASLEEP_SECONDS 10 /* Time in which it waits without any progress: no disk is that slow */
#define LIMIT_NAMES_MEMORY_SHARE 2    /* Its memory, as a fraction of the machine's */
#define LIMIT_NAMES_ENDS 16	      /* Helpers that may end in one report; after that there are no more names */
#define LIMIT_NAMES_ANSWER_BYTES (64u << 20) /* One answer of it */
#define LIMIT_NAMES_TEXT_BYTES (256u << 10)  /* One name or path; longer ones are cut off */
#define LIMIT_CFI_SECTION_BYTES (1u << 28)   /* A section of unwind information */
#define LIMIT_CFI_AUGMENTATION 32	     /* A CIE's augmentation; each FDE may have a CIE of its own */
#define LIMIT_CFI_CIE_BYTES 1024	     /* A CIE's instructions */
#define LIMIT_CFI_SAVED_STATES 128	     /* States that an FDE saves */
/* Instructions of an entry, executed for each address in it; real ones have some 50 bytes, at most 12,000 */
#define LIMIT_CFI_ENTRY_BYTES 32768
#define LIMIT_CFI_ROWS 65536		 /* Different rows of a section; others are found again each time */
#define LIMIT_UNWIND_CACHE (1u << 16)	 /* Stacks in the unwind cache; then it starts again */
#define LIMIT_FUNCTION_RANGE_BYTES 65536 /* A function whose instructions are analyzed; of a longer one, this much */
/* Frames of a stack: their addresses fit into a record of a packed recording; the report says that it is cut */
#define LIMIT_UNWIND_FRAMES 8000
#define LIMIT_TIMELINE_RANGES (1u << 23) /* Lines of a perf map, or records of a jitdump: 200 MB */
#define LIMIT_JIT_NAME_SOURCES 256	 /* Perf maps and jitdumps with names: an index of 8 bits */

/* What a target can make the recorder read. Beyond these, the recording has less; a warning or the report says what. */

#define LIMIT_RECORDED_PERF_MAPS_BYTES (256u << 20) /* All perf maps */
#define LIMIT_RECORDED_IMAGES_BYTES (256u << 20)    /* All ELF files that are kept */
#define LIMIT_RECORDED_JITDUMPS_BYTES (256u << 20)  /* All jitdumps */
#define LIMIT_RECORDED_CODE_BYTES (64u << 20)	    /* All JIT code */
#define LIMIT_RECORDED_PIECES_BYTES (256u << 20)    /* All incremental metadata; the last piece may exceed it */
#define LIMIT_IMAGES (1u << 20)			    /* ELF files that are kept */
#define LIMIT_OPTIONS (1u << 19)		    /* Options of runtimes, of all processes */
#define LIMIT_HUGETLB_DEVICES 1024		    /* Mounted hugetlbfs: one per page size and container */
#define LIMIT_MAP_GROWTH (1u << 16) /* Readings of a perf map's length; later lines have the time of the last one */
#define LIMIT_OPTION_TEXT_BYTES (256u << 10) /* Arguments or variables of a process that are searched for options */
#define LIMIT_SOCKET_ENTRIES 100000	 /* Entries of a directory with diagnostic sockets, which the target can fill */
#define LIMIT_PROGRAM_HEADERS 512	 /* Program headers that are searched for a build-id */
#define LIMIT_TEXT_FILE_BYTES (1u << 20) /* A text file of /proc or /sys; a longer one counts as unreadable */
#define LIMIT_ENVIRONMENT_BYTES (1u << 20) /* The environment of a process */
#define LIMIT_BREAK_LINES 1000		   /* Lines of maps that are searched for the heap: it is among the first */
#define LIMIT_FIRST_READINGS 8 /* First readings of the maps of a process that keeps moving mappings, within ... */
#define LIMIT_FIRST_READINGS_NS 1000000000ULL /* ... this time */
#define LIMIT_MOVING_PROCESSES 64	      /* Processes up to which maps are read again */
#define LIMIT_FIRST_LINES 2000000	      /* Mappings in all first lists, except those of targets: some seconds */
#define LIMIT_ATTACH_NS 20000000000ULL	      /* Attaching to the threads of a process that keeps starting some */
#define LIMIT_UNSEEN_NS 5000000000ULL	      /* ... since the last one was attached to */
#define LIMIT_BLOCKED_HELPERS 32 /* Helpers that wait for a target or file system; with more, no calls are made */
#define LIMIT_BLOCKED_MEMORY_NS 5000000000ULL  /* A reading of a process: it may hold its mmap_lock for seconds */
#define LIMIT_BLOCKED_FILES_NS 1000000000ULL   /* A call on a file system */
#define LIMIT_BLOCKED_STOPPED_NS 1000000000ULL /* All unanswered calls, once the user stops the recording */
#define LIMIT_RETURN_NS 2000000000ULL	       /* Waiting for calls that free gigabytes or wait for a CPU, at the end */
#define LIMIT_EXIT_NS 3000000000ULL	       /* Waiting for processes that are exiting */
#define LIMIT_SLEEP_NS 700000000ULL	       /* Both while all sleep, once the user stops the recording */
#define LIMIT_RESIDENCY_RUNS (4u << 20)	       /* Runs of resident pages of a process: 64 MiB */
#define LIMIT_RESIDENCY_BYTES (64ULL << 30)    /* Memory checked page by page, without PAGEMAP_SCAN, within ... */
#define LIMIT_RESIDENCY_NS 2000000000ULL       /* ... this time */
#define LIMIT_RESIDENCY_RESERVED_BYTES (4ULL << 30) /* PROT_NONE memory checked so: terabytes may be empty */
#define LIMIT_RESIDENCY_WAIT_NS 5000000000ULL	    /* Waiting for a process's memory */
#define LIMIT_SMAPS_NS 1000000000ull		    /* Reading smaps of all processes */
#define LIMIT_LIVE_RUNS (1u << 20)   /* Runs of a process during the recording: those read first stay in memory */
#define LIMIT_START_RUNS (4u << 20)  /* Runs of all processes in the first readings: 64 MiB, within ... */
#define LIMIT_START_NS 5000000000ULL /* ... this time */
/* Reading smaps_rollup, which holds the target's mmap_lock; not read if it is expected to take longer */
#define LIMIT_PSS_WALK_NS 100000000ULL
#define LIMIT_HUGE_SAMPLES_READ 256	     /* Huge pages of a process that are sampled */
#define LIMIT_HUGE_SAMPLES_NS 500000000ULL   /* The samples of all processes, with pauses */
#define LIMIT_SAVED_FORMATS_BYTES (1u << 20) /* The file of saved tracepoint formats; a longer one is refused */
/* Default size of the rings of all CPUs, without those for large dumps; with more than 6 CPUs each has less */
#define LIMIT_RINGS_TOTAL_BYTES (192ull << 20)
#define LIMIT_GROUP_DEPTH 64		  /* Folders of control groups below each other, in the search for an ID */
#define LIMIT_CPU_LIST 65536		  /* CPU numbers of a kernel's list */
#define LIMIT_BUDGET_SAVED_NS 200000000LL /* Time that a job may save up for later */
#define LIMIT_CODE_PASS_NS 5000000ULL	  /* CPU time of a pass over JIT code; the next pass continues where it ended */
#define LIMIT_CODE_SPENT_NS 400000000LL	  /* Reserve for it: a starting program generates much code at once */
#define LIMIT_CODE_END_NS 10000000000ULL  /* CPU time for it when recording ends */
#define LIMIT_HEAP_NS 2000000000ULL	  /* Processor time for reading a heap */
#define LIMIT_HEAP_WAIT_NS 10000000000ULL /* ... and all time; then it is given up */
#define LIMIT_HEAP_END_NS 4000000000ULL	  /* ... once recording has stopped */
#define LIMIT_HEAP_WALKED_BYTES (4ULL << 30)   /* Heap walked in this time; parts of a larger one are left out */
#define LIMIT_HEAP_REGIONS 65536	       /* Heaps of all arenas: they have up to 64 MiB */
#define LIMIT_HEAP_MAPPINGS 200000	       /* Mappings of a process with a heap that is walked */
#define LIMIT_HEAP_FASTBIN_CHUNKS (4u << 20)   /* Free chunks in fastbins: 32 MiB; then what is in use is a range */
#define LIMIT_HEAP_TCACHES 65536	       /* Threads whose tcaches are known */
#define LIMIT_HEAP_CONTENTS 65536	       /* Different first words of chunks, and groups with an exact size */
#define LIMIT_HEAP_NAME_BYTES 1024	       /* The name of a type; a longer one is not a name */
#define LIMIT_HEAP_PROCESSES 8		       /* Processes with heaps that are read at a time; the largest ones */
#define LIMIT_RECORDED_HEAPS_BYTES (64u << 20) /* Heap censuses of a recording; then there is one at its end only */
#define LIMIT_CODE_KEPT_BYTES (20u << 20)      /* Compressed JIT code in memory */
#define LIMIT_CODE_PAGES 65536		       /* Pages of code of one program; more are never read */
