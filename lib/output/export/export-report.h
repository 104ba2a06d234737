/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the formats of `mmtrace export` share. To add one: write a file with its function, declare that in
 * export-report.h, add a row to the table in export-report.c, and describe it in mmtrace-export(1). */
#pragma once

#include <limits.h>
#include <mmtrace/export.h>

#include "base/bytes.h"
#include "base/map.h"

#define EXPORT_NAME_BYTES 512

/* Name of the function, or module and offset. Only the latter is written to `text`, truncated if longer. */
const char *export_frame_name(const struct mmt_frame *frame, char text[EXPORT_NAME_BYTES]);

/* A regular expression of functions whose callers map memory: viewers that show the inner end of a stack leave these
 * out, with all that they call. It matches whole names, without arguments. */
#define EXPORT_ALLOCATION_FUNCTIONS                                                                                    \
	"_*(GI_|libc_)?_*(mmap(64)?|mremap|s?brk|shmat|mprotect|syscall|(m|c|re|v|pv)alloc|memalign|aligned_alloc|"    \
	"posix_memalign|free)|sysmalloc(_mmap)?|_int_(malloc|realloc|memalign)|_mid_memalign|"                         \
	"__(default|glibc)_morecore|operator new(\\[\\])?|runtime\\.(mallocgc|newobject|makeslice|growslice|sysMmap)|" \
	"([a-z./]*/)?(syscall|unix)\\.([mM]map|(Raw)?Syscall6?)"

#define EXPORT_CONTAINER_BYTES 65
#define EXPORT_POD_BYTES 37

/* Labels of a process from its control group, which hosts have in common as far as possible; "": none. Viewers make a
 * series of each, so what has users and PIDs in its name, such as sessions and transient units, is no service. */
struct export_group_labels {
	char service[NAME_MAX + sizeof(".service")]; /* a unit of systemd, without its instance */
	char container[EXPORT_CONTAINER_BYTES];	     /* ID */
	char pod[EXPORT_POD_BYTES];		     /* UID in Kubernetes */
};

void export_group_labels(const char *path, struct export_group_labels *labels);

/* "demo (3074)". */
const char *export_process_name(const struct mmt_process *process, char text[EXPORT_NAME_BYTES]);
/* The text for a row without frames. Static. */
const char *export_no_frames(const struct mmt_row *row);

/* The frames of a row, the outermost first; of a row without frames, one whose name says why. */
struct export_stack {
	const struct mmt_row *row;
	size_t left;
	const char *name;
	const struct mmt_frame *frame; /* NULL: the row has no frames */
	char text[EXPORT_NAME_BYTES];
};

void export_stack_begin(struct export_stack *stack, const struct mmt_row *row);
/* Sets `name` and `frame`. False: no more. */
bool export_stack_next(struct export_stack *stack);

/* Get the sum of the next parts of one row and process, in the order of the report's parts, which are those in
 * [*first_ret, *position). Set *position to 0 before the first call. Thread, class, file and lifetimes of the sum are
 * not set. False: no more. */
bool export_next(const struct mmt_report *report, size_t *position, size_t *first_ret, struct mmt_part *sum_ret);

/* Committed and resident bytes include those in memory mapped before the window; unknown figures are 0. */
uint64_t export_weight(const struct mmt_part *part, enum mmt_weight weight);

/* Number the key in a table, from 1. True: it is new, and the caller must define it. Sets *failed if out of memory. */
bool export_is_new(struct intern *table, const void *key, size_t size, uint64_t *number_ret, bool *failed);

/* What a format puts together in several buffers: all of them begin empty, with LIMIT_EXPORT_BYTES. The second one
 * frees them, and returns `error` or, if that is NULL, the first error of a buffer, or `failed`: out of memory. */
void export_begin_buffers(struct buffer *const *buffers, size_t count);
struct mmt_error *export_end_buffers(struct buffer *const *buffers, size_t count, bool failed,
				     struct mmt_error *error) MMT_MUST_CHECK;

/* The lifetimes of a report's parts as events in time order, for formats that have events. A lifetime begins with an
 * allocation, and ends with a release unless it is still mapped at the end. In each step, releases of older memory come
 * first, then allocations, then releases of what the step allocated. */

struct export_event {
	uint32_t part, lifetime; /* places; the latter within the part */
	uint32_t number;	 /* of the lifetime among all, from 0 */
	uint32_t step;
	bool is_release;
};

struct export_events {
	struct export_event *items; /* the caller frees them */
	size_t count;
};

struct mmt_error *export_events_create(const struct mmt_report *report,
				       struct export_events *events_ret) MMT_MUST_CHECK;
/* Sort them by process, then as before. */
void export_events_sort_by_process(const struct mmt_report *report, const struct export_events *events);

/* The start time of a step, at most the window's end, on the recording's clock. */
uint64_t export_step_ns(const struct mmt_report *report, uint32_t step);

static inline const struct mmt_lifetime *export_event_lifetime(const struct mmt_report *report,
							       const struct export_event *event)
{
	return &report->parts[event->part].lifetimes[event->lifetime];
}

/* Whether this is the allocation of memory that is still mapped at the end. */
static inline bool export_is_unfreed(const struct mmt_report *report, const struct export_event *event)
{
	const struct mmt_lifetime *lifetime = export_event_lifetime(report, event);

	return lifetime->released_step == MMT_STILL_MAPPED && lifetime->bytes;
}

/* Messages in the encoding of Protocol Buffers, field by field. */

/* A number without a field, for packed fields. */
void protobuf_varint(struct buffer *buffer, uint64_t value);
/* Fields of type uint64, int64, uint32, bool and enum. */
void protobuf_number(struct buffer *buffer, uint32_t field, uint64_t value);
void protobuf_bytes(struct buffer *buffer, uint32_t field, const void *data, size_t size);
/* Control characters and invalid UTF-8 become \xNN. */
void protobuf_string(struct buffer *buffer, uint32_t field, const char *text);
/* An inner message or packed numbers, from `message`, which is cleared. */
void protobuf_message(struct buffer *buffer, uint32_t field, struct buffer *message);

/* What every format gets. */
struct export
{
	const struct mmt_report *report;
	enum mmt_weight weight;
	const char *service;	     /* instead of that of the control group; NULL: none */
	struct export_events events; /* for formats that need times */
	struct intern paths;	     /* of the report's modules */
	struct map modules;	     /* id of the path -> place of the first such module */
};

/* The build-id of the module with this path; NULL: unknown. */
const char *export_build_id(const struct export *export, const char *path);

/* A figure over time of all processes. */
struct export_track {
	const char *name, *description, *color;
	const void *points;
	size_t count;
	size_t size, time, bytes; /* of a point, and where its time and its bytes are */
};

#define EXPORT_TRACKS 3

void export_tracks(const struct mmt_report *report, struct export_track tracks[EXPORT_TRACKS]);
/* `offset`: track->time or track->bytes. */
uint64_t export_track_value(const struct export_track *track, size_t point, size_t offset);

/* One function for each format, in a file of its name; short ones are beside the table. */
typedef struct mmt_error *export_function(const struct export *export, FILE *stream);
export_function export_pprof, export_firefox, export_perfetto, export_rows;
