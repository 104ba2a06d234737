// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/own-record.h"

#include <linux/perf_event.h>

#include "trace/format.h"

#define RECORD_BYTES_OFFSET 6
#define CONTENT_BYTES_OFFSET 18
#define CONTENT_OFFSET 20

void own_record_begin(struct buffer *record)
{
	buffer_init(record, UINT16_MAX);
	buffer_put_u32(record, RECORD_TEXT_POKE);
	buffer_put_u16(record, PERF_RECORD_MISC_USER);
	buffer_put_u16(record, 0); /* of the record: below */
	buffer_put_u64(record, 0); /* address */
	buffer_put_u16(record, 0); /* bytes of the old content */
	buffer_put_u16(record, 0); /* of the content: below */
}

struct mmt_error *own_record_append(struct recorder *recorder, struct buffer *record, uint64_t id, pid_t pid,
				    uint64_t time_ns)
{
	size_t content_bytes = record->size - CONTENT_OFFSET;
	struct mmt_error *error;

	buffer_align(record, 8);
	buffer_put_u32(record, (uint32_t)pid);
	buffer_put_u32(record, (uint32_t)pid);
	buffer_put_u64(record, time_ns);
	buffer_put_u64(record, 0); /* cpu */
	buffer_put_u64(record, id);
	error = buffer_finish(record);
	if (!error) {
		buffer_patch_u16(record, RECORD_BYTES_OFFSET, (uint16_t)record->size);
		buffer_patch_u16(record, CONTENT_BYTES_OFFSET, (uint16_t)content_bytes);
		recorder_append(recorder, record->data, record->size, time_ns);
	}
	buffer_deinit(record);
	return error;
}
