// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 *     make-seeds DIRECTORY MODULE
 *
 * Writes small recordings with every kind of record and section to the directory, as corpus for fuzz-report. MODULE is
 * a small ELF file, which they contain.
 */
#include <mmtrace/pack.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compression.h"
#include "support/recording-builder.h"
#include "trace/sections/sections.h"

#define START 5000000000ull
#define SECOND 1000000000ull
#define PID 100
#define CHILD 200
#define PAGE 4096ull
#define HEAP 0x500000ull
#define ANON 0x7f0000000000ull
#define LIBRARY 0x7f1000000000ull
#define JIT 0x7f2000000000ull
#define HUGE 0x7f4000000000ull
#define HUGE_BYTES (2ull << 20)
#define READINGS 49 /* enough for a verdict */
#define LIBRARY_PATH "/nowhere/libseed.so"

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "make-seeds: %s\n", error->message);
	exit(1);
}

static void check(bool fine)
{
	if (!fine)
		require(&error_no_memory);
}

static struct event_mapping line(uint64_t start, uint64_t length, uint32_t protection, const char *path)
{
	return (struct event_mapping){.start = start,
				      .length = length,
				      .inode = *path == '/' ? 77 : 0,
				      .protection = protection,
				      .flags = MAP_PRIVATE | (*path == '/' ? 0 : MAP_ANONYMOUS),
				      .path = path};
}

/* After the calls, or before. */
static void put_snapshot(struct recording_builder *builder, enum snapshot_kind kind, uint64_t time_ns, int32_t pid)
{
	bool after = kind == SNAPSHOT_INTERVAL || kind == SNAPSHOT_STOP;
	const struct event_mapping lines[] = {
	    line(HEAP, after ? 32 * PAGE : 16 * PAGE, PROT_READ | PROT_WRITE, "[heap]"),
	    line(ANON, 64 * PAGE, PROT_READ | PROT_WRITE, ""),
	    line(ANON + 128 * PAGE, after ? 2 * PAGE : 0, PROT_NONE, ""),
	    line(ANON + 131 * PAGE, after ? PAGE : 0, PROT_READ | PROT_WRITE, ""),
	    line(ANON + 256 * PAGE, after ? 6 * PAGE : 0, PROT_READ | PROT_WRITE, ""),
	    line(LIBRARY, 16 * PAGE, PROT_READ | PROT_EXEC, LIBRARY_PATH),
	    line(JIT, 16 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, ""),
	    line(HUGE, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE, ""),
	};

	builder_snapshot(builder, kind, time_ns, pid, lines, sizeof(lines) / sizeof(*lines));
}

/* A call whose stack goes through JIT code, a library and code that is unknown. */
static void call(struct recording_builder *builder, struct builder_call call)
{
	static const uint64_t callchain[] = {LIBRARY + 0x140, JIT + 0x120, JIT + 0x20, LIBRARY + 0x180, 0x401000};
	static const uint64_t stack[] = {ANON, JIT + 0x120, ANON, JIT + 0x20, LIBRARY + 0x180, 0, 0, 0};

	call.tid = call.tid ? call.tid : call.pid;
	call.callchain = callchain;
	call.callchain_count = sizeof(callchain) / sizeof(*callchain);
	call.instruction_pointer = callchain[0];
	call.stack_pointer = ANON + PAGE;
	call.frame_pointer = ANON + PAGE + 16;
	call.stack = stack;
	call.stack_size = sizeof(stack);
	builder_call(builder, &call);
}

static void put_calls(struct recording_builder *builder, uint64_t time_ns, int32_t pid, bool dumps)
{
	static const struct builder_call calls[] = {
	    {.call = CALL_MMAP, .arguments = {0, 8 * PAGE, 3, 0x22, UINT64_MAX}, .result = ANON + 128 * PAGE},
	    {.call = CALL_BRK, .arguments = {HEAP + 32 * PAGE}, .result = HEAP + 32 * PAGE},
	    {.call = CALL_MPROTECT, .arguments = {ANON + 128 * PAGE, 2 * PAGE}},
	    {.call = CALL_MREMAP,
	     .arguments = {ANON + 132 * PAGE, 4 * PAGE, 6 * PAGE, MREMAP_MAYMOVE},
	     .result = ANON + 256 * PAGE},
	    {.call = CALL_SHMAT, .arguments = {5}, .result = ANON + 512 * PAGE},
	    {.call = CALL_MADVISE, .arguments = {ANON, 4 * PAGE, MADV_DONTFORK}},
	    {.call = CALL_MUNMAP, .arguments = {ANON + 130 * PAGE, PAGE}},
	    {.call = CALL_SHMDT, .arguments = {ANON + 512 * PAGE}},
	    {.call = CALL_MMAP, .arguments = {0, 8 * PAGE, 3, 0x22, UINT64_MAX}, .result = -12},
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		struct builder_call one = calls[i];

		one.pid = pid;
		one.time_ns = time_ns + i * SECOND / 16;
		call(builder, one);
		one.dump = dumps && call_has_stack(one.call);
		if (one.dump)
			call(builder, one);
	}
}

static void put_pages(struct recording_builder *builder, uint64_t time_ns, uint32_t reading)
{
	const struct resident_run runs[] = {{HEAP, HEAP + 4 * PAGE}, {ANON, ANON + 32 * PAGE}};

	builder_pages(
	    builder, time_ns, PID,
	    &(struct builder_pages){.reading = reading, .resident_bytes = 40 * PAGE, .runs = runs, .run_count = 2});
}

static void put_notes(struct recording_builder *builder)
{
	builder_note(builder, START, PID, NOTE_STARTED, SECOND, 0);
	builder_note(builder, START, PID, NOTE_UNRECORDED_CHILDREN, 2, 0);
	for (unsigned i = 0; i < READINGS; i++) {
		uint64_t time_ns = START + i * SECOND / 5 + 1;

		builder_note(builder, time_ns, PID, NOTE_RESIDENT, (64 + i) * 1024 * PAGE, i + 1);
		if (i % 16 == 0)
			builder_note(builder, time_ns, PID, NOTE_SWAPPED, i * PAGE, i + 1);
		if (i == READINGS - 1)
			builder_note(builder, time_ns, PID, NOTE_LAZY_FREE, i * PAGE, i + 1);
	}
	builder_note(builder, START + 2 * SECOND, PID, NOTE_MARK, 1, 0);
	builder_note(builder, START + 3 * SECOND, PID, NOTE_LARGE_DUMPS, 0, 1);
	builder_note(builder, START + 4 * SECOND, PID, NOTE_LARGE_DUMPS, 1, 2);
}

static void put_events(struct recording_builder *builder, bool dumps)
{
	const struct event_mapping library = line(LIBRARY, 16 * PAGE, PROT_READ | PROT_EXEC, LIBRARY_PATH);

	builder_thread_name(builder, START, PID, PID, "seed");
	put_snapshot(builder, SNAPSHOT_START, START + 1, PID);
	put_notes(builder);
	put_calls(builder, START + SECOND, PID, dumps);
	builder_fork(builder, START + 2 * SECOND, CHILD, CHILD, PID, PID);
	builder_new_task(builder, START + 2 * SECOND, PID, PID, CHILD, 0);
	put_snapshot(builder, SNAPSHOT_FIRST, START + 2 * SECOND + 10, CHILD);
	builder_fork(builder, START + 2 * SECOND + 20, PID, PID + 1, PID, PID);
	builder_new_task(builder, START + 2 * SECOND + 20, PID, PID, PID + 1, CLONE_VM);
	builder_round(builder);
	builder_round(builder);
	put_calls(builder, START + 3 * SECOND, CHILD, dumps);
	put_snapshot(builder, SNAPSHOT_INTERVAL, START + 5 * SECOND, PID);
	put_pages(builder, START + 5 * SECOND + 1, 1);
	builder_exec(builder, START + 6 * SECOND, CHILD, CHILD, "other");
	builder_mapping(builder, START + 6 * SECOND + 1, CHILD, CHILD, &library);
	builder_exit(builder, START + 7 * SECOND, CHILD, CHILD);
	builder_round(builder);
	builder_exit(builder, START + 8 * SECOND + 1, PID, PID + 1);
	put_snapshot(builder, SNAPSHOT_STOP, START + 10 * SECOND, PID);
	builder_round(builder);
}

static void put_section(struct recording_builder *builder, enum format_feature feature, struct buffer *buffer,
			struct mmt_error *error)
{
	require(error);
	require(buffer_finish(buffer));
	builder_section(builder, feature, buffer->data, buffer->size);
	buffer_deinit(buffer);
	buffer_init(buffer, 1 << 20);
}

static void put_jit_names(struct recording_builder *builder, struct buffer *buffer)
{
	static const char text[] = "7f2000000000 100 int Program::Main()\n7f2000000100 100 void Program::Leak(int)\n";
	struct perf_map_copies maps = {0};
	struct perf_map_copy *map = vector_append(&maps.maps);

	check(map && (map->text = (uint8_t *)strdup(text)));
	map->pid = map->namespace_pid = PID;
	map->text_size = sizeof(text) - 1;
	check(vector_push(&map->growth, ((struct perf_map_growth){START + SECOND, map->text_size})));
	put_section(builder, FEATURE_MMTRACE_PERF_MAPS, buffer, section_write(&section_perf_maps, &maps, buffer));
	section_perf_maps.deinit(&maps);
}

/* A header and one function. */
static void put_jitdump(struct recording_builder *builder, struct buffer *buffer)
{
	static const char name[] = "jitted";
	static const uint64_t header[] = {1ull << 32 | 0x4a695444, 62ull << 32 | 40, 1ull << 32, 0, 0};
	const uint64_t load[7] = {(sizeof(load) + sizeof(name) + 16) << 32,
				  START,
				  (uint64_t)PID << 32 | PID,
				  JIT + 0x200,
				  JIT + 0x200,
				  16,
				  1};
	static const uint8_t code[16] = {0x55, 0x48, 0x89, 0xe5, 0xe8};
	struct jitdump_copies dumps = {0};
	struct jitdump_copy *dump = vector_append(&dumps.dumps);
	struct buffer data;

	buffer_init(&data, 1 << 16);
	buffer_put(&data, header, sizeof(header));
	buffer_put(&data, load, sizeof(load));
	buffer_put(&data, name, sizeof(name));
	buffer_put(&data, code, sizeof(code));
	check(dump && !data.error);
	*dump = (struct jitdump_copy){
	    .pid = PID, .namespace_pid = PID, .knows_program = true, .data = data.data, .size = data.size};
	put_section(builder, FEATURE_MMTRACE_JITDUMPS, buffer, section_write(&section_jitdumps, &dumps, buffer));
	section_jitdumps.deinit(&dumps);
}

static void put_code(struct recording_builder *builder, struct buffer *buffer)
{
	static const uint8_t code[512] = {0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 1, 0, 0, 0xc3};
	struct compressor compressor;
	struct section_packing packing;
	struct buffer frame;
	struct mmt_error *error = compressor_init(&compressor);

	buffer_init(&frame, 1 << 16);
	check(!error && !compressor_frame(&compressor, code, sizeof(code), &frame) &&
	      !jit_code_encode(&packing, 1, buffer));
	error = jit_code_encode_program(&packing, PID, UINT64_MAX, &(struct jit_code_page){JIT, frame.data, frame.size},
					1, sizeof(code));
	put_section(builder, FEATURE_MMTRACE_CODE, buffer, packing_end(&packing, error));
	compressor_deinit(&compressor);
	buffer_deinit(&frame);
}

static void put_page_readings(struct recording_builder *builder, struct buffer *buffer)
{
	struct recording_residency residency = {0};
	struct process_residency *processes[] = {vector_append(&residency.at_start),
						 vector_append(&residency.processes)};

	for (size_t i = 0; i < 2; i++) {
		check(processes[i]);
		processes[i]->pid = PID;
		processes[i]->time_ns = START + 10 * i * SECOND;
		processes[i]->resident_bytes = (40 + 20 * i) * PAGE;
		check(vector_push(&processes[i]->runs, ((struct resident_run){HEAP, HEAP + (4 + i) * PAGE})) &&
		      vector_push(&processes[i]->runs, ((struct resident_run){ANON, ANON + (32 + i) * PAGE})));
	}
	put_section(builder, FEATURE_MMTRACE_RESIDENCY, buffer, section_write(&section_residency, &residency, buffer));
	section_residency.deinit(&residency);
}

static void put_huge_pages(struct recording_builder *builder, struct buffer *buffer)
{
	struct recording_huge_pages huge = {.setting = HUGE_ALWAYS};
	struct process_huge_pages *process = vector_append(&huge.processes);

	check(process);
	*process = (struct process_huge_pages){
	    .pid = PID, .bytes = 2 * HUGE_BYTES, .sampled_bytes = 16 * PAGE, .zero_bytes = 12 * PAGE};
	put_section(builder, FEATURE_MMTRACE_HUGE_PAGES, buffer, section_write(&section_huge_pages, &huge, buffer));
	section_huge_pages.deinit(&huge);
}

static void put_options(struct recording_builder *builder, struct buffer *buffer)
{
	struct runtime_options options = {0};
	static const char arguments[] = "java\0-XX:+PreserveFramePointer", variables[] = "MONO_DEBUG=disable_omit_fp";

	check(runtime_options_scan(&options, PID, 0, arguments, sizeof(arguments), variables, sizeof(variables)));
	put_section(builder, FEATURE_MMTRACE_OPTIONS, buffer, runtime_options_encode(&options, buffer));
	section_options.deinit(&options);
}

static void put_heaps(struct recording_builder *builder, struct buffer *buffer)
{
	struct mmt_heap_group groups[] = {
	    {MMT_HEAP_TYPE, 928, 928, 20, 18560, 1, 4096, "N3app7SessionE", 0},
	    {MMT_HEAP_POINTER, 64, 64, 10, 640, 0, 0, LIBRARY_PATH, 0x1000},
	    {MMT_HEAP_TEXT, 32, 1024, 5, 2000, 0, 0, "", 0},
	};
	struct heap_censuses heaps = {0};

	for (unsigned i = 0; i < 2; i++) {
		struct mmt_heap_census census = {.pid = PID,
						 .time_ns = START + 10 * i * SECOND,
						 .when = i ? MMT_HEAP_AT_STOP : MMT_HEAP_AT_START,
						 .allocator = MMT_ALLOCATOR_GLIBC,
						 .result = i ? MMT_HEAP_COMPLETE : MMT_HEAP_DAMAGED,
						 .allocator_name = "glibc 2.36",
						 .arenas = 1,
						 .mapped_bytes = 33 * PAGE,
						 .walked_bytes = 33 * PAGE,
						 .in_use_low = 21200,
						 .in_use_high = 21200,
						 .free_bytes = 4096,
						 .groups = groups,
						 .group_count = 3};

		check(vector_push(&heaps.items, census));
	}
	put_section(builder, FEATURE_MMTRACE_HEAP, buffer, section_write(&section_heap, &heaps, buffer));
	vector_deinit(&heaps.items);
}

static void read_module(const char *path, struct buffer *content)
{
	FILE *stream = fopen(path, "rb");
	char block[65536];

	if (stream)
		buffer_put(content, block, fread(block, 1, sizeof(block), stream));
	if (!stream || !content->size || content->error) {
		fprintf(stderr, "make-seeds: %s: cannot be read\n", path);
		exit(1);
	}
	fclose(stream);
}

static void put_module(struct recording_builder *builder, struct buffer *buffer, const char *path)
{
	struct module_copies copies = {0};
	struct module_copy *copy = vector_append(&copies.images);
	struct compressor compressor = {0};
	struct buffer content;

	buffer_init(&content, 1 << 20);
	read_module(path, &content);
	check(copy && (copy->path = strdup(LIBRARY_PATH)));
	copy->inode = 77;
	copy->size = content.size;
	module_copies_encode_index(&copies, buffer);
	copy->offset = (uint32_t)buffer->size;
	require(compressor_init(&compressor));
	require(compressor_frame(&compressor, content.data, content.size, buffer));
	compressor_deinit(&compressor);
	copy->stored = (uint32_t)buffer->size - copy->offset;
	module_copies_encode_index(&copies, buffer);
	put_section(builder, FEATURE_MMTRACE_IMAGES, buffer, NULL);
	module_copies_deinit(&copies);
	buffer_deinit(&content);
}

static void put_build_ids(struct recording_builder *builder, struct buffer *buffer)
{
	struct build_ids ids = {0};
	struct build_id_entry *entry = vector_append(&ids.entries);

	check(entry && (entry->path = strdup("/nowhere/libother.so")));
	memset(entry->bytes, 0xab, sizeof(entry->bytes));
	entry->size = sizeof(entry->bytes);
	build_ids_encode(&ids, buffer);
	put_section(builder, FEATURE_BUILD_ID, buffer, NULL);
	build_ids_deinit(&ids);
}

static void finish(struct recording_builder *builder, const char *module)
{
	struct buffer buffer;

	buffer_init(&buffer, 1 << 20);
	put_jit_names(builder, &buffer);
	put_jitdump(builder, &buffer);
	put_code(builder, &buffer);
	put_page_readings(builder, &buffer);
	put_huge_pages(builder, &buffer);
	put_options(builder, &buffer);
	put_heaps(builder, &buffer);
	put_module(builder, &buffer, module);
	put_build_ids(builder, &buffer);
	buffer_deinit(&buffer);
	builder_finish(builder, START + 11 * SECOND);
}

static void pack(const char *input, const char *output)
{
	struct mmt_pack_options options = {.input = input, .output = output};
	struct mmt_pack_summary summary;

	require(mmt_pack(&options, &summary));
}

static void put_locks(struct recording_builder *builder)
{
	for (unsigned i = 0; i < 32; i++)
		builder_lock(builder, START + SECOND + i * SECOND / 16 - 1, PID, PID, 0xffff888000000000, true);
}

int main(int argc, char **argv)
{
	struct recording_builder *builder;

	if (argc != 3 || chdir(argv[1]))
		return 2;
	builder = builder_create_with("small-all", false, false);
	put_events(builder, false);
	finish(builder, argv[2]);
	pack("small-all", "small-packed");

	builder = builder_create_at("small-locks", START);
	put_locks(builder);
	put_events(builder, true);
	finish(builder, argv[2]);

	builder = builder_create_without_stacks("small-killed");
	put_events(builder, false);
	builder_lost(builder, START + 11 * SECOND, BUILDER_SYSCALL_ID + CALL_MMAP, 3);
	builder_abandon(builder);
	return 0;
}
