// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/read/recording-file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/limits.h"

#define SECTION_BYTES 16 /* u64 offset, u64 size */
#define ATTRIBUTE_BYTES_MIN PERF_ATTR_SIZE_VER0
#define PREAMBLE_ENTRY_BYTES 24
#define CHECKED_BYTES 65536 /* at a time */

struct header {
	uint64_t attribute_bytes; /* size of each, including its section of ids */
	struct file_section attributes, data;
	uint64_t features[FEATURE_BITS / 64];
};

void recording_file_close(struct recording_file *file)
{
	if (!file || --file->users)
		return;
	vector_deinit_each(&file->attributes, item, vector_deinit(&item->ids));
	cleanup_close(&file->fd);
	free(file->path);
	free(file);
}

struct mmt_error *recording_file_read(const struct recording_file *file, uint64_t offset, void *data, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t result =
		    TEMP_FAILURE_RETRY(pread(file->fd, (uint8_t *)data + done, size - done, (off_t)(offset + done)));

		if (result < 0)
			return error_system(errno, "%s: cannot read", file->path);
		if (result == 0)
			return error_create(MMT_ERROR_FORMAT, "%s: was truncated while it was read", file->path);
		done += (size_t)result;
	}
	return NULL;
}

static bool lies_inside(const struct recording_file *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset;
}

/* Read `size` bytes at `offset`, which must be in the file; the caller owns them. */
static struct mmt_error *load(const struct recording_file *file, uint64_t offset, uint64_t size, uint8_t **data_ret)
{
	struct mmt_error *error;
	uint8_t *data = malloc(size ? size : 1);

	if (!data)
		return &error_no_memory;
	error = recording_file_read(file, offset, data, size);
	if (error)
		free(data);
	else
		*data_ret = data;
	return error;
}

struct mmt_error *recording_file_load(const struct recording_file *file, enum format_feature feature,
				      uint8_t **data_ret, size_t *size_ret)
{
	const struct file_section *section = &file->sections[feature];

	*data_ret = NULL;
	*size_ret = 0;
	if (!section->present)
		return NULL;
	if (section->size > LIMIT_SECTION_BYTES)
		return error_create(MMT_ERROR_FORMAT, "feature section %d: %llu bytes are beyond the limit",
				    (int)feature, (unsigned long long)section->size);
	*size_ret = section->size;
	return load(file, section->offset, section->size, data_ret);
}

static struct file_section read_section(struct bytes *bytes)
{
	struct file_section section = {.offset = bytes_u64(bytes)};

	section.size = bytes_u64(bytes);
	return section;
}

static struct mmt_error *read_header(const struct recording_file *file, struct header *header)
{
	uint8_t data[FORMAT_HEADER_SIZE];
	size_t size = file->size < sizeof(data) ? file->size : sizeof(data);
	struct mmt_error *error = recording_file_read(file, 0, data, size);
	struct bytes bytes = bytes_over(data, size);
	uint64_t magic, header_size;

	if (error)
		return error;
	if (file->size == 0)
		return error_create(MMT_ERROR_FORMAT, "%s: the file is empty", file->path);
	magic = bytes_u64(&bytes);
	if (magic == FORMAT_MAGIC_SWAPPED)
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "%s: recorded on a machine of the other byte order; read it on such a machine",
				    file->path);
	if (magic != FORMAT_MAGIC)
		return error_create(MMT_ERROR_FORMAT,
				    "%s: not a recording (no perf.data magic); make one with mmtrace record",
				    file->path);
	header_size = bytes_u64(&bytes);
	if (bytes_ok(&bytes) && header_size != FORMAT_HEADER_SIZE)
		return error_create(MMT_ERROR_FORMAT, "%s: header: size %llu instead of %d", file->path,
				    (unsigned long long)header_size, FORMAT_HEADER_SIZE);
	header->attribute_bytes = bytes_u64(&bytes);
	header->attributes = read_section(&bytes);
	header->data = read_section(&bytes);
	(void)read_section(&bytes); /* event types: no longer used */
	for (size_t i = 0; i < FEATURE_BITS / 64; i++)
		header->features[i] = bytes_u64(&bytes);
	return error_context(bytes_finish(&bytes, "header"), "%s", file->path);
}

static struct mmt_error *check_header(const struct recording_file *file, const struct header *header)
{
	const struct file_section *attributes = &header->attributes;
	const char *wrong = NULL;

	if (header->attribute_bytes < ATTRIBUTE_BYTES_MIN + SECTION_BYTES ||
	    header->attribute_bytes > LIMIT_ATTRIBUTE_BYTES + SECTION_BYTES || header->attribute_bytes % 8 != 0)
		wrong = "invalid size of an event attribute";
	else if (!lies_inside(file, attributes->offset, attributes->size))
		wrong = "the event attributes lie beyond the end of the file, which was truncated";
	else if (attributes->size == 0)
		wrong = "no event attributes";
	else if (attributes->size % header->attribute_bytes != 0)
		wrong = "the size of the event attributes is not a multiple of an attribute";
	else if (attributes->size / header->attribute_bytes > LIMIT_ATTRIBUTES)
		wrong = "too many event attributes";
	else if (header->data.offset < FORMAT_HEADER_SIZE)
		wrong = "the data overlaps the header";
	else if (header->data.offset > file->size)
		wrong = "the data lies beyond the end of the file, which was truncated";
	else if (header->data.size > UINT64_MAX - header->data.offset)
		wrong = "invalid size of the data";
	return wrong ? error_create(MMT_ERROR_FORMAT, "%s: header: %s", file->path, wrong) : NULL;
}

struct mmt_error *recording_file_add_attribute(struct recording_file *file, const void *attribute, size_t size,
					       const uint8_t *ids, size_t id_count)
{
	struct file_attribute *added = vector_append(&file->attributes);
	struct bytes bytes = bytes_over(ids, id_count * sizeof(uint64_t));

	if (!added)
		return &error_no_memory;
	/* Older and newer kernels have shorter and longer attributes. */
	memcpy(&added->attr, attribute, size < sizeof(added->attr) ? size : sizeof(added->attr));
	while (bytes_left(&bytes)) {
		if (!vector_push(&added->ids, bytes_u64(&bytes)))
			return &error_no_memory;
	}
	file->id_count += id_count;
	return NULL;
}

static struct mmt_error *read_attributes(struct recording_file *file, const struct header *header)
{
	CLEANUP(free) uint8_t *data = NULL;
	struct mmt_error *error = load(file, header->attributes.offset, header->attributes.size, &data);
	struct bytes bytes = bytes_over(data, error ? 0 : header->attributes.size);

	while (!error && bytes_left(&bytes)) {
		size_t size = header->attribute_bytes - SECTION_BYTES;
		const void *attribute = bytes_take(&bytes, size);
		struct file_section section = read_section(&bytes);
		CLEANUP(free) uint8_t *ids = NULL;

		if (!bytes_ok(&bytes))
			return error_context(bytes_finish(&bytes, "event attributes"), "%s", file->path);
		if (section.size % sizeof(uint64_t) != 0 ||
		    section.size / sizeof(uint64_t) > LIMIT_IDS - file->id_count ||
		    !lies_inside(file, section.offset, section.size))
			return error_create(MMT_ERROR_FORMAT, "%s: event attribute: invalid number or place of its ids",
					    file->path);
		error =
		    load(file, section.offset, section.size, &ids)
			?: recording_file_add_attribute(file, attribute, size, ids, section.size / sizeof(uint64_t));
	}
	return error;
}

static void note_section(struct recording_file *file, uint64_t feature, struct file_section section)
{
	if (feature >= FEATURE_BITS || file->sections[feature].present)
		return;
	if (!lies_inside(file, section.offset, section.size)) {
		file->cut = true;
		return;
	}
	section.present = true;
	file->sections[feature] = section;
}

/* Directly behind the data: one entry for each feature bit, in ascending order. */
static struct mmt_error *read_feature_table(struct recording_file *file, const struct header *header)
{
	uint8_t data[FEATURE_BITS * SECTION_BYTES];
	uint64_t left = file->size - file->data_end;
	size_t size = left < sizeof(data) ? left : sizeof(data);
	struct mmt_error *error = recording_file_read(file, file->data_end, data, size);
	struct bytes bytes = bytes_over(data, size);

	if (error)
		return error;
	for (uint64_t i = 0; i < FEATURE_BITS; i++) {
		struct file_section section;

		if (!(header->features[i / 64] >> (i % 64) & 1))
			continue;
		section = read_section(&bytes);
		if (!bytes_ok(&bytes)) {
			file->cut = true;
			break;
		}
		note_section(file, i, section);
	}
	return NULL;
}

static struct mmt_error *read_preamble(struct recording_file *file, const struct header *header)
{
	uint64_t start = header->attributes.offset + header->attributes.size;
	uint8_t data[16 + FEATURE_BITS * PREAMBLE_ENTRY_BYTES];
	struct mmt_error *error;
	struct bytes bytes;
	uint64_t count;
	size_t size;

	if (file->data_offset <= start)
		return NULL;
	size = file->data_offset - start < sizeof(data) ? file->data_offset - start : sizeof(data);
	error = recording_file_read(file, start, data, size);
	bytes = bytes_over(data, error ? 0 : size);
	if (bytes_u64(&bytes) != PREAMBLE_MAGIC)
		return error;
	if (bytes_u32(&bytes) != PREAMBLE_VERSION)
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "%s: written by a newer version of mmtrace; use that version", file->path);
	count = bytes_at_most(&bytes, bytes_count_u32(&bytes, PREAMBLE_ENTRY_BYTES), FEATURE_BITS);
	for (uint64_t i = 0; i < count; i++) {
		uint32_t feature = bytes_u32(&bytes);

		bytes_u32(&bytes);
		note_section(file, feature, read_section(&bytes));
	}
	return error_context(bytes_finish(&bytes, "preamble"), "%s", file->path);
}

/* Packed recordings end with the checksum of all bytes before it. */
static struct mmt_error *check_sum(struct recording_file *file)
{
	const struct file_section *section = &file->sections[FEATURE_MMTRACE_CHECKSUM];
	uint64_t end = file->size - sizeof(uint32_t);
	CLEANUP(free) uint8_t *bytes = section->present ? malloc(CHECKED_BYTES) : NULL;
	struct mmt_error *error = section->present && !bytes ? &error_no_memory : NULL;
	uint32_t sum = 0, stored = 0;

	if (!section->present)
		return NULL;
	for (uint64_t offset = 0; !error && offset < end; offset += CHECKED_BYTES) {
		size_t size = end - offset < CHECKED_BYTES ? (size_t)(end - offset) : CHECKED_BYTES;

		error = recording_file_read(file, offset, bytes, size);
		sum = error ? 0 : compress_checksum(sum, bytes, size);
	}
	error = error ?: recording_file_read(file, end, &stored, sizeof(stored));
	file->changed = stored != sum || section->offset + section->size != file->size;
	return error;
}

static struct mmt_error *read_frame(struct recording_file *file)
{
	struct header header = {0};
	struct mmt_error *error = read_header(file, &header)
				      ?: check_header(file, &header)
				      ?: read_attributes(file, &header);

	if (error)
		return error;
	file->data_offset = header.data.offset;
	file->data_end = header.data.offset + header.data.size;
	if (header.data.size == 0 || file->data_end > file->size) {
		file->incomplete = true;
		file->cut = header.data.size > 0;
		file->data_end = file->size;
	} else {
		error = read_feature_table(file, &header);
	}
	error = error ?: read_preamble(file, &header);
	return error ? error : check_sum(file);
}

static struct mmt_error *open_descriptor(struct recording_file *file, int fd, const struct mmt_progress *progress)
{
	struct stat status;

	if (fstat(fd, &status))
		return error_system(errno, "%s: cannot read", file->path);
	if (isatty(fd))
		return error_create(MMT_ERROR_INVALID, "%s is a terminal: pipe a recording into it", file->path);
	if (!S_ISREG(status.st_mode))
		return pipe_input_keep(fd, file, progress);
	file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return file->fd < 0 ? error_system(errno, "%s: cannot read", file->path) : NULL;
}

static struct mmt_error *open_path(struct recording_file *file, const struct mmt_progress *progress)
{
	struct stat status;
	bool seen = stat(file->path, &status) == 0, pipe = seen && S_ISFIFO(status.st_mode);
	CLEANUP(close) int fd = open(file->path, O_RDONLY | O_CLOEXEC | (pipe ? 0 : O_NONBLOCK));

	/* A named pipe, or one made by the shell, is read like standard input. Only opening one may block. */
	if (fd >= 0 && pipe)
		return pipe_input_keep(fd, file, progress);
	if (fd >= 0) {
		file->fd = fd;
		fd = -1;
		return NULL;
	}
	if (errno == EACCES && seen && S_ISREG(status.st_mode) && status.st_uid != geteuid() &&
	    !(status.st_mode & (S_IRWXG | S_IRWXO)))
		return error_system(EACCES, "cannot open %s, which its owner alone may read (user %u)", file->path,
				    status.st_uid);
	return error_system(errno, "cannot open %s", file->path);
}

static struct mmt_error *measure(struct recording_file *file)
{
	struct stat status;

	if (fstat(file->fd, &status) < 0)
		return error_system(errno, "cannot open %s", file->path);
	if (!S_ISREG(status.st_mode))
		return error_create(MMT_ERROR_UNSUPPORTED, "%s: not a regular file", file->path);
	file->size = (uint64_t)status.st_size;
	return NULL;
}

struct mmt_error *recording_file_grow(struct recording_file *file)
{
	struct mmt_error *error = measure(file);
	struct header header = {0};

	if (!error && file->incomplete) {
		file->data_end = file->size;
		error = read_header(file, &header);
		file->finished = header.data.size;
	}
	return error;
}

struct mmt_error *recording_file_open(const char *path, const struct mmt_progress *progress,
				      struct recording_file **file_ret)
{
	struct recording_file *file = calloc(1, sizeof(*file));
	bool is_input = !strcmp(path, RECORDING_STANDARD_INPUT);
	struct mmt_error *error;

	if (!file)
		return &error_no_memory;
	file->users = 1;
	file->fd = -1;
	file->path = strdup(is_input ? "standard input" : path);
	error = !file->path ? &error_no_memory
		: is_input  ? open_descriptor(file, STDIN_FILENO, progress)
			    : open_path(file, progress);
	if (!error && !file->data_end)
		error = measure(file);
	/* A file that holds the output of a pipe. */
	if (!error && !file->data_end && pipe_input_is_pipe_format(file->fd)) {
		CLEANUP(close) int stored = file->fd;

		file->fd = -1;
		error = pipe_input_keep(stored, file, NULL);
	}
	if (!error && !file->data_end)
		error = read_frame(file);
	file->incomplete |= file->cut;
	if (error)
		recording_file_close(file);
	else
		*file_ret = file;
	return error;
}

void record_blocks_destroy(struct record_block *list)
{
	while (list) {
		struct record_block *block = list;

		list = block->next;
		buffer_deinit(&block->content);
		free(block);
	}
}

struct record_block *record_block_create(size_t maximum)
{
	struct record_block *block = calloc(1, sizeof(*block));

	if (block)
		buffer_init(&block->content, maximum);
	return block;
}
