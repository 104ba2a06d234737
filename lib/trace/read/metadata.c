// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads everything in a recording but its events. */
#include "trace/read/reader.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* The sections of this file, in the order of reading. */
static const struct known_section {
	enum format_feature feature;
	const struct section_kind *kind; /* NULL: not by section_read() */
	size_t value, present;		 /* offsets in struct reader_metadata; `present` of a bool, 0: there is none */
} known_sections[] = {
#define PLACE(member) offsetof(struct reader_metadata, member)
    {FEATURE_HOSTNAME, NULL, 0, 0},
    {FEATURE_OSRELEASE, NULL, 0, 0},
    {FEATURE_VERSION, NULL, 0, 0},
    {FEATURE_CMDLINE, NULL, 0, 0},
    {FEATURE_ARCH, NULL, 0, 0},
    {FEATURE_TRACING_DATA, NULL, 0, 0},
    {FEATURE_BUILD_ID, NULL, 0, 0},
    {FEATURE_SAMPLE_TIME, NULL, 0, 0},
    {FEATURE_MMTRACE_INFO, &section_info, PLACE(info), PLACE(ours)},
    {FEATURE_MMTRACE_LOSS, &section_loss, PLACE(loss), PLACE(has_loss)},
    {FEATURE_MMTRACE_PERF_MAPS, &section_perf_maps, PLACE(perf_maps), 0},
    {FEATURE_MMTRACE_RESIDENCY, &section_residency, PLACE(residency), PLACE(has_residency)},
    {FEATURE_MMTRACE_JITDUMPS, &section_jitdumps, PLACE(jitdumps), 0},
    {FEATURE_MMTRACE_STACKS, &section_stacks, PLACE(stacks), 0},
    {FEATURE_MMTRACE_CODE, &section_code, PLACE(code), 0},
    {FEATURE_MMTRACE_HUGE_PAGES, &section_huge_pages, PLACE(huge_pages), PLACE(has_huge_pages)},
    {FEATURE_MMTRACE_SWAPPED, &section_residency, PLACE(swapped), PLACE(has_swapped)},
    {FEATURE_MMTRACE_OPTIONS, &section_options, PLACE(options), 0},
    {FEATURE_MMTRACE_SHARED, &section_residency, PLACE(shared), 0},
    {FEATURE_MMTRACE_HEAP, &section_heap, PLACE(heaps), 0},
#undef PLACE
};

void metadata_deinit(struct metadata *metadata)
{
	struct reader_metadata *values = &metadata->values;

	for (size_t i = 0; i < COUNT(known_sections); i++) {
		if (known_sections[i].kind)
			known_sections[i].kind->deinit((char *)values + known_sections[i].value);
	}
	build_ids_deinit(&values->build_ids);
	module_copies_deinit(&values->images);
	tracepoints_deinit(&values->tracepoints);
	for (size_t i = 0; i < values->attribute_count; i++)
		free(values->attributes[i].name);
	free(values->attributes);
	free(values->host);
	free(values->kernel);
	free(values->version);
	free(values->command_line);
	mmt_error_destroy(metadata->damage);
	*metadata = (struct metadata){0};
}

/* Damage of an optional section is noted. Takes `error`. */
static struct mmt_error *pass_damage(struct metadata *metadata, struct mmt_error *error)
{
	if (!error || error->code != MMT_ERROR_FORMAT)
		return error;
	if (metadata->damage)
		mmt_error_destroy(error);
	else
		metadata->damage = error;
	return NULL;
}

/* perf's strings: u32 size, then the text with its NUL and padding. */
static const char *read_text(struct bytes *bytes)
{
	struct bytes text = bytes_sub(bytes, bytes_u32(bytes));
	const char *start = bytes_string(&text);

	if (!bytes_ok(&text))
		bytes_fail(bytes, "unterminated string");
	return start;
}

static struct mmt_error *decode_text(struct bytes *bytes, const char *what, char **text_ret)
{
	const char *text = read_text(bytes);
	struct mmt_error *error = bytes_finish(bytes, what);

	*text_ret = error ? NULL : strdup(text);
	return error || *text_ret ? error : &error_no_memory;
}

static struct mmt_error *decode_command_line(struct bytes *bytes, char **text_ret)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
	CLEANUP(buffer) struct buffer line = {.maximum = LIMIT_COMMAND_LINE_BYTES};
	uint64_t count = bytes_count_u32(bytes, sizeof(uint32_t));
	struct mmt_error *error;
	const char *word;

	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		if (i)
			buffer_put_u8(&line, ' ');
		word = read_text(bytes);
		if (*word && word[strspn(word, plain)] == '\0') {
			buffer_put(&line, word, strlen(word));
			continue;
		}
		/* Quote it for a shell. */
		buffer_put_u8(&line, '\'');
		for (; *word; word++) {
			if (*word == '\'')
				buffer_put(&line, "'\\''", 4);
			else
				buffer_put_u8(&line, (uint8_t)*word);
		}
		buffer_put_u8(&line, '\'');
	}
	buffer_put_u8(&line, 0);
	error = bytes_finish(bytes, "command line section") ?: buffer_finish(&line);
	if (!error)
		*text_ret = (char *)TAKE(line.data);
	return error;
}

/* FEATURE_EVENT_DESC: u32 count, u32 size of an attribute; of each: attribute, u32 number of ids, name, ids. */
static struct mmt_error *decode_names(struct bytes *bytes, struct reader_metadata *values)
{
	uint64_t count = bytes_u32(bytes), attribute_bytes = bytes_u32(bytes);

	count = bytes_count(bytes, count, attribute_bytes);
	for (uint64_t i = 0; i < count && i < values->attribute_count && bytes_ok(bytes); i++) {
		uint64_t ids;

		bytes_skip(bytes, attribute_bytes);
		ids = bytes_u32(bytes);
		values->attributes[i].name = strdup(read_text(bytes));
		if (!values->attributes[i].name)
			return &error_no_memory;
		ids = bytes_count(bytes, ids, sizeof(uint64_t));
		bytes_skip(bytes, ids * sizeof(uint64_t));
	}
	return bytes_finish(bytes, "event description section");
}

static struct mmt_error *describe_attributes(const struct recording_file *file, struct reader_metadata *values)
{
	for (size_t i = 0; i < values->attribute_count; i++) {
		const struct perf_event_attr *attr = &file->attributes.items[i].attr;
		struct reader_attribute *attribute = &values->attributes[i];
		const struct tracepoint *tracepoint = NULL;
		int written = 0;

		if (attr->type == PERF_TYPE_TRACEPOINT)
			tracepoint = tracepoints_find(&values->tracepoints, (uint32_t)attr->config);
		if (!attribute->name && tracepoint)
			written = asprintf(&attribute->name, "%s:%s", tracepoint->system, tracepoint->name);
		else if (!attribute->name)
			written = asprintf(&attribute->name, "type %u config %llu", attr->type,
					   (unsigned long long)attr->config);
		if (written < 0) {
			attribute->name = NULL;
			return &error_no_memory;
		}
		attribute->sample_type = attr->sample_type;
		attribute->period = attr->freq ? 0 : attr->sample_period;
		attribute->is_call = tracepoint && strcmp(tracepoint->system, "syscalls") == 0 &&
				     call_find_tracepoint(tracepoint->name, &attribute->call, &attribute->is_enter);
		if (values->ours && i < values->info.roles.count)
			attribute->role = (enum attribute_role)values->info.roles.items[i];
		else if (attribute->is_call)
			attribute->role = ROLE_SYSCALL;
		else if (tracepoint && strcmp(tracepoint->name, "task_newtask") == 0)
			attribute->role = ROLE_NEW_TASK;
		else if (attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_DUMMY &&
			 (attr->mmap || attr->task))
			attribute->role = ROLE_SIDE_BAND;
	}
	return NULL;
}

static struct mmt_error *decode_section(struct reader_metadata *values, const struct known_section *known,
					struct bytes *bytes, size_t *room)
{
	CLEANUP(free) char *name = NULL;
	struct mmt_error *error;

	switch ((int)known->feature) {
	case FEATURE_HOSTNAME:
		return decode_text(bytes, "host name section", &values->host);
	case FEATURE_OSRELEASE:
		return decode_text(bytes, "kernel section", &values->kernel);
	case FEATURE_VERSION:
		return decode_text(bytes, "version section", &values->version);
	case FEATURE_CMDLINE:
		return decode_command_line(bytes, &values->command_line);
	case FEATURE_ARCH:
		error = decode_text(bytes, "architecture section", &name);
		if (error || !*name)
			return error;
		values->architecture = architecture_find(name);
		if (values->architecture)
			return NULL;
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "recorded on architecture %s, which this version does not support", name);
	case FEATURE_EVENT_DESC:
		return decode_names(bytes, values);
	case FEATURE_TRACING_DATA:
		return tracepoints_decode(bytes, &values->tracepoints);
	case FEATURE_BUILD_ID:
		return build_ids_decode(bytes, &values->build_ids);
	case FEATURE_SAMPLE_TIME:
		values->first_ns = bytes_u64(bytes);
		values->last_ns = bytes_u64(bytes); /* 0 if the section is truncated */
		return bytes_finish(bytes, "sample time section");
	}
	values->packed |= known->feature == FEATURE_MMTRACE_STACKS;
	error = section_read(known->kind, bytes, room, (char *)values + known->value);
	if (known->present)
		*(bool *)((char *)values + known->present) = !error;
	return error;
}

static struct mmt_error *load_section(const struct recording_file *file, struct metadata *metadata,
				      const struct known_section *known, size_t *room)
{
	/* Without these the events cannot be interpreted. */
	bool required = known->feature == FEATURE_TRACING_DATA || known->feature == FEATURE_MMTRACE_INFO ||
			known->feature == FEATURE_ARCH;
	CLEANUP(free) uint8_t *data = NULL;
	size_t size;
	struct mmt_error *error = recording_file_load(file, known->feature, &data, &size);
	struct bytes bytes = bytes_over(data, size);

	if (!error && data)
		error = decode_section(&metadata->values, known, &bytes, room);
	return error_context(required ? error : pass_damage(metadata, error), "%s", file->path);
}

struct mmt_error *metadata_load(struct metadata *metadata, const struct recording_file *file)
{
	/* A small file must not fill the memory. */
	uint64_t allowed = LIMIT_UNPACKED_ANYWHERE_BYTES + file->size * LIMIT_UNPACKED_EXPANSION;
	size_t room = allowed < LIMIT_UNPACKED_BYTES ? (size_t)allowed : LIMIT_UNPACKED_BYTES;
	struct reader_metadata *values = &metadata->values;
	char **const texts[] = {&values->host, &values->kernel, &values->version, &values->command_line};
	static const char truncated[] = "the file was truncated: its end is missing";
	const struct known_section names = {FEATURE_EVENT_DESC, NULL, 0, 0};
	struct mmt_error *error = NULL;
	const char *packed_damage;

	values->architecture = &architecture_x86_64;
	values->attributes = calloc(file->attributes.count, sizeof(*values->attributes));
	if (!values->attributes)
		return &error_no_memory;
	values->attribute_count = file->attributes.count;
	if (file->cut)
		error = pass_damage(metadata, error_create(MMT_ERROR_FORMAT, "%s", truncated));
	for (size_t i = 0; !error && i < COUNT(known_sections); i++)
		error = load_section(file, metadata, &known_sections[i], &room);
	for (size_t i = 0; !error && i < COUNT(texts); i++) {
		*texts[i] = *texts[i] ?: strdup("");
		error = *texts[i] ? NULL : &error_no_memory;
	}
	/* A packed recording includes the damage of the recording that it was made from. */
	packed_damage = values->packed ? packed_stacks_text(&values->stacks, values->stacks.damage) : NULL;
	if (!error && packed_damage)
		error = pass_damage(metadata, error_create(MMT_ERROR_FORMAT, "%s", packed_damage));
	error = error ?: pass_damage(metadata, module_copies_load(file, &values->images));
	error = error ?: load_section(file, metadata, &names, NULL) ?: describe_attributes(file, values);
	if (!error && file->changed)
		error = pass_damage(metadata, error_create(MMT_ERROR_FORMAT, "the file does not match its checksum"));
	if (error)
		return error;
	values->compressed = file->sections[FEATURE_COMPRESSED].present;
	values->incomplete = file->incomplete;
	values->cut = file->cut || (packed_damage && !strcmp(packed_damage, truncated));
	if (values->ours && (!values->has_loss || values->loss.end == MMT_RECORD_END_WRITE_FAILED))
		values->incomplete = true;
	return NULL;
}

/* ---- incremental metadata ---- */

struct metadata_piece {
	uint32_t kind;
	int32_t pid, namespace_pid;
	uint64_t from_ns, now_ns, offset;
	struct bytes bytes;
};

struct pieces {
	struct reader_metadata *values;
	struct map map_of_pid;
	struct map dump_of_end; /* by make_key() of the process and the current length */
	uint64_t count, bytes;
};

/* False: out of memory. */
static bool append(uint8_t **data, size_t *size, const struct metadata_piece *piece, uint64_t limit)
{
	size_t added = bytes_left(&piece->bytes);
	uint8_t *larger;

	if (!piece->offset)
		*size = 0;
	if (piece->offset != *size || *size + added > limit)
		return true;
	larger = realloc(*data, *size + added + 1);
	if (!larger)
		return false;
	memcpy(larger + *size, piece->bytes.position, added);
	*data = larger;
	*size += added;
	return true;
}

static bool add_perf_map(struct pieces *pieces, const struct metadata_piece *piece)
{
	const struct perf_map_growth before = {.time_ns = piece->from_ns, .length = piece->offset};
	const struct perf_map_growth now = {.time_ns = piece->now_ns,
					    .length = piece->offset + bytes_left(&piece->bytes)};
	struct perf_map_copies *copies = &pieces->values->perf_maps;
	const uint64_t *index = map_get(&pieces->map_of_pid, (uint32_t)piece->pid);
	struct perf_map_copy *copy = index ? &copies->maps.items[*index] : NULL;

	if (!copy) {
		copy = vector_append(&copies->maps);
		if (!copy || !map_put(&pieces->map_of_pid, (uint32_t)piece->pid, copies->maps.count - 1))
			return false;
		copy->pid = piece->pid;
		copy->namespace_pid = piece->namespace_pid;
	}
	if (!piece->offset)
		copy->growth.count = 0;
	else if (!vector_push(&copy->growth, before))
		return false;
	return vector_push(&copy->growth, now) && append(&copy->text, &copy->text_size, piece, LIMIT_PERF_MAP_BYTES);
}

/* The length of a dump fits into 32 bits. */
static uint64_t make_key(int32_t pid, uint64_t size)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)size;
}

static bool add_jitdump(struct pieces *pieces, const struct metadata_piece *piece)
{
	struct jitdump_copies *copies = &pieces->values->jitdumps;
	const uint64_t *found;
	struct jitdump_copy *copy;
	uint64_t index = copies->dumps.count;

	/* Continue the last dump of the process that ends at this offset; a new dump begins at 0. */
	if (piece->offset) {
		found = piece->offset <= LIMIT_JITDUMP_BYTES
			    ? map_get(&pieces->dump_of_end, make_key(piece->pid, piece->offset))
			    : NULL;
		if (!found)
			return true;
		index = *found;
		map_remove(&pieces->dump_of_end, make_key(piece->pid, piece->offset));
		copy = &copies->dumps.items[index];
	} else {
		copy = vector_append(&copies->dumps);
		if (!copy)
			return false;
		copy->pid = piece->pid;
		copy->namespace_pid = piece->namespace_pid;
		copy->program_ns = piece->from_ns;
		copy->knows_program = copy->program_ns != 0;
	}
	return append(&copy->data, &copy->size, piece, LIMIT_JITDUMP_BYTES) &&
	       map_put(&pieces->dump_of_end, make_key(copy->pid, copy->size), index);
}

static struct mmt_error *add_build_ids(struct reader_metadata *values, struct metadata_piece *piece)
{
	struct build_ids ids = {0};
	struct mmt_error *error = build_ids_decode(&piece->bytes, &ids);

	if (error) {
		mmt_error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; !error && i < ids.entries.count; i++) {
		if (vector_push(&values->build_ids.entries, ids.entries.items[i]))
			ids.entries.items[i].path = NULL;
		else
			error = &error_no_memory;
	}
	build_ids_deinit(&ids);
	return error;
}

/* `damage_ret`: there are too many pieces. */
static struct mmt_error *add_piece(struct pieces *pieces, struct bytes record, struct mmt_error **damage_ret)
{
	struct metadata_piece piece = {0};
	struct bytes body;
	bool complete = true;

	bytes_skip(&record, 8 + 8 + 2); /* header, address, old length */
	body = bytes_sub(&record, bytes_u16(&record));
	piece.kind = bytes_u32(&body);
	piece.pid = (int32_t)bytes_u32(&body);
	piece.namespace_pid = (int32_t)bytes_u32(&body);
	bytes_u32(&body);
	piece.from_ns = bytes_u64(&body);
	piece.now_ns = bytes_u64(&body);
	piece.offset = bytes_u64(&body);
	if (!bytes_ok(&record) || !bytes_ok(&body))
		return NULL;
	piece.bytes = body;
	pieces->bytes += bytes_left(&body);
	if (++pieces->count > LIMIT_INCREMENTAL_METADATA || pieces->bytes > LIMIT_RECORDED_PIECES_BYTES + UINT16_MAX) {
		*damage_ret = error_create(MMT_ERROR_FORMAT, "too many pieces of perf maps and jitdumps");
		return NULL;
	}
	if (piece.kind == NAME_PIECE_BUILD_IDS)
		return add_build_ids(pieces->values, &piece);
	if (piece.kind == NAME_PIECE_PERF_MAP)
		complete = add_perf_map(pieces, &piece);
	else if (piece.kind == NAME_PIECE_JITDUMP)
		complete = add_jitdump(pieces, &piece);
	return complete ? NULL : &error_no_memory;
}

struct mmt_error *incremental_metadata_read(const struct recording_file *file, const struct layouts *layouts,
					    struct reader_metadata *values, struct mmt_error **damage_ret)
{
	struct pieces pieces = {.values = values};
	struct mmt_error *damage = NULL;
	struct records *records;
	struct mmt_error *error = records_create(file, &records);
	bool end = false;

	if (error)
		return error;
	while (!error && !end && !damage && !*damage_ret) {
		struct record_identity identity;
		struct record record;

		error = records_next(records, &record, &end, &damage);
		if (error || end || damage || record.header.type != RECORD_TEXT_POKE)
			continue;
		if (layouts_identify(layouts, &record.header, record.data, &identity) && identity.id == NAME_PIECE_ID)
			error = add_piece(&pieces, bytes_over(record.data, record.header.size), damage_ret);
	}
	/* Damage of the events is reported when they are read. */
	mmt_error_destroy(damage);
	values->names_end = records->offset;
	records_destroy(records);
	map_deinit(&pieces.dump_of_end);
	map_deinit(&pieces.map_of_pid);
	return error;
}
