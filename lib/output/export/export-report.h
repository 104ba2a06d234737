/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the formats of `mmtrace export` share. To add one: write a file with its function, declare that in formats.h,
 * add a row to the table in export-report.c, and describe it in mmtrace-export(1).
 */
#ifndef OUTPUT_EXPORT_EXPORT_REPORT_H
#define OUTPUT_EXPORT_EXPORT_REPORT_H

#include <mmtrace/export.h>

#include "base/bytes.h"
#include "base/errors.h"
#include "base/map.h"

struct export
{
	const struct mmt_report *report;
	enum mmt_weight weight;
};

#define EXPORT_NAME_BYTES 512

/* Name of the function, or module and offset. Only the latter is written to `text`, truncated if longer. */
const char *export_frame_name(const struct mmt_frame *frame, char text[EXPORT_NAME_BYTES]);

/* The frame that stands for a stack that has frames: its origin, or the first. */
const struct mmt_frame *export_origin(const struct mmt_group *group);

/* "demo (3074)". */
const char *export_process_name(const struct mmt_process *process, char text[EXPORT_NAME_BYTES]);
const char *export_thread_name(const struct mmt_thread *thread, char text[EXPORT_NAME_BYTES]);

/* The text for a group without frames. Static. */
const char *export_no_frames(const struct mmt_group *group);

/* Get the sum of the next parts of one group and process, in the order of the report's parts, which are those in
 * [*first_ret, *position). Set *position to 0 before the first call. Thread, class, file and lifetimes of the sum are
 * not set. False: no more. */
bool export_next(const struct mmt_report *report, size_t *position, size_t *first_ret, struct mmt_part *sum_ret);

/* Committed and resident bytes include those in memory mapped before the window; unknown figures are 0. */
uint64_t export_weight(const struct mmt_part *part, enum mmt_weight weight);

/* Append the text without NUL; control characters and invalid UTF-8 become \xNN. */
void export_put_escaped(struct buffer *buffer, const char *text);

/* The number of a key in a table, from 1. *new_ret: the caller must write its definition. Sets *failed if out of
 * memory. */
uint64_t export_number(struct intern *table, const void *key, size_t size, bool *new_ret, bool *failed);

/* What a format puts together in several buffers: all of them begin empty, with EXPORT_BUFFER_MAX. */
void export_begin_buffers(struct buffer *const *buffers, size_t count);

/* Frees them. Returns `error`, or if that is NULL the first error of a buffer. */
struct mmt_error *export_end_buffers(struct buffer *const *buffers, size_t count,
				     struct mmt_error *error) MMT_MUST_CHECK;

/* The items of a list, such as events, in the order of the processes that they belong to. */
struct export_by_process {
	size_t *starts; /* by process: the first of its items in `places`; they end where the next process starts */
	size_t *places; /* of the items in the list; those of one process keep their order */
};

/* The process of an item, as place in the report's processes. */
typedef size_t export_process_of(const void *context, size_t place);

/* False: out of memory. Call export_by_process_deinit() in any case. */
bool export_by_process_create(const struct mmt_report *report, size_t count, export_process_of *process_of,
			      const void *context, struct export_by_process *by_process_ret);
void export_by_process_deinit(struct export_by_process *by_process);

/* Close a stream of gzip_open(). Errors of `below` are not returned: the caller detects them. */
struct mmt_error *export_close_gzip(FILE *stream, FILE *below) MMT_MUST_CHECK;

/* The maximum size of a buffer of strings and names. */
#define EXPORT_BUFFER_MAX (64u << 20)

#endif
