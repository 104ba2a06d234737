/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An ELF file of this machine as a module of a generated recording. */
#pragma once

#include "support/recording-builder.h"
#include "trace/format/event.h"
#include "trace/sections/sections.h"

#define PROGRAM_IMAGE_BASE 0x7f0000000000ULL /* of the program in the recording's process */

/* Its build ID, and its executable segment as the loader maps it. */
struct program_image {
	struct build_ids build_ids;
	struct event_mapping mapping;
};

/* Borrows the path. If the file cannot be read, the program exits. */
struct program_image program_image_describe(char *path);
void program_image_deinit(struct program_image *image);

void program_image_write_build_id(const struct program_image *image, struct recording_builder *builder);
