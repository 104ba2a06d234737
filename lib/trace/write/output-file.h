/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that takes its name late: written beside its target, so that a failure leaves an earlier file alone, and so
 * that nothing is written through a link that somebody else has put there. Until then it has no name where the file
 * system has such files, so that nothing is left of it however the process ends.
 */
#ifndef TRACE_WRITE_OUTPUT_FILE_H
#define TRACE_WRITE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"

struct output_file {
	char *path;
	char *temporary; /* NULL once the file has its name, and while it has none */
	int fd;
	bool nameless; /* so far */
	char link[32]; /* to it, then */
	bool replaces; /* an existing file is not kept */
	bool kept;     /* an existing file is PATH.old now */
	bool replaced; /* ... where another one was before */
	bool stream;   /* standard output: bytes go out in the order in which they are written, and stay */
	int stop_fd;   /* of a stream: see output_file_limit_waiting() */
	uint64_t until_ns;
	mode_t type;   /* of a stream: S_IFIFO and the like */
	bool given_up; /* its reader takes nothing */
};

/* 0600. Errors: no such directory, no permission, the target is a link, a directory or a device, the name is
   too long for what it needs until it is whole. */
struct mmt_error *output_file_open(const char *path, struct output_file *file_ret) MMT_MUST_CHECK;

/* Standard output, unless it is a terminal. */
struct mmt_error *output_file_open_stream(struct output_file *file_ret) MMT_MUST_CHECK;

/*
 * For a stream: its reader is waited for as long as it takes, until `stop_fd` (-1: none) is readable or CLOCK_MONOTONIC
 * has come to `until_ns` (UINT64_MAX: never). From then on a reader that takes nothing for a while makes writing fail.
 */
void output_file_limit_waiting(struct output_file *file, int stop_fd, uint64_t until_ns);

/* All of it, or an error; *written_ret may be NULL. */
struct mmt_error *output_file_write(struct output_file *file, const void *data, size_t size, uint64_t offset,
				    size_t *written_ret) MMT_MUST_CHECK;

/* An error when nobody would find what is written: the file has been removed since it took its name, or the reader of a
 * pipe has ended. */
struct mmt_error *output_file_check(const struct output_file *file) MMT_MUST_CHECK;

struct mmt_error *output_file_cut(struct output_file *file, uint64_t size) MMT_MUST_CHECK;

/* Until it is on the disk. */
struct mmt_error *output_file_sync(struct output_file *file) MMT_MUST_CHECK;

/* Keep an earlier file as PATH.old, unless this one replaces it, then take its name. Signals wait meanwhile. After an error
 * the file has no name any more. */
struct mmt_error *output_file_take_name(struct output_file *file) MMT_MUST_CHECK;

/* Which name the file has now that it has taken one: another process may have taken it since, and kept this file. */
enum output_place { OUTPUT_AT_PATH, OUTPUT_AT_OLD, OUTPUT_ELSEWHERE };
enum output_place output_file_find(const struct output_file *file);

/* A file without a name is removed. */
void output_file_close(struct output_file *file);

#endif
