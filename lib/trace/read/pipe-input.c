// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/pipe-input.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/vector.h"
#include "trace/format/format.h"

#define PIPE_HEADER_SIZE 16	/* u64 magic, u64 size */
#define WINDOW_BYTES (1u << 20) /* more than any record */
#define SECTION_ENTRY_BYTES 16	/* u64 offset, u64 size */
#define ATTRIBUTES_BYTES_MAX ((uint64_t)LIMIT_IDS * 8 + (uint64_t)LIMIT_ATTRIBUTES * UINT16_MAX)

/* A file that is written sequentially. */
struct kept_bytes {
	const char *name; /* of the input, for messages */
	int fd;
	uint64_t size;
	struct buffer pending;
};

struct kept_attribute {
	size_t offset; /* in `attributes`: the attribute, then its ids */
	uint32_t size, id_bytes;
};

struct kept_section {
	bool present;
	uint64_t offset, size, done; /* in `sections` */
};

struct pipe_input {
	int fd;
	const char *name;
	const struct mmt_progress *progress;
	uint64_t taken; /* bytes */
	uint8_t *window;
	size_t start, end;
	bool ended;
	bool cut;
	struct kept_bytes data, sections;
	struct buffer attributes, build_ids;
	VECTOR(struct kept_attribute) items;
	struct kept_section features[FEATURE_BITS];
};

/* ---- unnamed files ---- */

const char *pipe_input_directory(void)
{
	const char *directory = getenv("TMPDIR");

	return directory && *directory == '/' ? directory : "/var/tmp";
}

static struct mmt_error *keep_begin(struct kept_bytes *kept)
{
	const char *directory = pipe_input_directory();
	CLEANUP(free) char *path = NULL;

	buffer_init(&kept->pending, 2 * WINDOW_BYTES);
	kept->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (kept->fd >= 0)
		return NULL;
	/* Not every file system supports O_TMPFILE. */
	if (asprintf(&path, "%s/mmtrace-XXXXXX", directory) < 0) {
		path = NULL;
		return &error_no_memory;
	}
	kept->fd = mkostemp(path, O_CLOEXEC);
	if (kept->fd < 0)
		return error_system(errno, "%s: cannot create a temporary file in %s; set TMPDIR to another directory",
				    kept->name, directory);
	(void)unlink(path);
	return NULL;
}

static struct mmt_error *describe_full(const struct kept_bytes *kept)
{
	return error_system(errno, "%s: cannot store the recording in %s; set TMPDIR to another directory", kept->name,
			    pipe_input_directory());
}

static struct mmt_error *keep_flush(struct kept_bytes *kept)
{
	size_t done = 0;

	while (done < kept->pending.size) {
		ssize_t written = write(kept->fd, kept->pending.data + done, kept->pending.size - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return describe_full(kept);
		done += (size_t)written;
	}
	buffer_clear(&kept->pending);
	return NULL;
}

static struct mmt_error *keep(struct kept_bytes *kept, const void *data, size_t size)
{
	struct mmt_error *error = NULL;

	if (kept->pending.size + size > WINDOW_BYTES)
		error = keep_flush(kept);
	if (error)
		return error;
	buffer_put(&kept->pending, data, size);
	kept->size += size;
	return kept->pending.error ? buffer_finish(&kept->pending) : NULL;
}

/* ---- the stream ---- */

/* Read at least `size` bytes, at most WINDOW_BYTES, into the window, unless the stream ends before. */
static struct mmt_error *fill(struct pipe_input *pipe, size_t size)
{
	if (pipe->end - pipe->start < size && pipe->start) {
		memmove(pipe->window, pipe->window + pipe->start, pipe->end - pipe->start);
		pipe->end -= pipe->start;
		pipe->start = 0;
	}
	while (!pipe->ended && pipe->end - pipe->start < size) {
		ssize_t got = read(pipe->fd, pipe->window + pipe->end, WINDOW_BYTES - pipe->end);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_system(errno, "%s: cannot read", pipe->name);
		pipe->ended = got == 0;
		pipe->end += (size_t)got;
		pipe->taken += (uint64_t)got;
		if (pipe->progress)
			pipe->progress->tell(pipe->progress->context, pipe->taken, 0);
	}
	return NULL;
}

/* Write the next `size` bytes to a file; NULL: skip them. */
static struct mmt_error *pass_on(struct pipe_input *pipe, uint64_t size, struct kept_bytes *kept)
{
	while (size) {
		size_t wanted = size < WINDOW_BYTES / 4 ? (size_t)size : WINDOW_BYTES / 4, here;
		struct mmt_error *error = fill(pipe, wanted);

		here = pipe->end - pipe->start < wanted ? pipe->end - pipe->start : wanted;
		if (!error && here == 0)
			pipe->cut = true;
		if (!error && kept)
			error = keep(kept, pipe->window + pipe->start, here);
		if (error || here == 0)
			return error;
		pipe->start += here;
		size -= here;
	}
	return NULL;
}

/* NULL: nothing was wrong so far. */
static struct mmt_error *check(const struct pipe_input *pipe, const struct bytes *bytes, const char *what)
{
	return error_context(bytes_finish(bytes, what), "%s", pipe->name);
}

static struct mmt_error *take_attribute(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	struct kept_attribute attribute = {.offset = pipe->attributes.size};

	bytes_skip(&bytes, 4); /* type */
	attribute.size = bytes_u32(&bytes);
	if (attribute.size == 0)
		attribute.size = PERF_ATTR_SIZE_VER0;
	if (attribute.size > size || attribute.size < PERF_ATTR_SIZE_VER0 || attribute.size % 8 != 0)
		bytes_fail(&bytes, "invalid size of the attribute");
	else if (pipe->items.count >= LIMIT_ATTRIBUTES)
		bytes_fail(&bytes, "too many attributes");
	if (!bytes_ok(&bytes))
		return check(pipe, &bytes, "event attribute");
	attribute.id_bytes = (uint32_t)(size - attribute.size) & ~7u;
	buffer_put(&pipe->attributes, body, attribute.size + attribute.id_bytes);
	return vector_push(&pipe->items, attribute) ? NULL : &error_no_memory;
}

/* A section that has `here` bytes next in the stream. */
static struct kept_section *start_section(struct pipe_input *pipe, uint64_t feature, uint64_t size)
{
	struct kept_section *section;

	if (feature >= FEATURE_BITS || size > LIMIT_SECTION_BYTES || pipe->features[feature].present)
		return NULL;
	section = &pipe->features[feature];
	*section = (struct kept_section){.present = true, .offset = pipe->sections.size, .size = size};
	return section;
}

static struct mmt_error *take_feature(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	uint64_t feature = bytes_u64(&bytes);
	size_t left = bytes_left(&bytes);
	struct kept_section *section;

	/* A feature without content marks the end. */
	if (!bytes_ok(&bytes) || !left)
		return NULL;
	section = start_section(pipe, feature, left);
	if (!section) {
		bytes_fail(&bytes, "invalid number, or a duplicate");
		return check(pipe, &bytes, "feature section");
	}
	section->done = left;
	return keep(&pipe->sections, bytes.position, left);
}

/* A piece of a section that perf does not know in a pipe. */
static struct mmt_error *take_section_piece(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	struct kept_section *section;
	uint64_t total, offset;
	uint32_t feature, here;

	if (bytes_u64(&bytes) != SECTION_PIECE_MAGIC)
		return NULL;
	feature = bytes_u32(&bytes);
	bytes_u32(&bytes);
	total = bytes_u64(&bytes);
	offset = bytes_u64(&bytes);
	here = bytes_u32(&bytes);
	bytes_u32(&bytes);
	if (here > bytes_left(&bytes) || feature >= FEATURE_BITS)
		bytes_fail(&bytes, "invalid size or number");
	if (!bytes_ok(&bytes))
		return check(pipe, &bytes, "piece of a section");
	section = offset ? &pipe->features[feature] : start_section(pipe, feature, total);
	/* The bytes of a section are contiguous, so its pieces must not be mixed with others. */
	if (!section || !section->present || section->size != total || section->done != offset ||
	    here > total - offset || pipe->sections.size != section->offset + offset)
		bytes_fail(&bytes, "out of order");
	if (!bytes_ok(&bytes))
		return check(pipe, &bytes, "piece of a section");
	section->done += here;
	return keep(&pipe->sections, bytes.position, here);
}

/* The tracepoint formats follow their record. */
static struct mmt_error *take_tracing_data(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	uint32_t bytes_behind = bytes_u32(&bytes);
	struct kept_section *section =
	    bytes_ok(&bytes) ? start_section(pipe, FEATURE_TRACING_DATA, bytes_behind) : NULL;
	struct mmt_error *error;

	if (!section) {
		bytes_fail(&bytes, "invalid size, or a duplicate");
		return check(pipe, &bytes, "formats of the tracepoints");
	}
	error = pass_on(pipe, bytes_behind, &pipe->sections);
	section->done = pipe->sections.size - section->offset;
	return error ? error : pass_on(pipe, -(uint64_t)bytes_behind & 7, NULL);
}

/* The complete record is in the window. */
static struct mmt_error *take_record(struct pipe_input *pipe, const struct perf_event_header *header)
{
	const uint8_t *record = pipe->window + pipe->start, *body = record + RECORD_HEADER_BYTES;
	size_t size = header->size - RECORD_HEADER_BYTES;
	struct bytes bytes;

	pipe->start += header->size;
	switch (header->type) {
	case RECORD_HEADER_ATTR:
		return take_attribute(pipe, body, size);
	case RECORD_HEADER_EVENT_TYPE:
		return take_section_piece(pipe, body, size);
	case RECORD_HEADER_FEATURE:
		return take_feature(pipe, body, size);
	case RECORD_HEADER_TRACING_DATA:
		return take_tracing_data(pipe, body, size);
	case RECORD_HEADER_BUILD_ID:
		buffer_put(&pipe->build_ids, record, header->size);
		return NULL;
	case RECORD_AUXTRACE:
		bytes = bytes_over(body, size);
		return pass_on(pipe, bytes_u64(&bytes), NULL);
	default:
		return keep(&pipe->data, record, header->size);
	}
}

static struct mmt_error *take_records(struct pipe_input *pipe)
{
	struct perf_event_header header;
	struct mmt_error *error = NULL;

	while (!error && !pipe->cut) {
		error = fill(pipe, sizeof(header));
		if (error || pipe->end == pipe->start)
			return error;
		if (pipe->end - pipe->start < sizeof(header)) {
			pipe->cut = true;
			return NULL;
		}
		header = record_header(pipe->window + pipe->start);
		/* What follows cannot be parsed; the reader reports the offset. */
		if (header.size < sizeof(header))
			return pass_on(pipe, WINDOW_BYTES / 4, &pipe->data);
		error = fill(pipe, header.size);
		if (!error && pipe->end - pipe->start < header.size) {
			pipe->cut = true;
			return NULL;
		}
		if (!error)
			error = take_record(pipe, &header);
	}
	return error;
}

/* ---- the file ---- */

/* The table, then the sections themselves. Truncated sections are left out. */
static struct mmt_error *write_sections(struct pipe_input *pipe, uint64_t features[FEATURE_BITS / 64])
{
	CLEANUP(buffer) struct buffer table = {.maximum = FEATURE_BITS * SECTION_ENTRY_BYTES};
	struct mmt_error *error;
	uint64_t base, done = 0;
	size_t count = 0;

	for (size_t i = 0; i < FEATURE_BITS; i++) {
		pipe->features[i].present &= pipe->features[i].done == pipe->features[i].size;
		count += pipe->features[i].present;
	}
	base = pipe->data.size + count * SECTION_ENTRY_BYTES;
	for (size_t i = 0; i < FEATURE_BITS; i++) {
		if (!pipe->features[i].present)
			continue;
		features[i / 64] |= 1ull << i % 64;
		buffer_put_u64(&table, base + pipe->features[i].offset);
		buffer_put_u64(&table, pipe->features[i].size);
	}
	error = buffer_finish(&table);
	if (!error)
		error = keep(&pipe->data, table.data, table.size);
	if (!error)
		error = keep_flush(&pipe->sections);
	while (!error && done < pipe->sections.size) {
		ssize_t got = pread(pipe->sections.fd, pipe->window, WINDOW_BYTES / 2, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return error_system(got < 0 ? errno : EIO, "%s: cannot read the stored recording", pipe->name);
		error = keep(&pipe->data, pipe->window, (size_t)got);
		done += (uint64_t)got;
	}
	return error;
}

/* Attributes of one size, each with the offset of its ids, then the ids. */
static struct mmt_error *write_attributes(struct pipe_input *pipe, uint64_t *entry_bytes_ret)
{
	static const uint8_t zeros[UINT16_MAX];
	struct mmt_error *error = NULL;
	uint64_t entry = PERF_ATTR_SIZE_VER0, ids;

	for (size_t i = 0; i < pipe->items.count; i++)
		entry = pipe->items.items[i].size > entry ? pipe->items.items[i].size : entry;
	*entry_bytes_ret = entry + SECTION_ENTRY_BYTES;
	ids = pipe->data.size + pipe->items.count * *entry_bytes_ret;
	for (size_t i = 0; !error && i < pipe->items.count; i++) {
		const struct kept_attribute *item = &pipe->items.items[i];
		const uint64_t section[] = {ids, item->id_bytes};

		ids += item->id_bytes;
		error = keep(&pipe->data, pipe->attributes.data + item->offset, item->size);
		if (!error)
			error = keep(&pipe->data, zeros, entry - item->size);
		if (!error)
			error = keep(&pipe->data, section, sizeof(section));
	}
	for (size_t i = 0; !error && i < pipe->items.count; i++) {
		const struct kept_attribute *item = &pipe->items.items[i];

		error = keep(&pipe->data, pipe->attributes.data + item->offset + item->size, item->id_bytes);
	}
	return error;
}

static struct mmt_error *write_file(struct pipe_input *pipe)
{
	uint64_t header[FORMAT_HEADER_SIZE / 8] = {FORMAT_MAGIC, FORMAT_HEADER_SIZE};
	uint64_t data_end = pipe->data.size;
	struct mmt_error *error = write_sections(pipe, header + 9);

	header[3] = pipe->data.size;
	if (!error)
		error = write_attributes(pipe, &header[2]);
	header[4] = pipe->items.count * header[2];
	header[5] = FORMAT_HEADER_SIZE;
	header[6] = data_end - FORMAT_HEADER_SIZE;
	if (!error)
		error = keep_flush(&pipe->data);
	if (!error && pwrite(pipe->data.fd, header, sizeof(header), 0) != sizeof(header))
		error = describe_full(&pipe->data);
	return error;
}

static struct mmt_error *convert(struct pipe_input *pipe)
{
	const struct perf_event_header nothing = {.type = RECORD_FINISHED_ROUND, .size = sizeof(nothing)};
	static const uint8_t header[FORMAT_HEADER_SIZE];
	struct kept_section *section = NULL;
	struct mmt_error *error;

	pipe->start += PIPE_HEADER_SIZE;
	error = keep(&pipe->data, header, sizeof(header));
	if (!error)
		error = take_records(pipe);
	if (!error)
		error = buffer_finish(&pipe->attributes);
	if (!error)
		error = error_context(buffer_finish(&pipe->build_ids), "%s: build-ids", pipe->name);
	if (!error && pipe->build_ids.size)
		section = start_section(pipe, FEATURE_BUILD_ID, pipe->build_ids.size);
	if (section) {
		section->done = section->size;
		error = keep(&pipe->sections, pipe->build_ids.data, pipe->build_ids.size);
	}
	if (!error && pipe->data.size == sizeof(header)) {
		if (pipe->cut)
			return error_create(MMT_ERROR_FORMAT, "%s: the stream was truncated before its first record",
					    pipe->name);
		/* Data of size 0 would mean a killed recorder, without a feature table. */
		error = keep(&pipe->data, &nothing, sizeof(nothing));
	}
	return error ? error : write_file(pipe);
}

static bool begins_with_pipe_header(const void *data, size_t size)
{
	struct bytes bytes = bytes_over(data, size);

	return bytes_u64(&bytes) == FORMAT_MAGIC && bytes_u64(&bytes) == PIPE_HEADER_SIZE;
}

bool pipe_input_is_pipe_format(int fd)
{
	uint8_t header[PIPE_HEADER_SIZE];
	ssize_t got = pread(fd, header, sizeof(header), 0);

	return got > 0 && begins_with_pipe_header(header, (size_t)got);
}

struct mmt_error *pipe_input_keep(int input, const char *name, const struct mmt_progress *progress, int *fd_ret,
				  bool *cut_ret)
{
	struct pipe_input pipe = {.fd = input,
				  .name = name,
				  .progress = progress,
				  .data = {.name = name, .fd = -1},
				  .sections = {.name = name, .fd = -1}};
	struct mmt_error *error;

	buffer_init(&pipe.attributes, ATTRIBUTES_BYTES_MAX);
	buffer_init(&pipe.build_ids, LIMIT_SECTION_BYTES);
	pipe.window = malloc(WINDOW_BYTES);
	error = pipe.window ? keep_begin(&pipe.data) : &error_no_memory;
	if (!error)
		error = keep_begin(&pipe.sections);
	if (!error)
		error = fill(&pipe, PIPE_HEADER_SIZE);
	if (!error && begins_with_pipe_header(pipe.window, pipe.end)) {
		error = convert(&pipe);
	} else if (!error) {
		error = pass_on(&pipe, UINT64_MAX, &pipe.data);
		pipe.cut = false;
		if (!error)
			error = keep_flush(&pipe.data);
	}
	if (!error) {
		*fd_ret = pipe.data.fd;
		*cut_ret = pipe.cut;
		pipe.data.fd = -1;
	}
	cleanup_close(&pipe.data.fd);
	cleanup_close(&pipe.sections.fd);
	buffer_deinit(&pipe.data.pending);
	buffer_deinit(&pipe.sections.pending);
	buffer_deinit(&pipe.attributes);
	buffer_deinit(&pipe.build_ids);
	vector_deinit(&pipe.items);
	free(pipe.window);
	return error;
}
