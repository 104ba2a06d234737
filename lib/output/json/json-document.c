// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/json/json-document.h"

#include <inttypes.h>

#include "output/escape.h"

#define INDENT 2

static void open_nested(struct document *document, char opening, char closing)
{
	putc(opening, document->stream);
	document->closing[document->depth++] = closing;
	document->empty = true;
}

static void begin_line(const struct document *document)
{
	if (document->form == DOCUMENT_SPACED)
		fprintf(document->stream, "\n%*s", (int)(INDENT * document->depth), "");
}

void document_start(struct document *document, FILE *stream, enum document_form form)
{
	*document = (struct document){.stream = stream, .form = form};
	open_nested(document, '{', '}');
}

/* Write everything before the value. */
static void begin_value(struct document *document, const char *key)
{
	if (!document->empty)
		putc(',', document->stream);
	document->empty = false;
	begin_line(document);
	if (key)
		fprintf(document->stream, document->form == DOCUMENT_SPACED ? "\"%s\": " : "\"%s\":", key);
}

void document_open_object(struct document *document, const char *key)
{
	begin_value(document, key);
	open_nested(document, '{', '}');
}

void document_open_array(struct document *document, const char *key)
{
	begin_value(document, key);
	open_nested(document, '[', ']');
}

void document_close(struct document *document)
{
	document->depth--;
	if (!document->empty)
		begin_line(document);
	document->empty = false;
	putc(document->closing[document->depth], document->stream);
}

void document_null(struct document *document, const char *key)
{
	begin_value(document, key);
	fputs("null", document->stream);
}

void document_bool(struct document *document, const char *key, bool value)
{
	begin_value(document, key);
	fputs(value ? "true" : "false", document->stream);
}

void document_signed(struct document *document, const char *key, int64_t value)
{
	begin_value(document, key);
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
	begin_value(document, key);
	fprintf(document->stream, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
}

void document_raw(struct document *document, const char *members)
{
	begin_value(document, NULL);
	fputs(members, document->stream);
}

void document_address(struct document *document, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	document_string(document, key, text);
}

static bool is_plain(const struct document *document, char character)
{
	return character >= ' ' && character <= '~' && character != '"' && character != '\\' &&
	       (document->form != DOCUMENT_FOR_HTML || !strchr("<>&", character));
}

/* Write a character that is not plain; return its number of bytes. */
static size_t put_escape(const struct document *document, const char *text)
{
	static const char named[] = "\b\f\n\r\t\"\\", names[] = "bfnrt\"\\";
	uint32_t character = 0;
	size_t size = escape_decode(text, &character);
	const char *found = character && character < 0x80 ? strchr(named, (int)character) : NULL;

	if (!size)
		fprintf(document->stream, "\\\\x%02x", (unsigned char)*text);
	else if (found)
		fprintf(document->stream, "\\%c", names[found - named]);
	else if (character > 0xffff)
		fprintf(document->stream, "\\u%04X\\u%04X", 0xd7c0 + (character >> 10), 0xdc00 + (character & 0x3ff));
	else
		fprintf(document->stream, "\\u%04X", character);
	return size ?: 1;
}

void document_string(struct document *document, const char *key, const char *value)
{
	size_t plain;

	if (!value) {
		document_null(document, key);
		return;
	}
	begin_value(document, key);
	putc('"', document->stream);
	while (*value) {
		for (plain = 0; is_plain(document, value[plain]);)
			plain++;
		fwrite(value, 1, plain, document->stream);
		value += plain;
		if (*value)
			value += put_escape(document, value);
	}
	putc('"', document->stream);
}

void document_finish(struct document *document)
{
	document_close(document);
	putc('\n', document->stream);
}
