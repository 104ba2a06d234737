/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens an ELF file, verifies its build-id, and provides its segments. */
#ifndef CODE_ELF_ELF_FILE_H
#define CODE_ELF_ELF_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/errors.h"
#include "base/vector.h"
#include "code/elf/module.h"

struct elf_segment {
	uint64_t file_offset, file_size, address;
	bool executable;
};

struct elf_file {
	enum program_state state;
	Elf *elf;	      /* NULL unless PROGRAM_READABLE */
	struct stat identity; /* of the file that was opened */
	void *image;	      /* content that is not in a file (vdso, a copy in the recording), else NULL */
	size_t image_size;
	VECTOR(struct elf_segment) segments;
	uint64_t entry;	      /* entry point; 0: a library */
	bool has_interpreter; /* dynamically linked */
	bool is_go;
};

/* `build_id` NULL: accept any. `state` describes problems with the file; the only error returned is out of memory. */
struct mmt_error *elf_file_open(const char *path, uint16_t machine, const uint8_t *build_id, size_t build_id_size,
				struct elf_file *file) MMT_MUST_CHECK;
/* The same for the content of a file. Takes ownership of the content, even on error. */
struct mmt_error *elf_file_open_content(void *content, size_t size, uint16_t machine, const uint8_t *build_id,
					size_t build_id_size, struct elf_file *file) MMT_MUST_CHECK;
void elf_file_close(struct elf_file *file);

/* Returns the size of the build-id; 0: none, or too long. */
size_t elf_file_build_id(const struct elf_file *file, uint8_t id_ret[20]);

/* Open the same file again. Returns a descriptor, or -1 if another file has replaced it. */
int elf_file_reopen(const struct elf_file *file, const char *path);

bool elf_file_address(const struct elf_file *file, uint64_t file_offset, uint64_t *address_ret);

/* Up to `size` bytes of code from `address` on. Returns their number; 0: none. Borrowed. */
size_t elf_file_code_at(const struct elf_file *file, uint64_t address, size_t size, const uint8_t **code_ret);

/* Up to `size` bytes of code that end before `address`. Returns their number; 0: none. Borrowed. */
size_t elf_file_code_before(const struct elf_file *file, uint64_t address, size_t size, const uint8_t **code_ret);

#endif
