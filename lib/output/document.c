// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/document.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "output/escape.h"

#define DEPTH_MAX 16
#define STRING_BYTES_MAX (64u << 20)

struct document {
	json_t *open[DEPTH_MAX]; /* [0] is owned, the others belong to it */
	size_t depth;		 /* index of the innermost */
	bool failed;
	struct buffer escaped;
};

struct mmt_error *document_create(struct document **document_ret)
{
	CLEANUP(free) struct document *document = calloc(1, sizeof(*document));

	if (!document)
		return &error_no_memory;
	document->open[0] = json_object();
	if (!document->open[0])
		return &error_no_memory;
	buffer_init(&document->escaped, STRING_BYTES_MAX);
	*document_ret = TAKE(document);
	return NULL;
}

void document_destroy(struct document *document)
{
	if (!document)
		return;
	json_decref(document->open[0]);
	buffer_deinit(&document->escaped);
	free(document);
}

/* Takes `value`, NULL when it could not be made. */
static void add(struct document *document, const char *key, json_t *value)
{
	json_t *parent = document->open[document->depth];
	int result = key ? json_object_set_new(parent, key, value) : json_array_append_new(parent, value);

	if (result != 0)
		document->failed = true;
}

static void add_open(struct document *document, const char *key, json_t *value)
{
	add(document, key, value);
	if (document->depth + 1 < DEPTH_MAX && !document->failed)
		document->open[++document->depth] = value;
	else
		document->failed = true;
}

void document_open_object(struct document *document, const char *key)
{
	if (!document->failed)
		add_open(document, key, json_object());
}

void document_open_array(struct document *document, const char *key)
{
	if (!document->failed)
		add_open(document, key, json_array());
}

void document_close(struct document *document)
{
	if (document->depth && !document->failed)
		document->depth--;
}

void document_null(struct document *document, const char *key)
{
	if (!document->failed)
		add(document, key, json_null());
}

void document_bool(struct document *document, const char *key, bool value)
{
	if (!document->failed)
		add(document, key, json_boolean(value));
}

void document_signed(struct document *document, const char *key, int64_t value)
{
	if (!document->failed)
		add(document, key, json_integer(value));
}

void document_unsigned(struct document *document, const char *key, uint64_t value)
{
	if (value > INT64_MAX)
		document_null(document, key);
	else
		document_signed(document, key, (int64_t)value);
}

void document_address(struct document *document, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	document_string(document, key, text);
}

void document_string(struct document *document, const char *key, const char *value)
{
	struct escape_piece piece;
	struct mmt_error *error;

	if (!value) {
		document_null(document, key);
		return;
	}
	if (document->failed)
		return;
	buffer_clear(&document->escaped);
	while (escape_next(&value, ESCAPE_FOR_JSON, &piece))
		buffer_put(&document->escaped, piece.text, piece.size);
	buffer_put_u8(&document->escaped, 0);
	error = buffer_finish(&document->escaped);
	if (error) {
		mmt_error_destroy(error);
		document->failed = true;
		return;
	}
	add(document, key, json_string((const char *)document->escaped.data));
}

struct mmt_error *document_write(struct document *document, FILE *stream)
{
	if (document->failed)
		return &error_no_memory;
	if (json_dumpf(document->open[0], stream, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0)
		putc('\n', stream);
	else if (!ferror(stream))
		return &error_no_memory;
	return NULL;
}

const char *document_library_version(void)
{
	return jansson_version_str();
}
