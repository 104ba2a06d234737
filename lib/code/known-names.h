/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names that were looked up before, by address of the program file; as bytes too, so that they can be kept. */
#ifndef CODE_KNOWN_NAMES_H
#define CODE_KNOWN_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/map.h"
#include "base/vector.h"
#include "code/program.h"

struct known_answer {
	uint64_t address;
	size_t start, count; /* in `frames` */
};

/* Zero initialisation makes an empty one. */
struct known_names {
	struct map answers; /* address -> place in `found` */
	VECTOR(struct known_answer) found;
	VECTOR(struct program_frame) frames;
};

void known_names_deinit(struct known_names *names);

/* How many frames; 0: the address is not known. */
size_t known_names_get(const struct known_names *names, uint64_t address,
		       struct program_frame frames_ret[PROGRAM_INLINE_MAX]);

/* Borrows the texts; an answer that no memory is left for is not known. */
void known_names_put(struct known_names *names, uint64_t address, const struct program_frame *frames, size_t count);

void known_names_encode(const struct known_names *names, struct buffer *buffer);

/* Into an empty one; its texts are those in `bytes`, which must live as long. False: damaged, nothing is known. */
bool known_names_decode(struct bytes *bytes, struct known_names *names);

#endif
