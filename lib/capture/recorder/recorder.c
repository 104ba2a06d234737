// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions that all parts of the recorder use: messages, failures, and appending records, including the recorder's
 * own. */
#include "capture/recorder/recorder.h"

#include <poll.h>
#include <stdarg.h>
#include <sys/ioctl.h>

uint64_t recorder_end_ns(const struct recorder *recorder)
{
	uint64_t duration_ns = recorder->options->duration_ns;

	return duration_ns && duration_ns < UINT64_MAX - recorder->start_ns ? recorder->start_ns + duration_ns
									    : UINT64_MAX;
}

bool recorder_has_helper(const struct recorder *recorder, pid_t pid)
{
	const struct helper *heap = &recorder->jobs.heap_helper;

	if (pid == recorder->calls.process.child || pid == heap->child || pid == heap->dying ||
	    array_find(helper, recorder->calls.blocked.items, recorder->calls.blocked.count, helper->child == pid))
		return true;
	return array_find(process, recorder->processes.items.items, recorder->processes.items.count,
			  (*process)->helper.child == pid || (*process)->helper.dying == pid);
}

bool recorder_is_stopped(const struct recorder *recorder)
{
	struct pollfd stop = {.fd = recorder->options->stop_fd, .events = POLLIN};

	return poll(&stop, 1, 0) > 0;
}

unsigned recorder_stop_requests(const struct recorder *recorder)
{
	int bytes = 0;

	if (!recorder_is_stopped(recorder))
		return 0;
	return ioctl(recorder->options->stop_fd, FIONREAD, &bytes) == 0 && bytes > 0 ? (unsigned)bytes : 1;
}

void recorder_inform(const struct recorder *recorder, const char *text)
{
	if (recorder->options->message)
		recorder->options->message(recorder->options->context, false, text);
}

void recorder_message(const struct recorder *recorder, bool warning, const char *format, ...)
{
	char text[512];
	va_list arguments;

	if (!recorder->options->message || (!warning && !recorder->options->verbose))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	recorder->options->message(recorder->options->context, warning, text);
}

void recorder_keep_failure(struct recorder *recorder, struct mmt_error *failure)
{
	if (recorder->failure)
		mmt_error_destroy(failure);
	else
		recorder->failure = failure;
}

void recorder_append(struct recorder *recorder, const void *record, size_t size, uint64_t time_ns)
{
	if (!recorder->writing || recorder->write_error)
		return;
	if (!recorder->first_ns || time_ns < recorder->first_ns)
		recorder->first_ns = time_ns;
	recorder->last_ns = larger_of(recorder->last_ns, time_ns);
	recorder->round_bytes += size;
	recorder->write_error = writer_append(recorder->writer, record, size);
}

void recorder_end_round(struct recorder *recorder)
{
	if (!recorder->writing || recorder->write_error || !recorder->reader.drained)
		return;
	recorder->reader.drained = false;
	recorder->round_bytes = 0;
	recorder->write_error = writer_end_round(recorder->writer);
}

void recorder_flush(struct recorder *recorder)
{
	recorder->flushed_ns = clock_now_ns();
	if (recorder->writing && !recorder->write_error)
		recorder->write_error = writer_flush(recorder->writer);
}

#define RECORD_BYTES_OFFSET 6
#define CONTENT_BYTES_OFFSET 18
#define CONTENT_OFFSET 20

void own_record_begin(struct buffer *record, uint32_t type, uint16_t misc)
{
	buffer_clear(record);
	buffer_put_u32(record, type);
	buffer_put_u16(record, misc);
	buffer_put_u16(record, 0); /* size of the record, set by own_record_append() */
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
	buffer_patch(record, RECORD_BYTES_OFFSET, record->size, sizeof(uint16_t));
	recorder->reader.drained = false;
	recorder_append(recorder, record->data, record->size, time_ns);
	return NULL;
}

void own_record_begin_bytes(struct buffer *record)
{
	buffer_init(record, UINT16_MAX);
	own_record_begin(record, RECORD_TEXT_POKE, PERF_RECORD_MISC_USER);
	buffer_put_u64(record, 0); /* address */
	buffer_put_u16(record, 0); /* bytes of the old content */
	buffer_put_u16(record, 0); /* bytes of the content, set by own_record_append_bytes() */
}

struct mmt_error *own_record_append_bytes(struct recorder *recorder, struct buffer *record, pid_t pid, uint64_t time_ns,
					  uint64_t id)
{
	struct mmt_error *error;

	buffer_patch(record, CONTENT_BYTES_OFFSET, record->size - CONTENT_OFFSET, sizeof(uint16_t));
	error = own_record_append(recorder, record, pid, pid, time_ns, id);
	buffer_deinit(record);
	return error;
}

struct mmt_error *recorder_note(struct recorder *recorder, enum note_kind kind, pid_t pid, uint64_t time_ns,
				uint64_t value, uint64_t number, const char *text)
{
	struct buffer record;

	own_record_begin_bytes(&record);
	buffer_put_u32(&record, kind);
	buffer_put_u64(&record, value);
	buffer_put_u64(&record, number);
	if (text)
		buffer_put(&record, text, strlen(text) + 1);
	return own_record_append_bytes(recorder, &record, pid, time_ns, NOTE_ID);
}
