// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/resolver-state.h"

#define NO_BUILD_ID UINT64_MAX
#define NO_RECORD UINT32_MAX
#define STATE_BITS 8 /* bits of enum module_state in a key of `reported` */

/* The first build-id of a path counts; in a packed recording none of several does, because a frame may be of any. */
static struct mmt_error *index_build_ids(struct mapped_modules *mapped)
{
	const struct build_ids *ids = &mapped->metadata->build_ids;

	for (size_t i = ids->entries.count; i-- > 0;) {
		const struct build_id_entry *entry = &ids->entries.items[i], *other = NULL;
		uint32_t path = intern_put_string(&mapped->paths, entry->path);
		const uint64_t *later = path == INTERN_NONE ? NULL : map_get(&mapped->build_ids, path);
		bool several = mapped->metadata->packed && later;

		if (path == INTERN_NONE)
			return &error_no_memory;
		if (several && *later != NO_BUILD_ID) {
			other = &ids->entries.items[*later];
			several = other->size != entry->size || memcmp(other->bytes, entry->bytes, entry->size);
		}
		if (!map_put(&mapped->build_ids, path, several ? NO_BUILD_ID : i))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *index_records(struct mapped_modules *mapped)
{
	const struct module_copies *copies = &mapped->metadata->images;

	if (!vector_extend(&mapped->next_records, copies->images.count))
		return &error_no_memory;
	for (size_t i = copies->images.count; i-- > 0;) {
		const struct module_copy *record = &copies->images.items[i];
		uint32_t path = intern_put_string(&mapped->paths, record->path);
		const uint64_t keys[MODULE_RECORD_ORDERS] = {record->inode, path};

		for (unsigned by = 0; by < MODULE_RECORD_ORDERS; by++) {
			const uint64_t *later = map_get(&mapped->first_records[by], keys[by]);

			mapped->next_records.items[i].by[by] = later ? (uint32_t)*later : NO_RECORD;
			if (path == INTERN_NONE || !map_put(&mapped->first_records[by], keys[by], i))
				return &error_no_memory;
		}
	}
	return NULL;
}

struct mmt_error *mapped_modules_init(struct mapped_modules *mapped, const struct reader_metadata *metadata,
				      bool demangle)
{
	struct mmt_error *error = modules_create(metadata->architecture->elf_machine, demangle, &mapped->modules);
	uint64_t until_ns = 0;

	mapped->metadata = metadata;
	if (error)
		return error;
	if (metadata->ours && metadata->has_loss && metadata->loss.stop_ns >= metadata->info.start_ns)
		until_ns = metadata->info.start_realtime_ns + (metadata->loss.stop_ns - metadata->info.start_ns);
	modules_recorded(mapped->modules, until_ns, metadata->kernel ?: "");
	/* 0 is the model's path for mappings without a name. */
	return intern_put_string(&mapped->paths, "") == INTERN_NONE
		   ? &error_no_memory
		   : index_records(mapped) ?: index_build_ids(mapped);
}

void mapped_modules_deinit(struct mapped_modules *mapped)
{
	vector_deinit(&mapped->image_states);
	map_deinit(&mapped->build_ids);
	map_deinit(&mapped->reported);
	map_deinit(&mapped->first_records[RECORDS_BY_INODE]);
	map_deinit(&mapped->first_records[RECORDS_BY_PATH]);
	vector_deinit(&mapped->next_records);
	intern_deinit(&mapped->paths);
	intern_deinit(&mapped->images);
	arena_deinit(&mapped->arena);
	modules_destroy(mapped->modules);
}

uint32_t mapped_modules_image(struct mapped_modules *mapped, const struct space_attributes *attributes)
{
	struct image_key key = {.inode = attributes->inode,
				.device_major = attributes->device_major,
				.device_minor = attributes->device_minor,
				.path = attributes->path};
	uint32_t image = intern_put(&mapped->images, &key, sizeof(key));
	struct image_state state = {.key = key};

	if (image == mapped->image_states.count) {
		state.path = arena_string(&mapped->arena, intern_get(&mapped->paths, key.path, NULL));
		if (!state.path || !vector_push(&mapped->image_states, state))
			image = INTERN_NONE;
	}
	if (image < mapped->image_states.count)
		return image;
	memory_failed();
	return NO_IMAGE;
}

/* Is the record of this file? If the inode is unknown, its path tells. */
static bool is_of_file(const struct module_copy *record, const struct image_key *key, const char *path)
{
	if (key->inode == SPACE_INODE_UNKNOWN)
		return !strcmp(record->path, path);
	return record->inode == key->inode && record->device_major == key->device_major &&
	       record->device_minor == key->device_minor;
}

void mapped_modules_note(struct mmt_error *error)
{
	if (error && error->code == MMT_ERROR_NO_MEMORY)
		memory_failed();
	mmt_error_destroy(error);
}

/* Open the copy of the module, or the file at its path. */
static struct module *open_record(struct mapped_modules *mapped, const struct module_copy *record, bool copy)
{
	struct module *module = NULL;
	struct mmt_error *error;
	uint8_t *content;

	if (!copy) {
		error = modules_open(mapped->modules, record->path, record->build_id_size ? record->build_id : NULL,
				     record->build_id_size, record->inode == SPACE_INODE_UNKNOWN ? 0 : record->inode,
				     &module);
	} else {
		error = module_copies_extract(&mapped->metadata->images, record, &content)
			    ?: modules_open_content(mapped->modules, record->path, content, record->size,
						    record->build_id, record->build_id_size, 0, &module);
	}
	mapped_modules_note(error);
	return module;
}

/* Open the copy in the recording, or else the first of the file's paths that has the recorded build. */
static struct module *open_recorded(struct mapped_modules *mapped, const struct image_key *key, const char *path)
{
	const struct module_copy *records = mapped->metadata->images.images.items;
	const struct next_records *next = mapped->next_records.items;
	unsigned by = key->inode == SPACE_INODE_UNKNOWN ? RECORDS_BY_PATH : RECORDS_BY_INODE;
	const uint64_t *first = map_get(&mapped->first_records[by], by == RECORDS_BY_PATH ? key->path : key->inode);
	const struct module_copy *own = NULL; /* made when this file was mapped under this path */
	struct module *unusable = NULL;

	for (uint32_t i = first ? (uint32_t)*first : NO_RECORD; !own && i != NO_RECORD; i = next[i].by[by]) {
		if (is_of_file(&records[i], key, path) && !strcmp(records[i].path, path))
			own = &records[i];
	}
	for (int kept = 1; own && kept >= 0; kept--) {
		for (uint32_t i = (uint32_t)*first; i != NO_RECORD; i = next[i].by[by]) {
			const struct module_copy *record = &records[i];
			struct module *module;

			if (!is_of_file(record, key, path) || (kept && !record->size))
				continue;
			/* Inodes are reused: under another path, only the build-id proves that it is the same file. */
			if (record != own && (!own->build_id_size || own->build_id_size != record->build_id_size ||
					      memcmp(own->build_id, record->build_id, own->build_id_size)))
				continue;
			module = open_record(mapped, record, kept);
			if (module && module_state(module) == MODULE_READABLE)
				return module;
			if (module && !unusable)
				unusable = module;
		}
	}
	return unusable;
}

struct module *mapped_modules_open(struct mapped_modules *mapped, uint32_t image)
{
	struct image_state *state = &mapped->image_states.items[image];
	const struct image_key *key = &state->key;
	const struct build_id_entry *build_id;
	const uint64_t *entry;
	uint64_t reported;
	const char *path;

	if (state->opened)
		return state->module;
	state->opened = true;
	path = intern_get(&mapped->paths, key->path, NULL);
	entry = map_get(&mapped->build_ids, key->path);
	build_id = entry && *entry != NO_BUILD_ID ? &mapped->metadata->build_ids.entries.items[*entry] : NULL;
	state->module = key->inode ? open_recorded(mapped, key, path) : NULL;
	/* Open the module even if the file has changed since. */
	if (!state->module)
		mapped_modules_note(modules_open(mapped->modules, path, build_id ? build_id->bytes : NULL,
						 build_id ? build_id->size : 0,
						 key->inode == SPACE_INODE_UNKNOWN ? 0 : key->inode, &state->module));
	/* Why stacks could not use the module, for each path only once per state; MODULE_READABLE: they could, or it is
	 * not a module at all. */
	state->to_report = state->module ? module_state(state->module) : MODULE_READABLE;
	reported = (uint64_t)key->path << STATE_BITS | state->to_report;
	if (state->to_report == MODULE_NOT_ELF || jit_code_is_path(path) || path[0] != '/' ||
	    map_get(&mapped->reported, reported))
		state->to_report = MODULE_READABLE;
	if (state->to_report != MODULE_READABLE)
		(void)map_put(&mapped->reported, reported, 1);
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

/* Open the file at the path if it has the build-id. */
static uint32_t open_build(struct mapped_modules *mapped, const char *path, uint64_t build_id)
{
	struct space_attributes attributes = {.path = intern_put_string(&mapped->paths, path)};
	const struct module *module = NULL;
	uint32_t image = NO_IMAGE;

	if (attributes.path != INTERN_NONE && map_put(&mapped->build_ids, attributes.path, build_id))
		image = mapped_modules_image(mapped, &attributes);
	if (image != NO_IMAGE)
		module = mapped_modules_open(mapped, image);
	return module && module_state(module) == MODULE_READABLE ? image : NO_IMAGE;
}

uint32_t mapped_modules_improved(struct mapped_modules *mapped, const char *path, bool symbols)
{
	uint32_t number = intern_find(&mapped->paths, path, strlen(path) + 1), image;
	const uint64_t *entry = number == INTERN_NONE ? NULL : map_get(&mapped->build_ids, number);
	const struct build_id_entry *build_id;
	char id[2 * sizeof(build_id->bytes) + 1], debug[sizeof(DEBUG_DIRECTORY) + sizeof(id) + sizeof("/.debug")];
	uint64_t place;
	bool has_debug;

	if (!entry || *entry == NO_BUILD_ID)
		return NO_IMAGE;
	place = *entry;
	build_id = &mapped->metadata->build_ids.entries.items[place];
	for (size_t i = 0; i < build_id->size; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", build_id->bytes[i]);
	(void)snprintf(debug, sizeof(debug), DEBUG_DIRECTORY "%.2s/%s.debug", id, id + 2);
	has_debug = access(debug, R_OK) == 0;
	if (!has_debug && !symbols && !getenv("DEBUGINFOD_URLS"))
		return NO_IMAGE;
	image = open_build(mapped, path, place);
	return image == NO_IMAGE && has_debug ? open_build(mapped, debug, place) : image;
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
	const char *path = mapped->image_states.items[image].path;
	size_t i = 0;

	while (i < image &&
	       (names_state(mapped, i) == MODULE_READABLE || strcmp(mapped->image_states.items[i].path, path)))
		i++;
	return i == image && names_state(mapped, image) != MODULE_READABLE;
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
			*missing_ret = module_missing_part(mapped->image_states.items[image].module);
		if (*state_ret != MODULE_READABLE)
			return mapped->image_states.items[image].path;
	}
	return NULL;
}
