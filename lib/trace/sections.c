// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections.h"

#include <stdlib.h>
#include <string.h>

#include "trace/format.h"

#define INFO_VERSION 2 /* version 1 has no large dumps; older readers would treat them as calls */
#define LOSS_VERSION 3
#define INFO_FLAG_COMMAND 1u
#define INFO_FLAG_ON_CPUS 2u
#define INFO_FLAG_EVERYBODY 4u

static struct mmt_error *check_version(struct bytes *bytes, uint32_t known, const char *what, uint32_t *version_ret)
{
	uint32_t version = *version_ret = bytes_u32(bytes);

	if (version > known)
		return error_create(MMT_ERROR_UNSUPPORTED, "%s of version %u: written by a newer mmtrace, use that one",
				    what, version);
	if (version == 0)
		bytes_fail(bytes, "version 0");
	return NULL;
}

void recording_info_deinit(struct recording_info *info)
{
	free(info->recorder_version);
	vector_deinit(&info->targets);
	vector_deinit(&info->roles);
	*info = (struct recording_info){0};
}

void recording_info_encode(const struct recording_info *info, struct buffer *buffer)
{
	uint32_t flags = (info->command ? INFO_FLAG_COMMAND : 0) | (info->on_cpus ? INFO_FLAG_ON_CPUS : 0) |
			 (info->everybody ? INFO_FLAG_EVERYBODY : 0);

	buffer_put_u32(buffer, INFO_VERSION);
	buffer_put_u32(buffer, flags);
	buffer_put_u64(buffer, info->start_ns);
	buffer_put_u64(buffer, info->start_realtime_ns);
	buffer_put_u32(buffer, info->page_bytes);
	buffer_put_u32(buffer, info->call_graph);
	buffer_put_u32(buffer, info->stack_dump_bytes);
	buffer_put_u32(buffer, info->callchain_limit);
	buffer_put_u32(buffer, (uint32_t)info->targets.count);
	buffer_put_u32(buffer, (uint32_t)info->roles.count);
	for (size_t i = 0; i < info->targets.count; i++)
		buffer_put_u32(buffer, (uint32_t)info->targets.items[i]);
	for (size_t i = 0; i < info->roles.count; i++)
		buffer_put_u32(buffer, info->roles.items[i]);
	buffer_put_string(buffer, info->recorder_version ? info->recorder_version : "");
}

static struct mmt_error *decode_info_lists(struct bytes *bytes, struct recording_info *info)
{
	uint64_t targets = bytes_u32(bytes), roles = bytes_u32(bytes);

	targets = bytes_count(bytes, targets, sizeof(uint32_t), LIMIT_PROCESSES);
	for (uint64_t i = 0; i < targets; i++) {
		if (!vector_push(&info->targets, (int32_t)bytes_u32(bytes)))
			return &error_no_memory;
	}
	roles = bytes_count(bytes, roles, sizeof(uint32_t), LIMIT_ATTRIBUTES);
	for (uint64_t i = 0; i < roles; i++) {
		uint32_t role = bytes_u32(bytes);

		if (role > ROLE_LARGE_DUMP)
			role = ROLE_OTHER;
		if (!vector_push(&info->roles, role))
			return &error_no_memory;
	}
	info->recorder_version = strdup(bytes_string(bytes));
	return info->recorder_version ? NULL : &error_no_memory;
}

struct mmt_error *recording_info_decode(struct bytes *bytes, struct recording_info *info_ret)
{
	uint32_t version;
	struct mmt_error *error = check_version(bytes, INFO_VERSION, "information section", &version);
	struct recording_info info = {0};
	uint32_t flags;

	if (error)
		return error;
	flags = bytes_u32(bytes);
	info.command = flags & INFO_FLAG_COMMAND;
	info.on_cpus = flags & INFO_FLAG_ON_CPUS;
	info.everybody = flags & INFO_FLAG_EVERYBODY;
	info.start_ns = bytes_u64(bytes);
	info.start_realtime_ns = bytes_u64(bytes);
	info.page_bytes = bytes_u32(bytes);
	info.call_graph = bytes_u32(bytes);
	info.stack_dump_bytes = bytes_u32(bytes);
	info.callchain_limit = bytes_u32(bytes);
	if (info.page_bytes < 4096 || info.page_bytes > (1u << 20) || (info.page_bytes & (info.page_bytes - 1)) != 0)
		bytes_fail(bytes, "page size that no machine has");
	error = decode_info_lists(bytes, &info);
	if (!error)
		error = bytes_finish(bytes, "information section");
	if (error)
		recording_info_deinit(&info);
	else
		*info_ret = info;
	return error;
}

void recording_loss_deinit(struct recording_loss *loss)
{
	vector_deinit(&loss->lost);
	*loss = (struct recording_loss){0};
}

void recording_loss_encode(const struct recording_loss *loss, struct buffer *buffer)
{
	buffer_put_u32(buffer, LOSS_VERSION);
	buffer_put_u32(buffer, loss->end);
	buffer_put_u64(buffer, loss->stop_ns);
	buffer_put_u64(buffer, loss->lost.count);
	for (size_t i = 0; i < loss->lost.count; i++)
		buffer_put_u64(buffer, loss->lost.items[i]);
	buffer_put_u64(buffer, loss->missed_threads);
	buffer_put_u64(buffer, loss->missed_cpus);
	buffer_put_u64(buffer, loss->left_processes);
}

struct mmt_error *recording_loss_decode(struct bytes *bytes, struct recording_loss *loss_ret)
{
	uint32_t version;
	struct mmt_error *error = check_version(bytes, LOSS_VERSION, "loss section", &version);
	struct recording_loss loss = {0};
	uint64_t count;

	if (error)
		return error;
	loss.end = bytes_u32(bytes);
	loss.stop_ns = bytes_u64(bytes);
	count = bytes_u64(bytes);
	count = bytes_count(bytes, count, sizeof(uint64_t), LIMIT_ATTRIBUTES);
	for (uint64_t i = 0; i < count && !error; i++) {
		if (!vector_push(&loss.lost, bytes_u64(bytes)))
			error = &error_no_memory;
	}
	if (version >= 2)
		loss.missed_threads = bytes_u64(bytes);
	if (version >= 3) {
		loss.missed_cpus = bytes_u64(bytes);
		loss.left_processes = bytes_u64(bytes);
	}
	if (!error)
		error = bytes_finish(bytes, "loss section");
	if (error)
		recording_loss_deinit(&loss);
	else
		*loss_ret = loss;
	return error;
}
