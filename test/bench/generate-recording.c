// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Generates a recording of any size with a known answer, as if of a program with several threads that maps and unmaps
 * below JIT code with known names:
 *
 *     generate-recording [OPTIONS] RECORDING >account
 *
 * The account has one line for each stack in ascending order: name of its innermost function, bytes and number of its
 * allocations, bytes and number of releases, unfreed bytes, peak of unfreed bytes; then the same sums as "total".
 *
 * With --processes N the program has N children too, one after the other: each maps something, without a known stack,
 * and exits. They are in the total only.
 *
 * With --lose N, N events of unknown processes were lost.
 *
 * With --program FILE the stacks lie in the code of that program, at any of its functions, and only its symbols name
 * them.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/limits.h"
#include "program-image.h"
#include "support/recording-builder.h"

#define PAGE 4096ULL
#define PAGES_MAX 16
#define SLOT_BYTES (2 * PAGES_MAX * PAGE) /* no two mappings touch each other */
#define FIRST_SLOT 0x200000000000ULL
#define CODE 0x7f0000000000ULL
#define FUNCTION_BYTES 64
#define DEPTH_MAX 100
#define PID 5000000 /* beyond any real one */
#define PROCESSORS 4
#define STACK_FRAME_BYTES 32
#define STACK_TOP 0x7ffd00000000ULL
#define START_NS 4000000000000ULL
#define JUMP_NS 3600000000000ULL
#define STEP_NS_MAX 2000
#define CHILD_NS 500000
#define CHILDREN 1000000 /* their PIDs are above */
#define ROUND_EVENTS 4000

struct options {
	uint64_t events, live, seed, processes, lost;
	uint32_t stacks, depth, threads, dump_bytes;
	bool bare_releases; /* without callchains, as mmtrace records them */
	bool no_rounds;
	uint64_t jump; /* after so many events the clock goes back by an hour; 0: never */
	const char *perf_map;
	char *program; /* NULL: JIT code */
	const char *path;
};

struct slot {
	uint64_t start, bytes, original_bytes; /* start moves up when the lower part is released */
	uint32_t stack, number;
};

struct account {
	uint64_t allocated_bytes, allocated_count, freed_bytes, freed_count, unfreed_bytes, peak_bytes;
};

struct planned {
	uint64_t time_ns, start, bytes;
	uint32_t stack, thread;
	bool release;
};

struct generator {
	struct options options;
	struct recording_builder *builder;
	uint64_t random, now_ns;
	struct slot *slots; /* the live ones first */
	uint64_t live;
	struct account *accounts, total;
	uint32_t *widths; /* how many functions there are at each level, the outermost first */
	struct program_image image;
	struct event_mapping code;
	uint64_t function_bytes;
	struct planned round[ROUND_EVENTS];
	size_t planned;
	uint8_t dump[UINT16_MAX];
};

/* Sebastiano Vigna's splitmix64 (public domain). */
static uint64_t draw(struct generator *generator, uint64_t below)
{
	uint64_t value = generator->random += 0x9e3779b97f4a7c15ULL;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
	value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
	return (value ^ value >> 31) % below;
}

static uint64_t function_start(const struct generator *generator, uint32_t level, uint32_t stack)
{
	uint32_t number = stack % generator->widths[level];

	for (uint32_t i = 0; i < level; i++)
		number += generator->widths[i];
	return generator->code.start + number * generator->function_bytes;
}

static void place_functions(struct generator *generator)
{
	uint64_t functions = 0;

	for (uint32_t i = 0; i < generator->options.depth; i++)
		functions += generator->widths[i];
	if (generator->options.program) {
		generator->image = program_image_describe(generator->options.program);
		generator->code = generator->image.mapping;
		/* Spread over the whole program. */
		generator->function_bytes = (generator->code.length - PAGE) / functions;
		return;
	}
	generator->function_bytes = FUNCTION_BYTES;
	generator->code = (struct event_mapping){.start = CODE,
						 .length = (functions * FUNCTION_BYTES + PAGE - 1) & ~(PAGE - 1),
						 .protection = PROT_READ | PROT_EXEC,
						 .flags = MAP_PRIVATE};
}

/* Innermost first: the instruction, then return addresses. */
static void make_callchain(const struct generator *generator, uint32_t stack, uint64_t *callchain)
{
	uint32_t depth = generator->options.depth;

	for (uint32_t i = 0; i < depth; i++)
		callchain[i] = function_start(generator, depth - 1 - i, stack) + 8 + stack % 4 * 8;
}

/* Frames with a frame pointer; the words in between are never the same twice. */
static void make_dump(struct generator *generator, const uint64_t *callchain, uint64_t stack_pointer)
{
	uint32_t frames = generator->options.dump_bytes / STACK_FRAME_BYTES;

	for (uint32_t i = 0; i < frames; i++) {
		uint64_t words[STACK_FRAME_BYTES / sizeof(uint64_t)] = {
		    draw(generator, 4) ? i : draw(generator, UINT64_MAX),
		    i,
		    stack_pointer + STACK_FRAME_BYTES * (i + 1) + 2 * sizeof(uint64_t),
		    i + 1 < generator->options.depth ? callchain[i + 1] : 0,
		};

		memcpy(generator->dump + i * STACK_FRAME_BYTES, words, sizeof(words));
	}
}

static void write_event(struct generator *generator, const struct planned *planned)
{
	const struct options *options = &generator->options;
	uint64_t callchain[DEPTH_MAX], stack_pointer = STACK_TOP + planned->thread * 0x800000ULL;
	struct builder_call call = {
	    .call = planned->release ? CALL_MUNMAP : CALL_MMAP,
	    .time_ns = planned->time_ns,
	    .pid = PID,
	    .tid = PID + (int32_t)planned->thread,
	    .cpu = planned->thread % PROCESSORS,
	    .arguments = {0, planned->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
	    .callchain = callchain,
	    .callchain_count = options->depth,
	    .stack_pointer = stack_pointer,
	    .frame_pointer = stack_pointer + 2 * sizeof(uint64_t),
	};

	make_callchain(generator, planned->stack, callchain);
	call.instruction_pointer = callchain[0];
	if (planned->release) {
		call.arguments[0] = planned->start;
		call.callchain_count = options->bare_releases ? 0 : options->depth;
		builder_call(generator->builder, &call);
		return;
	}
	call.result = (int64_t)planned->start;
	builder_call(generator->builder, &call);
	if (!options->dump_bytes)
		return;
	make_dump(generator, callchain, stack_pointer);
	call.dump = true;
	call.callchain_count = 0;
	call.stack = generator->dump;
	call.stack_size = options->dump_bytes;
	builder_call(generator->builder, &call);
}

/* One ring after the other, in the order in which a recorder reads them. */
static void write_round(struct generator *generator)
{
	for (uint32_t processor = 0; processor < PROCESSORS; processor++) {
		for (size_t i = 0; i < generator->planned; i++) {
			if (generator->round[i].thread % PROCESSORS == processor)
				write_event(generator, &generator->round[i]);
		}
	}
	generator->planned = 0;
	if (!generator->options.no_rounds)
		builder_round(generator->builder);
}

static void plan(struct generator *generator, const struct slot *slot, uint64_t bytes, bool release)
{
	generator->now_ns += 1 + draw(generator, STEP_NS_MAX);
	generator->round[generator->planned++] = (struct planned){
	    .time_ns = generator->now_ns,
	    .start = slot->start,
	    .bytes = bytes,
	    .stack = release ? (uint32_t)draw(generator, generator->options.stacks) : slot->stack,
	    .thread = (uint32_t)draw(generator, generator->options.threads),
	    .release = release,
	};
	if (generator->planned == ROUND_EVENTS)
		write_round(generator);
}

static void grow(struct account *account, uint64_t bytes)
{
	account->allocated_bytes += bytes;
	account->allocated_count++;
	account->unfreed_bytes += bytes;
	if (account->unfreed_bytes > account->peak_bytes)
		account->peak_bytes = account->unfreed_bytes;
}

static void shrink(struct account *account, uint64_t bytes, bool all)
{
	account->freed_bytes += bytes;
	account->freed_count += all;
	account->unfreed_bytes -= bytes;
}

static void map(struct generator *generator)
{
	struct slot *slot = &generator->slots[generator->live++];

	slot->stack = (uint32_t)draw(generator, generator->options.stacks);
	slot->start = FIRST_SLOT + slot->number * SLOT_BYTES;
	slot->bytes = (1 + draw(generator, PAGES_MAX)) * PAGE;
	plan(generator, slot, slot->bytes, false);
	grow(&generator->accounts[slot->stack], slot->bytes);
	grow(&generator->total, slot->bytes);
}

/* One in sixteen leaves the upper half. */
static void unmap(struct generator *generator)
{
	struct slot *slot = &generator->slots[draw(generator, generator->live)];
	uint64_t bytes = slot->bytes;
	struct slot gone;

	if (bytes > PAGE && draw(generator, 16) == 0)
		bytes = bytes / PAGE / 2 * PAGE;
	plan(generator, slot, bytes, true);
	shrink(&generator->accounts[slot->stack], bytes, bytes == slot->bytes);
	shrink(&generator->total, bytes, bytes == slot->bytes);
	slot->start += bytes;
	slot->bytes -= bytes;
	if (slot->bytes)
		return;
	gone = *slot;
	*slot = generator->slots[--generator->live];
	generator->slots[generator->live] = gone;
}

/* A child inherits the parent's mappings and adds one. */
static void write_children(struct generator *generator)
{
	struct recording_builder *builder = generator->builder;

	for (uint64_t i = 0; i < generator->options.processes; i++) {
		int32_t pid = CHILDREN + (int32_t)i;
		struct builder_call call = {
		    .call = CALL_MMAP,
		    .time_ns = generator->now_ns += CHILD_NS,
		    .pid = pid,
		    .tid = pid,
		    .arguments = {0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
		    .result = (int64_t)(FIRST_SLOT - PAGE),
		};

		builder_fork(builder, call.time_ns - 1, pid, pid, PID, PID);
		builder_call(builder, &call);
		builder_exit(builder, call.time_ns + 1, pid, pid);
		grow(&generator->total, PAGE);
		shrink(&generator->total, PAGE, true);
		if (i % ROUND_EVENTS == 0)
			builder_round(builder);
	}
	builder_round(builder);
}

/* The parent lives on; memory of ended children has no owner. */
static void write_residency(struct generator *generator)
{
	struct recording_residency residency = {0};
	const struct process_residency parent = {.pid = PID};
	struct buffer section;

	buffer_init(&section, LIMIT_SECTION_BYTES);
	if (!vector_push(&residency.processes, parent) || section_write(&section_residency, &residency, &section) ||
	    buffer_finish(&section))
		abort();
	builder_section(generator->builder, FEATURE_MMTRACE_RESIDENCY, section.data, section.size);
	section_residency.deinit(&residency);
	buffer_deinit(&section);
}

static int compare_slots(const void *left, const void *right)
{
	const struct slot *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

static void write_snapshot(struct generator *generator, enum snapshot_kind kind)
{
	struct event_mapping *lines = calloc(generator->live + 1, sizeof(*lines));

	if (!lines)
		abort();
	qsort(generator->slots, generator->live, sizeof(*generator->slots), compare_slots);
	for (uint64_t i = 0; i < generator->live; i++) {
		lines[i].start = generator->slots[i].start;
		lines[i].length = generator->slots[i].bytes;
		lines[i].protection = PROT_READ | PROT_WRITE;
		lines[i].flags = MAP_PRIVATE;
	}
	lines[generator->live] = generator->code;
	builder_snapshot(generator->builder, kind, ++generator->now_ns, PID, lines, generator->live + 1);
	free(lines);
}

static void put_function(const struct generator *generator, struct buffer *text, uint32_t level, uint32_t number)
{
	char line[64];
	int length =
	    snprintf(line, sizeof(line), "%llx %x level%u_%u\n",
		     (unsigned long long)function_start(generator, level, number), FUNCTION_BYTES, level, number);

	buffer_put(text, line, (size_t)length);
}

static void write_names(struct generator *generator)
{
	struct perf_map_copies copies = {0};
	struct perf_map_copy copy = {.pid = PID, .namespace_pid = PID};
	struct perf_map_growth growth = {.time_ns = START_NS};
	struct buffer text, section;
	FILE *file;

	buffer_init(&text, LIMIT_PERF_MAP_BYTES);
	buffer_init(&section, LIMIT_SECTION_BYTES);
	for (uint32_t level = 0; level < generator->options.depth; level++) {
		for (uint32_t number = 0; number < generator->widths[level]; number++)
			put_function(generator, &text, level, number);
	}
	growth.length = text.size;
	copy.text = text.data;
	copy.text_size = text.size;
	if (buffer_finish(&text) || !vector_push(&copy.growth, growth) || !vector_push(&copies.maps, copy) ||
	    section_write(&section_perf_maps, &copies, &section) || buffer_finish(&section))
		abort();
	builder_section(generator->builder, FEATURE_MMTRACE_PERF_MAPS, section.data, section.size);
	if (generator->options.perf_map) {
		file = fopen(generator->options.perf_map, "w");
		if (!file || fwrite(text.data, 1, text.size, file) != text.size || fclose(file))
			abort();
	}
	vector_deinit(&copies.maps.items[0].growth);
	vector_deinit(&copies.maps);
	buffer_deinit(&section);
	buffer_deinit(&text);
}

static void print_account(const char *name, const struct account *account)
{
	printf("%s %llu %llu %llu %llu %llu %llu\n", name, (unsigned long long)account->allocated_bytes,
	       (unsigned long long)account->allocated_count, (unsigned long long)account->freed_bytes,
	       (unsigned long long)account->freed_count, (unsigned long long)account->unfreed_bytes,
	       (unsigned long long)account->peak_bytes);
}

static void generate(struct generator *generator)
{
	const struct options *options = &generator->options;
	char name[64];

	place_functions(generator);
	generator->builder = options->dump_bytes ? builder_create_with(options->path, true, false)
						 : builder_create_without_stacks(options->path);
	generator->now_ns = START_NS;
	builder_comm(generator->builder, generator->now_ns, PID, PID, "generated");
	builder_mapping(generator->builder, generator->now_ns, PID, PID, &generator->code);
	write_snapshot(generator, SNAPSHOT_START);
	builder_round(generator->builder);
	for (uint64_t i = 0; i < options->events; i++) {
		if (options->jump && i == options->jump) {
			write_round(generator);
			generator->now_ns -= JUMP_NS;
		}
		if (generator->live < options->live)
			map(generator);
		else
			unmap(generator);
	}
	write_round(generator);
	write_children(generator);
	if (options->lost) {
		builder_lost(generator->builder, ++generator->now_ns, BUILDER_SYSCALL_ID + CALL_MMAP, options->lost);
		builder_lose(generator->builder, options->lost);
	}
	write_snapshot(generator, SNAPSHOT_STOP);
	if (options->processes)
		write_residency(generator);
	if (options->program)
		program_image_write_build_id(&generator->image, generator->builder);
	else
		write_names(generator);
	builder_finish(generator->builder, ++generator->now_ns);
	for (uint32_t i = 0; i < options->stacks; i++) {
		snprintf(name, sizeof(name), "level%u_%u", options->depth - 1, i);
		print_account(name, &generator->accounts[i]);
	}
	print_account("total", &generator->total);
	program_image_deinit(&generator->image);
}

static uint64_t number(const char *text, uint64_t minimum, uint64_t maximum)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*text && !*end && value >= minimum && value <= maximum)
		return value;
	fprintf(stderr, "generate-recording: %s: a number from %llu to %llu is needed\n", text,
		(unsigned long long)minimum, (unsigned long long)maximum);
	exit(2);
}

static struct options read_options(int argc, char **argv)
{
	static const struct option names[] = {
	    {"events", required_argument, NULL, 'e'},
	    {"live", required_argument, NULL, 'l'},
	    {"stacks", required_argument, NULL, 's'},
	    {"depth", required_argument, NULL, 'd'},
	    {"threads", required_argument, NULL, 't'},
	    {"seed", required_argument, NULL, 'r'},
	    {"dumps", required_argument, NULL, 'b'},
	    {"perf-map", required_argument, NULL, 'm'},
	    {"clock-jump", required_argument, NULL, 'j'},
	    {"bare-releases", no_argument, NULL, 'u'},
	    {"no-rounds", no_argument, NULL, 'n'},
	    {"program", required_argument, NULL, 'p'},
	    {"processes", required_argument, NULL, 'c'},
	    {"lose", required_argument, NULL, 'o'},
	    {0},
	};
	struct options options = {.events = 10000, .live = 1000, .stacks = 100, .depth = 16, .threads = 4};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (option) {
		case 'e':
			options.events = number(optarg, 1, 1ULL << 40);
			break;
		case 'l':
			options.live = number(optarg, 1, 1ULL << 24);
			break;
		case 's':
			options.stacks = (uint32_t)number(optarg, 1, 1 << 20);
			break;
		case 'd':
			options.depth = (uint32_t)number(optarg, 2, DEPTH_MAX);
			break;
		case 't':
			options.threads = (uint32_t)number(optarg, 1, 1000);
			break;
		case 'r':
			options.seed = number(optarg, 0, UINT64_MAX);
			break;
		case 'b':
			options.dump_bytes = (uint32_t)number(optarg, STACK_FRAME_BYTES, 32768);
			break;
		case 'm':
			options.perf_map = optarg;
			break;
		case 'j':
			options.jump = number(optarg, 1, UINT64_MAX);
			break;
		case 'u':
			options.bare_releases = true;
			break;
		case 'n':
			options.no_rounds = true;
			break;
		case 'p':
			options.program = optarg;
			break;
		case 'c':
			options.processes = number(optarg, 1, 1 << 21);
			break;
		case 'o':
			options.lost = number(optarg, 1, UINT32_MAX);
			break;
		default:
			exit(2);
		}
	}
	options.dump_bytes -= options.dump_bytes % STACK_FRAME_BYTES;
	options.path = optind + 1 == argc ? argv[optind] : NULL;
	return options;
}

int main(int argc, char **argv)
{
	struct generator *generator = calloc(1, sizeof(*generator));

	if (!generator)
		abort();
	generator->options = read_options(argc, argv);
	if (!generator->options.path) {
		fputs("Usage: generate-recording [--events N] [--live N] [--stacks N] [--depth N] [--threads N]\n"
		      "                          [--seed N] [--dumps BYTES] [--bare-releases] [--no-rounds]\n"
		      "                          [--clock-jump EVENTS] [--perf-map FILE] [--processes N] [--lose N]\n"
		      "                          RECORDING >ACCOUNT\n",
		      stderr);
		return 2;
	}
	generator->random = generator->options.seed;
	generator->slots = calloc(generator->options.live, sizeof(*generator->slots));
	generator->accounts = calloc(generator->options.stacks, sizeof(*generator->accounts));
	generator->widths = calloc(generator->options.depth, sizeof(*generator->widths));
	if (!generator->slots || !generator->accounts || !generator->widths)
		abort();
	for (uint64_t i = 0; i < generator->options.live; i++)
		generator->slots[i].number = (uint32_t)i;
	/* Twice as many with each level from the first function on; the innermost distinguishes the stacks. */
	for (uint32_t i = 0; i < generator->options.depth; i++) {
		uint32_t width = i < 20 ? 1u << i : generator->options.stacks;

		generator->widths[i] = width < generator->options.stacks ? width : generator->options.stacks;
	}
	generator->widths[generator->options.depth - 1] = generator->options.stacks;
	generate(generator);
	free(generator->slots);
	free(generator->accounts);
	free(generator->widths);
	free(generator);
	return 0;
}
