/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* zlib: inflating in pieces, and streams that are written as gzip. */
#ifndef BASE_GZIP_H
#define BASE_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct inflater;

/* NULL: out of memory. The input has a zlib header. */
struct inflater *inflater_create(void);
/* Accepts NULL. */
void inflater_destroy(struct inflater *inflater);
/* Whether all input so far is used up: only then can more be given, which must stay until it is. */
bool inflater_is_hungry(const struct inflater *inflater);
void inflater_feed(struct inflater *inflater, const void *data, unsigned size);
/* The next bytes into `output`, how many in *made_ret; 0 or more. True in *end_ret: nothing follows. False: damaged, or
 * the input has ended too early. */
bool inflater_next(struct inflater *inflater, void *output, unsigned size, size_t *made_ret, bool *end_ret);

/*
 * A stream whose content goes, compressed, to `below`, which stays open when this one is closed. The time in the header
 * is 0, so that equal contents are equal files. NULL: out of memory. An error of `below` is one of this stream;
 * fclose() reports the last.
 */
FILE *gzip_open(FILE *below);

#endif
