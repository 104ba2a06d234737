/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* mmtrace's feature sections and perf's table of build-ids as plain values. mmtrace-file(5) has their layouts. */
#pragma once

#include <mmtrace/heap.h>
#include <mmtrace/record.h>

#include "base/map.h"
#include "trace/sections/section-codec.h"

/* The purpose of an event attribute; the index is the position of the attribute in the file. */
enum attribute_role {
	ROLE_OTHER = 0,
	ROLE_SYSCALL = 1, /* exit of a call */
	ROLE_DUMP = 2,	  /* stack dump of a call */
	ROLE_NEW_TASK = 3,
	ROLE_SIDE_BAND = 4, /* mappings, names, forks, exits */
	ROLE_SNAPSHOT = 5,
	ROLE_LOCK = 6, /* mmap_lock events of old recordings, which are ignored */
	ROLE_LARGE_DUMP =
	    7, /* a larger stack dump of a call that also has a ROLE_DUMP; enabled while the call rate is low */
	ROLE_FAULT = 8, /* page faults, one of as many as the attribute's period says */
};

static inline bool role_is_dump(enum attribute_role role)
{
	return role == ROLE_DUMP || role == ROLE_LARGE_DUMP;
}

struct device_number {
	uint32_t major, minor;
};

/* FEATURE_MMTRACE_INFO, in the preamble. */
struct recording_info {
	char *recorder_version; /* "0.1.0"; owned */
	uint64_t start_ns;	/* recording's clock, when events were enabled */
	uint64_t start_realtime_ns;
	uint32_t page_bytes;
	enum mmt_call_graph call_graph;
	uint32_t stack_dump_bytes; /* 0: no dumps */
	uint32_t callchain_limit;  /* kernel.perf_event_max_stack */
	uint32_t mapping_limit;	   /* vm.max_map_count; 0: not known, always so before version 3 */
	bool command;		   /* started by mmtrace */
	bool on_cpus;		   /* per-CPU events, not per-thread events */
	bool all_processes;	   /* all processes, or all of a control group: no targets */
	bool in_cgroups;	   /* on_cpus: in control groups */
	VECTOR(int32_t) targets;   /* requested processes */
	VECTOR(uint32_t) roles;	   /* enum attribute_role */
	/* of hugetlbfs; empty before version 4 */
	VECTOR(struct device_number) hugetlb_devices;
};

/* FEATURE_MMTRACE_LOSS, written when recording stops: in mmtrace's files without it, it did not finish. */
struct recording_loss {
	uint64_t stop_ns;
	enum mmt_record_end end;
	VECTOR(uint64_t) lost; /* by attribute, from PERF_FORMAT_LOST */
	uint64_t missed_threads;
	uint64_t missed_cpus;	 /* came online without events */
	uint64_t left_processes; /* left the recorded control group */
};

/* FEATURE_MMTRACE_PERF_MAPS. */
struct perf_map_growth {
	uint64_t time_ns;
	uint64_t length; /* length of the file at that time: later lines appeared later */
};

struct perf_map_copy {
	int32_t pid;
	int32_t namespace_pid;
	VECTOR(struct perf_map_growth) growth;
	uint8_t *text; /* owned */
	size_t text_size;
	size_t packed_size; /* in the recorder: the text is zstd frames of this size; 0: it is plain */
};

struct perf_map_copies {
	VECTOR(struct perf_map_copy) maps;
};

/* FEATURE_MMTRACE_JITDUMPS. */
struct jitdump_copy {
	int32_t pid;
	int32_t namespace_pid;
	bool knows_program;
	uint64_t program_ns;	  /* start of the program that mapped it, 0 before the recording */
	uint8_t *data;		  /* owned */
	size_t size, packed_size; /* as those of a perf map */
};

struct jitdump_copies {
	VECTOR(struct jitdump_copy) dumps;
};

/* FEATURE_MMTRACE_RESIDENCY: runs of resident pages, ascending, disjoint, page aligned. */
struct resident_run {
	uint64_t start, end;
};

typedef VECTOR(struct resident_run) resident_runs;

/* Counts the bytes of address ranges in ascending order. */
struct page_cursor {
	const resident_runs *runs;
	size_t next;
	uint64_t counted_bytes; /* in all ranges so far */
};

uint64_t page_cursor_count(struct page_cursor *cursor, uint64_t start, uint64_t end);

uint64_t page_runs_bytes(const resident_runs *runs);

struct process_residency {
	int32_t pid;
	uint64_t time_ns;	 /* when the pages were read; 0: not known */
	uint64_t resident_bytes; /* RSS reported by the kernel at that time; 0: not known */
	resident_runs runs;
};

typedef VECTOR(struct process_residency) process_residencies;

struct recording_residency {
	process_residencies processes; /* at stop */
	process_residencies at_start;  /* of targets that ran before the recording began; empty before version 2 */
	/* Made by section_read(): PID -> place of the first with it. */
	struct map places, start_places;
};

void process_residencies_deinit(process_residencies *processes);

/* FEATURE_MMTRACE_HUGE_PAGES: private anonymous memory in transparent huge pages when recording ended, and how much of
 * a sample of it is zero. */

/* /sys/kernel/mm/transparent_hugepage/enabled */
enum huge_setting { HUGE_SETTING_UNKNOWN = 0, HUGE_ALWAYS = 1, HUGE_MADVISE = 2, HUGE_NEVER = 3 };

struct process_huge_pages {
	int32_t pid;
	uint64_t bytes;
	uint64_t sampled_bytes; /* size of the sample; 0: there is none */
	uint64_t zero_bytes;	/* of the sample */
};

struct recording_huge_pages {
	enum huge_setting setting;
	VECTOR(struct process_huge_pages) processes; /* whose huge pages are known */
	struct map places;			     /* made by section_read(): PID -> place of the first with it */
};

/* For section_read() and section_write(). The deinit functions take the value of their name. */
extern const struct section_kind section_info, section_loss, section_perf_maps, section_jitdumps, section_residency,
    section_huge_pages;

void recording_info_deinit(void *value);
void recording_loss_deinit(void *value);
void perf_map_copy_deinit(struct perf_map_copy *copy);
void perf_map_copies_deinit(void *value);
void jitdump_copies_deinit(void *value);
void recording_residency_deinit(void *value);
void recording_huge_pages_deinit(void *value);

/* Of a process at the start, or at the end, of a decoded recording; NULL: not recorded. */
const struct process_residency *recording_residency_of(const struct recording_residency *residency, bool at_start,
						       int32_t pid);

/* Of a process of a decoded recording; NULL: not recorded. */
const struct process_huge_pages *recording_huge_pages_of(const struct recording_huge_pages *huge, int32_t pid);

/* FEATURE_MMTRACE_HEAP: the censuses of malloc heaps, in the order of time. lib/capture/heap takes them. It also sends
 * them from its helper process in this form. */
struct heap_censuses {
	VECTOR(struct mmt_heap_census) items;
};

extern const struct section_kind section_heap; /* for section_read() and section_write() */

void heap_census_deinit(struct mmt_heap_census *census);
void heap_censuses_deinit(void *value);

/* FEATURE_BUILD_ID of perf: the build-id of each mapped module. */
struct build_id_entry {
	char *path; /* owned; as in MMAP2 records */
	uint8_t bytes[20];
	uint8_t size; /* 1 to 20 */
};

struct build_ids {
	VECTOR(struct build_id_entry) entries;
};

void build_ids_deinit(struct build_ids *ids);
void build_ids_encode(const struct build_ids *ids, struct buffer *buffer);
struct mmt_error *build_ids_decode(struct bytes *bytes, struct build_ids *ids_ret) MMT_MUST_CHECK;
