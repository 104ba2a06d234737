// SPDX-License-Identifier: LGPL-2.1-or-later
/* Encodes and decodes mmtrace's own feature sections, as mmtrace-file(5) documents them. */
#include "trace/sections/sections.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/limits.h"
#include "trace/format/format.h"

/* Version 1 has no large dumps; older readers would treat them as calls. Version 2 has no limit of mappings. */
#define INFO_VERSION 4
#define LOSS_VERSION 3
#define INFO_FLAG_COMMAND 1u
#define INFO_FLAG_ON_CPUS 2u
#define INFO_FLAG_ALL_PROCESSES 4u

struct mmt_error *section_version(struct bytes *bytes, uint32_t known, const char *what, uint32_t *version_ret)
{
	uint32_t version = *version_ret = bytes_u32(bytes);

	if (version > known)
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "%s of version %u: written by a newer version of mmtrace; use that version", what,
				    version);
	if (version == 0)
		bytes_fail(bytes, "version 0");
	return NULL;
}

void recording_info_deinit(struct recording_info *info)
{
	free(info->recorder_version);
	vector_deinit(&info->targets);
	vector_deinit(&info->roles);
	vector_deinit(&info->hugetlb_devices);
	*info = (struct recording_info){0};
}

void recording_info_encode(const struct recording_info *info, struct buffer *buffer)
{
	uint32_t flags = (info->command ? INFO_FLAG_COMMAND : 0) | (info->on_cpus ? INFO_FLAG_ON_CPUS : 0) |
			 (info->all_processes ? INFO_FLAG_ALL_PROCESSES : 0);

	buffer_put_u32(buffer, INFO_VERSION);
	buffer_put_u32(buffer, flags);
	buffer_put_u64(buffer, info->start_ns);
	buffer_put_u64(buffer, info->start_realtime_ns);
	buffer_put_u32(buffer, info->page_bytes);
	buffer_put_u32(buffer, info->call_graph);
	buffer_put_u32(buffer, info->stack_dump_bytes);
	buffer_put_u32(buffer, info->callchain_limit);
	buffer_put_u32(buffer, (uint32_t)info->targets.count);
	buffer_put_u32(buffer, (uint32_t)info->roles.count);
	for (size_t i = 0; i < info->targets.count; i++)
		buffer_put_u32(buffer, (uint32_t)info->targets.items[i]);
	for (size_t i = 0; i < info->roles.count; i++)
		buffer_put_u32(buffer, info->roles.items[i]);
	buffer_put_string(buffer, info->recorder_version ? info->recorder_version : "");
	buffer_put_u32(buffer, info->mapping_limit);
	buffer_put_u32(buffer, (uint32_t)info->hugetlb_devices.count);
	for (size_t i = 0; i < info->hugetlb_devices.count; i++) {
		buffer_put_u32(buffer, info->hugetlb_devices.items[i].major);
		buffer_put_u32(buffer, info->hugetlb_devices.items[i].minor);
	}
}

static struct mmt_error *decode_hugetlb_devices(struct bytes *bytes, struct recording_info *info)
{
	uint64_t count = bytes_count_u32(bytes, 2 * sizeof(uint32_t));

	for (uint64_t i = 0; i < count; i++) {
		struct device_number device = {.major = bytes_u32(bytes)};

		device.minor = bytes_u32(bytes);
		if (!vector_push(&info->hugetlb_devices, device))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *decode_info_lists(struct bytes *bytes, struct recording_info *info)
{
	uint64_t targets = bytes_u32(bytes), roles = bytes_u32(bytes);

	targets = bytes_at_most(bytes, bytes_count(bytes, targets, sizeof(uint32_t)), LIMIT_PROCESSES);
	for (uint64_t i = 0; i < targets; i++) {
		if (!vector_push(&info->targets, (int32_t)bytes_u32(bytes)))
			return &error_no_memory;
	}
	roles = bytes_count(bytes, roles, sizeof(uint32_t));
	for (uint64_t i = 0; i < roles; i++) {
		uint32_t role = bytes_u32(bytes);

		if (role > ROLE_LARGE_DUMP)
			role = ROLE_OTHER;
		if (!vector_push(&info->roles, role))
			return &error_no_memory;
	}
	info->recorder_version = strdup(bytes_string(bytes));
	return info->recorder_version ? NULL : &error_no_memory;
}

struct mmt_error *recording_info_decode(struct bytes *bytes, struct recording_info *info_ret)
{
	uint32_t version;
	struct mmt_error *error = section_version(bytes, INFO_VERSION, "information section", &version);
	struct recording_info info = {0};
	uint32_t flags;

	if (error)
		return error;
	flags = bytes_u32(bytes);
	info.command = flags & INFO_FLAG_COMMAND;
	info.on_cpus = flags & INFO_FLAG_ON_CPUS;
	info.all_processes = flags & INFO_FLAG_ALL_PROCESSES;
	info.start_ns = bytes_u64(bytes);
	info.start_realtime_ns = bytes_u64(bytes);
	info.page_bytes = bytes_u32(bytes);
	info.call_graph = bytes_u32(bytes);
	info.stack_dump_bytes = bytes_u32(bytes);
	info.callchain_limit = bytes_u32(bytes);
	if (info.page_bytes < 4096 || info.page_bytes > (1u << 20) || (info.page_bytes & (info.page_bytes - 1)) != 0)
		bytes_fail(bytes, "invalid page size");
	error = decode_info_lists(bytes, &info);
	if (!error && version >= 3)
		info.mapping_limit = bytes_u32(bytes);
	if (!error && version >= 4)
		error = decode_hugetlb_devices(bytes, &info);
	if (!error)
		error = bytes_finish(bytes, "information section");
	if (error)
		recording_info_deinit(&info);
	else
		*info_ret = info;
	return error;
}

void recording_loss_deinit(struct recording_loss *loss)
{
	vector_deinit(&loss->lost);
	*loss = (struct recording_loss){0};
}

void recording_loss_encode(const struct recording_loss *loss, struct buffer *buffer)
{
	buffer_put_u32(buffer, LOSS_VERSION);
	buffer_put_u32(buffer, loss->end);
	buffer_put_u64(buffer, loss->stop_ns);
	buffer_put_u64(buffer, loss->lost.count);
	for (size_t i = 0; i < loss->lost.count; i++)
		buffer_put_u64(buffer, loss->lost.items[i]);
	buffer_put_u64(buffer, loss->missed_threads);
	buffer_put_u64(buffer, loss->missed_cpus);
	buffer_put_u64(buffer, loss->left_processes);
}

static uint64_t decode_loss_count(struct bytes *bytes)
{
	uint64_t count = bytes_u64(bytes);

	if (count > LIMIT_LOST)
		bytes_fail(bytes, "more losses than possible");
	return count;
}

struct mmt_error *recording_loss_decode(struct bytes *bytes, struct recording_loss *loss_ret)
{
	uint32_t version;
	struct mmt_error *error = section_version(bytes, LOSS_VERSION, "loss section", &version);
	struct recording_loss loss = {0};
	uint64_t count;

	if (error)
		return error;
	loss.end = bytes_u32(bytes);
	loss.stop_ns = bytes_u64(bytes);
	count = bytes_u64(bytes);
	count = bytes_count(bytes, count, sizeof(uint64_t));
	for (uint64_t i = 0; i < count && !error; i++) {
		if (!vector_push(&loss.lost, decode_loss_count(bytes)))
			error = &error_no_memory;
	}
	if (version >= 2)
		loss.missed_threads = decode_loss_count(bytes);
	if (version >= 3) {
		loss.missed_cpus = decode_loss_count(bytes);
		loss.left_processes = decode_loss_count(bytes);
	}
	if (!error)
		error = bytes_finish(bytes, "loss section");
	if (error)
		recording_loss_deinit(&loss);
	else
		*loss_ret = loss;
	return error;
}

/* The large sections: u32 version, u32 zero, then zstd frames. */

#define PERF_MAPS_VERSION 1
#define RESIDENCY_VERSION 2 /* version 1 has no times, no sizes and no residency at the start */
#define HUGE_PAGES_VERSION 1
#define JITDUMPS_VERSION 2 /* version 1 does not have the start of the program */

#define LARGE_BYTES (1u << 20)

struct mmt_error *packing_begin(struct section_packing *packing, uint32_t version, struct buffer *packed)
{
	*packing = (struct section_packing){.packed = packed};
	buffer_init(&packing->plain, LIMIT_SECTION_BYTES);
	buffer_put_u32(packed, version);
	buffer_put_u32(packed, 0);
	return compressor_create(&packing->compressor);
}

struct mmt_error *packing_flush(struct section_packing *packing)
{
	struct mmt_error *error = buffer_finish(&packing->plain);

	if (!error && packing->plain.size)
		error =
		    compressor_frame(packing->compressor, packing->plain.data, packing->plain.size, packing->packed);
	buffer_clear(&packing->plain);
	return error;
}

/* Large contents have a frame of their own, so that they are in memory only once. */
static struct mmt_error *packing_put(struct section_packing *packing, const void *data, size_t size)
{
	struct mmt_error *error;

	if (size < LARGE_BYTES) {
		buffer_put(&packing->plain, data, size);
		return NULL;
	}
	error = packing_flush(packing);
	return error ? error : compressor_frame(packing->compressor, data, size, packing->packed);
}

struct mmt_error *packing_end(struct section_packing *packing, struct mmt_error *error)
{
	if (!error)
		error = packing_flush(packing);
	compressor_destroy(packing->compressor);
	buffer_deinit(&packing->plain);
	return error;
}

struct mmt_error *section_begin(struct unpacked_section *section, struct bytes *packed, const char *what,
				uint32_t newest, size_t limit, size_t *room)
{
	struct decompressor *decompressor = NULL;
	struct mmt_error *error;
	size_t size;

	*section = (struct unpacked_section){.what = what};
	buffer_init(&section->plain, limit < *room ? limit : *room);
	error = section_version(packed, newest, what, &section->version);
	if (error)
		return error;
	bytes_u32(packed);
	error = bytes_finish(packed, what);
	if (!error)
		error = decompressor_create(&decompressor);
	if (!error) {
		size = bytes_left(packed);
		error = decompressor_feed(decompressor, bytes_take(packed, size), size, &section->plain);
	}
	*room -= section->plain.size;
	decompressor_destroy(decompressor);
	section->bytes = bytes_over(section->plain.data, error ? 0 : section->plain.size);
	return error_context(error, "%s", what);
}

struct mmt_error *section_end(struct unpacked_section *section, struct mmt_error *error)
{
	if (!error)
		error = bytes_finish(&section->bytes, section->what);
	buffer_deinit(&section->plain);
	return error;
}

/* Copy the next bytes. NULL: out of memory. */
static uint8_t *take_copy(struct bytes *bytes, uint64_t size, size_t *size_ret)
{
	const void *data = bytes_take(bytes, bytes_count(bytes, size, 1));
	uint8_t *copy = malloc(data && size ? size : 1);

	*size_ret = copy && data ? size : 0;
	if (*size_ret)
		memcpy(copy, data, size);
	return copy;
}

void perf_map_copy_deinit(struct perf_map_copy *copy)
{
	vector_deinit(&copy->growth);
	free(copy->text);
	*copy = (struct perf_map_copy){0};
}

void perf_map_copies_deinit(struct perf_map_copies *copies)
{
	for (size_t i = 0; i < copies->maps.count; i++)
		perf_map_copy_deinit(&copies->maps.items[i]);
	vector_deinit(&copies->maps);
}

struct mmt_error *perf_map_copies_encode(const struct perf_map_copies *copies, struct buffer *buffer)
{
	struct section_packing packing;
	struct buffer *plain = &packing.plain;
	struct mmt_error *error = packing_begin(&packing, PERF_MAPS_VERSION, buffer);

	buffer_put_u32(plain, (uint32_t)copies->maps.count);
	for (size_t i = 0; !error && i < copies->maps.count; i++) {
		const struct perf_map_copy *copy = &copies->maps.items[i];

		buffer_put_u32(plain, (uint32_t)copy->pid);
		buffer_put_u32(plain, (uint32_t)copy->namespace_pid);
		buffer_put_u32(plain, (uint32_t)copy->growth.count);
		buffer_put_u64(plain, copy->text_size);
		for (size_t j = 0; j < copy->growth.count; j++) {
			buffer_put_u64(plain, copy->growth.items[j].time_ns);
			buffer_put_u64(plain, copy->growth.items[j].length);
		}
		error = packing_put(&packing, copy->text, copy->text_size);
	}
	return packing_end(&packing, error);
}

static struct mmt_error *decode_perf_map(struct bytes *bytes, struct perf_map_copy *copy)
{
	uint64_t growth, size;

	copy->pid = (int32_t)bytes_u32(bytes);
	copy->namespace_pid = (int32_t)bytes_u32(bytes);
	growth = bytes_u32(bytes);
	size = bytes_u64(bytes);
	growth = bytes_count(bytes, growth, 2 * sizeof(uint64_t));
	for (uint64_t i = 0; i < growth; i++) {
		struct perf_map_growth step = {.time_ns = bytes_u64(bytes)};

		step.length = bytes_u64(bytes);
		if (!vector_push(&copy->growth, step))
			return &error_no_memory;
	}
	copy->text = take_copy(bytes, size, &copy->text_size);
	return copy->text ? NULL : &error_no_memory;
}

struct mmt_error *perf_map_copies_decode(struct bytes *bytes, size_t *room, struct perf_map_copies *copies_ret)
{
	struct unpacked_section section;
	struct mmt_error *error =
	    section_begin(&section, bytes, "perf map section", PERF_MAPS_VERSION, LIMIT_PERF_MAP_BYTES, room);
	uint64_t count = bytes_at_most(&section.bytes, bytes_count_u32(&section.bytes, 20), LIMIT_PROCESSES);

	*copies_ret = (struct perf_map_copies){0};
	for (uint64_t i = 0; i < count && bytes_ok(&section.bytes) && !error; i++) {
		struct perf_map_copy *copy = vector_append(&copies_ret->maps);

		error = copy ? decode_perf_map(&section.bytes, copy) : &error_no_memory;
	}
	error = section_end(&section, error);
	if (error)
		perf_map_copies_deinit(copies_ret);
	return error;
}

#define PROGRAM_NOT_KNOWN UINT64_MAX

void jitdump_copies_deinit(struct jitdump_copies *copies)
{
	for (size_t i = 0; i < copies->dumps.count; i++)
		free(copies->dumps.items[i].data);
	vector_deinit(&copies->dumps);
}

struct mmt_error *jitdump_copies_encode(const struct jitdump_copies *copies, struct buffer *buffer)
{
	struct section_packing packing;
	struct buffer *plain = &packing.plain;
	struct mmt_error *error = packing_begin(&packing, JITDUMPS_VERSION, buffer);

	buffer_put_u32(plain, (uint32_t)copies->dumps.count);
	for (size_t i = 0; !error && i < copies->dumps.count; i++) {
		const struct jitdump_copy *copy = &copies->dumps.items[i];

		buffer_put_u32(plain, (uint32_t)copy->pid);
		buffer_put_u32(plain, (uint32_t)copy->namespace_pid);
		buffer_put_u64(plain, copy->knows_program ? copy->program_ns : PROGRAM_NOT_KNOWN);
		buffer_put_u64(plain, copy->size);
		error = packing_put(&packing, copy->data, copy->size);
	}
	return packing_end(&packing, error);
}

static struct mmt_error *decode_jitdump(struct bytes *bytes, uint32_t version, struct jitdump_copy *copy)
{
	uint64_t program_ns;

	copy->pid = (int32_t)bytes_u32(bytes);
	copy->namespace_pid = (int32_t)bytes_u32(bytes);
	program_ns = version > 1 ? bytes_u64(bytes) : PROGRAM_NOT_KNOWN;
	copy->knows_program = program_ns != PROGRAM_NOT_KNOWN;
	copy->program_ns = copy->knows_program ? program_ns : 0;
	copy->data = take_copy(bytes, bytes_u64(bytes), &copy->size);
	return copy->data ? NULL : &error_no_memory;
}

struct mmt_error *jitdump_copies_decode(struct bytes *bytes, size_t *room, struct jitdump_copies *copies_ret)
{
	struct unpacked_section section;
	struct mmt_error *error =
	    section_begin(&section, bytes, "jitdump section", JITDUMPS_VERSION, LIMIT_JITDUMP_BYTES, room);
	uint64_t count = bytes_at_most(&section.bytes, bytes_count_u32(&section.bytes, 16), LIMIT_PROCESSES);

	*copies_ret = (struct jitdump_copies){0};
	for (uint64_t i = 0; i < count && bytes_ok(&section.bytes) && !error; i++) {
		struct jitdump_copy *copy = vector_append(&copies_ret->dumps);

		error = copy ? decode_jitdump(&section.bytes, section.version, copy) : &error_no_memory;
	}
	error = section_end(&section, error);
	if (error)
		jitdump_copies_deinit(copies_ret);
	return error;
}

void process_residencies_deinit(process_residencies *processes)
{
	for (size_t i = 0; i < processes->count; i++)
		vector_deinit(&processes->items[i].runs);
	vector_deinit(processes);
}

void recording_residency_deinit(struct recording_residency *residency)
{
	process_residencies_deinit(&residency->processes);
	process_residencies_deinit(&residency->at_start);
	map_deinit(&residency->places);
	map_deinit(&residency->start_places);
}

static const struct process_residency *find_residency(const process_residencies *processes, const struct map *places,
						      int32_t pid)
{
	const uint64_t *place = map_get(places, (uint32_t)pid);

	return place ? &processes->items[*place] : NULL;
}

const struct process_residency *recording_residency_at_start(const struct recording_residency *residency, int32_t pid)
{
	return find_residency(&residency->at_start, &residency->start_places, pid);
}

const struct process_residency *recording_residency_at_end(const struct recording_residency *residency, int32_t pid)
{
	return find_residency(&residency->processes, &residency->places, pid);
}

static void encode_residencies(const process_residencies *processes, struct buffer *plain)
{
	buffer_put_u32(plain, (uint32_t)processes->count);
	for (size_t i = 0; i < processes->count; i++) {
		const struct process_residency *process = &processes->items[i];

		buffer_put_u32(plain, (uint32_t)process->pid);
		buffer_put_u32(plain, (uint32_t)process->runs.count);
		buffer_put_u64(plain, process->time_ns);
		buffer_put_u64(plain, process->resident_bytes);
		for (size_t j = 0; j < process->runs.count; j++) {
			buffer_put_u64(plain, process->runs.items[j].start);
			buffer_put_u64(plain, process->runs.items[j].end);
		}
	}
}

struct mmt_error *recording_residency_encode(const struct recording_residency *residency, struct buffer *buffer)
{
	struct section_packing packing;
	struct buffer *plain = &packing.plain;
	struct mmt_error *error = packing_begin(&packing, RESIDENCY_VERSION, buffer);

	encode_residencies(&residency->processes, plain);
	encode_residencies(&residency->at_start, plain);
	return packing_end(&packing, error);
}

static struct mmt_error *decode_runs(struct bytes *bytes, uint64_t count, resident_runs *runs)
{
	uint64_t previous = 0;

	count = bytes_count(bytes, count, 2 * sizeof(uint64_t));
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct resident_run run = {.start = bytes_u64(bytes)};

		run.end = bytes_u64(bytes);
		if (run.start >= run.end || run.start < previous)
			bytes_fail(bytes, "resident pages out of order");
		else if (run.end > LIMIT_RESIDENT_BYTES)
			bytes_fail(bytes, "resident pages above the addresses of a process");
		previous = run.end;
		if (!vector_push(runs, run))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *decode_residency(struct bytes *bytes, uint32_t version, struct process_residency *process)
{
	uint64_t count;

	process->pid = (int32_t)bytes_u32(bytes);
	count = bytes_u32(bytes);
	process->time_ns = version > 1 ? bytes_u64(bytes) : 0;
	process->resident_bytes = version > 1 ? bytes_u64(bytes) : 0;
	if (process->resident_bytes > LIMIT_RESIDENT_BYTES)
		process->resident_bytes = LIMIT_RESIDENT_BYTES;
	return decode_runs(bytes, count, &process->runs);
}

static struct mmt_error *decode_residencies(struct unpacked_section *section, process_residencies *processes,
					    struct map *places)
{
	struct bytes *bytes = &section->bytes;
	uint64_t count = bytes_at_most(bytes, bytes_count_u32(bytes, 8), LIMIT_PROCESSES);
	struct mmt_error *error = NULL;

	for (uint64_t i = 0; i < count && bytes_ok(bytes) && !error; i++) {
		struct process_residency *process = vector_append(processes);

		error = process ? decode_residency(bytes, section->version, process) : &error_no_memory;
		if (!error && !map_get(places, (uint32_t)process->pid) && !map_put(places, (uint32_t)process->pid, i))
			error = &error_no_memory;
	}
	return error;
}

struct mmt_error *recording_residency_decode(struct bytes *bytes, size_t *room,
					     struct recording_residency *residency_ret)
{
	struct unpacked_section section;
	struct mmt_error *error =
	    section_begin(&section, bytes, "residency section", RESIDENCY_VERSION, LIMIT_SECTION_BYTES, room);

	*residency_ret = (struct recording_residency){0};
	if (!error)
		error = decode_residencies(&section, &residency_ret->processes, &residency_ret->places);
	if (!error && section.version > 1)
		error = decode_residencies(&section, &residency_ret->at_start, &residency_ret->start_places);
	error = section_end(&section, error);
	if (error)
		recording_residency_deinit(residency_ret);
	return error;
}

void process_huge_pages_deinit(struct process_huge_pages *process)
{
	vector_deinit(&process->runs);
	vector_deinit(&process->samples);
}

void recording_huge_pages_deinit(struct recording_huge_pages *huge)
{
	for (size_t i = 0; i < huge->processes.count; i++)
		process_huge_pages_deinit(&huge->processes.items[i]);
	vector_deinit(&huge->processes);
	map_deinit(&huge->places);
}

const struct process_huge_pages *recording_huge_pages_of(const struct recording_huge_pages *huge, int32_t pid)
{
	const uint64_t *place = map_get(&huge->places, (uint32_t)pid);

	return place ? &huge->processes.items[*place] : NULL;
}

struct mmt_error *recording_huge_pages_encode(const struct recording_huge_pages *huge, struct buffer *buffer)
{
	struct section_packing packing;
	struct buffer *plain = &packing.plain;
	struct mmt_error *error = packing_begin(&packing, HUGE_PAGES_VERSION, buffer);

	buffer_put_u32(plain, huge->setting);
	buffer_put_u32(plain, (uint32_t)huge->processes.count);
	for (size_t i = 0; i < huge->processes.count; i++) {
		const struct process_huge_pages *process = &huge->processes.items[i];

		buffer_put_u32(plain, (uint32_t)process->pid);
		buffer_put_u32(plain, process->sampling);
		buffer_put_u32(plain, (uint32_t)process->runs.count);
		buffer_put_u32(plain, (uint32_t)process->samples.count);
		for (size_t j = 0; j < process->runs.count; j++) {
			buffer_put_u64(plain, process->runs.items[j].start);
			buffer_put_u64(plain, process->runs.items[j].end);
		}
		for (size_t j = 0; j < process->samples.count; j++) {
			buffer_put_u64(plain, process->samples.items[j].address);
			buffer_put_u32(plain, process->samples.items[j].read_bytes);
			buffer_put_u32(plain, process->samples.items[j].zero_bytes);
		}
	}
	return packing_end(&packing, error);
}

/* The report counts samples like runs of pages: they must be disjoint, and part of the memory that they describe. */
static struct mmt_error *decode_samples(struct bytes *bytes, uint64_t count, struct process_huge_pages *process)
{
	uint64_t previous = 0, end = 0;
	size_t run = 0;

	count = bytes_count(bytes, count, 2 * sizeof(uint64_t));
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct huge_sample sample = {.address = bytes_u64(bytes)};

		sample.read_bytes = bytes_u32(bytes);
		sample.zero_bytes = bytes_u32(bytes);
		while (run < process->runs.count && process->runs.items[run].end <= sample.address)
			run++;
		if (i && (sample.address <= previous || sample.address < end))
			bytes_fail(bytes, "samples of huge pages out of order");
		else if (run == process->runs.count || sample.address < process->runs.items[run].start ||
			 sample.read_bytes > process->runs.items[run].end - sample.address)
			bytes_fail(bytes, "sample outside the huge pages of its process");
		else if (sample.zero_bytes > sample.read_bytes)
			bytes_fail(bytes, "sample of a huge page with more zeros than bytes");
		previous = sample.address;
		end = sample.address + sample.read_bytes;
		if (!vector_push(&process->samples, sample))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *decode_huge_pages(struct bytes *bytes, struct process_huge_pages *process)
{
	struct mmt_error *error;
	uint64_t runs, samples;
	uint32_t sampling;

	process->pid = (int32_t)bytes_u32(bytes);
	sampling = bytes_u32(bytes);
	process->sampling = sampling > HUGE_TOO_LITTLE ? HUGE_NOT_SAMPLED : sampling;
	runs = bytes_u32(bytes);
	samples = bytes_u32(bytes);
	error = decode_runs(bytes, runs, &process->runs);
	return error ? error : decode_samples(bytes, samples, process);
}

struct mmt_error *recording_huge_pages_decode(struct bytes *bytes, size_t *room, struct recording_huge_pages *huge_ret)
{
	struct unpacked_section section;
	struct mmt_error *error =
	    section_begin(&section, bytes, "huge page section", HUGE_PAGES_VERSION, LIMIT_SECTION_BYTES, room);
	uint32_t setting = bytes_u32(&section.bytes);
	uint64_t count = bytes_at_most(&section.bytes, bytes_count_u32(&section.bytes, 16), LIMIT_PROCESSES);

	*huge_ret = (struct recording_huge_pages){.setting = setting > HUGE_NEVER ? HUGE_SETTING_UNKNOWN : setting};
	for (uint64_t i = 0; i < count && bytes_ok(&section.bytes) && !error; i++) {
		struct process_huge_pages *process = vector_append(&huge_ret->processes);

		error = process ? decode_huge_pages(&section.bytes, process) : &error_no_memory;
		if (!error && !map_get(&huge_ret->places, (uint32_t)process->pid) &&
		    !map_put(&huge_ret->places, (uint32_t)process->pid, i))
			error = &error_no_memory;
	}
	error = section_end(&section, error);
	if (error)
		recording_huge_pages_deinit(huge_ret);
	return error;
}

/* perf's table of build-ids: records {header, i32 pid, u8 id[20], u8 size, u8 zero[3], path padded to 64 bytes}. */

#define MISC_SIZE_GIVEN (1u << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE */
#define ID_BYTES 20
#define FIXED_BYTES (sizeof(struct perf_event_header) + sizeof(int32_t) + ID_BYTES + 4)
#define PATH_ALIGNMENT 64
#define EVERY_PROCESS UINT32_MAX

void build_ids_deinit(struct build_ids *ids)
{
	for (size_t i = 0; i < ids->entries.count; i++)
		free(ids->entries.items[i].path);
	vector_deinit(&ids->entries);
}

void build_ids_encode(const struct build_ids *ids, struct buffer *buffer)
{
	for (size_t i = 0; i < ids->entries.count; i++) {
		const struct build_id_entry *entry = &ids->entries.items[i];
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
	if (!error)
		error = bytes_finish(bytes, "build-id section");
	if (error)
		build_ids_deinit(ids_ret);
	return error;
}
