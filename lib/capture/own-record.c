// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/own-record.h"

#include <linux/perf_event.h>

#include "trace/format.h"

#define RECORD_BYTES_OFFSET 6
#define CONTENT_BYTES_OFFSET 18
#define CONTENT_OFFSET 20

void own_record_begin(struct buffer *record, uint32_t type, uint16_t misc)
{
	buffer_clear(record);
	buffer_put_u32(record, type);
	buffer_put_u16(record, misc);
	buffer_put_u16(record, 0); /* of the record: below */
}

struct mmt_error *own_record_append(struct recorder *recorder, struct buffer *record, pid_t pid, pid_t tid,
				    uint64_t time_ns, uint64_t id)
{
	struct mmt_error *error;

	buffer_align(record, 8);
	buffer_put_u32(record, (uint32_t)pid);
	buffer_put_u32(record, (uint32_t)tid);
	buffer_put_u64(record, time_ns);
	buffer_put_u64(record, 0); /* cpu */
	buffer_put_u64(record, id);
	error = buffer_finish(record);
	if (error)
		return error;
	buffer_patch_u16(record, RECORD_BYTES_OFFSET, (uint16_t)record->size);
	recorder_append(recorder, record->data, record->size, time_ns);
	return NULL;
}

void own_record_begin_bytes(struct buffer *record)
{
	buffer_init(record, UINT16_MAX);
	own_record_begin(record, RECORD_TEXT_POKE, PERF_RECORD_MISC_USER);
	buffer_put_u64(record, 0); /* address */
	buffer_put_u16(record, 0); /* bytes of the old content */
	buffer_put_u16(record, 0); /* of the content: below */
}

struct mmt_error *own_record_append_bytes(struct recorder *recorder, struct buffer *record, pid_t pid, uint64_t time_ns,
					  uint64_t id)
{
	struct mmt_error *error;

	if (!record->error)
		buffer_patch_u16(record, CONTENT_BYTES_OFFSET, (uint16_t)(record->size - CONTENT_OFFSET));
	error = own_record_append(recorder, record, pid, pid, time_ns, id);
	buffer_deinit(record);
	return error;
}
