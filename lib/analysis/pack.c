// SPDX-License-Identifier: LGPL-2.1-or-later
/* The second pass of packing: the recording once more, its calls with the numbers of their stacks. */
#include <mmtrace/pack.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/pack-stacks.h"
#include "base/cleanup.h"
#include "trace/recording-file.h"
#include "trace/strip-sample.h"
#include "trace/writer.h"

#define ROUND_BYTES (1u << 20)

struct pack {
	struct pack_stacks stacks;
	struct reader *reader;
	const struct reader_metadata *metadata;
	struct recording_file *file;
	struct writer *writer;
	struct buffer sample;
	size_t round_bytes;
	const struct mmt_progress *progress; /* NULL: nobody waits */
};

/* Calls that may have a stack. */
static bool is_numbered(const struct reader_attribute *attribute)
{
	return attribute->role == ROLE_TRUTH && attribute->is_call && !attribute->is_enter;
}

static struct mmt_error *add_attributes(struct pack *pack)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < pack->file->attributes.count; i++) {
		const struct file_attribute *attribute = &pack->file->attributes.items[i];
		const struct reader_attribute *described = &pack->metadata->attributes[i];
		struct perf_event_attr stripped =
		    strip_attribute(&attribute->attr, pack->metadata->architecture, is_numbered(described));

		error = writer_add_attribute(pack->writer, &stripped, described->name, attribute->ids.items,
					     attribute->ids.count);
	}
	return error;
}

/* As they are in the file. */
static struct mmt_error *copy_sections(struct pack *pack, const enum format_feature *features, size_t count)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		CLEANUP(free) uint8_t *data = NULL;
		size_t size;

		error = recording_file_load(pack->file, features[i], &data, &size);
		if (!error && data)
			error = writer_add_section(pack->writer, features[i], data, size);
	}
	return error;
}

static struct mmt_error *add_head(struct pack *pack)
{
	static const enum format_feature early[] = {
	    FEATURE_MMTRACE_INFO, FEATURE_TRACING_DATA, FEATURE_HOSTNAME, FEATURE_OSRELEASE, FEATURE_VERSION,
	    FEATURE_ARCH,	  FEATURE_NRCPUS,	FEATURE_CMDLINE,  FEATURE_CLOCKID,   FEATURE_CLOCK_DATA};
	struct mmt_error *error = add_attributes(pack);
	struct buffer buffer;

	if (!error)
		error = copy_sections(pack, early, sizeof(early) / sizeof(*early));
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	if (!error)
		error = resolved_stacks_encode(&pack->stacks.resolved, &buffer);
	if (!error)
		error = writer_take_section(pack->writer, FEATURE_MMTRACE_STACKS, &buffer);
	buffer_deinit(&buffer);
	return error;
}

static struct mmt_error *append(struct pack *pack, const void *record, size_t size)
{
	struct mmt_error *error = writer_append(pack->writer, LANE_OTHERS, record, size);

	pack->round_bytes += size;
	if (error || pack->round_bytes < ROUND_BYTES)
		return error;
	pack->round_bytes = 0;
	return writer_end_round(pack->writer);
}

static struct mmt_error *write_sample(struct pack *pack, const struct event *event)
{
	const struct perf_event_attr *attr = &pack->file->attributes.items[event->attribute].attr;
	struct stripped_stack stack = {0};
	bool numbered = is_numbered(&pack->metadata->attributes[event->attribute]);
	struct mmt_error *error = NULL;

	if (numbered)
		error = pack_stacks_get(&pack->stacks, event->sequence, &stack.number, &stack.callchain,
					&stack.callchain_count);
	buffer_clear(&pack->sample);
	if (!error)
		error = strip_sample(attr, pack->metadata->architecture, event->record,
				     numbered ? pack->metadata->attributes[event->attribute].call : CALL_MMAP,
				     numbered ? &stack : NULL, &pack->sample);
	if (!error)
		error = buffer_finish(&pack->sample);
	return error ? error : append(pack, pack->sample.data, pack->sample.size);
}

/*
 * Records that tell of mappings, tasks and losses are kept as they are, and nothing else: other ones, now or of a later
 * recorder, may hold what is in memory (the pieces of perf maps and jitdumps do). Of stack dumps the time and the
 * result of the call are left: a call counts from when its stack is told, and peaks shall be the same to the byte.
 */
static struct mmt_error *write_event(struct pack *pack, const struct event *event)
{
	switch (event->record_type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		return append(pack, event->record, event->record_size);
	case PERF_RECORD_SAMPLE:
		return event->attribute < pack->file->attributes.count ? write_sample(pack, event) : NULL;
	default:
		/* Which dumps a call waits for. */
		return event->kind == EVENT_LARGE_DUMPS ? append(pack, event->record, event->record_size) : NULL;
	}
}

/* A recording without an end has them among its records. */
static struct mmt_error *add_build_ids(struct pack *pack)
{
	struct buffer buffer;

	if (!pack->metadata->build_ids.entries.count)
		return NULL;
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	build_ids_encode(&pack->metadata->build_ids, &buffer);
	return writer_take_section(pack->writer, FEATURE_BUILD_ID, &buffer);
}

/* Of two passes the first. */
static void tell_first(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
	const struct mmt_progress *progress = ((const struct pack *)context)->progress;

	progress->tell(progress->context, done_bytes, 2 * total_bytes);
}

static void tell_second(const struct pack *pack, const struct event *event)
{
	uint64_t total_bytes = reader_data_end(pack->reader);

	if (pack->progress)
		pack->progress->tell(pack->progress->context, total_bytes + event->file_offset, 2 * total_bytes);
}

static struct mmt_error *write_all(struct pack *pack)
{
	static const enum format_feature late[] = {FEATURE_SAMPLE_TIME, FEATURE_MMTRACE_LOSS,
						   FEATURE_MMTRACE_RESIDENCY};
	struct mmt_error *error = add_head(pack);
	bool end = false;

	if (!error)
		error = writer_write_head(pack->writer);
	for (uint32_t count = 1; !error && !end; count++) {
		struct event event;

		error = reader_next(pack->reader, &event, &end);
		if (!error && !end)
			error = write_event(pack, &event);
		if (!error && !end && count % PROGRESS_EVENTS == 0)
			tell_second(pack, &event);
	}
	if (!error)
		error = writer_end_round(pack->writer);
	if (!error)
		error = add_build_ids(pack);
	if (!error)
		error = copy_sections(pack, late, sizeof(late) / sizeof(*late));
	return error ? error : writer_finish(pack->writer);
}

/* Nobody has written to it since it was opened; where its place is taken, it still has its name. */
static struct mmt_error *check_input(const struct pack *pack, const struct mmt_pack_options *options)
{
	struct stat status, named;

	if (fstat(pack->file->fd, &status) < 0)
		return error_system(errno, "cannot look at it");
	if ((uint64_t)status.st_size != pack->file->size)
		return error_create(MMT_ERROR_INVALID, "it was written to meanwhile: pack it when recording has ended");
	if (options->output)
		return NULL;
	if (stat(options->input, &named) < 0)
		return error_system(errno, "cannot look at it");
	if (named.st_dev != status.st_dev || named.st_ino != status.st_ino)
		return error_create(MMT_ERROR_INVALID, "another file has its name now, which is left alone");
	return NULL;
}

/* Whole, and on the disk, it takes its name. */
static struct mmt_error *take_name(struct pack *pack, const struct mmt_pack_options *options)
{
	struct mmt_error *error = writer_sync(pack->writer);

	if (!error)
		error = check_input(pack, options);
	return error ? error : writer_start(pack->writer);
}

static void count_names(const struct resolved_stacks *resolved, struct mmt_pack_summary *summary)
{
	summary->stacks = resolved->stacks.count;
	summary->frames = resolved->frames.count;
	for (size_t i = 0; i < resolved->frames.count; i++) {
		if (resolved->names.items[resolved->frames.items[i].first_name].function == RESOLVED_NO_TEXT)
			summary->frames_without_name++;
	}
}

/* What cannot be written is told before the work; of a recording that is not there, or no file, that is told. */
static bool is_worth_a_file(const struct mmt_pack_options *options)
{
	struct stat status;

	return options->output || (stat(options->input, &status) == 0 && S_ISREG(status.st_mode));
}

static struct mmt_error *create_output(struct pack *pack, const struct mmt_pack_options *options)
{
	return pack->writer ? NULL : writer_create(options->output ? options->output : options->input, &pack->writer);
}

static struct mmt_error *pack_into(struct pack *pack, const struct mmt_pack_options *options)
{
	const struct mmt_progress first = {.tell = tell_first, .context = pack};
	struct mmt_error *error = is_worth_a_file(options) ? create_output(pack, options) : NULL;

	if (!error)
		error = pack_stacks_find(&pack->stacks, options->input, pack->progress ? &first : NULL, &pack->reader);
	if (!error)
		error = recording_file_open_again(reader_file(pack->reader), &pack->file);
	if (!error)
		error = create_output(pack, options);
	if (error)
		return error;
	pack->metadata = reader_metadata(pack->reader);
	if (!options->output)
		writer_replace(pack->writer);
	error = write_all(pack);
	if (!error)
		error = take_name(pack, options);
	return error_context(error, "%s", options->input);
}

struct mmt_error *mmt_pack(const struct mmt_pack_options *options, struct mmt_pack_summary *summary_ret)
{
	struct pack pack = {.progress = options->progress, .stacks.resolved.code_left_out = options->no_code};
	struct mmt_error *error;

	*summary_ret = (struct mmt_pack_summary){0};
	buffer_init(&pack.sample, 2 * UINT16_MAX);
	error = pack_into(&pack, options);
	if (!error) {
		summary_ret->input_bytes = pack.file->size;
		summary_ret->output_bytes = writer_bytes(pack.writer);
		count_names(&pack.stacks.resolved, summary_ret);
	}
	writer_destroy(pack.writer);
	recording_file_close(pack.file);
	reader_close(pack.reader);
	pack_stacks_deinit(&pack.stacks);
	buffer_deinit(&pack.sample);
	return error;
}
