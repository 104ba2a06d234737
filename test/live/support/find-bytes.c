/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* find-bytes RECORDING TEXT: prints how often the text occurs in the decompressed recording, including the parts
 * around the data. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/limits.h"
#include "trace/read/recording-file.h"

static unsigned long count_in(const void *data, size_t size, const char *text)
{
	size_t length = strlen(text);
	unsigned long count = 0;

	for (const char *at = data;
	     size >= length && (at = memmem(at, size - (size_t)(at - (const char *)data), text, length)); at++)
		count++;
	return count;
}

static void need(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "find-bytes: %s\n", error->message);
	exit(2);
}

static unsigned long count_in_records(const struct recording_file *file, const char *text)
{
	struct records *records = NULL;
	struct mmt_error *damage;
	unsigned long count = 0;
	struct record record;
	bool end = false;

	need(records_create(file, &records));
	for (;;) {
		need(records_next(records, &record, &end, &damage));
		mmt_error_destroy(damage);
		if (end)
			break;
		count += count_in(record.data, record.header.size, text);
	}
	records_destroy(records);
	return count;
}

/* As it is, and as a zstd frame after the version and a zero. */
static unsigned long count_in_section(const struct recording_file *file, unsigned feature, const char *text)
{
	struct decompressor decompressor = {0};
	unsigned long count;
	struct buffer plain;
	uint8_t *data;
	size_t size;

	need(recording_file_load(file, (enum format_feature)feature, &data, &size));
	count = count_in(data, size, text);
	buffer_init(&plain, LIMIT_SECTION_BYTES);
	need(decompressor_init(&decompressor));
	if (size > 8)
		mmt_error_destroy(decompressor_feed(&decompressor, data + 8, size - 8, &plain));
	count += count_in(plain.data, plain.size, text);
	decompressor_deinit(&decompressor);
	buffer_deinit(&plain);
	free(data);
	return count;
}

int main(int argc, char **argv)
{
	struct recording_file *file = NULL;
	unsigned long count;

	if (argc != 3)
		return 2;
	need(recording_file_open(argv[1], NULL, &file));
	count = count_in_records(file, argv[2]);
	for (unsigned feature = 0; feature < FEATURE_BITS; feature++)
		count += count_in_section(file, feature, argv[2]);
	printf("%lu\n", count);
	recording_file_close(file);
	return 0;
}
