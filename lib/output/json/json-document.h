/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A JSON document, written as it is made: it takes no memory, whatever its size. Sticky: the first failure is reported
 * by document_finish(), and nothing is written behind it.
 */
#ifndef OUTPUT_JSON_JSON_DOCUMENT_H
#define OUTPUT_JSON_JSON_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/errors.h"

struct document;

/* An empty object at the top, open. Borrows `stream`; a failed write is left for ferror(). */
struct mmt_error *document_create(FILE *stream, struct document **document_ret) MMT_MUST_CHECK;
/* The same without spaces, and without characters that mean something in HTML: for a script element of a page. No `<`,
 * `>`, `&` or line separator appears in it, whatever the strings contain. */
struct mmt_error *document_create_for_html(FILE *stream, struct document **document_ret) MMT_MUST_CHECK;
/* Accepts NULL. */
void document_destroy(struct document *document);

/* From here on without blanks and line breaks: for long arrays of numbers. */
void document_compact(struct document *document);

/* `key` is NULL for an element of an array. */
void document_open_object(struct document *document, const char *key);
void document_open_array(struct document *document, const char *key);
void document_close(struct document *document);

void document_null(struct document *document, const char *key);
void document_bool(struct document *document, const char *key, bool value);
void document_signed(struct document *document, const char *key, int64_t value);
/* MMT_UNKNOWN, and what JSON readers cannot hold, become null. */
void document_unsigned(struct document *document, const char *key, uint64_t value);
/* Milliseconds with all digits of nanoseconds. */
void document_milliseconds(struct document *document, const char *key, uint64_t ns);
/* "0x7f12...": a string, as an address does not fit the numbers of every reader. */
void document_address(struct document *document, const char *key, uint64_t value);
/* NULL becomes null; bytes that are no UTF-8 are escaped. */
void document_string(struct document *document, const char *key, const char *value);

/* Closes everything, and ends the line. */
struct mmt_error *document_finish(struct document *document) MMT_MUST_CHECK;

const char *document_library_version(void);

#endif
