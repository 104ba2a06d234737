// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/mapped-modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define NO_RECORD UINT32_MAX
#define NO_BUILD_ID UINT64_MAX
#define STATE_BITS 8 /* bits of enum module_state in a key of `reported` */

/* A mapped file. Hashed as bytes, so without padding. */
struct image_key {
	uint64_t inode;
	uint32_t device_major, device_minor;
	uint32_t path;
	uint32_t unused;
};

/* When recording ended, since the epoch; 0: unknown. */
static uint64_t recorded_until(const struct reader_metadata *metadata)
{
	if (!metadata->ours || !metadata->has_loss || metadata->loss.stop_ns < metadata->info.start_ns)
		return 0;
	return metadata->info.start_realtime_ns + (metadata->loss.stop_ns - metadata->info.start_ns);
}

/* Insert a record before the others of its key, and return the previous first one. */
static bool link_record(struct mapped_modules *mapped, const struct image_key *key, uint32_t record, uint32_t *next_ret)
{
	uint32_t id = intern_put(&mapped->record_keys, key, sizeof(*key));

	*next_ret = NO_RECORD;
	if (id == INTERN_NONE)
		return false;
	if (id == mapped->first_records.count)
		return vector_push(&mapped->first_records, record);
	*next_ret = mapped->first_records.items[id];
	mapped->first_records.items[id] = record;
	return true;
}

/* Insert from the last to the first, so that lookups find each key's records in file order. */
static struct mmt_error *index_records(struct mapped_modules *mapped)
{
	const struct module_copies *copies = &mapped->metadata->images;

	for (size_t i = 0; i < copies->images.count; i++) {
		if (!vector_append(&mapped->record_links))
			return &error_no_memory;
	}
	for (uint32_t i = (uint32_t)copies->images.count; i-- > 0;) {
		const struct module_copy *record = &copies->images.items[i];
		struct record_links *links = &mapped->record_links.items[i];
		struct image_key file = {
		    .inode = record->inode, .device_major = record->device_major, .device_minor = record->device_minor};
		struct image_key named = {.inode = SPACE_INODE_UNKNOWN};
		struct mmt_error *error = mapped_modules_path(mapped, record->path, &named.path);

		if (error)
			return error;
		if (!link_record(mapped, &file, i, &links->next_of_file) ||
		    !link_record(mapped, &named, i, &links->next_of_path))
			return &error_no_memory;
	}
	return NULL;
}

static bool is_same_build(const struct build_ids *ids, uint64_t left, uint64_t right)
{
	return left < ids->entries.count && ids->entries.items[left].size == ids->entries.items[right].size &&
	       !memcmp(ids->entries.items[left].bytes, ids->entries.items[right].bytes, ids->entries.items[left].size);
}

/* The first build-id of a path counts. In a packed recording nothing tells to which of several a frame belongs: none of
 * them counts. */
static struct mmt_error *index_build_ids(struct mapped_modules *mapped)
{
	const struct build_ids *ids = &mapped->metadata->build_ids;

	for (size_t i = ids->entries.count; i-- > 0;) {
		uint32_t path;
		struct mmt_error *error = mapped_modules_path(mapped, ids->entries.items[i].path, &path);
		const uint64_t *later = error ? NULL : map_get(&mapped->build_ids, path);
		bool several = mapped->metadata->packed && later && !is_same_build(ids, *later, i);

		if (error)
			return error;
		if (!map_put(&mapped->build_ids, path, several ? NO_BUILD_ID : i))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *mapped_modules_init(struct mapped_modules *mapped, const struct reader_metadata *metadata,
				      bool demangle)
{
	struct mmt_error *error = modules_create(metadata->architecture->elf_machine, demangle, &mapped->modules);
	uint32_t unnamed; /* 0: the model's path for mappings without a name */

	mapped->metadata = metadata;
	if (error)
		return error;
	modules_recorded_until(mapped->modules, recorded_until(metadata));
	if (metadata->kernel)
		modules_recorded_on(mapped->modules, metadata->kernel);
	error = mapped_modules_path(mapped, "", &unnamed);
	if (!error)
		error = index_records(mapped);
	return error ? error : index_build_ids(mapped);
}

void mapped_modules_deinit(struct mapped_modules *mapped)
{
	vector_deinit(&mapped->image_states);
	vector_deinit(&mapped->first_records);
	vector_deinit(&mapped->record_links);
	intern_deinit(&mapped->record_keys);
	map_deinit(&mapped->build_ids);
	map_deinit(&mapped->reported);
	intern_deinit(&mapped->paths);
	intern_deinit(&mapped->images);
	arena_deinit(&mapped->arena);
	modules_destroy(mapped->modules);
}

struct mmt_error *mapped_modules_path(struct mapped_modules *mapped, const char *path, uint32_t *path_ret)
{
	uint32_t number = intern_put_string(&mapped->paths, path);

	if (number == INTERN_NONE)
		return &error_no_memory;
	*path_ret = number;
	return NULL;
}

const char *mapped_modules_path_name(const struct mapped_modules *mapped, uint32_t path)
{
	return intern_get(&mapped->paths, path, NULL);
}

static const struct build_id_entry *find_build_id(const struct mapped_modules *mapped, uint32_t path)
{
	const uint64_t *entry = map_get(&mapped->build_ids, path);

	return entry && *entry != NO_BUILD_ID ? &mapped->metadata->build_ids.entries.items[*entry] : NULL;
}

uint32_t mapped_modules_image(struct mapped_modules *mapped, const struct space_attributes *attributes)
{
	struct image_key key = {.inode = attributes->inode,
				.device_major = attributes->device_major,
				.device_minor = attributes->device_minor,
				.path = attributes->path};
	uint32_t image = intern_put(&mapped->images, &key, sizeof(key));

	while (image != NO_IMAGE && mapped->image_states.count <= image) {
		struct image_key new_key;
		struct image_state state = {0};

		memcpy(&new_key, intern_get(&mapped->images, (uint32_t)mapped->image_states.count, NULL),
		       sizeof(new_key));
		state.path = arena_string(&mapped->arena, mapped_modules_path_name(mapped, new_key.path));
		if (!state.path || !vector_push(&mapped->image_states, state))
			return NO_IMAGE;
	}
	return image;
}

const char *mapped_modules_image_path(const struct mapped_modules *mapped, uint32_t image)
{
	return mapped->image_states.items[image].path;
}

/* The first record of a file or of a path. */
static uint32_t first_record(const struct mapped_modules *mapped, const struct image_key *key)
{
	uint32_t id = intern_find(&mapped->record_keys, key, sizeof(*key));

	return id == INTERN_NONE ? NO_RECORD : mapped->first_records.items[id];
}

static const struct module_copy *record_at(const struct mapped_modules *mapped, uint32_t record)
{
	return &mapped->metadata->images.images.items[record];
}

/* If the inode is unknown, find records by path only. */
static uint32_t first_candidate(const struct mapped_modules *mapped, const struct image_key *key)
{
	struct image_key wanted = *key;

	if (key->inode == SPACE_INODE_UNKNOWN)
		wanted.device_major = wanted.device_minor = 0;
	else
		wanted.path = 0;
	return first_record(mapped, &wanted);
}

static uint32_t next_candidate(const struct mapped_modules *mapped, const struct image_key *key, uint32_t record)
{
	const struct record_links *links = &mapped->record_links.items[record];

	return key->inode == SPACE_INODE_UNKNOWN ? links->next_of_path : links->next_of_file;
}

/* The record made when this file was mapped under this path. */
static const struct module_copy *own_record(const struct mapped_modules *mapped, const struct image_key *key,
					    const char *path)
{
	for (uint32_t i = first_candidate(mapped, key); i != NO_RECORD; i = next_candidate(mapped, key, i)) {
		if (!strcmp(record_at(mapped, i)->path, path))
			return record_at(mapped, i);
	}
	return NULL;
}

/* The kernel reuses the inode of a deleted file: under another path, only an equal build-id proves that it is the same
 * file. */
static bool is_same_file(const struct module_copy *own, const struct module_copy *record)
{
	return record == own || (own->build_id_size && own->build_id_size == record->build_id_size &&
				 !memcmp(own->build_id, record->build_id, own->build_id_size));
}

static struct module *open_copy(struct mapped_modules *mapped, const struct module_copy *record)
{
	struct module *module = NULL;
	uint8_t *content;
	struct mmt_error *error = module_copies_extract(&mapped->metadata->images, record, &content);

	if (!error)
		error = modules_open_content(mapped->modules, record->path, content, record->size, record->build_id,
					     record->build_id_size, &module);
	mmt_error_destroy(error);
	return module;
}

static uint64_t known_inode(uint64_t inode)
{
	return inode == SPACE_INODE_UNKNOWN ? 0 : inode;
}

static struct module *open_record(struct mapped_modules *mapped, const struct module_copy *record)
{
	struct module *module = NULL;

	mmt_error_destroy(modules_open(mapped->modules, record->path, record->build_id_size ? record->build_id : NULL,
				       record->build_id_size, known_inode(record->inode), &module));
	return module;
}

/* Open the copy in the recording, or else the first of the file's paths that has the recorded build. */
static struct module *open_recorded(struct mapped_modules *mapped, const struct image_key *key, const char *path)
{
	const struct module_copy *own = own_record(mapped, key, path);
	struct module *unusable = NULL;

	for (int copies = 1; own && copies >= 0; copies--) {
		for (uint32_t i = first_candidate(mapped, key); i != NO_RECORD; i = next_candidate(mapped, key, i)) {
			const struct module_copy *record = record_at(mapped, i);
			struct module *module;

			if (!is_same_file(own, record) || (copies && !record->size))
				continue;
			module = copies ? open_copy(mapped, record) : open_record(mapped, record);
			if (module && module_state(module) == MODULE_READABLE)
				return module;
			if (module && !unusable)
				unusable = module;
		}
	}
	return unusable;
}

/* Why stacks could not use the module; MODULE_READABLE: they could, or it is not a module at all. */
static enum module_state unusable_state(const struct module *module, const char *path)
{
	enum module_state state;

	if (!module || jit_code_is_path(path) || path[0] != '/')
		return MODULE_READABLE;
	state = module_state(module);
	return state == MODULE_NOT_ELF ? MODULE_READABLE : state;
}

/* Report each path only once per state. */
static enum module_state state_to_report(struct mapped_modules *mapped, const struct module *module, uint32_t path)
{
	enum module_state state = unusable_state(module, mapped_modules_path_name(mapped, path));
	uint64_t key = (uint64_t)path << STATE_BITS | state;

	if (state == MODULE_READABLE || map_get(&mapped->reported, key))
		return MODULE_READABLE;
	(void)map_put(&mapped->reported, key, 1);
	return state;
}

/* Open the module even if the file has changed since. NULL: out of memory. */
static struct module *open_image(struct mapped_modules *mapped, const struct image_key *key)
{
	const char *path = mapped_modules_path_name(mapped, key->path);
	struct module *module = key->inode ? open_recorded(mapped, key, path) : NULL;
	const struct build_id_entry *build_id;

	if (module)
		return module;
	build_id = find_build_id(mapped, key->path);
	mmt_error_destroy(modules_open(mapped->modules, path, build_id ? build_id->bytes : NULL,
				       build_id ? build_id->size : 0, known_inode(key->inode), &module));
	return module;
}

struct module *mapped_modules_open(struct mapped_modules *mapped, uint32_t image)
{
	struct image_state *state = &mapped->image_states.items[image];
	struct image_key key;

	if (state->opened)
		return state->module;
	state->opened = true;
	memcpy(&key, intern_get(&mapped->images, image, NULL), sizeof(key));
	state->module = open_image(mapped, &key);
	state->to_report = state_to_report(mapped, state->module, key.path);
	return state->module;
}

struct module *mapped_modules_find(struct mapped_modules *mapped, uint32_t image, uint64_t file_offset,
				   uint64_t *file_address_ret)
{
	struct module *module = image == NO_IMAGE ? NULL : mapped_modules_open(mapped, image);

	if (!module || module_state(module) != MODULE_READABLE)
		return NULL;
	return module_address(module, file_offset, file_address_ret) ? module : NULL;
}

#define DEBUG_DIRECTORY "/usr/lib/debug/.build-id/"

/* The path of the debug file with this build-id; NULL: out of memory. */
static char *debug_path(const struct build_id_entry *build_id)
{
	char id[2 * sizeof(build_id->bytes) + 1], *path;

	for (size_t i = 0; i < build_id->size; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", build_id->bytes[i]);
	return asprintf(&path, DEBUG_DIRECTORY "%.2s/%s.debug", id, id + 2) < 0 ? NULL : path;
}

/* Open the file at the path if it has the build-id. */
static uint32_t open_build(struct mapped_modules *mapped, const char *path, uint64_t build_id)
{
	struct space_attributes attributes = {0};
	struct mmt_error *error = mapped_modules_path(mapped, path, &attributes.path);
	const struct module *module = NULL;
	uint32_t image = NO_IMAGE;

	if (!error && map_put(&mapped->build_ids, attributes.path, build_id))
		image = mapped_modules_image(mapped, &attributes);
	mmt_error_destroy(error);
	if (image != NO_IMAGE)
		module = mapped_modules_open(mapped, image);
	return module && module_state(module) == MODULE_READABLE ? image : NO_IMAGE;
}

uint32_t mapped_modules_improved(struct mapped_modules *mapped, const char *path, bool symbols)
{
	uint32_t number = intern_find(&mapped->paths, path, strlen(path) + 1), image;
	const uint64_t *entry = number == INTERN_NONE ? NULL : map_get(&mapped->build_ids, number);
	CLEANUP(free) char *debug = NULL;
	uint64_t build_id;
	bool has_debug;

	if (!entry || *entry == NO_BUILD_ID)
		return NO_IMAGE;
	build_id = *entry;
	debug = debug_path(&mapped->metadata->build_ids.entries.items[build_id]);
	has_debug = debug && access(debug, R_OK) == 0;
	if (!has_debug && !symbols && !getenv("DEBUGINFOD_URLS"))
		return NO_IMAGE;
	image = open_build(mapped, path, build_id);
	return image == NO_IMAGE && has_debug ? open_build(mapped, debug, build_id) : image;
}

/* What to report about its names; MODULE_READABLE: nothing. */
static enum module_state names_state(const struct mapped_modules *mapped, size_t image)
{
	const struct module *module = mapped->image_states.items[image].module;

	return module && module_state(module) == MODULE_READABLE ? module_known_state(module) : MODULE_READABLE;
}

/* Report each path only once. */
static bool is_first_with_poor_names(const struct mapped_modules *mapped, size_t image)
{
	const char *path = mapped_modules_image_path(mapped, (uint32_t)image);

	if (names_state(mapped, image) == MODULE_READABLE)
		return false;
	for (size_t i = 0; i < image; i++) {
		if (names_state(mapped, i) != MODULE_READABLE &&
		    !strcmp(mapped_modules_image_path(mapped, (uint32_t)i), path))
			return false;
	}
	return true;
}

static char *missing_part(struct module *module)
{
	size_t others;
	CLEANUP(free) char *first = module_missing_part(module, &others);
	char *text;

	if (!first)
		return NULL;
	if (!others)
		return strdup(first);
	return asprintf(&text, "%s and %zu more", first, others) < 0 ? NULL : text;
}

const char *mapped_modules_unusable(const struct mapped_modules *mapped, size_t *position, enum module_state *state_ret,
				    char **missing_ret)
{
	if (missing_ret)
		*missing_ret = NULL;
	while (*position < mapped->image_states.count) {
		size_t image = (*position)++;

		*state_ret = mapped->image_states.items[image].to_report;
		if (is_first_with_poor_names(mapped, image))
			*state_ret = names_state(mapped, image);
		if (missing_ret && *state_ret == MODULE_MISSING_NAMES)
			*missing_ret = missing_part(mapped->image_states.items[image].module);
		if (*state_ret != MODULE_READABLE)
			return mapped_modules_image_path(mapped, (uint32_t)image);
	}
	return NULL;
}
