// SPDX-License-Identifier: LGPL-2.1-or-later
/* Converts a recording that comes through a pipe to a file: a report first needs what comes last (build-ids, perf
 * maps), and may search for the ends of its window before it replays. The file has no name and is in TMPDIR (/var/tmp);
 * memory is bounded. Of perf's pipe format, the records are stored first, and then each section; a file that comes
 * through a pipe is copied. */
#include "trace/read/recording-file.h"

#include <errno.h>
#include <fcntl.h>

#include "base/limits.h"

#define PIPE_HEADER_SIZE 16	  /* u64 magic, u64 size */
#define WINDOW_BYTES (256u << 10) /* more than any record */

/* An unnamed file that is written sequentially. */
struct kept_bytes {
	FILE *stream;
	uint64_t size;
};

struct pipe_input {
	int fd;
	FILE *stream;		     /* reads `fd` */
	struct recording_file *file; /* to fill in; its path is for messages */
	const struct mmt_progress *progress;
	uint64_t taken; /* bytes */
	uint8_t *window;
	struct kept_bytes data, sections; /* sections: moved behind the data in the end */
	uint64_t done[FEATURE_BITS];	  /* bytes of each section so far */
	struct buffer build_ids;
};

/* ---- unnamed files ---- */

const char *pipe_input_directory(void)
{
	const char *directory = getenv("TMPDIR");

	return directory && *directory == '/' ? directory : "/var/tmp";
}

static struct mmt_error *keep_begin(const struct pipe_input *pipe, struct kept_bytes *kept)
{
	const char *directory = pipe_input_directory();
	CLEANUP(free) char *path = NULL;
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	/* Not every file system supports O_TMPFILE. */
	if (fd < 0 && asprintf(&path, "%s/mmtrace-XXXXXX", directory) < 0) {
		path = NULL;
		return &error_no_memory;
	}
	if (path)
		fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return error_system(errno, "%s: cannot create a temporary file in %s; set TMPDIR to another directory",
				    pipe->file->path, directory);
	if (path)
		(void)unlink(path);
	kept->stream = fdopen(fd, "w+");
	if (kept->stream)
		return NULL;
	close(fd);
	return &error_no_memory;
}

static struct mmt_error *describe_full(const struct pipe_input *pipe)
{
	return error_system(errno, "%s: cannot store the recording in %s; set TMPDIR to another directory",
			    pipe->file->path, pipe_input_directory());
}

static struct mmt_error *keep(const struct pipe_input *pipe, struct kept_bytes *kept, const void *data, size_t size)
{
	kept->size += size;
	return fwrite(data, 1, size, kept->stream) == size ? NULL : describe_full(pipe);
}

/* ---- the stream ---- */

/* The input may be slow: tell of each piece of it. */
static ssize_t read_piece(void *context, char *data, size_t size)
{
	struct pipe_input *pipe = context;
	ssize_t got = TEMP_FAILURE_RETRY(read(pipe->fd, data, size));

	if (got <= 0)
		return got;
	pipe->taken += (uint64_t)got;
	if (pipe->progress)
		pipe->progress->tell(pipe->progress->context, pipe->taken, 0);
	return got;
}

/* Read `size` bytes into the window, from `offset` on; fewer if the stream ends before. */
static struct mmt_error *take(struct pipe_input *pipe, size_t offset, size_t size, size_t *taken_ret)
{
	*taken_ret = fread(pipe->window + offset, 1, size, pipe->stream);
	return ferror(pipe->stream) ? error_system(errno, "%s: cannot read", pipe->file->path) : NULL;
}

/* Write the next `size` bytes to a file; NULL: skip them. *all_ret: the stream has that many. */
static struct mmt_error *pass_on(struct pipe_input *pipe, uint64_t size, struct kept_bytes *kept, bool *all_ret)
{
	struct mmt_error *error = NULL;

	*all_ret = true;
	while (!error && size && *all_ret) {
		size_t wanted = size < WINDOW_BYTES ? (size_t)size : WINDOW_BYTES, here = 0;

		error = take(pipe, 0, wanted, &here);
		if (!error && kept)
			error = keep(pipe, kept, pipe->window, here);
		*all_ret = here == wanted;
		size -= here;
	}
	return error;
}

/* NULL: nothing was wrong so far. */
static struct mmt_error *check(const struct pipe_input *pipe, const struct bytes *bytes, const char *what)
{
	return error_context(bytes_finish(bytes, what), "%s", pipe->file->path);
}

static struct mmt_error *take_attribute(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	struct recording_file *file = pipe->file;
	size_t attribute_size;

	bytes_skip(&bytes, 4); /* type */
	attribute_size = bytes_u32(&bytes);
	if (attribute_size == 0)
		attribute_size = PERF_ATTR_SIZE_VER0;
	if (attribute_size > size || attribute_size < PERF_ATTR_SIZE_VER0 || attribute_size > LIMIT_ATTRIBUTE_BYTES ||
	    attribute_size % 8 != 0)
		bytes_fail(&bytes, "invalid size of the attribute");
	else if (file->attributes.count >= LIMIT_ATTRIBUTES)
		bytes_fail(&bytes, "too many attributes");
	else if ((size - attribute_size) / sizeof(uint64_t) > LIMIT_IDS - file->id_count)
		bytes_fail(&bytes, "too many ids");
	if (!bytes_ok(&bytes))
		return check(pipe, &bytes, "event attribute");
	return recording_file_add_attribute(file, body, attribute_size, body + attribute_size,
					    (size - attribute_size) / sizeof(uint64_t));
}

/* A section that has `size` bytes, the first ones next in the stream. False: an invalid number, or a duplicate. */
static bool start_section(struct pipe_input *pipe, uint64_t feature, uint64_t size)
{
	if (feature >= FEATURE_BITS || size > LIMIT_SECTION_BYTES || pipe->file->sections[feature].present)
		return false;
	pipe->file->sections[feature] =
	    (struct file_section){.present = true, .offset = pipe->sections.size, .size = size};
	return true;
}

static struct mmt_error *take_feature(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	uint64_t feature = bytes_u64(&bytes);
	size_t left = bytes_left(&bytes);

	/* A feature without content marks the end. */
	if (!bytes_ok(&bytes) || !left)
		return NULL;
	if (!start_section(pipe, feature, left)) {
		bytes_fail(&bytes, "invalid number, or a duplicate");
		return check(pipe, &bytes, "feature section");
	}
	pipe->done[feature] = left;
	return keep(pipe, &pipe->sections, bytes.position, left);
}

/* A piece of a section that perf does not know in a pipe. */
static struct mmt_error *take_section_piece(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	const struct file_section *section;
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
	section = &pipe->file->sections[feature];
	/* The bytes of a section are contiguous, so its pieces must not be mixed with others. */
	if ((!offset && !start_section(pipe, feature, total)) || !section->present || section->size != total ||
	    pipe->done[feature] != offset || here > total - offset || pipe->sections.size != section->offset + offset)
		bytes_fail(&bytes, "out of order");
	if (!bytes_ok(&bytes))
		return check(pipe, &bytes, "piece of a section");
	pipe->done[feature] += here;
	return keep(pipe, &pipe->sections, bytes.position, here);
}

/* The tracepoint formats follow their record. */
static struct mmt_error *take_tracing_data(struct pipe_input *pipe, const uint8_t *body, size_t size)
{
	struct bytes bytes = bytes_over(body, size);
	uint32_t bytes_behind = bytes_u32(&bytes);
	uint64_t start = pipe->sections.size;
	struct mmt_error *error;
	bool all, padded = true;

	if (!bytes_ok(&bytes) || !start_section(pipe, FEATURE_TRACING_DATA, bytes_behind)) {
		bytes_fail(&bytes, "invalid size, or a duplicate");
		return check(pipe, &bytes, "formats of the tracepoints");
	}
	error = pass_on(pipe, bytes_behind, &pipe->sections, &all);
	pipe->done[FEATURE_TRACING_DATA] = pipe->sections.size - start;
	error = error ?: pass_on(pipe, -(uint64_t)bytes_behind & 7, NULL, &padded);
	pipe->file->cut = !all || !padded;
	return error;
}

/* The complete record is in the window. */
static struct mmt_error *take_record(struct pipe_input *pipe, const struct perf_event_header *header)
{
	const uint8_t *record = pipe->window, *body = record + RECORD_HEADER_BYTES;
	size_t size = header->size - RECORD_HEADER_BYTES;
	struct mmt_error *error;
	struct bytes bytes;
	bool all;

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
		error = pass_on(pipe, bytes_u64(&bytes), NULL, &all);
		pipe->file->cut = !all;
		return error;
	default:
		return keep(pipe, &pipe->data, record, header->size);
	}
}

static struct mmt_error *take_records(struct pipe_input *pipe)
{
	const size_t header_size = sizeof(struct perf_event_header);
	struct mmt_error *error = NULL;

	while (!error && !pipe->file->cut) {
		struct perf_event_header header;
		size_t taken, rest = 0;
		bool all;

		error = take(pipe, 0, header_size, &taken);
		if (error || !taken)
			return error;
		header = record_header(pipe->window);
		if (taken == header_size && header.size < header_size) {
			/* What follows cannot be parsed; the reader reports the offset. */
			error = keep(pipe, &pipe->data, pipe->window, taken)
				    ?: pass_on(pipe, WINDOW_BYTES - taken, &pipe->data, &all);
			pipe->file->cut = !error && !all;
			return error;
		}
		if (taken == header_size)
			error = take(pipe, taken, header.size - taken, &rest);
		pipe->file->cut = taken < header_size || taken + rest < header.size;
		if (!error && !pipe->file->cut)
			error = take_record(pipe, &header);
	}
	return error;
}

/* ---- the file ---- */

static struct mmt_error *convert(struct pipe_input *pipe)
{
	static const uint8_t header[FORMAT_HEADER_SIZE]; /* so that records have the same offsets as in a file */
	struct recording_file *file = pipe->file;
	struct mmt_error *error = keep(pipe, &pipe->data, header, sizeof(header));
	bool all;

	error = error ?: take_records(pipe);
	error = error ?: error_context(buffer_finish(&pipe->build_ids), "%s: build-ids", file->path);
	if (!error && pipe->build_ids.size && start_section(pipe, FEATURE_BUILD_ID, pipe->build_ids.size)) {
		pipe->done[FEATURE_BUILD_ID] = pipe->build_ids.size;
		error = keep(pipe, &pipe->sections, pipe->build_ids.data, pipe->build_ids.size);
	}
	if (!error && file->cut && pipe->data.size == sizeof(header))
		error =
		    error_create(MMT_ERROR_FORMAT, "%s: the stream was truncated before its first record", file->path);
	else if (!error && !file->attributes.count)
		error = error_create(MMT_ERROR_FORMAT, "%s: header: no event attributes", file->path);
	file->data_offset = sizeof(header);
	file->data_end = pipe->data.size;
	for (size_t i = 0; i < FEATURE_BITS; i++) {
		file->sections[i].present &= pipe->done[i] == file->sections[i].size;
		file->sections[i].offset += pipe->data.size;
	}
	if (error)
		return error;
	if (fflush(pipe->sections.stream) != 0)
		return describe_full(pipe);
	rewind(pipe->sections.stream);
	fclose(pipe->stream);
	pipe->stream = TAKE(pipe->sections.stream);
	pipe->progress = NULL;
	return pass_on(pipe, pipe->sections.size, &pipe->data, &all);
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

static struct mmt_error *keep_all(struct pipe_input *pipe)
{
	struct mmt_error *error = keep_begin(pipe, &pipe->data);
	size_t taken;
	bool all;

	error = error ?: keep_begin(pipe, &pipe->sections) ?: take(pipe, 0, PIPE_HEADER_SIZE, &taken);
	if (error)
		return error;
	if (begins_with_pipe_header(pipe->window, taken)) {
		error = convert(pipe);
	} else {
		error = keep(pipe, &pipe->data, pipe->window, taken) ?: pass_on(pipe, UINT64_MAX, &pipe->data, &all);
	}
	if (!error && fflush(pipe->data.stream) != 0)
		error = describe_full(pipe);
	if (error)
		return error;
	pipe->file->size = pipe->data.size;
	pipe->file->fd = fcntl(fileno(pipe->data.stream), F_DUPFD_CLOEXEC, 0);
	return pipe->file->fd < 0 ? error_system(errno, "%s: cannot read", pipe->file->path) : NULL;
}

struct mmt_error *pipe_input_keep(int input, struct recording_file *file, const struct mmt_progress *progress)
{
	struct pipe_input pipe = {.fd = input, .file = file, .progress = progress};
	struct mmt_error *error;

	buffer_init(&pipe.build_ids, LIMIT_SECTION_BYTES);
	pipe.window = malloc(WINDOW_BYTES);
	pipe.stream = fopencookie(&pipe, "r", (cookie_io_functions_t){.read = read_piece});
	error = pipe.window && pipe.stream ? keep_all(&pipe) : &error_no_memory;
	cleanup_fclose(&pipe.stream);
	cleanup_fclose(&pipe.data.stream);
	cleanup_fclose(&pipe.sections.stream);
	buffer_deinit(&pipe.build_ids);
	free(pipe.window);
	return error;
}
