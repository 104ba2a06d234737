// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/json/json-document.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/limits.h"
#include "output/escape.h"

#define DEPTH_MAX 16
#define INDENT 2

struct document {
	FILE *stream;
	char closing[DEPTH_MAX]; /* the closing bracket of each open level */
	bool filled[DEPTH_MAX];	 /* whether the level has elements */
	size_t depth;		 /* number of open levels */
	bool failed;
	enum document_form form;
	struct buffer escaped;
};

static void open_nested(struct document *document, char opening, char closing)
{
	putc(opening, document->stream);
	document->closing[document->depth] = closing;
	document->filled[document->depth++] = false;
}

static void begin_line(const struct document *document)
{
	if (document->form == DOCUMENT_SPACED)
		fprintf(document->stream, "\n%*s", (int)(INDENT * document->depth), "");
}

struct mmt_error *document_create(FILE *stream, enum document_form form, struct document **document_ret)
{
	struct document *document = calloc(1, sizeof(*document));

	if (!document)
		return &error_no_memory;
	document->stream = stream;
	document->form = form;
	buffer_init(&document->escaped, LIMIT_JSON_STRING_BYTES);
	open_nested(document, '{', '}');
	*document_ret = document;
	return NULL;
}

void document_destroy(struct document *document)
{
	if (!document)
		return;
	buffer_deinit(&document->escaped);
	free(document);
}

/* Write everything before the value; false: nothing more may be written. */
static bool begin_value(struct document *document, const char *key)
{
	if (document->failed)
		return false;
	if (document->filled[document->depth - 1])
		putc(',', document->stream);
	document->filled[document->depth - 1] = true;
	begin_line(document);
	if (key)
		fprintf(document->stream, document->form == DOCUMENT_SPACED ? "\"%s\": " : "\"%s\":", key);
	return true;
}

static void open_value(struct document *document, const char *key, char opening, char closing)
{
	document->failed |= document->depth == DEPTH_MAX;
	if (begin_value(document, key))
		open_nested(document, opening, closing);
}

void document_open_object(struct document *document, const char *key)
{
	open_value(document, key, '{', '}');
}

void document_open_array(struct document *document, const char *key)
{
	open_value(document, key, '[', ']');
}

static void close_nested(struct document *document)
{
	document->depth--;
	if (document->filled[document->depth])
		begin_line(document);
	putc(document->closing[document->depth], document->stream);
}

/* document_finish() closes the top-level object. */
void document_close(struct document *document)
{
	if (document->depth > 1 && !document->failed)
		close_nested(document);
}

void document_null(struct document *document, const char *key)
{
	if (begin_value(document, key))
		fputs("null", document->stream);
}

void document_bool(struct document *document, const char *key, bool value)
{
	if (begin_value(document, key))
		fputs(value ? "true" : "false", document->stream);
}

void document_signed(struct document *document, const char *key, int64_t value)
{
	if (begin_value(document, key))
		fprintf(document->stream, "%" PRId64, value);
}

void document_unsigned(struct document *document, const char *key, uint64_t value)
{
	if (value > INT64_MAX)
		document_null(document, key);
	else
		document_signed(document, key, (int64_t)value);
}

void document_numbers(struct document *document, const char *key, const uint64_t *values, size_t count)
{
	document_each(document, key, i, count)
		document_unsigned(document, NULL, values[i]);
}

void document_milliseconds(struct document *document, const char *key, uint64_t ns)
{
	if (begin_value(document, key))
		fprintf(document->stream, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
}

void document_raw(struct document *document, const char *members)
{
	if (begin_value(document, NULL))
		fputs(members, document->stream);
}

void document_address(struct document *document, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	document_string(document, key, text);
}

/* jansson does not escape DEL, which is a control character for terminals, or markup. */
static bool must_escape(const struct document *document, char character)
{
	return character == '\x7f' ||
	       (document->form == DOCUMENT_FOR_HTML && (character == '<' || character == '>' || character == '&'));
}

static int write_escaped(const char *text, size_t size, void *context)
{
	const struct document *document = context;

	for (size_t i = 0; i < size; i++) {
		if (must_escape(document, text[i]) ? fprintf(document->stream, "\\u%04x", (unsigned char)text[i]) < 0
						   : putc(text[i], document->stream) == EOF)
			return -1;
	}
	return 0;
}

void document_string(struct document *document, const char *key, const char *value)
{
	struct buffer *escaped = &document->escaped;
	const char *plain = value;
	struct mmt_error *error;
	json_t *string;

	if (!value) {
		document_null(document, key);
		return;
	}
	while (*plain >= ' ' && *plain <= '~' && *plain != '"' && *plain != '\\' && !must_escape(document, *plain))
		plain++;
	if (!*plain) {
		if (begin_value(document, key))
			fprintf(document->stream, "\"%s\"", value);
		return;
	}
	buffer_clear(escaped);
	escape_put(value, ESCAPE_FOR_JSON, escaped);
	buffer_put_u8(escaped, 0);
	error = buffer_finish(escaped);
	string = error ? NULL : json_string((const char *)escaped->data);
	mmt_error_destroy(error);
	document->failed |= !string;
	if (begin_value(document, key) &&
	    json_dump_callback(string, write_escaped, document, JSON_ENCODE_ANY | JSON_ENSURE_ASCII))
		document->failed = !ferror(document->stream);
	json_decref(string);
}

struct mmt_error *document_finish(struct document *document)
{
	if (document->failed)
		return &error_no_memory;
	while (document->depth)
		close_nested(document);
	putc('\n', document->stream);
	return NULL;
}
