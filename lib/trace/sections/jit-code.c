// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/jit-code.h"

#include <stdlib.h>
#include <string.h>

#include "base/compression.h"
#include "base/limits.h"
#include "trace/format/format.h"
#include "trace/sections/section-codec.h"

#define CODE_VERSION 3
#define TIMES_VERSION 2		 /* and later: a program has until_ns and changes */
#define BYTES_VERSION 2		 /* and only this one: a change has the bytes of the other code */
#define PROGRAM_BYTES 8		 /* without any run, at least */
#define RUN_BYTES 16		 /* without its code */
#define CHANGE_BYTES 24		 /* without its code */
#define PIECE_BYTES (256u << 10) /* size of a frame */

bool jit_code_is_path(const char *path)
{
	return !strncmp(path, "//anon", 6) || !strncmp(path, "/memfd:", 7) || !strncmp(path, "[anon", 5) ||
	       !strncmp(path, "/dev/zero", 9) || !strncmp(path, "/anon_hugepage", 14) || !strncmp(path, "/SYSV", 5) ||
	       !strcmp(path, "[heap]") || !strcmp(path, "");
}

bool jit_code_is_wanted(const char *path)
{
	const char *suffix = strrchr(path, '.');

	return jit_code_is_path(path) || (suffix && (!strcmp(suffix, ".dll") || !strcmp(suffix, ".exe")));
}

void jit_code_deinit(struct jit_code *code)
{
	for (size_t i = 0; i < code->programs.count; i++) {
		vector_deinit(&code->programs.items[i].runs);
		vector_deinit(&code->programs.items[i].changes);
	}
	vector_deinit(&code->programs);
	buffer_deinit(&code->bytes);
}

bool jit_code_add(struct jit_code_program *program, uint64_t start, size_t size, size_t offset)
{
	struct jit_code_run run = {.start = start, .size = size, .offset = offset};
	struct jit_code_run *last = program->runs.count ? &program->runs.items[program->runs.count - 1] : NULL;

	if (last && start < last->start + last->size)
		return true;
	if (last && last->start + last->size == start && last->offset + last->size == offset) {
		last->size += size;
		return true;
	}
	return vector_push(&program->runs, run);
}

static struct mmt_error *encode_run(struct section_packing *packing, const struct jit_code_source *source,
				    const struct jit_code_run *run)
{
	struct mmt_error *error = NULL;

	buffer_put_u64(&packing->plain, run->start);
	buffer_put_u64(&packing->plain, run->size);
	for (size_t done = 0, before; !error && done < run->size; done += packing->plain.size - before) {
		if (packing->plain.size >= PIECE_BYTES)
			error = packing_flush(packing);
		before = packing->plain.size;
		if (!error)
			error = source->read(source->context, run->offset + done, run->size - done, &packing->plain);
		if (!error)
			error = buffer_finish(&packing->plain);
	}
	return error;
}

static struct mmt_error *encode_program(struct section_packing *packing, const struct jit_code_source *source,
					const struct jit_code_program *program)
{
	struct buffer *plain = &packing->plain;
	struct mmt_error *error = NULL;

	buffer_put_u32(plain, (uint32_t)program->pid);
	buffer_put_u32(plain, (uint32_t)program->runs.count);
	buffer_put_u64(plain, program->until_ns);
	buffer_put_u32(plain, (uint32_t)program->changes.count);
	for (size_t i = 0; !error && i < program->runs.count; i++)
		error = encode_run(packing, source, &program->runs.items[i]);
	for (size_t i = 0; !error && i < program->changes.count; i++) {
		buffer_put_u64(plain, program->changes.items[i].start);
		buffer_put_u64(plain, program->changes.items[i].size);
		buffer_put_u64(plain, program->changes.items[i].until_ns);
	}
	return error;
}

static struct mmt_error *read_bytes(void *context, size_t offset, size_t size, struct buffer *plain)
{
	const struct jit_code *code = context;

	buffer_put(plain, code->bytes.data + offset, size < PIECE_BYTES ? size : PIECE_BYTES);
	return NULL;
}

struct mmt_error *jit_code_encode(const struct jit_code *code, const struct jit_code_source *source,
				  struct buffer *buffer)
{
	const struct jit_code_source own = {(void *)code, read_bytes};
	struct section_packing packing;
	struct mmt_error *error = packing_begin(&packing, CODE_VERSION, buffer);

	buffer_put_u32(&packing.plain, (uint32_t)code->programs.count);
	for (size_t i = 0; !error && i < code->programs.count; i++)
		error = encode_program(&packing, source ? source : &own, &code->programs.items[i]);
	return packing_end(&packing, error);
}

static const struct jit_code_run *find_run(const struct jit_code_program *program, uint64_t address)
{
	size_t behind = partition_point(program->runs.count, i, program->runs.items[i].start <= address);
	const struct jit_code_run *run = behind ? &program->runs.items[behind - 1] : NULL;

	return run && address - run->start < run->size ? run : NULL;
}

static int compare_changes(const void *first, const void *second)
{
	uint64_t a = ((const struct jit_code_change *)first)->start,
		 b = ((const struct jit_code_change *)second)->start;

	return a < b ? -1 : a > b;
}

/* Sorts the changes, and joins those that overlap: the last of them counts. */
static void sort_changes(struct jit_code_program *program)
{
	struct jit_code_change *changes = program->changes.items;
	size_t count = 0;

	if (program->changes.count)
		qsort(changes, program->changes.count, sizeof(*changes), compare_changes);
	for (size_t i = 0; i < program->changes.count; i++) {
		struct jit_code_change *last = count ? &changes[count - 1] : NULL;
		uint64_t end = changes[i].start + changes[i].size;

		if (!last || changes[i].start >= last->start + last->size) {
			changes[count++] = changes[i];
			continue;
		}
		if (end > last->start + last->size)
			last->size = end - last->start;
		if (last->until_ns < changes[i].until_ns)
			last->until_ns = changes[i].until_ns;
	}
	program->changes.count = count;
}

static struct mmt_error *decode_changes(struct bytes *bytes, uint32_t version, uint64_t count,
					struct jit_code_program *program)
{
	count = bytes_count(bytes, count, CHANGE_BYTES);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct jit_code_change change = {.start = bytes_u64(bytes)};
		const struct jit_code_run *run = find_run(program, change.start);

		change.size = bytes_u64(bytes);
		change.until_ns = bytes_u64(bytes);
		if (!run || change.size > run->size - (change.start - run->start))
			bytes_fail(bytes, "changes outside the code");
		if (version == BYTES_VERSION && bytes_ok(bytes))
			bytes_skip(bytes, change.size);
		if (bytes_ok(bytes) && !vector_push(&program->changes, change))
			return &error_no_memory;
	}
	sort_changes(program);
	return NULL;
}

static struct mmt_error *decode_program(struct bytes *bytes, uint32_t version, struct jit_code_program *program)
{
	uint64_t count, change_count = 0, previous = 0;

	program->pid = (int32_t)bytes_u32(bytes);
	count = bytes_u32(bytes);
	program->until_ns = version >= TIMES_VERSION ? bytes_u64(bytes) : UINT64_MAX;
	if (version >= TIMES_VERSION)
		change_count = bytes_u32(bytes);
	count = bytes_count(bytes, count, RUN_BYTES);
	for (uint64_t i = 0; i < count && bytes_ok(bytes); i++) {
		struct jit_code_run run = {.start = bytes_u64(bytes)};
		uint64_t size = bytes_u64(bytes);

		size = bytes_count(bytes, size, 1);
		if (run.start < previous || run.start > UINT64_MAX - size)
			bytes_fail(bytes, "code out of order");
		run.size = (size_t)size;
		run.offset = (size_t)(bytes->position - bytes->start);
		bytes_skip(bytes, size);
		previous = run.start + size;
		if (bytes_ok(bytes) && !vector_push(&program->runs, run))
			return &error_no_memory;
	}
	return decode_changes(bytes, version, change_count, program);
}

struct mmt_error *jit_code_decode(struct bytes *bytes, size_t *room, struct jit_code *code_ret)
{
	struct unpacked_section section;
	struct mmt_error *error =
	    section_begin(&section, bytes, "JIT code section", CODE_VERSION, LIMIT_CODE_BYTES, room);
	uint64_t count = bytes_at_most(&section.bytes, bytes_count_u32(&section.bytes, PROGRAM_BYTES), LIMIT_PROCESSES);

	*code_ret = (struct jit_code){.bytes = section.plain};
	section.plain = (struct buffer){0};
	for (uint64_t i = 0; i < count && bytes_ok(&section.bytes) && !error; i++) {
		struct jit_code_program *program = vector_append(&code_ret->programs);

		error = program ? decode_program(&section.bytes, section.version, program) : &error_no_memory;
	}
	error = section_end(&section, error);
	if (error)
		jit_code_deinit(code_ret);
	return error;
}

const struct jit_code_program *jit_code_find(const struct jit_code *code, int32_t pid, uint64_t began_ns)
{
	const struct jit_code_program *found = NULL;

	for (size_t i = 0; i < code->programs.count; i++) {
		const struct jit_code_program *program = &code->programs.items[i];

		if (program->pid == pid && program->until_ns > began_ns &&
		    (!found || program->until_ns < found->until_ns))
			found = program;
	}
	return found;
}

size_t jit_code_at(const struct jit_code *code, const struct jit_code_program *program, uint64_t address, size_t size,
		   const uint8_t **code_ret)
{
	const struct jit_code_run *run = find_run(program, address);
	size_t left;

	if (!run)
		return 0;
	left = run->size - (size_t)(address - run->start);
	*code_ret = code->bytes.data + run->offset + (address - run->start);
	return size < left ? size : left;
}

size_t jit_code_before(const struct jit_code *code, const struct jit_code_program *program, uint64_t address,
		       size_t size, const uint8_t **code_ret)
{
	const struct jit_code_run *run = address ? find_run(program, address - 1) : NULL;
	size_t before;

	if (!run)
		return 0;
	before = (size_t)(address - run->start);
	if (size > before)
		size = before;
	*code_ret = code->bytes.data + run->offset + before - size;
	return size;
}

uint64_t jit_code_replaced_ns(const struct jit_code_program *program, uint64_t address)
{
	size_t behind = partition_point(program->changes.count, i, program->changes.items[i].start <= address);
	const struct jit_code_change *change = behind ? &program->changes.items[behind - 1] : NULL;

	return change && address - change->start < change->size ? change->until_ns : 0;
}
