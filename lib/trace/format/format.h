/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constants of the perf.data file format (documented in the kernel tree,
 * tools/perf/Documentation/perf.data-file-format.txt) and of mmtrace's additions; mmtrace-file(5) describes every byte
 * and limit named here. */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>

#define FORMAT_MAGIC 0x32454c4946524550ULL	   /* "PERFILE2" */
#define FORMAT_MAGIC_SWAPPED 0x50455246494c4532ULL /* in the other byte order */
#define FORMAT_HEADER_SIZE 104

enum format_feature {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCKID = 23,
	FEATURE_COMPRESSED = 27,
	FEATURE_CLOCK_DATA = 29,
	/* mmtrace's own: perf ignores bits that it does not know (but not record types). First comes a u32 version. */
	FEATURE_MMTRACE_INFO = 224,
	FEATURE_MMTRACE_LOSS = 225,
	FEATURE_MMTRACE_PERF_MAPS = 226,
	FEATURE_MMTRACE_RESIDENCY = 227,
	FEATURE_MMTRACE_IMAGES = 228,
	FEATURE_MMTRACE_JITDUMPS = 229,
	FEATURE_MMTRACE_STACKS = 230,
	FEATURE_MMTRACE_CODE = 231,
	FEATURE_MMTRACE_HUGE_PAGES = 232,
	FEATURE_MMTRACE_SWAPPED = 235,
	FEATURE_MMTRACE_OPTIONS = 236,
	FEATURE_MMTRACE_SHARED = 237,
	FEATURE_MMTRACE_HEAP = 238,
	FEATURE_MMTRACE_CHECKSUM = 239, /* u32 version, u32 CRC-32 of all bytes before it: the end of the file */
	FEATURE_BITS = 256,
};

enum format_record {
	RECORD_HEADER_ATTR = 64,
	RECORD_HEADER_EVENT_TYPE = 65,
	RECORD_HEADER_TRACING_DATA = 66,
	RECORD_HEADER_BUILD_ID = 67,
	RECORD_FINISHED_ROUND = 68,
	RECORD_ID_INDEX = 69,
	RECORD_AUXTRACE_INFO = 70,
	RECORD_AUXTRACE = 71,
	RECORD_THREAD_MAP = 73,
	RECORD_CPU_MAP = 74,
	RECORD_EVENT_UPDATE = 78,
	RECORD_TIME_CONV = 79,
	RECORD_HEADER_FEATURE = 80,
	RECORD_COMPRESSED = 81,
	RECORD_FINISHED_INIT = 82,
	RECORD_COMPRESSED2 = 83,
};

#define RECORD_HEADER_BYTES sizeof(struct perf_event_header)

/* A record may have any alignment. */
static inline struct perf_event_header record_header(const void *record)
{
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	return header;
}

/* Between the attributes and the data of mmtrace's files is the preamble: the sections that are known when recording
 * starts, so that the file of a killed recorder still describes its events. perf ignores the gap. Layout: u64 magic,
 * u32 version, u32 count, count x {u32 feature, u32 zero, u64 file offset, u64 size}, then the sections. The feature
 * table at the end points into it. */
#define PREAMBLE_MAGIC 0x304552505254544dULL /* "MTTRPRE0" */
#define PREAMBLE_VERSION 1

/* Snapshots of /proc/PID/maps are stored in the data as MMAP2 records (COMM records begin and end a snapshot) of an
 * event that never fires: perf uses them like the records that it synthesizes, and they survive a killed recorder.
 * Their identifiers cannot be the kernel's, which count from 1: SNAPSHOT_ID(kind, part). */
#define SNAPSHOT_ID_FIRST 0x4d4d545200000000ULL
enum snapshot_part { SNAPSHOT_PART_BEGIN = 0, SNAPSHOT_PART_LINE = 1, SNAPSHOT_PART_END = 2, SNAPSHOT_PARTS = 3 };
#define SNAPSHOT_ID(kind, part) (SNAPSHOT_ID_FIRST + (uint64_t)(kind)*SNAPSHOT_PARTS + (uint64_t)(part))
#define SNAPSHOT_ID_NAME (SNAPSHOT_ID_FIRST + 0x10000) /* the name a thread had at the start: an ordinary COMM */

/* Incremental metadata, which symbolizes the stacks of a killed recorder, is also stored in the data:
 * PERF_RECORD_TEXT_POKE records for user space, which perf ignores. u64 zero, u16 zero, u16 size, then that many bytes:
 * u32 enum name_piece, i32 pid, i32 namespace pid, u32 zero, u64 time of the previous reading, u64 time, u64 offset in
 * the file, and the bytes there. */
#define RECORD_TEXT_POKE 20
#define NAME_PIECE_ID (SNAPSHOT_ID_FIRST + 0x20000)
enum name_piece { NAME_PIECE_PERF_MAP = 0, NAME_PIECE_JITDUMP = 1, NAME_PIECE_BUILD_IDS = 2 };

/* In a pipe, sections that perf does not read there are stored in the data in pieces: PERF_RECORD_HEADER_EVENT_TYPE
 * records, which perf no longer uses and skips (private bits in HEADER_FEATURE records make perf fail). u64 magic, u32
 * feature, u32 zero, u64 size of the section, u64 offset of this piece in it, u32 size of this piece, u32 zero, then
 * the bytes. The pieces of one section follow each other. */
#define SECTION_PIECE_MAGIC 0x304345535254544dULL /* "MTTRSEC0" */
#define SECTION_PIECE_BYTES 48			  /* including the record's header */

/* Notes of the recorder are stored in the data in records of the same kind: after u64 zero, u16 zero and u16 size come
 * u32 enum note_kind, u64 value, u64 number. RSS of the record's process: bytes, and the
 * number of the reading, which is the same for all processes at that time. Large stack dumps: 1 for on or 0 for off,
 * and how often they have been switched so far. Unrecorded children of the record's process that existed when recording
 * began: their number, and 0. Start of the record's process: nanoseconds since boot, its PID in its own PID namespace
 * (0: not known), and if it is known the path of its control group with a NUL. Swapped memory of the record's process:
 * bytes, and the number of the reading, as for RSS. Break of the record's process just before the recording began: its
 * address, and 0. Resident memory of the record's process that it freed with MADV_FREE: bytes, and the number of the
 * reading, as for RSS. Memory counters of a control group, with its number, from 0, instead of a process: bytes, a
 * number of processes or microseconds, and the number of the reading; after NOTE_GROUP_CURRENT its path with a NUL.
 * Limits of the record's process, or of the machine: bytes, and how many of them are used. A victim of the
 * OOM killer, which may be another process than the recorded ones: the thread that ran out of memory, 0, and the name
 * of the process, if it is known, with a NUL. The end of the recorded command, if not with status 0: its wait status,
 * and 0. */
#define NOTE_ID (SNAPSHOT_ID_FIRST + 0x30000)
#define NOTE_PARENT_SHIFT 32
enum note_kind {
	NOTE_MARK = 0, /* of older recordings, which is ignored */
	NOTE_RESIDENT = 1,
	NOTE_LARGE_DUMPS = 2,
	NOTE_UNRECORDED_CHILDREN = 3,
	NOTE_STARTED = 4,
	NOTE_SWAPPED = 5,
	NOTE_BREAK = 6,
	NOTE_LAZY_FREE = 7,
	NOTE_GROUP_FIRST = 8,
	NOTE_GROUP_CURRENT = NOTE_GROUP_FIRST,
	NOTE_GROUP_ANON = 9,
	NOTE_GROUP_FILE = 10,
	NOTE_GROUP_SHMEM = 11,
	NOTE_GROUP_KERNEL = 12,
	NOTE_GROUP_LIMIT = 13,
	NOTE_GROUP_OOM_KILLS = 14,
	NOTE_GROUP_STALLED = 15,
	NOTE_LIMIT_FIRST = 16,
	NOTE_LIMIT_ADDRESS_SPACE = NOTE_LIMIT_FIRST,
	NOTE_LIMIT_DATA = 17,
	NOTE_LIMIT_LOCKED = 18,
	NOTE_LIMIT_COMMIT = 19,
	NOTE_LIMIT_MEMORY = 20,
	NOTE_LIMIT_HUGE_PAGES = 21,
	NOTE_OOM_KILL = 22,
	NOTE_GROUP_HIGH = 23,
	NOTE_GROUP_THROTTLED = 24,
	NOTE_COMMAND_ENDED = 25,
	NOTE_KINDS = 26
};
/* The figures of a group are numbered from 0; the last two have kinds apart. */
#define NOTE_GROUP_FIGURES (NOTE_GROUP_STALLED - NOTE_GROUP_FIRST + 3)
#define NOTE_GROUP_KIND(figure)                                                                                        \
	((figure) <= NOTE_GROUP_STALLED - NOTE_GROUP_FIRST ? NOTE_GROUP_FIRST + (figure)                               \
							   : NOTE_GROUP_THROTTLED + 1 - NOTE_GROUP_FIGURES + (figure))
/* Not below NOTE_GROUP_FIGURES: of another note. */
#define NOTE_GROUP_FIGURE(kind)                                                                                        \
	((kind) >= NOTE_GROUP_HIGH	? (kind)-NOTE_GROUP_THROTTLED + NOTE_GROUP_FIGURES - 1                         \
	 : (kind) <= NOTE_GROUP_STALLED ? (kind)-NOTE_GROUP_FIRST                                                      \
					: NOTE_GROUP_FIGURES)
#define NOTE_LIMITS (NOTE_LIMIT_HUGE_PAGES - NOTE_LIMIT_FIRST + 1)

/* Which pages of the record's process were resident at its time, in PERF_RECORD_TEXT_POKE records: u32 reading, the
 * same for all processes that were read together; u32 flags; u64 RSS in bytes; then runs of pages, u64 start and u64
 * end each, ascending. The runs continue in further records up to one with RESIDENT_PAGES_LAST; without such a record
 * the reading is incomplete. */
#define RESIDENT_PAGES_ID (SNAPSHOT_ID_FIRST + 0x40000)
#define RESIDENT_PAGES_FIXED_BYTES 16
#define RESIDENT_PAGES_LAST 1u
#define RESIDENT_RUN_BYTES 16
#define RESIDENT_RUNS_PER_RECORD 4000

/* What the record's process shares with others at its time, from /proc/PID/smaps_rollup and stat, in
 * PERF_RECORD_TEXT_POKE records: the fields of union pss_counts. Older recorders did not write the last ones. */
#define PSS_ID (SNAPSHOT_ID_FIRST + 0x50000)
#define PSS_FIELDS 9
union pss_counts {
	struct {
		uint64_t reading; /* as in the note NOTE_RESIDENT, which precedes this one */
		uint64_t resident_bytes, pss_bytes, swap_pss_bytes;
		uint64_t private_bytes;	  /* of pages that no other process maps */
		uint64_t huge_bytes;	  /* in anonymous huge pages */
		uint64_t faults;	  /* page faults since the process started */
		uint64_t anonymous_bytes; /* of pages of no file and no shared memory; 0: not known */
		uint64_t pss_anon_bytes;  /* part of Pss in these; 0: older kernels do not say */
		uint64_t lazy_free_bytes; /* freed with MADV_FREE, and not yet reclaimed: in another note */
	};
	uint64_t fields[PSS_FIELDS];
};

#define CALLCHAIN_LIMIT_DEFAULT 127 /* kernel.perf_event_max_stack */
#define FRAME_BYTES (8u << 20)	    /* largest content of one compressed record by our writer */
