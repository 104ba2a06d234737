/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* zlib wrappers: incremental inflate, and streams written as gzip. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct inflater;

/* Expects input with a zlib header. NULL: out of memory. */
struct inflater *inflater_create(void);
/* Accepts NULL. */
void inflater_destroy(struct inflater *inflater);
/* Whether all input is consumed. Only then may more be passed; it must stay valid until it is consumed. */
bool inflater_is_hungry(const struct inflater *inflater);
void inflater_feed(struct inflater *inflater, const void *data, unsigned size);
/* Writes the next bytes into `output`; *made_ret: how many, possibly 0; *end_ret: the stream is complete. False: the
 * data is damaged or truncated. */
bool inflater_next(struct inflater *inflater, void *output, unsigned size, size_t *made_ret, bool *end_ret);

/*
 * A stream that compresses its content into `below`, which stays open when this stream is closed. The time in the
 * header is 0, so that equal contents give equal files. NULL: out of memory. An error of `below` is an error of this
 * stream; fclose() reports the last one.
 */
FILE *gzip_open(FILE *below);

#endif
