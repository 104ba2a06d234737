/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The layout of the samples of an attribute: where each field is, from sample_type and read_format. */
#ifndef TRACE_FORMAT_SAMPLE_LAYOUT_H
#define TRACE_FORMAT_SAMPLE_LAYOUT_H

#include <endian.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/errors.h"
#include "base/map.h"
#include "trace/read/recording-file.h"

/* Offsets in a sample count from the record's start, those of a trailer from its own. */
#define LAYOUT_ABSENT UINT16_MAX

struct layout {
	uint64_t sample_type;
	uint16_t sample_id, sample_task, sample_time, sample_cpu;
	uint16_t trailer_size; /* of records that are no samples; 0: they have none */
	uint16_t trailer_id, trailer_task, trailer_time, trailer_cpu;
	bool may_come_twice; /* inherited from several roots */
};

struct layouts {
	struct layout *items; /* by attribute */
	size_t count;
	struct map by_id;    /* index of the attribute, and of the stream in the upper half */
	size_t stream_count; /* events of the kernel: one of each attribute and processor */
};

/* What every record may say about itself. */
struct record_identity {
	uint32_t attribute;    /* UINT32_MAX: not known */
	uint32_t stream;       /* the event of the kernel, which makes its records in order; UINT32_MAX: none */
	uint64_t id;	       /* 0: made up by perf, or none */
	uint64_t time_ns;      /* 0: none */
	int32_t pid, tid, cpu; /* -1: not known */
};

struct mmt_error *layouts_create(const struct recording_file *file, struct layouts *layouts_ret) MMT_MUST_CHECK;
void layouts_deinit(struct layouts *layouts);

/* False: the record is too short for the fields that its attribute promises. */
bool layouts_identify(const struct layouts *layouts, const struct perf_event_header *header, const uint8_t *record,
		      struct record_identity *identity_ret);

/* The same of a record that layouts_identify() has accepted, whose attribute it has told. */
void layouts_read(const struct layouts *layouts, const struct perf_event_header *header, const uint8_t *record,
		  uint32_t attribute, struct record_identity *identity_ret);

/* What puts a record into its place among the others. */
struct record_place {
	uint32_t attribute, stream; /* as above */
	uint64_t time_ns;
};

#define LAYOUTS_RECENT 16 /* a power of two */

/* Events of the kernel by their ids: what places a sample that is not shorter than `size_least`. */
struct layouts_source {
	uint64_t id; /* 0: none */
	uint32_t attribute, stream;
	uint16_t time, size_least;
};

/* Those whose records were looked at last. Zero initialisation makes an empty one. */
struct layouts_recent {
	struct layouts_source sources[LAYOUTS_RECENT];
};

/* As layouts_identify(), for who reads nearly all records one after the other. */
bool layouts_find_place(const struct layouts *layouts, struct layouts_recent *recent,
			const struct perf_event_header *header, const uint8_t *record, struct record_place *place_ret);

/* Of a record that has been accepted, at a place that its layout has. */
static inline uint64_t layout_word(const uint8_t *record, size_t place)
{
	uint64_t value;

	memcpy(&value, record + place, sizeof(value));
	return le64toh(value);
}

/* Bytes of a record without its trailer. */
size_t layouts_body_size(const struct layouts *layouts, const struct perf_event_header *header,
			 const struct record_identity *identity);

#endif
