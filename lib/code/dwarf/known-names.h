/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names found earlier, by file address. They can be encoded, to be kept in the name cache. */
#ifndef CODE_DWARF_KNOWN_NAMES_H
#define CODE_DWARF_KNOWN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/map.h"
#include "base/vector.h"
#include "code/elf/module.h"

struct known_answer {
	uint64_t address;
	uint32_t start; /* of its frames; they end where those of the next answer start */
};

/* Numbers of texts, plus 1; 0: none. */
struct known_frame {
	uint32_t function : 31;
	bool inlined : 1;
	uint32_t raw_function, source_file;
	uint32_t source_line;
};

/* Zero initialisation makes an empty one. */
struct known_names {
	struct id_table by_address; /* its ids are places in `found` */
	VECTOR(struct known_answer) found;
	VECTOR(struct known_frame) frames;
	struct id_table by_place; /* of texts in memory; its ids are places in `texts` */
	VECTOR(const char *) texts;
};

void known_names_deinit(struct known_names *names);

/* How many frames; 0: the address is not known. */
size_t known_names_get(struct known_names *names, uint64_t address,
		       struct program_frame frames_ret[PROGRAM_INLINE_MAX]);

/* Borrows the texts; an answer that no memory is left for is not known. */
void known_names_put(struct known_names *names, uint64_t address, const struct program_frame *frames, size_t count);

/* False: out of memory. */
bool known_names_encode(const struct known_names *names, struct buffer *buffer) __attribute__((warn_unused_result));

/* Into an empty one; its texts are those in `bytes`, which must live as long. False: damaged, nothing is known. */
bool known_names_decode(struct bytes *bytes, struct known_names *names);

#endif
