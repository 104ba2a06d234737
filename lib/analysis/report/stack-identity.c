// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/stack-identity.h"

#include <ctype.h>

#include "base/strings.h"

bool build_id_paths_init(struct build_id_paths *paths, const struct mmt_report *report)
{
	*paths = (struct build_id_paths){.modules = report->modules};
	for (size_t i = 0; i < report->module_count; i++) {
		const char *const names[] = {report->modules[i].path, path_file_name(report->modules[i].path)};

		for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++) {
			uint32_t id = intern_put_string(&paths->paths, names[j]);

			if (id == INTERN_NONE || (id == paths->places.count && !vector_push(&paths->places, i)))
				return false;
		}
	}
	return true;
}

void build_id_paths_deinit(struct build_id_paths *paths)
{
	intern_deinit(&paths->paths);
	vector_deinit(&paths->places);
}

const char *build_id_paths_find(const struct build_id_paths *paths, const char *path)
{
	uint32_t id = paths && path ? intern_find(&paths->paths, path, strlen(path) + 1) : INTERN_NONE;

	return id == INTERN_NONE ? NULL : paths->modules[paths->places.items[id]].build_id;
}

/* The length of "NAME" in "NAME.constprop.0", "NAME.part.1.isra.0", "NAME.cold" or "NAME.llvm.123". */
static size_t without_clone_suffixes(const char *name)
{
	static const char *const suffixes[] = {".constprop.", ".isra.", ".part.", ".lto_priv.", ".llvm.", ".cold."};
	const char *end = strstr(name, " [clone ");
	size_t length = end ? (size_t)(end - name) : strlen(name), cold = strlen(".cold");

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		const char *place = strstr(name, suffixes[i]);

		if (place && place != name && isdigit((unsigned char)place[strlen(suffixes[i])]) &&
		    (size_t)(place - name) < length)
			length = (size_t)(place - name);
	}
	if (length > cold && !strncmp(name + length - cold, ".cold", cold))
		length -= cold;
	return length;
}

size_t identity_name_length(const struct mmt_frame *frame)
{
	const char *name = frame->function;
	size_t length;

	if (!name || frame->kind != MMT_FRAME_JIT)
		return name ? without_clone_suffixes(name) : 0;
	length = strlen(name);
	/* "JS:serve /app/server.js" of "JS:serve /app/server.js:10:5". */
	for (int i = 0; i < 2; i++) {
		size_t end = length;

		while (end && isdigit((unsigned char)name[end - 1]))
			end--;
		if (end == length || end < 2 || name[end - 1] != ':')
			break;
		length = end - 1;
	}
	return length;
}

/* The address that identifies a frame without a function. */
static uint64_t place_of(bool anywhere, const struct mmt_frame *frame)
{
	if (frame->function)
		return 0;
	if (frame->kind == MMT_FRAME_NATIVE)
		return frame->module_offset;
	return anywhere ? 0 : frame->address;
}

static bool same_text(const char *left, const char *right)
{
	return left == right || !strcmp(left ? left : "", right ? right : "");
}

static size_t name_length(const struct identities *identities, const struct mmt_frame *frame)
{
	if (identities->by_line)
		return frame->function ? strlen(frame->function) : 0;
	return identity_name_length(frame);
}

static uint64_t hash_text(struct identities *identities, const char *text)
{
	return id_table_hash(&identities->by_hash, text, text ? strlen(text) : 0);
}

const char *identity_build_id(const struct identities *identities, uint32_t number)
{
	return number < identities->build_ids.count ? identities->build_ids.items[number] : NULL;
}

static bool is_same(const struct identities *identities, uint32_t number, const struct mmt_frame *b,
		    const char *build_id)
{
	const struct mmt_frame *a = identities->frames.items[number];
	size_t length = name_length(identities, a);

	if (a->kind != b->kind || !same_text(a->module, b->module) || length != name_length(identities, b) ||
	    !a->function != !b->function || (length && strncmp(a->function, b->function, length) != 0))
		return false;
	if (!a->function && (place_of(identities->anywhere, a) != place_of(identities->anywhere, b) ||
			     !same_text(identity_build_id(identities, number), build_id)))
		return false;
	return !identities->by_line || (a->inlined == b->inlined && a->source_line == b->source_line &&
					same_text(a->source_file, b->source_file));
}

void identities_deinit(struct identities *identities)
{
	id_table_deinit(&identities->by_hash);
	vector_deinit(&identities->frames);
	vector_deinit(&identities->build_ids);
	intern_deinit(&identities->stacks);
	vector_deinit(&identities->numbers);
}

uint32_t identity_of_frame(struct identities *identities, const struct build_id_paths *paths,
			   const struct mmt_frame *frame)
{
	const char *build_id = frame->kind == MMT_FRAME_NATIVE ? build_id_paths_find(paths, frame->module_path) : NULL;
	bool by_line = identities->by_line;
	uint64_t key[] = {
	    place_of(identities->anywhere, frame),
	    hash_text(identities, frame->module),
	    id_table_hash(&identities->by_hash, frame->function, name_length(identities, frame)),
	    frame->function ? 0 : hash_text(identities, build_id),
	    by_line ? hash_text(identities, frame->source_file) : 0,
	    by_line ? (uint64_t)frame->source_line << 1 | frame->inlined : 0,
	    frame->kind,
	};
	uint64_t hash = id_table_hash(&identities->by_hash, key, sizeof(key));
	size_t position = 0;
	uint32_t number;

	while ((number = id_table_next(&identities->by_hash, hash, &position)) != ID_NONE) {
		if (is_same(identities, number, frame, build_id))
			return number;
	}
	if (!vector_push(&identities->frames, frame) || (paths && !vector_push(&identities->build_ids, build_id)))
		return IDENTITY_NONE;
	return id_table_add(&identities->by_hash, hash);
}

uint32_t identity_of_stack(struct identities *identities, const struct build_id_paths *paths,
			   const struct mmt_frame *const *frames, size_t count, bool lost)
{
	identities->numbers.count = 0;
	if (lost && !vector_push(&identities->numbers, IDENTITY_NONE))
		return IDENTITY_NONE;
	for (size_t i = 0; i < count; i++) {
		uint32_t number = identity_of_frame(identities, paths, frames[i]);

		if (number == IDENTITY_NONE || !vector_push(&identities->numbers, number))
			return IDENTITY_NONE;
	}
	return intern_put(&identities->stacks, identities->numbers.items,
			  identities->numbers.count * sizeof(*identities->numbers.items));
}

static uint64_t add_text(uint64_t sum, const char *text, size_t length)
{
	const uint64_t both[] = {sum, map_checksum(text, length)};

	return map_checksum(both, sizeof(both));
}

static uint64_t add_number(uint64_t sum, uint64_t number)
{
	return add_text(sum, (const char *)&number, sizeof(number));
}

bool identity_has_name(const struct mmt_frame *frame)
{
	return frame->function && (frame->kind != MMT_FRAME_JIT || strcmp(frame->function, "Interpreter") != 0);
}

uint64_t identity_frame_checksum(uint64_t sum, const struct build_id_paths *paths, const struct mmt_frame *frame)
{
	const char *module = frame->module ? frame->module : "", *build_id = NULL;

	if (frame->function)
		return add_text(add_text(sum, module, strlen(module)), frame->function, identity_name_length(frame));
	if (frame->kind == MMT_FRAME_NATIVE)
		build_id = build_id_paths_find(paths, frame->module_path);
	module = build_id ? build_id : module;
	return add_number(add_text(sum, module, strlen(module)), place_of(true, frame));
}

uint64_t identity_checksum(const struct build_id_paths *paths, const struct mmt_row *row)
{
	/* A stack without frames of lost calls differs from one that was not recorded, which has 1. */
	uint64_t sum = row->lost ? 2 : 0;

	for (size_t i = 0; i < row->frame_count; i++)
		sum = identity_frame_checksum(sum, paths, row->frames[i]);
	return sum ? sum : 1;
}

uint64_t identity_lines(const struct mmt_frame *const *frames, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		const char *file = frames[i]->source_file;

		sum = add_text(sum, file ? file : "", file ? strlen(file) : 0);
		sum = add_number(sum, (uint64_t)frames[i]->source_line << 1 | frames[i]->inlined);
	}
	return sum;
}
