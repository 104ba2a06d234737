/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens one ELF file, verifies its build-id, and gives its segments. */
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
	void *image;	      /* content of what is no file here (vdso, a copy in the recording), else NULL */
	size_t image_size;
	VECTOR(struct elf_segment) segments;
	uint64_t entry;	      /* address where the program begins; 0: a library */
	bool has_interpreter; /* is loaded together with its libraries */
	bool is_go;
};

/* `build_id` NULL: any. `state` says what is wrong with the file; an error is returned only if out of memory. */
struct mmt_error *elf_file_open(const char *path, uint16_t machine, const uint8_t *build_id, size_t build_id_size,
				struct elf_file *file) MMT_MUST_CHECK;
/* The same for the content of a file, which is taken whatever comes of it. */
struct mmt_error *elf_file_open_content(void *content, size_t size, uint16_t machine, const uint8_t *build_id,
					size_t build_id_size, struct elf_file *file) MMT_MUST_CHECK;
void elf_file_close(struct elf_file *file);

/* Its size; 0: none, or a longer one. */
size_t elf_file_build_id(const struct elf_file *file, uint8_t id_ret[20]);

/* Open the same file once more: the descriptor, or -1 when another one has taken its place. */
int elf_file_reopen(const struct elf_file *file, const char *path);

bool elf_file_address(const struct elf_file *file, uint64_t file_offset, uint64_t *address_ret);

/* At most `size` bytes of code from `address` on: their number, 0: none. Borrowed. */
size_t elf_file_code_at(const struct elf_file *file, uint64_t address, size_t size, const uint8_t **code_ret);

/* At most `size` bytes of code that end before `address`: their number, 0: none. Borrowed. */
size_t elf_file_code_before(const struct elf_file *file, uint64_t address, size_t size, const uint8_t **code_ret);

#endif
