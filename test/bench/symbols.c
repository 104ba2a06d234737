// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 *     bench-symbols names FILE <ADDRESSES
 *     bench-symbols record FILE RECORDING <ADDRESSES
 *     bench-symbols record-for-perf FILE RECORDING <ADDRESSES
 *
 * Prints the functions and lines of addresses in an ELF file, as addr2line does; or writes a recording in which each
 * address is the only frame of a call's stack, or the instruction pointer of a cpu-clock sample. test/bench/symbol-cost
 * chooses the addresses and runs the other tools.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/limits.h"
#include "base/vector.h"
#include "program-image.h"
#include "code/elf/module.h"
#include "support/recording-builder.h"
#include "trace/write/writer.h"

#define PID 100

static VECTOR(uint64_t) addresses;

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "bench-symbols: %s\n", error->message);
	exit(EXIT_FAILURE);
}

static void read_addresses(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		if (!vector_push(&addresses, strtoull(line, NULL, 16)))
			exit(EXIT_FAILURE);
	}
}

static void print_names(const char *path)
{
	struct modules *modules;
	struct module *module;

	require(modules_create(EM_X86_64, true, &modules));
	require(modules_open(modules, path, NULL, 0, 0, &module));
	for (size_t i = 0; i < addresses.count; i++) {
		struct module_frame frames[LIMIT_INLINED_FRAMES];
		size_t count = module_names(module, addresses.items[i], frames);

		for (size_t j = 0; j < count; j++)
			printf("%s\n%s:%u\n", frames[j].function ? frames[j].function : "??",
			       frames[j].source_file ? frames[j].source_file : "??", frames[j].source_line);
	}
	modules_destroy(modules);
}

static void write_recording(char *path, const char *recording)
{
	struct recording_builder *builder = builder_create(recording);
	struct program_image image = program_image_describe(path);
	uint64_t time_ns = 10000;

	builder_comm(builder, 900, PID, PID, "symbols");
	builder_mapping(builder, 1000, PID, PID, &image.mapping);
	for (size_t i = 0; i < addresses.count; i++, time_ns += 1000)
		builder_mmap_exit(builder, time_ns, PID, PID, 0x100000000u + i * 8192, 4096,
				  PROGRAM_IMAGE_BASE + addresses.items[i] + 1);
	builder_round(builder);
	program_image_write_build_id(&image, builder);
	program_image_deinit(&image);
	builder_finish(builder, time_ns);
}

#define RECORD_WORDS (8 + 512)

static void append_record(struct writer *writer, uint32_t type, const uint64_t *words, size_t count)
{
	uint64_t record[1 + RECORD_WORDS];
	struct perf_event_header header = {
	    .type = type, .misc = PERF_RECORD_MISC_USER, .size = (uint16_t)((1 + count) * sizeof(*record))};

	memcpy(record, &header, sizeof(header));
	memcpy(record + 1, words, count * sizeof(*words));
	require(writer_append(writer, record, header.size));
}

/* perf needs the instruction pointer of a sample: it symbolizes callchains, but looks up no lines for them. */
static void write_for_perf(char *path, const char *recording)
{
	const uint64_t id = 1, task = PID | (uint64_t)PID << 32;
	struct program_image image = program_image_describe(path);
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1,
				       .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
				       .mmap = 1,
				       .mmap2 = 1};
	uint64_t mapping[RECORD_WORDS] = {task,
					  image.mapping.start,
					  image.mapping.length,
					  image.mapping.file_offset,
					  0,
					  0,
					  0,
					  (uint64_t)MAP_PRIVATE << 32 | image.mapping.protection};
	size_t path_words = strlen(path) / 8 + 1;
	struct writer *writer;

	if (path_words > RECORD_WORDS - 8)
		exit(EXIT_FAILURE);
	memcpy(mapping + 8, path, strlen(path));
	require(writer_create(recording, &writer));
	require(writer_add_attribute(writer, &attr, "cpu-clock", &id, 1));
	require(writer_start(writer));
	append_record(writer, PERF_RECORD_MMAP2, mapping, 8 + path_words);
	for (size_t i = 0; i < addresses.count; i++)
		append_record(writer, PERF_RECORD_SAMPLE,
			      (const uint64_t[]){PROGRAM_IMAGE_BASE + addresses.items[i], task, 10000 + i * 1000}, 3);
	require(writer_end_round(writer));
	require(writer_finish(writer));
	writer_destroy(writer);
	program_image_deinit(&image);
}

int main(int argc, char **argv)
{
	read_addresses();
	if (argc == 3 && !strcmp(argv[1], "names")) {
		print_names(argv[2]);
	} else if (argc == 4 && !strcmp(argv[1], "record")) {
		write_recording(argv[2], argv[3]);
	} else if (argc == 4 && !strcmp(argv[1], "record-for-perf")) {
		write_for_perf(argv[2], argv[3]);
	} else {
		fprintf(stderr, "usage: bench-symbols names FILE | {record|record-for-perf} FILE RECORDING\n");
		return 2;
	}
	vector_deinit(&addresses);
	return 0;
}
