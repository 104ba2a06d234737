/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recordings for tests, made with the library's own writer as if by a recorder on x86-64 or aarch64. Any failure ends
 * the test program. Records are written as given: the caller chooses the times, and ends rounds if order matters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format/event.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

struct recording_builder;
struct writer;

/* IDs of the attributes' first root: BUILDER_SYSCALL_ID + call, BUILDER_DUMP_ID + call, BUILDER_LARGE_DUMP_ID +
 * call. A second root adds BUILDER_SECOND_ROOT. */
#define BUILDER_SYSCALL_ID 100
#define BUILDER_DUMP_ID 200
#define BUILDER_NEW_TASK_ID 300
#define BUILDER_SIDE_BAND_ID 301
#define BUILDER_LOCK_ID 302
#define BUILDER_FAULT_ID 303
#define BUILDER_RECLAIM_ID 304 /* of the end; one more: of the begin */
#define BUILDER_LARGE_DUMP_ID 400
#define BUILDER_ENTER_ID 500 /* of calls' entries, in recordings of aarch64 */
#define BUILDER_SECOND_ROOT 1000
#define BUILDER_HUGETLB_MINOR 250 /* of the device 0:250, which is that of hugetlbfs in all recordings */
#define BUILDER_MAPPING_LIMIT 65530
#define BUILDER_STACK_BYTES 64 /* in every sample of a call, at least, where samples have any */

struct builder_call {
	enum call call;
	bool dump;	 /* instead of the syscall event */
	bool large_dump; /* likewise */
	bool enter;	 /* the event of the entry, beside that of the exit */
	uint64_t id;	 /* 0: that of the first root */
	uint64_t time_ns;
	int32_t pid, tid;
	uint32_t cpu;
	uint64_t arguments[6];
	int64_t result;
	const uint64_t *callchain; /* user addresses */
	size_t callchain_count;
	uint64_t instruction_pointer, stack_pointer, frame_pointer;
	const void *stack; /* what could be copied; a multiple of 8 bytes where more than BUILDER_STACK_BYTES */
	size_t stack_size;
};

struct recording_builder *builder_create(const char *path);
/* The same without stack-dump events, or without lock events. */
struct recording_builder *builder_create_with(const char *path, bool dumps, bool locks);
/* With large stack dumps, too. */
/* With samples of page faults, one of `period`. */
struct recording_builder *builder_create_with_faults(const char *path, uint64_t period);
struct recording_builder *builder_create_with_large_dumps(const char *path);
/* No stack bytes in samples either, as written by record -g fp. Dumps of calls are omitted. */
struct recording_builder *builder_create_without_stacks(const char *path);
/* Of aarch64: exits do not have the first argument, and there are events for entries. */
struct recording_builder *builder_create_for_aarch64(const char *path);
/* Of a command; the others do not state that. */
struct recording_builder *builder_create_of_command(const char *path);
/* It states when it started; the others do not. */
struct recording_builder *builder_create_at(const char *path, uint64_t start_ns);

void builder_call(struct recording_builder *builder, const struct builder_call *call);
/* A page fault, in a recording of builder_create_with_faults(). */
void builder_fault(struct recording_builder *builder, uint64_t time_ns, int32_t pid, uint64_t address,
		   uint64_t page_bytes, uint64_t caller);
/* In such a recording, too: a thread begins or ends to free memory. */
void builder_reclaim(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, bool begins,
		     uint64_t caller);
/* A fault that maps the zero page. */
void builder_zero_page(struct recording_builder *builder, uint64_t time_ns, int32_t pid, uint64_t address,
		       uint64_t caller);
/* mmap(NULL, length, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = address, with one return address as its
 * callchain. */
void builder_mmap_exit(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, uint64_t address,
		       uint64_t length, uint64_t caller);
void builder_munmap_exit(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid,
			 uint64_t address, uint64_t length);
void builder_mapping(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid,
		     const struct event_mapping *mapping);
void builder_comm(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, const char *name);
/* The process executes a program: its name becomes the program's. */
void builder_exec(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, const char *name);
/* As the recorder notes the names of threads that already exist. */
void builder_thread_name(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid,
			 const char *name);
void builder_fork(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, int32_t parent_pid,
		  int32_t parent_tid);
void builder_exit(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid);
void builder_new_task(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, int32_t new_tid,
		      uint64_t clone_flags);
/* `space`: the kernel's address of the locked mm. `write` false: for reading. */
void builder_lock(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, uint64_t space,
		  bool write);
void builder_lost(struct recording_builder *builder, uint64_t time_ns, uint64_t id, uint64_t count);
/* One record of a reading of resident pages; `more`: others follow. */
struct builder_pages {
	uint32_t reading;
	bool more;
	uint64_t resident_bytes;
	const struct resident_run *runs;
	size_t run_count;
};

void builder_pages(struct recording_builder *builder, uint64_t time_ns, int32_t pid, const struct builder_pages *pages);
/* What smaps_rollup showed at a reading, after the note of RSS. */
struct builder_pss {
	uint64_t reading, resident_bytes, pss_bytes, swap_pss_bytes, private_bytes, huge_bytes, faults;
	uint64_t anonymous_bytes, pss_anon_bytes; /* 0: as older recorders wrote it */
};

void builder_pss(struct recording_builder *builder, uint64_t time_ns, int32_t pid, const struct builder_pss *pss);
/* See format.h for what they mean. */
void builder_note(struct recording_builder *builder, uint64_t time_ns, int32_t pid, enum note_kind kind, uint64_t value,
		  uint64_t number);
void builder_note_text(struct recording_builder *builder, uint64_t time_ns, int32_t pid, enum note_kind kind,
		       uint64_t value, uint64_t number, const char *text);
void builder_snapshot(struct recording_builder *builder, enum snapshot_kind kind, uint64_t time_ns, int32_t pid,
		      const struct event_mapping *lines, size_t line_count);
/* Any record. */
void builder_record(struct recording_builder *builder, uint32_t type, const void *body, size_t size);
void builder_round(struct recording_builder *builder);
/* For other code that writes to the recording; the builder keeps ownership. */
struct writer *builder_writer(struct recording_builder *builder);
/* A late section, copied. */
void builder_section(struct recording_builder *builder, enum format_feature feature, const void *data, size_t size);

/* This many syscall events were lost, by the recorder's own count. */
void builder_lose(struct recording_builder *builder, uint64_t count);

/* Write the losses and close. Frees the builder. */
void builder_finish(struct recording_builder *builder, uint64_t stop_ns);
/* Leave the file like a killed recorder. Frees the builder. */
void builder_abandon(struct recording_builder *builder);
