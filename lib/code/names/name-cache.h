/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Caches names between reports, in a directory with one file for each build of a module. Ignores files that other users
 * own or can write to, and files that another build of mmtrace has written. Replaces files by renaming, so that
 * concurrent reports see complete files.
 */
#ifndef CODE_NAMES_NAME_CACHE_H
#define CODE_NAMES_NAME_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vector.h"
#include "code/elf/module.h"

#define NAME_CACHE_BYTES (128u << 20)	  /* total disk space; the least recently used files are deleted first */
#define NAME_CACHE_FILE_BYTES (32u << 20) /* maximum size of a file */
#define NAME_CACHE_ID_BYTES_MIN 16	  /* shorter build-ids may not be unique */

struct name_cache;

/* Creates `directory` and its parent if they are missing. NULL: it cannot be used, or a directory or link in its path
 * belongs to another user. */
struct name_cache *name_cache_open(const char *directory, uint64_t limit);

/* Accepts NULL. */
void name_cache_close(struct name_cache *cache);

struct buffer;

/* Identity of a file and of its content: includes the change time, which programs cannot set. */
void name_cache_put_file(const struct stat *file, struct buffer *buffer);

struct name_cache_key {
	uint8_t build_id[20];
	size_t build_id_size;
	bool demangled;
	struct stat module; /* a build-id can be forged, the identity of the file cannot */
};

/* Read the cached content for this module; NULL: none. The caller frees `*data_ret`, which contains the result. */
const uint8_t *name_cache_read(struct name_cache *cache, const struct name_cache_key *key, uint8_t **data_ret,
			       size_t *size_ret);

/* Begin a file in `buffer`. The caller appends the content, calls name_cache_write(), which ignores errors, and frees
 * the buffer. */
void name_cache_begin(const struct name_cache *cache, const struct name_cache_key *key, struct buffer *buffer);

void name_cache_write(struct name_cache *cache, const struct name_cache_key *key, struct buffer *buffer);

/* Names by address in the module: the content of a cache file. Only modules with a cache file have them. */

struct known_answer {
	uint64_t address;
	uint32_t start; /* index of its first frame; the last one precedes the next answer's */
};

/* Text numbers plus 1; 0: none. */
struct known_frame {
	uint32_t function : 31;
	bool inlined : 1;
	uint32_t raw_function, source_file;
	uint32_t source_line;
};

/* An all-zero value is empty. */
struct known_names {
	struct id_table by_address; /* IDs are indexes into `found` */
	VECTOR(struct known_answer) found;
	VECTOR(struct known_frame) frames;
	struct id_table by_place; /* by address of the text in memory; IDs are indexes into `texts` */
	VECTOR(const char *) texts;
};

void known_names_deinit(struct known_names *names);

/* Number of frames; 0: the address is unknown. */
size_t known_names_get(struct known_names *names, uint64_t address, struct module_frame frames_ret[MODULE_INLINE_MAX]);

/* Borrows the strings. Does nothing if out of memory. */
void known_names_put(struct known_names *names, uint64_t address, const struct module_frame *frames, size_t count);

/* False: out of memory. */
bool known_names_encode(const struct known_names *names, struct buffer *buffer) __attribute__((warn_unused_result));

/* Decode into an empty value, which borrows strings from `bytes`. False: damaged; `names` is then empty. */
bool known_names_decode(struct bytes *bytes, struct known_names *names);

#endif
