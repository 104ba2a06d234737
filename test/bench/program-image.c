// SPDX-License-Identifier: LGPL-2.1-or-later
#include "base/limits.h"
#include "program-image.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct program_image program_image_describe(char *path)
{
	struct program_image image = {
	    .mapping = {.protection = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE, .path = path}};
	struct build_id_entry entry = {.path = path};
	FILE *stream = fopen(path, "r");
	const void *id;
	ssize_t size;
	size_t count = 0;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = stream ? elf_begin(fileno(stream), ELF_C_READ_MMAP, NULL) : NULL;
	if (!elf || elf_getphdrnum(elf, &count)) {
		fprintf(stderr, "%s: cannot be read\n", path);
		exit(EXIT_FAILURE);
	}
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;

		/* If there are several: the one with .text, which is the largest. */
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD || !(header.p_flags & PF_X) ||
		    header.p_filesz < image.mapping.length)
			continue;
		image.mapping.file_offset = header.p_offset & ~4095ul;
		image.mapping.start = PROGRAM_IMAGE_BASE + (header.p_vaddr & ~4095ul);
		image.mapping.length = (header.p_filesz + (header.p_vaddr & 4095) + 4095) & ~4095ul;
	}
	size = dwelf_elf_gnu_build_id(elf, &id);
	if (size > 0 && (size_t)size <= sizeof(entry.bytes)) {
		entry.size = (uint8_t)size;
		memcpy(entry.bytes, id, (size_t)size);
		if (!vector_push(&image.build_ids.entries, entry))
			exit(EXIT_FAILURE);
	}
	elf_end(elf);
	fclose(stream);
	return image;
}

void program_image_deinit(struct program_image *image)
{
	vector_deinit(&image->build_ids.entries);
}

void program_image_write_build_id(const struct program_image *image, struct recording_builder *builder)
{
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	build_ids_encode(&image->build_ids, &buffer);
	if (buffer_finish(&buffer))
		abort();
	builder_section(builder, FEATURE_BUILD_ID, buffer.data, buffer.size);
	buffer_deinit(&buffer);
}
