// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/code-copies.h"

#include <string.h>

#include "trace/format.h"
#include "trace/sections.h"

#define CODE_VERSION 1
#define PROCESS_BYTES 8 /* with no run */
#define RUN_BYTES 16	/* with no code */

bool code_copies_is_generated(const char *path)
{
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/memfd:", 7) || !strncmp(path, "[anon", 5) ||
	       !strncmp(path, "/dev/zero", 9) || !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/SYSV", 5) ||
	       !strcmp(path, "[heap]") || !strcmp(path, "");
}

bool code_copies_is_wanted(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return code_copies_is_generated(path) || (suffix && (!strcmp(suffix, ".dll") || !strcmp(suffix, ".exe")));
}

void code_copies_deinit(struct code_copies *copies)
{
	for (size_t i = 0; i < copies->processes.count; i++)
		vector_deinit(&copies->processes.items[i].runs);
	vector_deinit(&copies->processes);
	buffer_deinit(&copies->bytes);
}

struct mmt_error *code_copies_add(struct code_copies *copies, struct process_code *process, uint64_t start,
				  const void *bytes, size_t size)
{
	struct code_run run = {.start = start, .size = size, .offset = copies->bytes.size};
	struct code_run *last = process->runs.count ? &process->runs.items[process->runs.count - 1] : NULL;

	if (last && start < last->start + last->size)
		return NULL;
	buffer_put(&copies->bytes, bytes, size);
	if (copies->bytes.error)
		return buffer_finish(&copies->bytes);
	if (last && last->start + last->size == start && last->offset + last->size == run.offset) {
		last->size += size;
		return NULL;
	}
	return vector_push(&process->runs, run) ? NULL : &error_no_memory;
}

struct mmt_error *code_copies_encode(const struct code_copies *copies, struct buffer *buffer)
{
	struct buffer plain;

	buffer_init(&plain, LIMIT_CODE_BYTES);
	buffer_put_u32(&plain, (uint32_t)copies->processes.count);
	for (size_t i = 0; i < copies->processes.count; i++) {
		const struct process_code *process = &copies->processes.items[i];

		buffer_put_u32(&plain, (uint32_t)process->pid);
		buffer_put_u32(&plain, (uint32_t)process->runs.count);
		for (size_t j = 0; j < process->runs.count; j++) {
			const struct code_run *run = &process->runs.items[j];

			buffer_put_u64(&plain, run->start);
			buffer_put_u64(&plain, run->size);
			buffer_put(&plain, copies->bytes.data + run->offset, run->size);
		}
	}
	return sections_pack(&plain, CODE_VERSION, buffer);
}

static struct mmt_error *decode_process(struct bytes *bytes, struct process_code *process)
{
	uint64_t count, previous = 0;

	process->pid = (int32_t)bytes_u32(bytes);
	count = bytes_u32(bytes);
	count = bytes_count(bytes, count, RUN_BYTES, LIMIT_CODE_BYTES / RUN_BYTES);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct code_run run = {.start = bytes_u64(bytes)};
		uint64_t size = bytes_u64(bytes);

		size = bytes_count(bytes, size, 1, LIMIT_CODE_BYTES);
		if (run.start < previous || run.start > UINT64_MAX - size)
			bytes_fail(bytes, "code out of order");
		run.size = (size_t)size;
		run.offset = (size_t)(bytes->position - bytes->start);
		bytes_skip(bytes, size);
		previous = run.start + size;
		if (bytes_ok(bytes) && !vector_push(&process->runs, run))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *code_copies_decode(struct bytes *bytes, size_t *room, struct code_copies *copies_ret)
{
	uint32_t version = CODE_VERSION;
	static const char what[] = "generated code section";
	struct code_copies copies = {0};
	struct mmt_error *error;
	struct bytes inner;
	uint64_t count;

	buffer_init(&copies.bytes, LIMIT_CODE_BYTES);
	error = sections_unpack(bytes, &version, what, room, &copies.bytes);
	inner = bytes_over(copies.bytes.data, copies.bytes.size);
	count = error ? 0 : bytes_u32(&inner);
	count = bytes_count(&inner, count, PROCESS_BYTES, LIMIT_PROCESSES);
	for (uint64_t i = 0; i < count && bytes_ok(&inner) && !error; i++) {
		struct process_code *process = vector_append(&copies.processes);

		error = process ? decode_process(&inner, process) : &error_no_memory;
	}
	if (!error)
		error = bytes_finish(&inner, what);
	if (error)
		code_copies_deinit(&copies);
	else
		*copies_ret = copies;
	return error;
}

const struct process_code *code_copies_find(const struct code_copies *copies, int32_t pid)
{
	for (size_t i = 0; i < copies->processes.count; i++) {
		if (copies->processes.items[i].pid == pid)
			return &copies->processes.items[i];
	}
	return NULL;
}

static const struct code_run *find_run(const struct process_code *process, uint64_t address)
{
	size_t low = 0, high = process->runs.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct code_run *run = &process->runs.items[middle];

		if (address < run->start)
			high = middle;
		else if (address - run->start >= run->size)
			low = middle + 1;
		else
			return run;
	}
	return NULL;
}

size_t code_copies_at(const struct code_copies *copies, const struct process_code *process, uint64_t address,
		      size_t size, const uint8_t **code_ret)
{
	const struct code_run *run = find_run(process, address);
	size_t left;

	if (!run)
		return 0;
	left = run->size - (size_t)(address - run->start);
	*code_ret = copies->bytes.data + run->offset + (address - run->start);
	return size < left ? size : left;
}

size_t code_copies_before(const struct code_copies *copies, const struct process_code *process, uint64_t address,
			  size_t size, const uint8_t **code_ret)
{
	const struct code_run *run = address ? find_run(process, address - 1) : NULL;
	size_t before;

	if (!run)
		return 0;
	before = (size_t)(address - run->start);
	if (size > before)
		size = before;
	*code_ret = copies->bytes.data + run->offset + before - size;
	return size;
}
