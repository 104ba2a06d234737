/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which module is mapped where. A path, a device and an inode identify a file, because two processes may have different
 * files under one path. Its content is the copy in the recording, or else a path of that file. */
#pragma once

#include "code/elf/module.h"
#include "model/space/space.h"
#include "trace/read/reader.h"

#define NO_IMAGE UINT32_MAX

/* A mapped file. Hashed as bytes, so without padding. */
struct image_key {
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t path;
	uint32_t unused;
};

struct image_state {
	struct image_key key;
	const char *path; /* in `arena` */
	bool opened;
	struct module *module;
	enum module_state to_report; /* MODULE_READABLE: nothing, or reported with another module */
};

enum { RECORDS_BY_INODE, RECORDS_BY_PATH, MODULE_RECORD_ORDERS };

struct next_records {
	uint32_t by[MODULE_RECORD_ORDERS]; /* NO_RECORD: none */
};

struct mapped_modules {
	const struct reader_metadata *metadata;
	struct modules *modules;
	struct intern paths; /* their numbers are those of space_attributes */
	struct intern images;
	VECTOR(struct image_state) image_states;
	struct map build_ids; /* path -> entry of the build-ids */
	struct map reported;  /* path and state of the warnings so far */
	/* The module records: the first one of each inode and of each path, and after each the next one. A hostile
	 * recording has a million records and as many images. */
	struct map first_records[MODULE_RECORD_ORDERS];
	VECTOR(struct next_records) next_records;
	struct arena arena;
};

/* Borrows the metadata. Zero the value before; deinitialise it on error too. */
struct mmt_error *mapped_modules_init(struct mapped_modules *mapped, const struct reader_metadata *metadata,
				      bool demangle) MMT_MUST_CHECK;
void mapped_modules_deinit(struct mapped_modules *mapped);

/* Number of the mapped file. NO_IMAGE: out of memory; the code is then unreadable. */
uint32_t mapped_modules_image(struct mapped_modules *mapped, const struct space_attributes *attributes);
/* The text lives as long as the modules. */
const char *mapped_modules_image_path(const struct mapped_modules *mapped, uint32_t image);

/* Without the memory for some code, stacks would end there as if it were unreadable: the next one fails to be unwound.
 * Other errors have left a state that says why it is unreadable. Destroys the error. */
void mapped_modules_note(struct mmt_error *error);

/* NULL: out of memory. */
struct module *mapped_modules_open(struct mapped_modules *mapped, uint32_t image);

/* The module of a mapped file, and the ELF address at an offset in it; NULL: no readable one. */
struct module *mapped_modules_find(struct mapped_modules *mapped, uint32_t image, uint64_t file_offset,
				   uint64_t *file_address_ret);

/* The number of a module with debug information that has the path's build-id: the file itself, or its separate debug
 * file. NO_IMAGE: there is none. Without `symbols`, do not open files in which only symbols can be expected. */
uint32_t mapped_modules_improved(struct mapped_modules *mapped, const char *path, bool symbols);

/* See resolver_unusable(). */
const char *mapped_modules_unusable(const struct mapped_modules *mapped, size_t *position, enum module_state *state_ret,
				    char **missing_ret);
