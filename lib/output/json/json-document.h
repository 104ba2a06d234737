/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A JSON document that is written while it is made, so that its size takes no memory. Check ferror() of its stream. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define DOCUMENT_DEPTH_MAX 16

enum document_form {
	DOCUMENT_SPACED,
	DOCUMENT_COMPACT,  /* no spaces and line breaks: for long arrays of numbers */
	DOCUMENT_FOR_HTML, /* compact, for a script element: `<`, `>` and `&` are escaped in all strings */
};

struct document {
	FILE *stream;
	enum document_form form;
	char closing[DOCUMENT_DEPTH_MAX]; /* the closing bracket of each open level */
	size_t depth;			  /* number of open levels */
	bool empty;			  /* the innermost level is */
};

/* A document with an open top-level object. */
void document_start(struct document *document, FILE *stream, enum document_form form);

/* `key` is NULL for an element of an array. */
void document_open_object(struct document *document, const char *key);
void document_open_array(struct document *document, const char *key);
void document_close(struct document *document);

/* Loop over the elements of an array, which it opens before and closes after: not to be left by break or return. */
#define document_each(document_, key_, index_, count_)                                                                 \
	for (size_t index_ = (document_open_array(document_, key_), 0);                                                \
	     index_ < (count_) || (document_close(document_), false); index_++)

/* The same for an array of objects, each of which is open in the loop. */
#define document_each_object(document_, key_, index_, count_)                                                          \
	for (size_t index_ = (document_open_array(document_, key_), 0);                                                \
	     (index_ < (count_) && (document_open_object(document_, NULL), true)) ||                                   \
	     (document_close(document_), false);                                                                       \
	     document_close(document_), index_++)

void document_null(struct document *document, const char *key);
void document_bool(struct document *document, const char *key, bool value);
void document_signed(struct document *document, const char *key, int64_t value);
/* MMT_UNKNOWN and numbers that JSON readers cannot represent become null. */
void document_unsigned(struct document *document, const char *key, uint64_t value);
/* An array of them. */
void document_numbers(struct document *document, const char *key, const uint64_t *values, size_t count);
/* Milliseconds with all digits of nanoseconds. */
void document_milliseconds(struct document *document, const char *key, uint64_t ns);
/* Members of the open object as they are: for constants. */
void document_raw(struct document *document, const char *members);
/* "0x7f12...": a string, because some readers cannot represent addresses as numbers. */
void document_address(struct document *document, const char *key, uint64_t value);
/* NULL becomes null. ASCII only: the bytes of invalid UTF-8 become \\xNN. */
void document_string(struct document *document, const char *key, const char *value);

/* Close the top-level object, and end the line. */
void document_finish(struct document *document);
