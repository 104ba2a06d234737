/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Names kept from one report to the next: a directory with one file for each build of a program. Only files that
 * belong to this user and that nobody else may write are believed, and only those that this very build of mmtrace has
 * written; everything else is as if it were not there. Files are written beside and renamed, so that reports at the
 * same time see whole ones.
 */
#ifndef CODE_DWARF_NAME_CACHE_H
#define CODE_DWARF_NAME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define NAME_CACHE_BYTES (128u << 20)	  /* of disk for all files, the least recently used go */
#define NAME_CACHE_FILE_BYTES (32u << 20) /* of one */
#define NAME_CACHE_ID_BYTES_MIN 16	  /* shorter build-ids are somebody's choice, and not unique */

struct name_cache;

/* Creates `directory` and its parent if they are missing. NULL: it cannot be used, or a directory or link in its path
 * belongs to another user. */
struct name_cache *name_cache_open(const char *directory, uint64_t limit);

/* Accepts NULL. */
void name_cache_close(struct name_cache *cache);

struct buffer;

/* What tells a file from another, and from itself after a change: its times can be set, that of the change cannot. */
void name_cache_put_file(const struct stat *file, struct buffer *buffer);

struct name_cache_key {
	uint8_t build_id[20];
	size_t build_id_size;
	bool demangled;
	struct stat program; /* a build-id can be forged, this file cannot */
};

/* What was kept of this program; NULL: nothing. The caller frees `*data_ret`; the content starts at the result. */
const uint8_t *name_cache_read(struct name_cache *cache, const struct name_cache_key *key, uint8_t **data_ret,
			       size_t *size_ret);

/* What is put into the buffer behind this is kept by name_cache_write(): in vain where it cannot be written, or failed.
 * The caller frees the buffer. */
void name_cache_begin(const struct name_cache *cache, const struct name_cache_key *key, struct buffer *buffer);

void name_cache_write(struct name_cache *cache, const struct name_cache_key *key, struct buffer *buffer);

#endif
