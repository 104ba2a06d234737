// SPDX-License-Identifier: LGPL-2.1-or-later
/* The fields of mmtrace's own feature sections, as mmtrace-file(5) documents them, and perf's table of build-ids. */
#include "trace/sections/sections.h"

#include "base/limits.h"

static void recording_info_deinit(void *value)
{
	struct recording_info *info = value;

	free(info->recorder_version);
	vector_deinit(&info->targets);
	vector_deinit(&info->roles);
	vector_deinit(&info->hugetlb_devices);
	*info = (struct recording_info){0};
}

static void code_info(struct codec *codec, void *value)
{
	struct recording_info *info = value;
	uint64_t targets = info->targets.count, roles = info->roles.count, devices;
	struct device_number *device;
	uint32_t *role;
	int32_t *target;

	codec_flags(codec, (bool *const[]){&info->command, &info->on_cpus, &info->all_processes, &info->in_cgroups}, 4);
	codec_u64(codec, info->start_ns);
	codec_u64(codec, info->start_realtime_ns);
	codec_u32(codec, info->page_bytes);
	codec_u32(codec, info->call_graph);
	codec_u32(codec, info->stack_dump_bytes);
	codec_u32(codec, info->callchain_limit);
	if (info->page_bytes < 4096 || info->page_bytes > (1u << 20) ||
	    (info->page_bytes & (info->page_bytes - 1)) != 0)
		codec_fail(codec, "invalid page size");
	codec_u32(codec, targets);
	codec_u32(codec, roles);
	targets = codec_check(codec, targets, sizeof(uint32_t), LIMIT_PROCESSES);
	codec_each(codec, &info->targets, targets, target)
		codec_u32(codec, *target);
	roles = codec_check(codec, roles, sizeof(uint32_t), UINT32_MAX);
	codec_each(codec, &info->roles, roles, role) {
		codec_u32(codec, *role);
		if (!codec->to && *role > ROLE_RECLAIM)
			*role = ROLE_OTHER;
	}
	codec_text(codec, &info->recorder_version);
	if (codec->version >= 3)
		codec_u32(codec, info->mapping_limit);
	if (codec->version < 4)
		return;
	devices = codec_count(codec, info->hugetlb_devices.count, 2 * sizeof(uint32_t), UINT32_MAX);
	codec_each(codec, &info->hugetlb_devices, devices, device) {
		codec_u32(codec, device->major);
		codec_u32(codec, device->minor);
	}
}

/* Version 1 has no large dumps; older readers would treat them as calls. Version 2 has no limit of mappings. */
const struct section_kind section_info = {"information section", 1, 4, 0, sizeof(struct recording_info), code_info,
					  recording_info_deinit};

static void recording_loss_deinit(void *value)
{
	struct recording_loss *loss = value;

	vector_deinit(&loss->lost);
	*loss = (struct recording_loss){0};
}

static void code_loss_count(struct codec *codec, uint64_t *count)
{
	codec_u64(codec, *count);
	if (*count > LIMIT_LOST)
		codec_fail(codec, "more losses than possible");
}

static void code_loss(struct codec *codec, void *value)
{
	struct recording_loss *loss = value;
	uint64_t count = loss->lost.count, *lost;

	codec_u32(codec, loss->end);
	codec_u64(codec, loss->stop_ns);
	codec_u64(codec, count);
	count = codec_check(codec, count, sizeof(uint64_t), UINT64_MAX);
	codec_each(codec, &loss->lost, count, lost)
		code_loss_count(codec, lost);
	if (codec->version >= 2)
		code_loss_count(codec, &loss->missed_threads);
	if (codec->version < 3)
		return;
	code_loss_count(codec, &loss->missed_cpus);
	code_loss_count(codec, &loss->left_processes);
}

const struct section_kind section_loss = {"loss section",	1, 3, 0, sizeof(struct recording_loss), code_loss,
					  recording_loss_deinit};

void perf_map_copy_deinit(struct perf_map_copy *copy)
{
	vector_deinit(&copy->growth);
	free(copy->text);
	*copy = (struct perf_map_copy){0};
}

static void perf_map_copies_deinit(void *value)
{
	struct perf_map_copies *copies = value;

	vector_deinit_each(&copies->maps, item, perf_map_copy_deinit(item));
}

static void code_perf_maps(struct codec *codec, void *value)
{
	struct perf_map_copies *copies = value;
	uint64_t count = codec_count(codec, copies->maps.count, 20, LIMIT_PROCESSES);
	struct perf_map_copy *copy;

	codec_each(codec, &copies->maps, count, copy) {
		uint64_t growth = copy->growth.count;
		struct perf_map_growth *step;

		codec_u32(codec, copy->pid);
		codec_u32(codec, copy->namespace_pid);
		codec_u32(codec, growth);
		codec_u64(codec, copy->text_size);
		growth = codec_check(codec, growth, 2 * sizeof(uint64_t), UINT32_MAX);
		codec_each(codec, &copy->growth, growth, step) {
			codec_u64(codec, step->time_ns);
			codec_u64(codec, step->length);
		}
		codec_content(codec, &copy->text, &copy->text_size, copy->packed_size);
	}
}

const struct section_kind section_perf_maps = {
    "perf map section",	   1, 1, LIMIT_PERF_MAP_BYTES, sizeof(struct perf_map_copies), code_perf_maps,
    perf_map_copies_deinit};

#define PROGRAM_NOT_KNOWN UINT64_MAX

static void jitdump_copies_deinit(void *value)
{
	struct jitdump_copies *copies = value;

	vector_deinit_each(&copies->dumps, item, free(item->data));
}

static void code_jitdumps(struct codec *codec, void *value)
{
	struct jitdump_copies *copies = value;
	uint64_t count = codec_count(codec, copies->dumps.count, 16, LIMIT_PROCESSES);
	struct jitdump_copy *copy;

	codec_each(codec, &copies->dumps, count, copy) {
		uint64_t program_ns = copy->knows_program ? copy->program_ns : PROGRAM_NOT_KNOWN;

		codec_u32(codec, copy->pid);
		codec_u32(codec, copy->namespace_pid);
		codec_u64(codec, program_ns);
		if (!codec->to) {
			copy->knows_program = program_ns != PROGRAM_NOT_KNOWN;
			copy->program_ns = copy->knows_program ? program_ns : 0;
		}
		codec_u64(codec, copy->size);
		codec_content(codec, &copy->data, &copy->size, copy->packed_size);
	}
}

const struct section_kind section_jitdumps = {
    "jitdump section", 2, 2, LIMIT_JITDUMP_BYTES, sizeof(struct jitdump_copies), code_jitdumps, jitdump_copies_deinit};

void process_residencies_deinit(process_residencies *processes)
{
	vector_deinit_each(processes, item, vector_deinit(&item->runs));
}

static void recording_residency_deinit(void *value)
{
	struct recording_residency *residency = value;

	process_residencies_deinit(&residency->processes);
	process_residencies_deinit(&residency->at_start);
	map_deinit(&residency->places);
	map_deinit(&residency->start_places);
}

uint64_t page_cursor_count(struct page_cursor *cursor, uint64_t start, uint64_t end)
{
	const resident_runs *runs = cursor->runs;
	uint64_t bytes = 0;

	while (cursor->next < runs->count && runs->items[cursor->next].end <= start)
		cursor->next++;
	for (size_t i = cursor->next; i < runs->count && runs->items[i].start < end; i++) {
		uint64_t from = larger_of(runs->items[i].start, start);
		uint64_t to = smaller_of(runs->items[i].end, end);

		bytes += to - from;
	}
	cursor->counted_bytes += bytes;
	return bytes;
}

uint64_t page_runs_bytes(const resident_runs *runs)
{
	return page_cursor_count(&(struct page_cursor){.runs = runs}, 0, UINT64_MAX);
}

const struct process_residency *recording_residency_of(const struct recording_residency *residency, bool at_start,
						       int32_t pid)
{
	const uint64_t *place = map_get(at_start ? &residency->start_places : &residency->places, (uint32_t)pid);

	return place ? &(at_start ? &residency->at_start : &residency->processes)->items[*place] : NULL;
}

/* Only the first with a PID is found. */
static void put_place(struct codec *codec, struct map *places, int32_t pid, size_t place)
{
	if (!codec->to && !map_get(places, (uint32_t)pid) && !map_put(places, (uint32_t)pid, place))
		codec->error = &error_no_memory;
}

static void code_residencies(struct codec *codec, process_residencies *processes, struct map *places)
{
	uint64_t count = codec_count(codec, processes->count, 8, LIMIT_PROCESSES);
	struct process_residency *process;

	codec_each(codec, processes, count, process) {
		uint64_t runs = process->runs.count, previous = 0;
		struct resident_run *run;

		codec_u32(codec, process->pid);
		codec_u32(codec, runs);
		if (codec->version > 1) {
			codec_u64(codec, process->time_ns);
			codec_u64(codec, process->resident_bytes);
		}
		if (!codec->to && process->resident_bytes > LIMIT_RESIDENT_BYTES)
			process->resident_bytes = LIMIT_RESIDENT_BYTES;
		runs = codec_check(codec, runs, 2 * sizeof(uint64_t), UINT32_MAX);
		codec_each(codec, &process->runs, runs, run) {
			codec_u64(codec, run->start);
			codec_u64(codec, run->end);
			if (run->start >= run->end || run->start < previous)
				codec_fail(codec, "resident pages out of order");
			else if (run->end > LIMIT_RESIDENT_BYTES)
				codec_fail(codec, "resident pages above the addresses of a process");
			previous = run->end;
		}
		put_place(codec, places, process->pid, process_index);
	}
}

static void code_residency(struct codec *codec, void *value)
{
	struct recording_residency *residency = value;

	code_residencies(codec, &residency->processes, &residency->places);
	if (codec->version > 1)
		code_residencies(codec, &residency->at_start, &residency->start_places);
}

/* Version 1 has no times, no sizes and no residency at the start. */
const struct section_kind section_residency = {
    "residency section",       1, 2, LIMIT_SECTION_BYTES, sizeof(struct recording_residency), code_residency,
    recording_residency_deinit};

static void recording_huge_pages_deinit(void *value)
{
	struct recording_huge_pages *huge = value;

	vector_deinit(&huge->processes);
	map_deinit(&huge->places);
}

const struct process_huge_pages *recording_huge_pages_of(const struct recording_huge_pages *huge, int32_t pid)
{
	const uint64_t *place = map_get(&huge->places, (uint32_t)pid);

	return place ? &huge->processes.items[*place] : NULL;
}

static void code_huge_pages(struct codec *codec, void *value)
{
	struct recording_huge_pages *huge = value;
	struct process_huge_pages *process;
	uint64_t count;

	codec_u32(codec, huge->setting);
	if (!codec->to && huge->setting > HUGE_NEVER)
		huge->setting = HUGE_SETTING_UNKNOWN;
	count = codec_count(codec, huge->processes.count, 16, LIMIT_PROCESSES);
	codec_each(codec, &huge->processes, count, process) {
		codec_u32(codec, process->pid);
		codec_u64(codec, process->bytes);
		codec_u64(codec, process->sampled_bytes);
		codec_u64(codec, process->zero_bytes);
		if (process->bytes > LIMIT_RESIDENT_BYTES || process->sampled_bytes > process->bytes ||
		    process->zero_bytes > process->sampled_bytes)
			codec_fail(codec, "sizes of huge pages that contradict each other");
		put_place(codec, &huge->places, process->pid, process_index);
	}
}

const struct section_kind section_huge_pages = {
    "huge page section",	2, 2, LIMIT_SECTION_BYTES, sizeof(struct recording_huge_pages), code_huge_pages,
    recording_huge_pages_deinit};

#define CENSUS_BYTES 150 /* without names and groups */
#define GROUP_BYTES 61	 /* with an empty name */

void heap_census_deinit(struct mmt_heap_census *census)
{
	for (size_t i = 0; i < census->group_count; i++)
		free(census->groups[i].name);
	free(census->groups);
	free(census->allocator_name);
	*census = (struct mmt_heap_census){0};
}

static void heap_censuses_deinit(void *value)
{
	struct heap_censuses *censuses = value;

	vector_deinit_each(&censuses->items, item, heap_census_deinit(item));
}

/* Sums of these numbers fit into 64 bits, and into signed ones. */
static void code_amounts(struct codec *codec, uint64_t *const amounts[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		codec_u64(codec, *amounts[i]);
		if (*amounts[i] > LIMIT_RESIDENT_BYTES)
			codec_fail(codec, "more bytes than a process has");
	}
}

static void code_group(struct codec *codec, struct mmt_heap_group *group)
{
	uint64_t *const amounts[] = {&group->smallest_bytes, &group->largest_bytes,    &group->count,
				     &group->bytes,	     &group->after_free_count, &group->after_free_bytes};

	codec_u32(codec, group->content);
	if (group->content > MMT_HEAP_POINTER)
		codec_fail(codec, "unknown content of a heap");
	code_amounts(codec, amounts, sizeof(amounts) / sizeof(*amounts));
	if (group->smallest_bytes > group->largest_bytes || group->after_free_count > group->count)
		codec_fail(codec, "sizes of chunks that contradict each other");
	codec_u64(codec, group->offset);
	codec_text(codec, &group->name);
}

static void code_censuses(struct codec *codec, void *value)
{
	struct heap_censuses *censuses = value;
	uint64_t count = codec_count(codec, censuses->items.count, CENSUS_BYTES, LIMIT_HEAP_CENSUSES);
	struct mmt_heap_census *census;

	codec_each(codec, &censuses->items, count, census) {
		uint64_t *const amounts[] = {&census->arenas,	     &census->mapped_bytes, &census->walked_bytes,
					     &census->in_use_count,  &census->in_use_low,   &census->in_use_high,
					     &census->free_count,    &census->free_bytes,   &census->tcache_bytes,
					     &census->fastbin_bytes, &census->top_bytes,    &census->trimmable_bytes,
					     &census->mmapped_count, &census->mmapped_bytes};
		size_t groups;

		codec_u32(codec, census->pid);
		codec_u32(codec, census->when);
		codec_u32(codec, census->allocator);
		codec_u32(codec, census->result);
		if (census->when > MMT_HEAP_AT_STOP || census->allocator > MMT_ALLOCATOR_OTHER ||
		    census->result > MMT_HEAP_CHANGING)
			codec_fail(codec, "unknown kind of a heap census");
		codec_text(codec, &census->allocator_name);
		codec_u64(codec, census->time_ns);
		codec_u64(codec, census->elapsed_ns);
		codec_u64(codec, census->processor_ns);
		codec_u64(codec, census->stopped_at);
		code_amounts(codec, amounts, sizeof(amounts) / sizeof(*amounts));
		if (census->in_use_low > census->in_use_high || census->walked_bytes > census->mapped_bytes)
			codec_fail(codec, "sizes of a heap that contradict each other");
		groups = codec_count(codec, census->group_count, GROUP_BYTES, LIMIT_HEAP_GROUPS);
		if (!codec->to) {
			census->groups = calloc(groups + 1, sizeof(*census->groups));
			census->group_count = census->groups ? groups : 0;
			if (!census->groups)
				codec->error = &error_no_memory;
		}
		for (size_t i = 0; i < groups && codec_ok(codec); i++)
			code_group(codec, &census->groups[i]);
	}
}

const struct section_kind section_heap = {
    "heap section", 1, 1, LIMIT_SECTION_BYTES, sizeof(struct heap_censuses), code_censuses, heap_censuses_deinit};

/* perf's table of build-ids: records {header, i32 pid, u8 id[20], u8 size, u8 zero[3], path padded to 64 bytes}. */

#define MISC_SIZE_GIVEN (1u << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */
#define ID_BYTES 20
#define FIXED_BYTES (sizeof(struct perf_event_header) + sizeof(int32_t) + ID_BYTES + 4)
#define PATH_ALIGNMENT 64
#define EVERY_PROCESS UINT32_MAX

void build_ids_deinit(struct build_ids *ids)
{
	vector_deinit_each(&ids->entries, item, free(item->path));
}

void build_ids_encode(const struct build_ids *ids, struct buffer *buffer)
{
	array_each(entry, ids->entries.items, ids->entries.count) {
		uint8_t id[ID_BYTES + 4] = {0};
		size_t path_size = strlen(entry->path) + 1;
		size_t padded = (path_size + PATH_ALIGNMENT - 1) & ~(size_t)(PATH_ALIGNMENT - 1);
		uint8_t *path;

		if (path_size > LIMIT_PATH_BYTES)
			continue;
		memcpy(id, entry->bytes, entry->size);
		id[ID_BYTES] = entry->size;
		buffer_put_u32(buffer, 0);
		buffer_put_u16(buffer, PERF_RECORD_MISC_USER | MISC_SIZE_GIVEN);
		buffer_put_u16(buffer, (uint16_t)(FIXED_BYTES + padded));
		buffer_put_u32(buffer, EVERY_PROCESS);
		buffer_put(buffer, id, sizeof(id));
		path = buffer_extend(buffer, padded);
		if (!path)
			return;
		memset(path, 0, padded);
		memcpy(path, entry->path, path_size);
	}
}

static struct mmt_error *decode_build_id(struct bytes *bytes, struct build_ids *ids)
{
	struct build_id_entry *entry;
	struct bytes record;
	const uint8_t *id;
	uint16_t misc, size;

	bytes_u32(bytes); /* type */
	misc = bytes_u16(bytes);
	size = bytes_u16(bytes);
	if (size < FIXED_BYTES)
		bytes_fail(bytes, "record too short");
	record = bytes_sub(bytes, size - sizeof(struct perf_event_header));
	bytes_u32(&record); /* pid */
	id = bytes_take(&record, ID_BYTES + 4);
	if (!id)
		return NULL;
	entry = vector_append(&ids->entries);
	if (!entry)
		return &error_no_memory;
	entry->size = misc & MISC_SIZE_GIVEN ? id[ID_BYTES] : ID_BYTES;
	if (entry->size == 0 || entry->size > ID_BYTES)
		bytes_fail(bytes, "invalid size of a build-id");
	memcpy(entry->bytes, id, ID_BYTES);
	entry->path = strdup(bytes_string(&record));
	if (!bytes_ok(&record))
		bytes_fail(bytes, record.failure);
	return entry->path ? NULL : &error_no_memory;
}

struct mmt_error *build_ids_decode(struct bytes *bytes, struct build_ids *ids_ret)
{
	struct mmt_error *error = NULL;

	*ids_ret = (struct build_ids){0};
	while (bytes_left(bytes) && bytes_ok(bytes) && !error)
		error = decode_build_id(bytes, ids_ret);
	error = error ?: bytes_finish(bytes, "build-id section");
	if (error)
		build_ids_deinit(ids_ret);
	return error;
}

#define IMAGES_VERSION 1
#define HEADER_BYTES 16
#define INDEX_SIZE_OFFSET 8
#define ENTRY_BYTES_MIN 57 /* with an empty path */

void module_copies_deinit(struct module_copies *copies)
{
	vector_deinit_each(&copies->images, item, free(item->path));
	copies->file = NULL;
}

uint64_t module_copies_entry_bytes(const struct module_copy *image)
{
	return ENTRY_BYTES_MIN + strlen(image->path);
}

/* Behind the version. Copies must be in sequence: no bytes may belong to two modules. */
static void code_index(struct codec *codec, struct module_copies *copies, uint64_t section_size)
{
	uint64_t count = codec_word(codec, (uint32_t)copies->images.count), end = 0, copied_bytes = 0;
	struct module_copy *image;

	codec_word(codec, 0); /* size of the index */
	codec_word(codec, 0);
	count = codec_check(codec, count, ENTRY_BYTES_MIN, UINT64_MAX);
	codec_each(codec, &copies->images, count, image) {
		uint32_t build_id_size = image->build_id_size;

		codec_u32(codec, image->device_major);
		codec_u32(codec, image->device_minor);
		codec_u64(codec, image->inode);
		codec_u32(codec, image->offset);
		codec_u32(codec, image->stored);
		codec_u64(codec, image->size);
		codec_bytes(codec, image->build_id, sizeof(image->build_id));
		codec_u32(codec, build_id_size);
		if (build_id_size > sizeof(image->build_id))
			codec_fail(codec, "invalid size of a build-id");
		if (image->offset > section_size || image->stored > section_size - image->offset)
			codec_fail(codec, "copy beyond the section");
		if (image->size && image->offset < end)
			codec_fail(codec, "copy within another one");
		if (image->size > LIMIT_IMAGE_BYTES - copied_bytes)
			codec_fail(codec, "copies larger than the limit");
		codec_text(codec, &image->path);
		if (codec->to || !codec_ok(codec))
			continue;
		image->build_id_size = (uint8_t)build_id_size;
		end = image->size ? (uint64_t)image->offset + image->stored : end;
		copied_bytes += image->size;
	}
}

void module_copies_encode_index(const struct module_copies *copies, struct buffer *buffer)
{
	struct codec codec = {.to = buffer};
	size_t end = buffer->size;

	buffer->size = 0;
	buffer_put_u32(buffer, IMAGES_VERSION);
	code_index(&codec, (struct module_copies *)(uintptr_t)copies, 0);
	buffer_patch(buffer, INDEX_SIZE_OFFSET, buffer->size, sizeof(uint32_t));
	buffer->size = larger_of(buffer->size, end);
}

struct mmt_error *module_copies_load(const struct recording_file *file, struct module_copies *copies_ret)
{
	static const char what[] = "images section";
	const struct file_section *section = &file->sections[FEATURE_MMTRACE_IMAGES];
	struct module_copies copies = {.file = file};
	CLEANUP(free) uint8_t *data = NULL;
	uint8_t header[HEADER_BYTES] = {0};
	struct bytes bytes = bytes_over(header, sizeof(header));
	struct codec codec = {.from = &bytes};
	struct mmt_error *error;
	uint64_t index_size;

	if (!section->present)
		return NULL;
	if (section->size < sizeof(header))
		return error_create(MMT_ERROR_FORMAT, "%s: ends too early at byte %u", what, (unsigned)section->size);
	error = recording_file_read(file, section->offset, header, sizeof(header))
		    ?: section_version(&bytes, IMAGES_VERSION, IMAGES_VERSION, what, &codec.version);
	if (error)
		return error;
	bytes_u32(&bytes); /* the count */
	index_size = bytes_u32(&bytes);
	if (codec.version == 0 || index_size < sizeof(header) || index_size > section->size ||
	    index_size > LIMIT_IMAGE_INDEX_BYTES)
		return error_create(MMT_ERROR_FORMAT, "%s: invalid index", what);
	data = malloc(index_size);
	error = data ? recording_file_read(file, section->offset, data, index_size) : &error_no_memory;
	if (error)
		return error;
	bytes = bytes_over(data, index_size);
	bytes_u32(&bytes); /* the version */
	code_index(&codec, &copies, section->size);
	error = codec.error ?: bytes_finish(&bytes, what);
	if (error)
		module_copies_deinit(&copies);
	else
		*copies_ret = copies;
	return error;
}

struct mmt_error *module_copies_extract(const struct module_copies *copies, const struct module_copy *image,
					uint8_t **data_ret)
{
	const struct file_section *section = &copies->file->sections[FEATURE_MMTRACE_IMAGES];
	CLEANUP(free) uint8_t *stored = malloc(image->stored ? image->stored : 1);
	struct decompressor decompressor = {0};
	CLEANUP(buffer) struct buffer content = {.maximum = image->size};
	struct mmt_error *error = stored ? NULL : &error_no_memory;

	error = error ?: recording_file_read(copies->file, section->offset + image->offset, stored, image->stored);
	error = error ?: decompressor_init(&decompressor);
	error = error ?: decompressor_feed(&decompressor, stored, image->stored, &content);
	decompressor_deinit(&decompressor);
	if (!error && content.size != image->size)
		error = error_create(MMT_ERROR_FORMAT, "%zu bytes instead of %llu", content.size,
				     (unsigned long long)image->size);
	if (!error)
		*data_ret = TAKE(content.data);
	return error_context(error, "copy of %s", image->path);
}

#define CODE_VERSION 3
#define PROGRAM_BYTES 20 /* without any run */
#define RUN_BYTES 16	 /* without its code */

bool jit_code_is_path(const char *path)
{
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/memfd:", 7) || !strncmp(path, "[anon", 5) ||
	       !strncmp(path, "/dev/zero", 9) || !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/SYSV", 5) ||
	       !strcmp(path, "[heap]") || !strcmp(path, "");
}

bool jit_code_is_wanted(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return jit_code_is_path(path) || (suffix && (!strcmp(suffix, ".dll") || !strcmp(suffix, ".exe")));
}

static void jit_code_deinit(void *value)
{
	struct jit_code *code = value;

	vector_deinit_each(&code->programs, item, vector_deinit(&item->runs));
	buffer_deinit(&code->bytes);
}

struct mmt_error *jit_code_encode(struct section_packing *packing, size_t programs, struct buffer *buffer)
{
	struct mmt_error *error = packing_begin(packing, CODE_VERSION, buffer);

	buffer_put_u32(&packing->plain, (uint32_t)programs);
	return error;
}

struct mmt_error *jit_code_encode_program(struct section_packing *packing, int32_t pid, uint64_t until_ns,
					  const struct jit_code_page *pages, size_t count, size_t page_bytes)
{
	struct mmt_error *error = NULL;
	size_t runs = 0, run;

	for (size_t i = 0; i < count; i++)
		runs += !i || pages[i].address != pages[i - 1].address + page_bytes;
	buffer_put_u32(&packing->plain, (uint32_t)pid);
	buffer_put_u32(&packing->plain, (uint32_t)runs);
	buffer_put_u64(&packing->plain, until_ns);
	buffer_put_u32(&packing->plain, 0);
	for (size_t i = 0; !error && i < count; i += run) {
		for (run = 1; i + run < count && pages[i + run].address == pages[i].address + run * page_bytes;)
			run++;
		buffer_put_u64(&packing->plain, pages[i].address);
		buffer_put_u64(&packing->plain, run * page_bytes);
		error = packing_flush(packing);
		for (size_t j = i; j < i + run; j++)
			buffer_put(packing->packed, pages[j].frame, pages[j].frame_bytes);
	}
	return error;
}

static const struct jit_code_run *find_run(const struct jit_code_program *program, uint64_t address)
{
	size_t behind = partition_point(program->runs.count, i, program->runs.items[i].start <= address);
	const struct jit_code_run *run = behind ? &program->runs.items[behind - 1] : NULL;

	return run && address - run->start < run->size ? run : NULL;
}

static void read_code(struct codec *codec, void *value)
{
	uint64_t program_count = codec_count(codec, 0, PROGRAM_BYTES, LIMIT_PROCESSES);
	struct bytes *bytes = codec->from;
	struct jit_code_program *program;
	struct jit_code *code = value;

	code->bytes = *codec->plain;
	*codec->plain = (struct buffer){0};
	codec_each(codec, &code->programs, program_count, program) {
		uint64_t count, previous = 0;

		program->pid = (int32_t)bytes_u32(bytes);
		count = bytes_u32(bytes);
		program->until_ns = bytes_u64(bytes);
		if (bytes_u32(bytes))
			bytes_fail(bytes, "code that was replaced");
		count = bytes_count(bytes, count, RUN_BYTES);
		for (uint64_t i = 0; i < count && codec_ok(codec); i++) {
			struct jit_code_run run = {.start = bytes_u64(bytes)};
			uint64_t size = bytes_u64(bytes);

			size = bytes_count(bytes, size, 1);
			if (run.start < previous || run.start > UINT64_MAX - size)
				bytes_fail(bytes, "code out of order");
			run.size = (size_t)size;
			run.offset = (size_t)(bytes->position - bytes->start);
			bytes_skip(bytes, size);
			previous = run.start + size;
			if (bytes_ok(bytes) && !vector_push(&program->runs, run))
				codec->error = &error_no_memory;
		}
	}
}

const struct section_kind section_code = {"JIT code section",	   CODE_VERSION, CODE_VERSION,	 LIMIT_CODE_BYTES,
					  sizeof(struct jit_code), read_code,	 jit_code_deinit};

const struct jit_code_program *jit_code_find(const struct jit_code *code, int32_t pid, uint64_t began_ns)
{
	const struct jit_code_program *found = NULL;

	array_each(program, code->programs.items, code->programs.count) {
		if (program->pid == pid && program->until_ns > began_ns &&
		    (!found || program->until_ns < found->until_ns))
			found = program;
	}
	return found;
}

size_t jit_code_at(const struct jit_code *code, const struct jit_code_program *program, uint64_t address, size_t size,
		   const uint8_t **code_ret)
{
	const struct jit_code_run *run = find_run(program, address);
	size_t left;

	if (!run)
		return 0;
	left = run->size - (size_t)(address - run->start);
	*code_ret = code->bytes.data + run->offset + (address - run->start);
	return size < left ? size : left;
}

size_t jit_code_before(const struct jit_code *code, const struct jit_code_program *program, uint64_t address,
		       size_t size, const uint8_t **code_ret)
{
	const struct jit_code_run *run = address ? find_run(program, address - 1) : NULL;
	size_t before;

	if (!run)
		return 0;
	before = (size_t)(address - run->start);
	size = smaller_of(size, before);
	*code_ret = code->bytes.data + run->offset + before - size;
	return size;
}
