/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A decoded event, in host byte order. Pointers are borrowed from the reader until its next event. */
#pragma once

#include "base/syscall-table.h"
#include "base/registers.h"
#include "trace/format/format.h"

enum event_kind {
	/* A memory syscall returned. */
	EVENT_CALL,
	/* Its entry: where exits carry no arguments (plain perf) or not the first (aarch64). */
	EVENT_CALL_ENTER,
	/* The deep stack of a call, from a separate ring; belongs to the EVENT_CALL of the same thread with equal
	   registers, which may come before or after it. There may be two, of which the larger one replaces the other.
	 */
	EVENT_STACK_DUMP,
	/* task:task_newtask: clone flags of the thread whose FORK came just before. */
	EVENT_NEW_TASK,
	/* PERF_RECORD_MMAP2 (or MMAP) by the kernel or, in perf's files, synthesized at start. */
	EVENT_MAPPING,
	EVENT_COMM,
	EVENT_FORK,	  /* a thread or a process */
	EVENT_EXIT,	  /* a thread */
	EVENT_LOST,	  /* syscall events were lost, on this CPU */
	EVENT_LOST_DUMPS, /* stack dumps were lost, on this CPU */
	/* One reading of /proc/PID/maps: begin, lines in ascending order, end. */
	EVENT_SNAPSHOT_BEGIN,
	EVENT_SNAPSHOT_LINE,
	EVENT_SNAPSHOT_END,
	EVENT_OTHER,	      /* an unused record; only the event dump shows it */
	EVENT_RESIDENT_PAGES, /* resident pages of a process, or a part of them */
	EVENT_FAULT,	      /* a page fault is done; see enum fault_argument */
	/* The event dump shows these as others, but for some kinds of notes. */
	EVENT_NOTE,
	EVENT_PSS,     /* what a process shares with others */
	EVENT_RECLAIM, /* a thread begins (result 1) or ends (0) to free memory itself */
};

/* Why a snapshot was taken. */
enum snapshot_kind {
	SNAPSHOT_START = 0, /* just after the events were switched on */
	SNAPSHOT_FIRST = 1, /* a child's first, after fork */
	SNAPSHOT_EXEC = 2,  /* after exec */
	SNAPSHOT_INTERVAL = 3,
	SNAPSHOT_STOP = 4, /* the final check */
	SNAPSHOT_KINDS = 5,
};

/* Arguments of EVENT_FAULT; its result is 1 for a major fault. */
enum fault_argument {
	FAULT_ADDRESS,
	FAULT_PAGE_BYTES, /* 0: not known */
	FAULT_WEIGHT,	  /* it stands for so many faults */
	FAULT_ZERO_PAGE,  /* what it mapped has no physical address */
};

struct event_mapping {
	uint64_t start, length; /* length in bytes */
	uint64_t file_offset;
	uint32_t device_major, device_minor;
	uint64_t inode;
	uint32_t protection; /* PROT_* of mmap(2) */
	uint32_t flags;	     /* MAP_SHARED or MAP_PRIVATE, and other MAP_* flags of the record */
	bool code_only;	     /* the recording has such records only for executable mappings */
	const char *path;    /* "//anon" for anonymous memory, as in perf; "": unknown */
};

struct event_task {
	int32_t pid, tid;		/* the task that started, ended or was created (NEW_TASK: pid is -1) */
	int32_t parent_pid, parent_tid; /* of EVENT_FORK and EVENT_EXIT; otherwise -1 */
	uint64_t clone_flags;		/* of EVENT_NEW_TASK; otherwise 0 */
	const char *name;		/* of EVENT_COMM and snapshots; otherwise "" */
	bool exec;			/* EVENT_COMM: the task executed a program */
};

struct event_stack {
	uint64_t time_ns;	   /* when it was taken */
	uint32_t resolved;	   /* packed recordings: number of its stack in their table, plus 1; 0: none */
	const uint64_t *callchain; /* user addresses, innermost first: [0] is the instruction pointer, then return
				      addresses; NULL: none */
	size_t callchain_count;
	bool callchain_full;  /* as long as the kernel permits: the outer end may be missing */
	const uint8_t *bytes; /* the stack's content from the stack pointer upwards; NULL: none */
	size_t byte_count;    /* bytes copied by the kernel (dyn_size) */
	size_t bytes_wanted;  /* bytes requested: if byte_count is less, the stack ended or a page was absent */
	struct register_values registers; /* known == 0: none; at the end, because their values are not cleared */
};

struct event {
	enum event_kind kind;
	uint64_t time_ns;
	int32_t pid, tid;     /* of the thread that caused it; -1: not known */
	int32_t cpu;	      /* -1: not known */
	uint32_t attribute;   /* index of the recording's event attribute; UINT32_MAX: not known */
	uint64_t sequence;    /* counts the recording's events from 1, in time order */
	const void *record;   /* as in the file, decompressed; record_size bytes */
	uint64_t file_offset; /* of the record, or of the compressed record that holds it; for messages */
	uint32_t record_type, record_size;

	union {
		struct {
			enum call call;
			bool has_arguments; /* false: an exit to be joined with its EVENT_CALL_ENTER */
			uint64_t arguments[6];
			bool at_entry;	/* EVENT_CALL: recorded at its entry, so it has no result */
			int64_t result; /* negative errno on failure; unused by EVENT_CALL_ENTER */
			struct event_stack stack;
		} call; /* EVENT_CALL, EVENT_CALL_ENTER, EVENT_STACK_DUMP, EVENT_FAULT, EVENT_RECLAIM */
		struct event_mapping mapping; /* EVENT_MAPPING, EVENT_SNAPSHOT_LINE */
		struct event_task task;	      /* EVENT_NEW_TASK, EVENT_COMM, EVENT_FORK, EVENT_EXIT,
							 EVENT_SNAPSHOT_BEGIN, EVENT_SNAPSHOT_END */
		struct {
			enum note_kind kind;
			uint64_t value, number; /* see NOTE_ID */
			const char *text;	/* a path, or a name; "": not recorded */
		} note;
		union pss_counts pss; /* EVENT_PSS */
		struct {
			uint32_t reading;	 /* the same for all processes that were read together */
			bool last;		 /* the process has no further runs in this reading */
			uint64_t resident_bytes; /* RSS reported by the kernel */
			const uint8_t *runs;	 /* as in the file: u64 start, u64 end */
			size_t run_count;
		} pages; /* EVENT_RESIDENT_PAGES */
		struct {
			uint64_t count;
		} lost; /* EVENT_LOST, EVENT_LOST_DUMPS */
	};
	enum snapshot_kind snapshot; /* EVENT_SNAPSHOT_* */
};
