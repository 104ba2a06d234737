/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The feature sections of a recording, and the roles of its attributes. */
#ifndef TRACE_READ_METADATA_H
#define TRACE_READ_METADATA_H

#include "trace/format/sample-layout.h"
#include "trace/read/reader.h"
#include "trace/read/recording-file.h"

struct metadata {
	struct reader_metadata values;
	struct mmt_error *damage; /* first damage of an optional section; owned */
};

/* Zero-initialise it before; deinitialise it on error too. */
struct mmt_error *metadata_load(struct metadata *metadata, const struct recording_file *file) MMT_MUST_CHECK;
void metadata_deinit(struct metadata *metadata);

/* Incremental metadata: perf maps, jitdumps and build-ids between the records, for killed recorders. */

/* Adds the pieces to `values`. A piece that does not continue the previous one ends the file that it belongs to.
 * *damage_ret: there are more pieces than a recorder writes; the rest is ignored. */
struct mmt_error *incremental_metadata_read(const struct recording_file *file, const struct layouts *layouts,
					    struct reader_metadata *values,
					    struct mmt_error **damage_ret) MMT_MUST_CHECK;

#endif
