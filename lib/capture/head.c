// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/head.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <mmtrace/version.h>

#include "base/buffer.h"

#define CLOCK_DATA_VERSION 1

static struct mmt_error *add_attributes(struct recorder *recorder)
{
	struct event_description snapshot;
	uint64_t snapshot_ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS + 3];

	for (size_t i = 0; i < recorder->events.items.count; i++) {
		const struct event_description *event = &recorder->events.items.items[i];
		VECTOR(uint64_t) ids = {0};
		struct mmt_error *error = NULL;

		for (size_t k = 0; !error && k < recorder->attachment.events.count; k++) {
			const struct attached_event *attached = &recorder->attachment.events.items[k];

			if (attached->event == i && !vector_push(&ids, attached->id))
				error = &error_no_memory;
		}
		if (!error)
			error = writer_add_attribute(recorder->writer, &event->attribute, event->name, ids.items,
						     ids.count);
		vector_deinit(&ids);
		if (error)
			return error;
	}
	for (size_t i = 0; i < SNAPSHOT_KINDS * SNAPSHOT_PARTS; i++)
		snapshot_ids[i] = SNAPSHOT_ID_FIRST + i;
	snapshot_ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS] = SNAPSHOT_ID_NAME;
	snapshot_ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS + 1] = NAME_PIECE_ID;
	snapshot_ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS + 2] = NOTE_ID;
	events_describe_snapshot(&snapshot);
	return writer_add_attribute(recorder->writer, &snapshot.attribute, snapshot.name, snapshot_ids,
				    sizeof(snapshot_ids) / sizeof(snapshot_ids[0]));
}

static struct mmt_error *fill_info(const struct recorder *recorder, struct recording_info *info)
{
	info->recorder_version = strdup(mmt_version());
	if (!info->recorder_version)
		return &error_no_memory;
	info->start_ns = recorder->start_ns;
	info->start_realtime_ns = recorder->start_realtime_ns;
	info->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
	info->call_graph = recorder->options->call_graph;
	info->stack_dump_bytes = events_dump_bytes(recorder->options);
	info->callchain_limit = recorder->callchain_limit;
	info->command = recorder->options->command;
	info->on_cpus = recorder->scope.kind != SCOPE_THREADS;
	info->everybody = recorder->scope.kind == SCOPE_EVERYBODY;
	for (size_t i = 0; i < recorder->processes.items.count; i++) {
		if (recorder->processes.items.items[i].target &&
		    !vector_push(&info->targets, recorder->processes.items.items[i].pid))
			return &error_no_memory;
	}
	for (size_t i = 0; i < recorder->events.items.count; i++) {
		if (!vector_push(&info->roles, recorder->events.items.items[i].role))
			return &error_no_memory;
	}
	return vector_push(&info->roles, ROLE_SNAPSHOT) ? NULL : &error_no_memory;
}

static struct mmt_error *add_string(struct recorder *recorder, enum format_feature feature, const char *text,
				    struct buffer *buffer)
{
	writer_put_text(buffer, text);
	return recorder_add_section(recorder, feature, buffer);
}

static struct mmt_error *add_command_line(struct recorder *recorder, struct buffer *buffer)
{
	const char *const *words = recorder->options->command_line;
	uint32_t count = 0;

	if (!words)
		return NULL;
	while (words[count])
		count++;
	buffer_put_u32(buffer, count);
	for (uint32_t i = 0; i < count; i++)
		writer_put_text(buffer, words[i]);
	return recorder_add_section(recorder, FEATURE_CMDLINE, buffer);
}

static struct mmt_error *add_host(struct recorder *recorder, struct buffer *buffer)
{
	char version[64];
	struct utsname host = {0};
	struct mmt_error *error;

	uname(&host);
	snprintf(version, sizeof(version), "mmtrace %s", mmt_version());
	error = add_string(recorder, FEATURE_HOSTNAME, host.nodename, buffer);
	if (!error)
		error = add_string(recorder, FEATURE_OSRELEASE, host.release, buffer);
	if (!error)
		error = add_string(recorder, FEATURE_VERSION, version, buffer);
	if (!error)
		error = add_string(recorder, FEATURE_ARCH, recorder->architecture->name, buffer);
	if (error)
		return error;
	buffer_put_u32(buffer, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	buffer_put_u32(buffer, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	return recorder_add_section(recorder, FEATURE_NRCPUS, buffer);
}

static struct mmt_error *add_clock(struct recorder *recorder, struct buffer *buffer)
{
	struct timespec resolution = {0};
	struct mmt_error *error;

	clock_getres(CLOCK_MONOTONIC, &resolution);
	buffer_put_u64(buffer, (uint64_t)resolution.tv_sec * 1000000000 + (uint64_t)resolution.tv_nsec);
	error = recorder_add_section(recorder, FEATURE_CLOCKID, buffer);
	if (error)
		return error;
	buffer_put_u32(buffer, CLOCK_DATA_VERSION);
	buffer_put_u32(buffer, CLOCK_MONOTONIC);
	buffer_put_u64(buffer, recorder->start_realtime_ns);
	buffer_put_u64(buffer, recorder->start_ns);
	return recorder_add_section(recorder, FEATURE_CLOCK_DATA, buffer);
}

static struct mmt_error *add_info(struct recorder *recorder, struct buffer *buffer)
{
	struct recording_info info = {0};
	struct mmt_error *error = fill_info(recorder, &info);

	if (!error) {
		recording_info_encode(&info, buffer);
		error = recorder_add_section(recorder, FEATURE_MMTRACE_INFO, buffer);
	}
	recording_info_deinit(&info);
	return error;
}

struct mmt_error *head_add(struct recorder *recorder)
{
	struct mmt_error *error = add_attributes(recorder);
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	if (!error)
		error = add_info(recorder, &buffer);
	if (!error) {
		tracepoints_encode(&recorder->events.tracepoints, (uint32_t)sysconf(_SC_PAGESIZE), &buffer);
		error = recorder_add_section(recorder, FEATURE_TRACING_DATA, &buffer);
	}
	if (!error)
		error = add_host(recorder, &buffer);
	if (!error)
		error = add_command_line(recorder, &buffer);
	if (!error)
		error = add_clock(recorder, &buffer);
	buffer_deinit(&buffer);
	return error;
}
