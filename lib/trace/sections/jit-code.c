// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/sections.h"

#include "base/limits.h"

#define CODE_VERSION 3
#define PROGRAM_BYTES 20 /* without any run */
#define RUN_BYTES 16	 /* without its code */

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

static void jit_code_deinit(void *value)
{
	struct jit_code *code = value;

	vector_deinit_each(&code->programs, item, vector_deinit(&item->runs));
	buffer_deinit(&code->bytes);
}

struct mmt_error *jit_code_encode(struct section_packing *packing, size_t programs, struct buffer *buffer)
{
	struct mmt_error *error = packing_begin(packing, CODE_VERSION, buffer);

	buffer_put_u32(&packing->plain, (uint32_t)programs);
	return error;
}

/* Returns how many of the pages are adjacent. */
static size_t count_adjacent(const struct jit_code_page *pages, size_t count, size_t page_bytes)
{
	size_t adjacent = 1;

	while (adjacent < count && pages[adjacent].address == pages[0].address + adjacent * page_bytes)
		adjacent++;
	return adjacent;
}

struct mmt_error *jit_code_encode_program(struct section_packing *packing, int32_t pid, uint64_t until_ns,
					  const struct jit_code_page *pages, size_t count, size_t page_bytes)
{
	struct mmt_error *error = NULL;
	size_t runs = 0, run;

	for (size_t i = 0; i < count; i += count_adjacent(pages + i, count - i, page_bytes))
		runs++;
	buffer_put_u32(&packing->plain, (uint32_t)pid);
	buffer_put_u32(&packing->plain, (uint32_t)runs);
	buffer_put_u64(&packing->plain, until_ns);
	buffer_put_u32(&packing->plain, 0);
	for (size_t i = 0; !error && i < count; i += run) {
		run = count_adjacent(pages + i, count - i, page_bytes);
		buffer_put_u64(&packing->plain, pages[i].address);
		buffer_put_u64(&packing->plain, run * page_bytes);
		error = packing_flush(packing);
		for (size_t j = i; j < i + run; j++)
			buffer_put(packing->packed, pages[j].frame, pages[j].frame_bytes);
	}
	return error;
}

static const struct jit_code_run *find_run(const struct jit_code_program *program, uint64_t address)
{
	size_t behind = partition_point(program->runs.count, i, program->runs.items[i].start <= address);
	const struct jit_code_run *run = behind ? &program->runs.items[behind - 1] : NULL;

	return run && address - run->start < run->size ? run : NULL;
}

static void read_code(struct codec *codec, void *value)
{
	uint64_t program_count = codec_count(codec, 0, PROGRAM_BYTES, LIMIT_PROCESSES);
	struct bytes *bytes = codec->from;
	struct jit_code_program *program;
	struct jit_code *code = value;

	code->bytes = *codec->plain;
	*codec->plain = (struct buffer){0};
	codec_each(codec, &code->programs, program_count, program) {
		uint64_t count, previous = 0;

		program->pid = (int32_t)bytes_u32(bytes);
		count = bytes_u32(bytes);
		program->until_ns = bytes_u64(bytes);
		if (bytes_u32(bytes))
			bytes_fail(bytes, "code that was replaced");
		count = bytes_count(bytes, count, RUN_BYTES);
		for (uint64_t i = 0; i < count && codec_ok(codec); i++) {
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
				codec->error = &error_no_memory;
		}
	}
}

const struct section_kind section_code = {"JIT code section",	   CODE_VERSION, CODE_VERSION,	 LIMIT_CODE_BYTES,
					  sizeof(struct jit_code), read_code,	 jit_code_deinit};

const struct jit_code_program *jit_code_find(const struct jit_code *code, int32_t pid, uint64_t began_ns)
{
	const struct jit_code_program *found = NULL;

	array_each(program, code->programs.items, code->programs.count) {
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
	size = smaller_of(size, before);
	*code_ret = code->bytes.data + run->offset + before - size;
	return size;
}
