// SPDX-License-Identifier: LGPL-2.1-or-later
/* Any bytes are a recording: open it, read every event, and read everything an event points to. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/read/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* So that the sanitizer checks every promised byte. */
static uint64_t sum_stack(const struct event_stack *stack)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < stack->callchain_count; i++)
		sum += stack->callchain[i];
	for (size_t i = 0; i < stack->byte_count; i++)
		sum += stack->bytes[i];
	return sum;
}

static uint64_t look_at(const struct event *event)
{
	switch (event->kind) {
	case EVENT_CALL:
	case EVENT_CALL_ENTER:
	case EVENT_STACK_DUMP:
		if ((unsigned)event->call.call >= CALL_KINDS ||
		    event->call.stack.byte_count > event->call.stack.bytes_wanted)
			abort();
		return sum_stack(&event->call.stack);
	case EVENT_MAPPING:
	case EVENT_SNAPSHOT_LINE:
		if (event->mapping.length > UINT64_MAX - event->mapping.start)
			abort();
		return strlen(event->mapping.path);
	case EVENT_COMM:
		return strlen(event->task.name);
	default:
		return 0;
	}
}

static void drain(struct reader *reader)
{
	const struct reader_metadata *metadata = &reader->metadata.values;
	volatile uint64_t sum = 0;
	struct event event;
	bool end = false;

	if (!metadata->architecture || !metadata->attribute_count)
		abort();
	while (!end) {
		struct mmt_error *error = reader_next(reader, &event, &end);

		if (error) {
			mmt_error_destroy(error);
			return;
		}
		if (end)
			break;
		if (event.attribute != UINT32_MAX && event.attribute >= metadata->attribute_count)
			abort();
		sum += look_at(&event);
	}
	(void)sum;
	if (reader_damage(reader) && !*reader_damage(reader))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	struct mmt_error *error;
	struct reader *reader;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = reader_open(path, NULL, &reader);
	if (error) {
		if (!*error->message)
			abort();
		mmt_error_destroy(error);
	} else {
		drain(reader);
		reader_close(reader);
	}
	close(fd);
	return 0;
}
