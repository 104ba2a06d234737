/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Incremental metadata: perf maps, jitdumps and build-ids that were written among the records, for recordings whose
 * recorder was killed.
 */
#ifndef TRACE_READ_INCREMENTAL_METADATA_H
#define TRACE_READ_INCREMENTAL_METADATA_H

#include "base/errors.h"
#include "trace/format/sample-layout.h"
#include "trace/read/reader.h"
#include "trace/read/recording-file.h"

/* Adds to what `values` has. Pieces that do not fit together end what they belong to. *damage_ret: more of them than a
 * recorder writes, and the rest is left. */
struct mmt_error *incremental_metadata_read(const struct recording_file *file, const struct layouts *layouts,
					    struct reader_metadata *values,
					    struct mmt_error **damage_ret) MMT_MUST_CHECK;

#endif
