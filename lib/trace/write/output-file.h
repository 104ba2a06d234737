/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A file that gets its name late: it is written beside its target, so that a failure leaves an earlier file intact, and
 * so that mmtrace never writes through a link that another user created. Until then it has no name if the
 * file system supports that, so that nothing remains of it however the process ends. */
#pragma once

#include <mmtrace/record.h>

#include "base/errors.h"

struct output_file {
	char *path;
	const char *name; /* the last component of the path */
	int directory;	  /* of the path, O_PATH: all names are names in it */
	char *temporary;  /* NULL for an unnamed file and once the file has its name */
	mode_t mode;	  /* of a new file; the umask applies */
	int fd;
	bool nameless; /* the file has no name yet */
	char link[32]; /* path for linking an unnamed file */
	bool replaces; /* do not keep an existing file */
	bool kept;     /* an existing file is now PATH.old */
	bool replaced; /* ... and replaced an earlier PATH.old */
	bool stream;   /* standard output, a pipe or a device: bytes are written in sequence and cannot be changed */
	/* For a stream: writing waits for the reader until `stop_fd` (-1: none) is readable or CLOCK_MONOTONIC has
	 * reached `until_ns` (UINT64_MAX: no limit). After that, writing fails if the reader does not read for a while.
	 */
	int stop_fd;
	uint64_t until_ns;
	mode_t type;   /* of a stream: S_IFIFO, ... */
	bool given_up; /* the reader no longer reads */
};

/* Create the file with mode 0600. Errors: no such directory, no permission, the target is a link, a directory or a
 * device, or the name is too long for the temporary names. */
struct mmt_error *output_file_open(const char *path, struct output_file *file_ret) MMT_MUST_CHECK;

/* Use standard output, unless it is a terminal. */
struct mmt_error *output_file_open_stream(struct output_file *file_ret) MMT_MUST_CHECK;

/* Write everything or return an error; *written_ret may be NULL. */
struct mmt_error *output_file_write(struct output_file *file, const void *data, size_t size, uint64_t offset,
				    size_t *written_ret) MMT_MUST_CHECK;

/* Return an error if the output is lost: the named file was removed, or the reader of a pipe has exited. */
struct mmt_error *output_file_check(const struct output_file *file) MMT_MUST_CHECK;

struct mmt_error *output_file_cut(struct output_file *file, uint64_t size) MMT_MUST_CHECK;

/* Return an error if the file system has no room for so many bytes. */
struct mmt_error *output_file_check_room(const struct output_file *file, uint64_t bytes) MMT_MUST_CHECK;

/* Wait until the file is on disk. */
struct mmt_error *output_file_sync(struct output_file *file) MMT_MUST_CHECK;

/* Keep an earlier file as PATH.old, unless this file replaces it, and take its name. Signals are blocked meanwhile.
 * After an error the file has no name. */
struct mmt_error *output_file_take_name(struct output_file *file) MMT_MUST_CHECK;

/* The current name of the file: another process may have taken the name since, and kept this file as PATH.old. */
enum mmt_record_place output_file_find(const struct output_file *file);

/* Where mmt_write_file() will write: an O_PATH descriptor of the directory, pipe or device. Negative: nowhere. */
int output_file_place(const char *path);

/* Remove a file that has not got its name. */
void output_file_close(struct output_file *file);
