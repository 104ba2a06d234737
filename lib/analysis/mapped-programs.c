// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/mapped-programs.h"

#include <string.h>

/* A mapped file. Interned, so without padding. */
struct image_key {
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t path;
	uint32_t unused;
};

/* When recording ended, since the epoch; 0: not known. */
static uint64_t recorded_until(const struct reader_metadata *metadata)
{
	if (!metadata->ours || !metadata->has_loss || metadata->loss.stop_ns < metadata->info.start_ns)
		return 0;
	return metadata->info.start_realtime_ns + (metadata->loss.stop_ns - metadata->info.start_ns);
}

struct mmt_error *mapped_programs_init(struct mapped_programs *mapped, const struct reader_metadata *metadata,
				       bool demangle)
{
	struct mmt_error *error = programs_create(metadata->architecture->elf_machine, demangle, &mapped->programs);
	uint32_t unnamed; /* 0: what the model gives to mappings that nothing named */

	mapped->metadata = metadata;
	if (error)
		return error;
	programs_recorded_until(mapped->programs, recorded_until(metadata));
	return mapped_programs_path(mapped, "", &unnamed);
}

void mapped_programs_deinit(struct mapped_programs *mapped)
{
	vector_deinit(&mapped->image_states);
	intern_deinit(&mapped->paths);
	intern_deinit(&mapped->images);
	programs_destroy(mapped->programs);
}

struct mmt_error *mapped_programs_path(struct mapped_programs *mapped, const char *path, uint32_t *path_ret)
{
	uint32_t number = intern_put_string(&mapped->paths, path);

	if (number == INTERN_NONE)
		return &error_no_memory;
	*path_ret = number;
	return NULL;
}

const char *mapped_programs_path_name(const struct mapped_programs *mapped, uint32_t path)
{
	return intern_get(&mapped->paths, path, NULL);
}

static const struct build_id_entry *find_build_id(const struct mapped_programs *mapped, const char *path)
{
	for (size_t i = 0; i < mapped->metadata->build_ids.entries.count; i++) {
		const struct build_id_entry *entry = &mapped->metadata->build_ids.entries.items[i];

		if (!strcmp(entry->path, path))
			return entry;
	}
	return NULL;
}

uint32_t mapped_programs_image(struct mapped_programs *mapped, const struct space_attributes *attributes)
{
	struct image_key key = {.inode = attributes->inode,
				.device_major = attributes->device_major,
				.device_minor = attributes->device_minor,
				.path = attributes->path};
	uint32_t image = intern_put(&mapped->images, &key, sizeof(key));

	while (image != NO_IMAGE && mapped->image_states.count <= image) {
		if (!vector_append(&mapped->image_states))
			return NO_IMAGE;
	}
	return image;
}

const char *mapped_programs_image_path(const struct mapped_programs *mapped, uint32_t image)
{
	struct image_key key;

	memcpy(&key, intern_get(&mapped->images, image, NULL), sizeof(key));
	return intern_get(&mapped->paths, key.path, NULL);
}

/* The next record of the same file, counted on in *position; without a known inode the path decides. NULL: no more. */
static const struct image_copy *next_record(const struct mapped_programs *mapped, const struct image_key *key,
					    const char *path, size_t *position)
{
	while (*position < mapped->metadata->images.images.count) {
		const struct image_copy *record = &mapped->metadata->images.images.items[(*position)++];

		if (key->inode == SPACE_INODE_UNKNOWN
			? !strcmp(record->path, path)
			: record->inode == key->inode && record->device_major == key->device_major &&
			      record->device_minor == key->device_minor)
			return record;
	}
	return NULL;
}

static struct program *open_copy(struct mapped_programs *mapped, const struct image_copy *record)
{
	struct program *program = NULL;
	uint8_t *content;
	struct mmt_error *error = image_copies_extract(&mapped->metadata->images, record, &content);

	if (!error)
		error = programs_open_content(mapped->programs, record->path, content, record->size, record->build_id,
					      record->build_id_size, &program);
	mmt_error_destroy(error);
	return program;
}

/* The copy in the recording; else the first of the file's paths that leads to the recorded build. */
static struct program *open_recorded(struct mapped_programs *mapped, const struct image_key *key, const char *path)
{
	const struct image_copy *record;
	struct program *program = NULL;

	for (size_t i = 0; (record = next_record(mapped, key, path, &i));) {
		if (record->size && (program = open_copy(mapped, record)))
			return program;
	}
	for (size_t i = 0; (record = next_record(mapped, key, path, &i));) {
		mmt_error_destroy(programs_open(mapped->programs, record->path,
						record->build_id_size ? record->build_id : NULL, record->build_id_size,
						&program));
		if (program && program_state(program) == PROGRAM_READABLE)
			break;
	}
	return program;
}

struct program *mapped_programs_open(struct mapped_programs *mapped, uint32_t image)
{
	struct image_state *state = &mapped->image_states.items[image];
	const struct build_id_entry *build_id;
	struct image_key key;
	const char *path;

	if (state->opened)
		return state->program;
	state->opened = true;
	memcpy(&key, intern_get(&mapped->images, image, NULL), sizeof(key));
	path = intern_get(&mapped->paths, key.path, NULL);
	if (key.inode)
		state->program = open_recorded(mapped, &key, path);
	if (state->program)
		return state->program;
	build_id = find_build_id(mapped, path);
	mmt_error_destroy(programs_open(mapped->programs, path, build_id ? build_id->bytes : NULL,
					build_id ? build_id->size : 0, &state->program));
	return state->program;
}

struct program *mapped_programs_find(struct mapped_programs *mapped, const struct space_interval *interval,
				     uint64_t address, uint64_t *file_address_ret)
{
	uint32_t image = mapped_programs_image(mapped, &interval->attributes);
	struct program *program = image == NO_IMAGE ? NULL : mapped_programs_open(mapped, image);
	uint64_t file_offset = interval->attributes.file_offset + (address - interval->start);

	if (!program || program_state(program) != PROGRAM_READABLE)
		return NULL;
	return program_address(program, file_offset, file_address_ret) ? program : NULL;
}

/* Why stacks could not use the image; PROGRAM_READABLE: they could, or it is no program at all. */
static enum program_state unusable_state(const struct mapped_programs *mapped, size_t image)
{
	const struct program *program = mapped->image_states.items[image].program;
	const char *path = mapped_programs_image_path(mapped, (uint32_t)image);
	enum program_state state;

	if (!program || code_copies_is_generated(path) || path[0] != '/')
		return PROGRAM_READABLE;
	state = program_state(program);
	return state == PROGRAM_NOT_ELF ? PROGRAM_READABLE : state;
}

/* An earlier image of the same path has told it already. */
static bool is_told(const struct mapped_programs *mapped, size_t image, enum program_state state)
{
	const char *path = mapped_programs_image_path(mapped, (uint32_t)image);

	for (size_t i = 0; i < image; i++) {
		if (unusable_state(mapped, i) == state &&
		    !strcmp(mapped_programs_image_path(mapped, (uint32_t)i), path))
			return true;
	}
	return false;
}

const char *mapped_programs_unusable(const struct mapped_programs *mapped, size_t *position,
				     enum program_state *state_ret)
{
	while (*position < mapped->image_states.count) {
		size_t image = (*position)++;

		*state_ret = unusable_state(mapped, image);
		if (*state_ret != PROGRAM_READABLE && !is_told(mapped, image, *state_ret))
			return mapped_programs_image_path(mapped, (uint32_t)image);
	}
	return NULL;
}
