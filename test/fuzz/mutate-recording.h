/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Changes recordings as a hostile author would: the file stays readable, and single records, fields and sections in it
 * are wrong. A change of random bytes would mostly be found in the header or by a checksum. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct recording_parts;

/* Takes a perf.data file apart; compressed records become their content. NULL: it is no such file. */
struct recording_parts *recording_parts_read(const uint8_t *data, size_t size);

void recording_parts_destroy(struct recording_parts *parts);

/* Appends the file with a few changes, which `seed` determines, to `out`. */
void recording_parts_mutate(const struct recording_parts *parts, uint64_t seed, struct buffer *out);
