// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes the metadata of the recording file: the head before the records, the feature sections after them, and the
 * incremental metadata between them. */
#include "capture/heap/heap-readings.h"
#include "capture/runtimes/ask-runtime.h"
#include "capture/jit-code/jit-reader.h"
#include "capture/recorder/recorder.h"

#include <inttypes.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

/* log2 of the sizes of huge pages on any architecture */
#define HUGETLB_SHIFT_MIN 14
#define HUGETLB_SHIFT_MAX 34
#ifndef MFD_HUGE_SHIFT
#define MFD_HUGE_SHIFT 26
#endif

/* Adds a section to the file. Takes the content of the buffer. */
static struct mmt_error *add_section(struct recorder *recorder, enum format_feature feature, struct buffer *buffer)
{
	struct mmt_error *error = writer_take_section(recorder->writer, feature, buffer);

	buffer_clear(buffer);
	return error;
}

#define CLOCK_DATA_VERSION 1

static struct mmt_error *add_attributes(struct recorder *recorder)
{
	static const uint64_t other_ids[] = {SNAPSHOT_ID_NAME, NAME_PIECE_ID, NOTE_ID, RESIDENT_PAGES_ID, PSS_ID};
	const struct event_set *set = &recorder->reader.events;
	struct perf_event_attr snapshot; /* in the file only, and never opened */
	struct mmt_error *error = NULL;
	CLEANUP(vector) VECTOR(uint64_t) ids = {0};
	bool ok = true;

	for (size_t i = 0; ok && !error && i < set->items.count; i++) {
		ids.count = 0;
		array_while(attached, recorder->reader.attachment.events.items,
			    recorder->reader.attachment.events.count, ok)
			ok = attached->event != i || vector_push(&ids, attached->id);
		if (ok)
			error = writer_add_attribute(recorder->writer, &set->items.items[i].attribute,
						     set->items.items[i].name, ids.items, ids.count);
	}
	ids.count = 0;
	for (uint64_t i = 0; ok && i < SNAPSHOT_KINDS * SNAPSHOT_PARTS; i++)
		ok = vector_push(&ids, SNAPSHOT_ID_FIRST + i);
	for (size_t i = 0; ok && i < sizeof(other_ids) / sizeof(*other_ids); i++)
		ok = vector_push(&ids, other_ids[i]);
	events_describe_dummy(&snapshot);
	snapshot.read_format = set->items.items[0].attribute.read_format;
	if (ok && !error)
		error = writer_add_attribute(recorder->writer, &snapshot, "mmtrace-snapshot", ids.items, ids.count);
	return ok ? error : &error_no_memory;
}

/* In the mount namespace of the process, unless a process in it has been seen. */
static struct mmt_error *find_mounted_hugetlbfs(struct blocking_calls *calls, pid_t pid, struct map *namespaces,
						struct recording_info *info)
{
	CLEANUP(free) char *text = NULL;
	char *rest, *line;
	uint64_t namespace = place_of_paths(calls, pid);

	if (map_get(namespaces, namespace))
		return NULL;
	if (!map_put(namespaces, namespace, 1))
		return &error_no_memory;
	text = proc_text(pid, "mountinfo");
	if (!text)
		return NULL;
	for (rest = text; (line = strsep(&rest, "\n"));) {
		struct device_number device;

		if (strstr(line, " - hugetlbfs ") &&
		    sscanf(line, "%*u %*u %" SCNu32 ":%" SCNu32, &device.major, &device.minor) == 2 &&
		    info->hugetlb_devices.count < LIMIT_HUGETLB_DEVICES && !vector_push(&info->hugetlb_devices, device))
			return &error_no_memory;
	}
	return NULL;
}

/* Huge pages of hugetlbfs are not in RSS, and only the device of a mapping shows that it has such pages. */
static struct mmt_error *find_hugetlbfs(struct recorder *recorder, struct recording_info *info)
{
	struct mmt_error *error;
	CLEANUP(map) struct map namespaces = {0};

	/* The kernel's own hugetlbfs, one for each size of huge pages, has MAP_HUGETLB mappings, SHM_HUGETLB segments
	 * and memfds. */
	for (unsigned shift = HUGETLB_SHIFT_MIN; shift <= HUGETLB_SHIFT_MAX; shift++) {
		CLEANUP(close) int fd = memfd_create("", MFD_CLOEXEC | MFD_HUGETLB | shift << MFD_HUGE_SHIFT);
		struct stat state;

		if (fd >= 0 && fstat(fd, &state) == 0 &&
		    !vector_push(&info->hugetlb_devices,
				 ((struct device_number){major(state.st_dev), minor(state.st_dev)})))
			return &error_no_memory;
	}
	error = find_mounted_hugetlbfs(&recorder->calls, getpid(), &namespaces, info);
	for (size_t i = 0; !error && i < recorder->processes.items.count; i++)
		error = find_mounted_hugetlbfs(&recorder->calls, recorder->processes.items.items[i]->pid, &namespaces,
					       info);
	return error;
}

static struct mmt_error *fill_info(struct recorder *recorder, struct recording_info *info)
{
	info->recorder_version = strdup(MMTRACE_VERSION);
	if (!info->recorder_version)
		return &error_no_memory;
	info->start_ns = recorder->start_ns;
	info->start_realtime_ns = recorder->start_realtime_ns;
	info->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	info->call_graph = recorder->options->call_graph;
	info->stack_dump_bytes = events_dump_bytes(recorder->options);
	info->callchain_limit = recorder->reader.callchain_limit;
	info->mapping_limit = (uint32_t)text_file_number(-1, "/proc/sys/vm/max_map_count", 0);
	info->command = recorder->options->command;
	info->on_cpus = recorder->reader.scope.kind != SCOPE_THREADS;
	info->all_processes = recorder->reader.scope.kind == SCOPE_ALL_PROCESSES;
	info->in_cgroups = recorder->reader.scope.cgroups.count;
	process_table_each(process, &recorder->processes, true) {
		if (process->target && !process->found && !vector_push(&info->targets, process->pid))
			return &error_no_memory;
	}
	array_each(events, recorder->reader.events.items.items, recorder->reader.events.items.count)
		if (!vector_push(&info->roles, events->role))
			return &error_no_memory;
	return vector_push(&info->roles, ROLE_SNAPSHOT) ? find_hugetlbfs(recorder, info) : &error_no_memory;
}

static struct mmt_error *add_string(struct recorder *recorder, enum format_feature feature, const char *text,
				    struct buffer *buffer)
{
	writer_put_text(buffer, text);
	return add_section(recorder, feature, buffer);
}

static struct mmt_error *add_host_and_command_line(struct recorder *recorder, struct buffer *buffer)
{
	const char *const *words = recorder->options->command_line;
	struct utsname host = {0};
	struct mmt_error *error;
	uint32_t count = 0;
	char version[64];

	uname(&host);
	snprintf(version, sizeof(version), "mmtrace %s", MMTRACE_VERSION);
	error = add_string(recorder, FEATURE_HOSTNAME, host.nodename, buffer)
		    ?: add_string(recorder, FEATURE_OSRELEASE, host.release, buffer)
		    ?: add_string(recorder, FEATURE_VERSION, version, buffer)
		    ?: add_string(recorder, FEATURE_ARCH, recorder->architecture->name, buffer);
	if (error)
		return error;
	buffer_put_u32(buffer, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	buffer_put_u32(buffer, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	error = add_section(recorder, FEATURE_NRCPUS, buffer);
	if (error || !words)
		return error;
	while (words[count])
		count++;
	buffer_put_u32(buffer, count);
	for (uint32_t i = 0; i < count; i++)
		writer_put_text(buffer, words[i]);
	return add_section(recorder, FEATURE_CMDLINE, buffer);
}

struct mmt_error *file_metadata_add_head(struct recorder *recorder)
{
	struct timespec resolution = {0};
	struct recording_info info = {0};
	CLEANUP(buffer) struct buffer buffer = {.maximum = LIMIT_SECTION_BYTES};
	struct mmt_error *error = add_attributes(recorder) ?: fill_info(recorder, &info);

	error = error ?: section_write(&section_info, &info, &buffer)
			      ?: add_section(recorder, FEATURE_MMTRACE_INFO, &buffer);
	if (!error) {
		tracepoints_encode(&recorder->reader.events.tracepoints, info.page_bytes, &buffer);
		error = add_section(recorder, FEATURE_TRACING_DATA, &buffer);
	}
	error = error ?: add_host_and_command_line(recorder, &buffer);
	if (!error) {
		clock_getres(CLOCK_MONOTONIC, &resolution);
		buffer_put_u64(&buffer, (uint64_t)resolution.tv_sec * 1000000000 + (uint64_t)resolution.tv_nsec);
		error = add_section(recorder, FEATURE_CLOCKID, &buffer);
	}
	if (!error) {
		buffer_put_u32(&buffer, CLOCK_DATA_VERSION);
		buffer_put_u32(&buffer, CLOCK_MONOTONIC);
		buffer_put_u64(&buffer, recorder->start_realtime_ns);
		buffer_put_u64(&buffer, recorder->start_ns);
		error = add_section(recorder, FEATURE_CLOCK_DATA, &buffer);
	}
	section_info.deinit(&info);
	return error;
}

/* Moves the copied perf maps into the section's value. */
static struct mmt_error *encode_perf_maps(struct recorder *recorder, struct buffer *buffer)
{
	struct perf_map_copies copies = {0};
	struct mmt_error *error = NULL;

	process_table_each(process, &recorder->processes, !error) {
		if (!process->perf_map.text)
			continue;
		if (vector_push(&copies.maps, process->perf_map))
			process->perf_map = (struct perf_map_copy){0};
		else
			error = &error_no_memory;
	}
	if (!error && copies.maps.count)
		error = section_write(&section_perf_maps, &copies, buffer);
	section_perf_maps.deinit(&copies);
	return error;
}

static struct mmt_error *add_pages(struct recorder *recorder, enum format_feature feature,
				   const process_residencies *processes, const process_residencies *at_start,
				   struct buffer *buffer)
{
	const struct recording_residency residency = {.processes = *processes, .at_start = *at_start};

	if (!processes->count && !at_start->count)
		return NULL;
	return section_write(&section_residency, &residency, buffer) ?: add_section(recorder, feature, buffer);
}

static struct mmt_error *add_residency(struct recorder *recorder, struct buffer *buffer)
{
	const struct memory_jobs *memory = recorder->jobs.memory;
	const process_residencies none = {0};
	struct final_residency pages = {0};
	struct mmt_error *error =
	    read_final_residency(recorder, &pages)
		?: add_pages(recorder, FEATURE_MMTRACE_RESIDENCY, &pages.resident, &memory->start_residency, buffer)
		?: add_pages(recorder, FEATURE_MMTRACE_SWAPPED, &pages.swapped, &none, buffer)
		?: add_pages(recorder, FEATURE_MMTRACE_SHARED, &pages.shared, &memory->start_shared, buffer);

	if (!error && pages.huge.processes.count) {
		pages.huge.setting = huge_pages_setting();
		error = section_write(&section_huge_pages, &pages.huge, buffer)
			    ?: add_section(recorder, FEATURE_MMTRACE_HUGE_PAGES, buffer);
	}
	process_residencies_deinit(&pages.resident);
	process_residencies_deinit(&pages.swapped);
	process_residencies_deinit(&pages.shared);
	section_huge_pages.deinit(&pages.huge);
	return error;
}

static struct mmt_error *encode_options(struct recorder *recorder, struct buffer *buffer)
{
	return read_command_options(recorder) ?: runtime_options_encode(&recorder->jobs.runtimes->options, buffer);
}

static struct mmt_error *encode_modules(struct recorder *recorder, struct buffer *buffer)
{
	static const char consequence[] = "frames in them may have no names";
	struct kept_modules *kept = &recorder->jobs.kept_modules;
	struct mmt_error *error = kept_modules_encode(recorder, kept, buffer);

	if (kept->left_out_count)
		recorder_message(recorder, true,
				 "%llu %s not copied into the recording, %s%s: all copies together are limited to %u "
				 "MiB, so the largest files are left out; %s if the files are deleted or replaced: "
				 "keep them, or make the report now",
				 (unsigned long long)kept->left_out_count,
				 kept->left_out_count == 1 ? "module is" : "modules are",
				 kept->left_out ? kept->left_out : "?", kept->left_out_count == 1 ? "" : " and others",
				 LIMIT_RECORDED_IMAGES_BYTES >> 20, consequence);
	if (kept->interrupted)
		recorder_message(
		    recorder, true, "%zu %s not copied into the recording because you interrupted it a second time; %s",
		    kept->interrupted, kept->interrupted == 1 ? "module was" : "modules were", consequence);
	if (kept->failed)
		recorder_message(recorder, true,
				 "%zu %s could not be read or compressed, and %s not copied into the recording; %s",
				 kept->failed, kept->failed == 1 ? "module" : "modules",
				 kept->failed == 1 ? "was" : "were", consequence);
	return error;
}

/* Warns that an optional section is left out. Takes ownership of `error`. */
static void warn_left_out(const struct recorder *recorder, const char *what, struct mmt_error *error,
			  struct buffer *buffer)
{
	if (error)
		recorder_message(recorder, true, "the recording does not contain %s: %s", what, error->message);
	mmt_error_destroy(error);
	buffer_clear(buffer);
}

/* Each encodes one section, or nothing. */
static const struct optional_section {
	enum format_feature feature;
	const char *what;
	struct mmt_error *(*encode)(struct recorder *recorder, struct buffer *buffer);
} optional_sections[] = {
    {FEATURE_MMTRACE_JITDUMPS, "jitdumps", jitdumps_encode},
    {FEATURE_MMTRACE_PERF_MAPS, "perf maps", encode_perf_maps},
    {FEATURE_MMTRACE_OPTIONS, "options of runtimes", encode_options},
    {FEATURE_MMTRACE_CODE, "JIT code", jit_reader_encode},
    {FEATURE_MMTRACE_HEAP, "heap censuses", heap_census_encode},
    {FEATURE_MMTRACE_IMAGES, "copies of modules", encode_modules},
};

void file_metadata_add_sections(struct recorder *recorder, const uint64_t *lost)
{
	struct recording_loss loss = {.stop_ns = recorder->stop_ns,
				      .end = recorder->summary.end,
				      .missed_threads = recorder->summary.missed_threads,
				      .missed_cpus = recorder->summary.missed_cpus,
				      .left_processes = recorder->summary.left_processes};
	CLEANUP(buffer) struct buffer buffer = {.maximum = LIMIT_SECTION_BYTES};
	struct mmt_error *lost_error = NULL;

	warn_left_out(recorder, "resident pages", add_residency(recorder, &buffer), &buffer);
	/* Snapshot records are written by the recorder itself and are never lost. */
	for (size_t i = 0; !lost_error && i <= recorder->reader.events.items.count; i++) {
		if (!vector_push(&loss.lost, i < recorder->reader.events.items.count ? lost[i] : 0))
			lost_error = &error_no_memory;
	}
	recorder_keep_failure(recorder, lost_error ?: section_write(&section_loss, &loss, &buffer)
						   ?: add_section(recorder, FEATURE_MMTRACE_LOSS, &buffer));
	section_loss.deinit(&loss);
	build_ids_encode(&recorder->jobs.build_ids.found, &buffer);
	recorder_keep_failure(recorder, add_section(recorder, FEATURE_BUILD_ID, &buffer));
	array_each(section, optional_sections, sizeof(optional_sections) / sizeof(*optional_sections)) {
		struct mmt_error *error = section->encode(recorder, &buffer);

		if (!error && buffer.size)
			error = add_section(recorder, section->feature, &buffer);
		warn_left_out(recorder, section->what, error, &buffer);
	}
	buffer_put_u64(&buffer, recorder->first_ns);
	buffer_put_u64(&buffer, recorder->last_ns);
	recorder_keep_failure(recorder, add_section(recorder, FEATURE_SAMPLE_TIME, &buffer));
}

#define PIECE_BYTES 32768u
#define READ_BYTES (256u << 10) /* of a file at once */

/* A piece of incremental metadata: the head of its record. */
struct piece {
	enum name_piece kind;
	pid_t pid, namespace_pid;
	uint64_t from_ns, now_ns, offset;
};

/* Writes a piece with the time of the latest record read, so that it is not newer than records still in the rings. */
static struct mmt_error *append_piece(struct recorder *recorder, const struct piece *piece, const void *bytes,
				      size_t size)
{
	uint64_t time_ns = recorder->last_ns ? recorder->last_ns : recorder->start_ns;
	struct buffer record;

	own_record_begin_bytes(&record);
	buffer_put_u32(&record, piece->kind);
	buffer_put_u32(&record, (uint32_t)piece->pid);
	buffer_put_u32(&record, (uint32_t)piece->namespace_pid);
	buffer_put_u32(&record, 0);
	buffer_put_u64(&record, piece->from_ns);
	buffer_put_u64(&record, piece->now_ns);
	buffer_put_u64(&record, piece->offset);
	buffer_put(&record, bytes, size);
	recorder->jobs.piece_bytes += size;
	return own_record_append_bytes(recorder, &record, piece->pid, time_ns, NAME_PIECE_ID);
}

/* Writes the file from `piece->offset` up to `size`, and stops when recorder->jobs.piece_bytes reaches `tick_end`. Then
 * `piece->offset` is the offset reached. */
static struct mmt_error *append_file(struct recorder *recorder, struct piece *piece, uint64_t place, int fd,
				     uint64_t size, uint64_t tick_end)
{
	CLEANUP(free) uint8_t *bytes = malloc(READ_BYTES);
	struct mmt_error *error = bytes ? NULL : &error_no_memory;

	while (!error && !recorder->write_error && piece->offset < size && recorder->jobs.piece_bytes < tick_end) {
		uint64_t left = size - piece->offset;
		ssize_t count =
		    target_file_read(&recorder->calls, place, fd, bytes, smaller_of(left, READ_BYTES), piece->offset);
		size_t taken;

		if (count <= 0)
			break;
		for (size_t i = 0; !error && i < (size_t)count; i += taken, piece->offset += taken) {
			taken = (size_t)count - i < PIECE_BYTES ? (size_t)count - i : PIECE_BYTES;
			error = append_piece(recorder, piece, bytes + i, taken);
		}
		error = error ?: ring_reader_give_way(recorder);
	}
	return error;
}

static struct mmt_error *write_perf_map(struct recorder *recorder, struct traced_process *process, uint64_t tick_end)
{
	struct piece piece = {.kind = NAME_PIECE_PERF_MAP,
			      .pid = process->pid,
			      .namespace_pid = process->namespace_pid,
			      .from_ns = process->map_pieces_ns,
			      .now_ns = clock_now_ns()};
	const char *refused;
	struct stat status;
	struct mmt_error *error;
	CLEANUP(close) int fd = perf_maps_open(recorder, process, &status, &refused);

	if (fd < 0 || !file_mark_check(recorder, process, &process->map_pieces_mark, fd, &status, &piece.offset))
		return NULL;
	error = append_file(recorder, &piece, process->tmp_place, fd, (uint64_t)status.st_size, tick_end);
	(void)file_mark_set(recorder, process, &process->map_pieces_mark, fd, status.st_ino, piece.offset);
	process->map_pieces_ns = piece.now_ns;
	return error;
}

static struct mmt_error *write_jitdump(struct recorder *recorder, struct noted_jitdump *note, uint64_t tick_end)
{
	struct piece piece = {.kind = NAME_PIECE_JITDUMP,
			      .pid = note->copy.pid,
			      .namespace_pid = note->copy.namespace_pid,
			      .from_ns = note->copy.knows_program ? note->copy.program_ns : 0,
			      .now_ns = clock_now_ns(),
			      .offset = note->in_pieces};
	struct mmt_error *error;
	struct stat status;

	if (note->fd < 0 || !target_file_stat(&recorder->calls, note->place, note->fd, &status))
		return NULL;
	error = append_file(recorder, &piece, note->place, note->fd, (uint64_t)status.st_size, tick_end);
	note->in_pieces = piece.offset;
	return error;
}

struct mmt_error *incremental_metadata_write(struct recorder *recorder)
{
	uint64_t tick_end = recorder->jobs.piece_bytes + INCREMENTAL_METADATA_TICK_BYTES;
	struct mmt_error *error = NULL;
	struct build_id_notes *notes = &recorder->jobs.build_ids;
	const struct piece piece = {.kind = NAME_PIECE_BUILD_IDS, .now_ns = clock_now_ns()};

	tick_end = smaller_of(tick_end, LIMIT_RECORDED_PIECES_BYTES);
	for (; !error && notes->in_pieces < notes->found.entries.count; notes->in_pieces++) {
		const struct build_ids one = {
		    .entries = {.items = &notes->found.entries.items[notes->in_pieces], .count = 1}};
		CLEANUP(buffer) struct buffer bytes = {.maximum = PIECE_BYTES};

		build_ids_encode(&one, &bytes);
		if (!bytes.error && bytes.size)
			error = append_piece(recorder, &piece, bytes.data, bytes.size);
	}
	for (size_t i = 0; !error && recorder->jobs.piece_bytes < tick_end && i < recorder->processes.items.count; i++)
		error = write_perf_map(recorder, recorder->processes.items.items[i], tick_end);
	for (size_t i = 0;
	     !error && recorder->jobs.piece_bytes < tick_end && i < recorder->jobs.runtimes->jitdumps.items.count; i++)
		error = write_jitdump(recorder, &recorder->jobs.runtimes->jitdumps.items.items[i], tick_end);
	return error;
}
