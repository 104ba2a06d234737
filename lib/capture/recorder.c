// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/recorder.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "capture/perf/clock.h"

uint64_t recorder_end_ns(const struct recorder *recorder)
{
	uint64_t duration_ns = recorder->options->duration_ns;

	return duration_ns && duration_ns < UINT64_MAX - recorder->start_ns ? recorder->start_ns + duration_ns
									    : UINT64_MAX;
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

struct mmt_error *recorder_add_section(struct recorder *recorder, enum format_feature feature, struct buffer *buffer)
{
	struct mmt_error *error = writer_take_section(recorder->writer, feature, buffer);

	buffer_clear(buffer);
	return error;
}

static bool note_record(struct recorder *recorder, size_t size, uint64_t time_ns)
{
	if (!recorder->writing || recorder->write_error)
		return false;
	if (!recorder->first_ns || time_ns < recorder->first_ns)
		recorder->first_ns = time_ns;
	if (time_ns > recorder->last_ns)
		recorder->last_ns = time_ns;
	recorder->round_bytes += size;
	return true;
}

void recorder_append(struct recorder *recorder, const void *record, size_t size, uint64_t time_ns)
{
	recorder->drained = false;
	if (note_record(recorder, size, time_ns))
		recorder->write_error = writer_append(recorder->writer, STREAM_OTHERS, record, size);
}

void recorder_append_read(struct recorder *recorder, unsigned stream, const void *record, size_t size,
			  const struct hidden_part *hidden, uint64_t time_ns)
{
	if (note_record(recorder, size, time_ns))
		recorder->write_error =
		    writer_append_hiding(recorder->writer, stream, record, size, hidden->offset, hidden->bytes);
}

void recorder_end_round(struct recorder *recorder)
{
	if (!recorder->writing || recorder->write_error || !recorder->drained)
		return;
	recorder->drained = false;
	recorder->round_bytes = 0;
	recorder->write_error = writer_end_round(recorder->writer);
}

void recorder_flush(struct recorder *recorder)
{
	recorder->flushed_ns = clock_now_ns();
	if (recorder->writing && !recorder->write_error)
		recorder->write_error = writer_flush(recorder->writer);
}
