// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/recorded-jit-code.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/vector.h"
#include "code/jit/code-timeline.h"
#include "code/jit/jitdump.h"
#include "code/jit/perf-map.h"
#include "code/unwind/instruction-analysis.h"

/* A number consists of the entry plus one and, in the upper bits, the index of its source. */
#define SOURCE_SHIFT 24
#define ENTRY_MASK ((1u << SOURCE_SHIFT) - 1)

_Static_assert(LIMIT_TIMELINE_RANGES < ENTRY_MASK, "every entry has a number");

/* Either a perf map or a jitdump. */
struct jit_name_source {
	struct perf_map *map;
	uint64_t seen_ns;  /* perf map: when it was first seen, 0: unknown; jitdump: when its program began */
	bool begins_empty; /* the file did not exist before that and has no information about earlier code */
	bool knows_program;
	struct jitdump *dump;
};

struct jit_names {
	VECTOR(struct jit_name_source) items; /* in ascending priority: perf maps by time, then jitdumps */
	struct mmt_error *jitdump_failure;
};

/* The map of a program that began during the recording starts out empty. */
static struct mmt_error *load_perf_map(struct jit_names *names, const struct perf_map_copy *copy)
{
	CLEANUP(free) struct perf_map_step *steps = malloc((copy->growth.count + 1) * sizeof(*steps));
	struct jit_name_source source = {0};
	struct mmt_error *error;

	if (!steps)
		return &error_no_memory;
	if (names->items.count == LIMIT_JIT_NAME_SOURCES)
		return NULL;
	for (size_t i = 0; i < copy->growth.count; i++)
		steps[i] = (struct perf_map_step){.time_ns = copy->growth.items[i].time_ns,
						  .length = copy->growth.items[i].length};
	if (copy->growth.count) {
		source.seen_ns = steps[0].time_ns;
		source.begins_empty = !steps[0].length;
	}
	error = perf_map_create(copy->text, copy->text_size, steps, copy->growth.count, &source.map);
	if (!error && !vector_push(&names->items, source)) {
		perf_map_destroy(source.map);
		error = &error_no_memory;
	}
	return error;
}

/* An unreadable jitdump is skipped. */
static struct mmt_error *load_jitdump(struct jit_names *names, const struct reader_metadata *metadata,
				      const struct jitdump_copy *copy)
{
	uint64_t end_ns = metadata->has_loss ? metadata->loss.stop_ns : UINT64_MAX;
	struct jit_name_source source = {
	    .seen_ns = copy->program_ns, .begins_empty = copy->program_ns > 0, .knows_program = copy->knows_program};
	struct mmt_error *error;

	if (names->items.count == LIMIT_JIT_NAME_SOURCES)
		return NULL;
	error = jitdump_create(copy->data, copy->size, end_ns, &source.dump);
	if (error && error != &error_no_memory) {
		mmt_error_destroy(names->jitdump_failure);
		names->jitdump_failure = error;
		return NULL;
	}
	if (!error && !vector_push(&names->items, source)) {
		jitdump_destroy(source.dump);
		error = &error_no_memory;
	}
	return error;
}

struct mmt_error *jit_names_create(const struct reader_metadata *metadata, int32_t pid, struct jit_names **names_ret)
{
	struct jit_names *names = calloc(1, sizeof(*names));
	struct mmt_error *error = names ? NULL : &error_no_memory;

	for (size_t i = 0; !error && i < metadata->perf_maps.maps.count; i++) {
		if (metadata->perf_maps.maps.items[i].pid == pid)
			error = load_perf_map(names, &metadata->perf_maps.maps.items[i]);
	}
	for (size_t i = 0; !error && i < metadata->jitdumps.dumps.count; i++) {
		if (metadata->jitdumps.dumps.items[i].pid == pid)
			error = load_jitdump(names, metadata, &metadata->jitdumps.dumps.items[i]);
	}
	if (error)
		jit_names_destroy(names);
	else
		*names_ret = names;
	return error;
}

void jit_names_destroy(struct jit_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->items.count; i++) {
		perf_map_destroy(names->items.items[i].map);
		jitdump_destroy(names->items.items[i].dump);
	}
	vector_deinit(&names->items);
	mmt_error_destroy(names->jitdump_failure);
	free(names);
}

static const struct jit_name_source *source_of(const struct jit_names *names, uint32_t number)
{
	return &names->items.items[number >> SOURCE_SHIFT];
}

/* The jitdump of a number; NULL: it is from a perf map. */
static struct jitdump *dump_of(const struct jit_names *names, uint32_t number)
{
	return source_of(names, number)->dump;
}

static uint32_t entry_of(uint32_t number)
{
	return (number & ENTRY_MASK) - 1;
}

/* 0: nothing found, or the entry belongs to an earlier program. */
static uint32_t find_in(const struct jit_name_source *source, uint64_t address, uint64_t time_ns, uint64_t program_ns)
{
	uint64_t from_ns;
	uint32_t entry;

	if (source->begins_empty && time_ns < source->seen_ns)
		return 0;
	if (source->dump) {
		/* Independent of the jitdump's clock. */
		if (source->knows_program && source->seen_ns < program_ns)
			return 0;
		entry = jitdump_find(source->dump, address, time_ns);
		if (entry == JITDUMP_NONE)
			return 0;
		from_ns = jitdump_time(source->dump, entry);
	} else {
		entry = perf_map_find(source->map, address, time_ns);
		if (entry == PERF_MAP_NONE)
			return 0;
		from_ns = perf_map_time(source->map, entry);
		/* The entry was already there when the map was first seen. */
		if (!from_ns)
			from_ns = source->seen_ns;
	}
	return from_ns && from_ns < program_ns ? 0 : entry + 1;
}

uint32_t jit_names_find(struct jit_names *names, uint64_t address, uint64_t time_ns, uint64_t program_ns)
{
	for (size_t i = names->items.count; i-- > 0;) {
		uint32_t found = find_in(&names->items.items[i], address, time_ns, program_ns);

		if (found)
			return (uint32_t)i << SOURCE_SHIFT | found;
	}
	return 0;
}

uint64_t jit_names_epoch(struct jit_names *names, uint64_t time_ns)
{
	uint64_t epoch = 0;

	for (size_t i = 0; i < names->items.count; i++) {
		const struct jit_name_source *source = &names->items.items[i];

		epoch += source->dump ? jitdump_epoch(source->dump, time_ns) : perf_map_epoch(source->map, time_ns);
		epoch += time_ns >= source->seen_ns;
	}
	return epoch;
}

struct jit_name jit_names_describe(const struct jit_names *names, uint32_t number)
{
	const struct jitdump *dump = dump_of(names, number);
	struct jit_name name = {0};
	struct jitdump_code code;

	if (!dump) {
		name.name = perf_map_name(source_of(names, number)->map, entry_of(number), &name.start);
		name.size = perf_map_size(source_of(names, number)->map, entry_of(number));
		return name;
	}
	code = jitdump_code(dump, entry_of(number));
	name.name = code.name;
	name.start = code.start;
	name.size = code.size;
	name.code = code.bytes;
	name.code_size = code.bytes ? (size_t)code.size : 0;
	return name;
}

const char *jit_names_line(const struct jit_names *names, uint32_t number, uint64_t address, uint32_t *line_ret)
{
	const struct jitdump *dump = dump_of(names, number);
	const char *file = NULL;

	*line_ret = 0;
	return dump && jitdump_line(dump, entry_of(number), address, &file, line_ret) ? file : NULL;
}

const struct cfi_row *jit_names_cfi(struct jit_names *names, uint32_t number, uint64_t address)
{
	struct jitdump *dump = dump_of(names, number);

	return dump ? jitdump_cfi(dump, entry_of(number), address) : NULL;
}

struct jit_names_state jit_names_state(const struct jit_names *names)
{
	struct jit_names_state state = {
	    .jitdump_failure = names->jitdump_failure ? mmt_error_get_message(names->jitdump_failure) : NULL,
	};

	for (size_t i = 0; i < names->items.count; i++) {
		const struct jit_name_source *source = &names->items.items[i];
		struct jitdump_stats stats = {0};

		state.has_perf_map |= source->map != NULL;
		state.has_jitdump |= source->dump != NULL;
		if (source->map)
			state.dropped_lines += perf_map_stats(source->map).dropped;
		else
			stats = jitdump_stats(source->dump);
		state.other_clock |= stats.other_clock;
		state.lost_records += stats.refused + stats.dropped;
		state.unread_bytes += stats.unread;
	}
	return state;
}

/* Stack and receiver checks may precede it. */
#define PROLOGUE_BYTES 64
#define PROLOGUE_SUB_BYTES 4
#define PROLOGUE_FRAME_MAX (1 << 24)

/* DWARF numbers of x86-64. */
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_COLUMN = 16 };

/* Granularity in which changes of the code invalidate analyzed rows. */
#define BLOCK_BYTES 256

/*
 * A recording's timestamps go back and forth a little, which applies and reverts changes. The limit is
 * LIMIT_JIT_PASSES over the bytes of all changes, plus a constant for codes with few changes. Each exchange costs as
 * much as CHANGE_COST bytes.
 */
#define WORK_BYTES_FREE 65536
#define CHANGE_COST 64

/* The result of analyzing an address, valid as long as the analyzed bytes do not change. */
struct deduced {
	uint64_t read_start, read_end;
	uint64_t number;	 /* number of exchanges before the analysis */
	struct deduced_row *row; /* NULL: the analysis found nothing */
};

struct copied_code {
	const struct code_copies *copies; /* `own` if there are changes, else the recording's */
	const struct process_code *process;
	struct code_copies own;
	size_t undone;		       /* index of the first change that is reverted: its place holds the bytes from
					  before it */
	uint64_t exchanged;	       /* number of changes applied or reverted so far */
	uint64_t work, work_max;       /* its cost in bytes; beyond the maximum the code is treated as unknown */
	struct map exchanged_of_block; /* block -> number of its last exchange */
	struct modules *modules;
	const struct cfi_row *host;
	struct map deduced_of_key;
	VECTOR(struct deduced) deduced;
	VECTOR(struct deduced_row *) outdated; /* rows that callers may still hold */
	struct deduced current;		       /* the analysis in progress, which records the bytes it reads */
};

/* False: out of memory. */
static bool take_copy(struct copied_code *copied)
{
	const struct process_code *process = copied->process;
	const uint8_t *bytes = copied->copies->bytes.data;
	struct process_code *own = vector_append(&copied->own.processes);
	struct buffer *buffer = &copied->own.bytes;
	bool complete = own;

	buffer_init(buffer, copied->copies->bytes.size);
	for (size_t i = 0; complete && i < process->runs.count; i++) {
		const struct code_run *run = &process->runs.items[i];

		complete = code_copies_add(own, run->start, run->size, buffer->size);
		buffer_put(buffer, bytes + run->offset, run->size);
	}
	for (size_t i = 0; complete && i < process->changes.count; i++) {
		struct code_change change = process->changes.items[i];

		buffer_put(buffer, bytes + change.offset, change.size);
		change.offset = buffer->size - change.size;
		complete = vector_push(&own->changes, change);
	}
	copied->copies = &copied->own;
	copied->process = own;
	return complete && !buffer->error;
}

struct mmt_error *copied_code_create(const struct code_copies *copies, const struct process_code *process,
				     struct modules *modules, struct copied_code **copied_ret)
{
	struct copied_code *copied = calloc(1, sizeof(*copied));

	*copied_ret = NULL;
	if (!copied)
		return &error_no_memory;
	copied->copies = copies;
	copied->process = process;
	copied->modules = modules;
	copied->undone = process->changes.count;
	copied->work_max = WORK_BYTES_FREE;
	for (size_t i = 0; i < process->changes.count; i++)
		copied->work_max += LIMIT_JIT_PASSES * (process->changes.items[i].size + CHANGE_COST);
	if (process->changes.count && !take_copy(copied)) {
		copied_code_destroy(copied);
		return &error_no_memory;
	}
	*copied_ret = copied;
	return NULL;
}

static bool is_known(const struct copied_code *copied)
{
	return copied && copied->work <= copied->work_max;
}

/* False: out of memory. Outdated rows may then survive; the check against the stack has to reject them. */
static bool note_exchange(struct copied_code *copied, const struct code_change *change)
{
	uint64_t last = (change->start + change->size - 1) / BLOCK_BYTES;

	copied->exchanged++;
	for (uint64_t block = change->start / BLOCK_BYTES; block <= last; block++) {
		if (!map_put(&copied->exchanged_of_block, block, copied->exchanged))
			return false;
	}
	return true;
}

/* Swap the bytes of a change with those in the code: the first swap applies the change, the second reverts it. */
static void exchange(struct copied_code *copied, const struct code_change *change)
{
	const uint8_t *place;

	copied->work += change->size + CHANGE_COST;
	if (!is_known(copied) ||
	    code_copies_at(copied->copies, copied->process, change->start, change->size, &place) < change->size)
		return;
	for (size_t i = 0; i < change->size; i++) {
		uint8_t *mine = copied->own.bytes.data + change->offset + i;
		uint8_t *theirs = copied->own.bytes.data + (place - copied->own.bytes.data) + i;
		uint8_t kept = *mine;

		*mine = *theirs;
		*theirs = kept;
	}
	(void)note_exchange(copied, change);
}

void copied_code_go_to(struct copied_code *copied, uint64_t time_ns)
{
	const struct code_change *changes;

	if (!is_known(copied))
		return;
	changes = copied->process->changes.items;
	while (is_known(copied) && copied->undone && changes[copied->undone - 1].until_ns >= time_ns)
		exchange(copied, &changes[--copied->undone]);
	while (is_known(copied) && copied->undone < copied->process->changes.count &&
	       changes[copied->undone].until_ns < time_ns)
		exchange(copied, &changes[copied->undone++]);
}

bool copied_code_gave_up(const struct copied_code *copied)
{
	return copied && !is_known(copied);
}

uint64_t copied_code_epoch(const struct copied_code *copied)
{
	if (!copied)
		return 0;
	return is_known(copied) ? copied->undone : UINT64_MAX - 1;
}

void copied_code_destroy(struct copied_code *copied)
{
	if (!copied)
		return;
	for (size_t i = 0; i < copied->deduced.count; i++)
		free(copied->deduced.items[i].row);
	for (size_t i = 0; i < copied->outdated.count; i++)
		free(copied->outdated.items[i]);
	vector_deinit(&copied->deduced);
	vector_deinit(&copied->outdated);
	map_deinit(&copied->deduced_of_key);
	map_deinit(&copied->exchanged_of_block);
	code_copies_deinit(&copied->own);
	free(copied);
}

void copied_code_use_host(struct copied_code *copied, const struct cfi_row *host)
{
	if (copied && host)
		copied->host = host;
}

static size_t read_code(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	struct copied_code *copied = context;
	struct deduced *current = &copied->current;

	size = code_copies_at(copied->copies, copied->process, address, size, code_ret);
	if (size && address < current->read_start)
		current->read_start = address;
	if (size && address + size > current->read_end)
		current->read_end = address + size;
	return size;
}

/* The frame that a prologue makes: push %rbp, sub $SIZE, %rsp; or sub $SIZE, %rsp, mov %rbp, SIZE-8(%rsp). */
static bool read_prologue(struct bytes code, int32_t *size_ret)
{
	while (bytes_left(&code) >= PROLOGUE_SUB_BYTES) {
		const uint8_t *at = code.position;
		bool wide = at[1] == 0x81, pushed = at > code.start && at[-1] == 0x55;
		struct bytes rest = code;
		int32_t size, place;

		bytes_skip(&code, 1);
		if (at[0] != 0x48 || (at[1] != 0x83 && at[1] != 0x81) || at[2] != 0xec)
			continue;
		bytes_skip(&rest, 3);
		size = wide ? (int32_t)bytes_u32(&rest) : (int8_t)bytes_u8(&rest);
		if (size <= 0 || size > PROLOGUE_FRAME_MAX)
			return false;
		*size_ret = size + (pushed ? 8 : 0);
		if (pushed)
			return true;
		if (bytes_u8(&rest) != 0x48 || bytes_u8(&rest) != 0x89)
			return false;
		wide = bytes_u8(&rest) == 0xac;
		bytes_skip(&rest, 1);
		place = wide ? (int32_t)bytes_u32(&rest) : (int8_t)bytes_u8(&rest);
		return bytes_ok(&rest) && place == size - 8;
	}
	return false;
}

/*
 * A method that is too large to follow its instructions to a return: compilers of methods give each a frame of one
 * size, which its prologue shows.
 */
static bool find_row_by_prologue(struct copied_code *copied, uint64_t start, uint64_t address,
				 struct deduced_row *deduced)
{
	const uint8_t *code;
	int32_t frame;
	size_t size;

	if (!start || address <= start)
		return false;
	size = read_code(copied, start, address - start < PROLOGUE_BYTES ? (size_t)(address - start) : PROLOGUE_BYTES,
			 &code);
	if (!size || !read_prologue(bytes_over(code, size), &frame))
		return false;
	*deduced = (struct deduced_row){.row = {.cfa_kind = CFI_CFA_REGISTER,
						.cfa_register = STACK_POINTER,
						.cfa_offset = frame + 8,
						.rule_count = 2,
						.return_column = RETURN_COLUMN,
						.deduced = true},
					.rules = {{.number = FRAME_POINTER, .kind = CFI_RULE_OFFSET, .offset = -16},
						  {.number = RETURN_COLUMN, .kind = CFI_RULE_OFFSET, .offset = -8}}};
	return true;
}

static struct deduced_row *find_deduced_row(struct copied_code *copied, uint64_t start, uint64_t address,
					    bool is_return_address)
{
	const struct analyzed_code code = {.read = read_code, .context = copied, .host = copied->host};
	struct deduced_row *deduced = malloc(sizeof(*deduced));

	if (deduced &&
	    (deduced_row_find(modules_disassembly(copied->modules), &code, address, is_return_address, true, deduced) ||
	     (is_return_address && find_row_by_prologue(copied, start, address, deduced)))) {
		deduced->row.unsure = true;
		return deduced;
	}
	free(deduced);
	return NULL;
}

static bool is_outdated(const struct copied_code *copied, const struct deduced *deduced)
{
	uint64_t first, last;

	if (deduced->number == copied->exchanged || deduced->read_start >= deduced->read_end)
		return false;
	first = deduced->read_start / BLOCK_BYTES;
	last = (deduced->read_end - 1) / BLOCK_BYTES;
	/* a wide range: assume that the bytes in between have not been read */
	if (last - first >= LIMIT_JIT_FUNCTION_BLOCKS)
		return true;
	for (uint64_t block = first; block <= last; block++) {
		const uint64_t *exchanged = map_get(&copied->exchanged_of_block, block);

		if (exchanged && *exchanged > deduced->number)
			return true;
	}
	return false;
}

/* NULL: out of memory. */
static struct deduced *deduce(struct copied_code *copied, uint64_t start, uint64_t key)
{
	uint64_t *known = map_get(&copied->deduced_of_key, key);
	struct deduced *deduced = known ? &copied->deduced.items[*known] : NULL;

	if (deduced && !is_outdated(copied, deduced))
		return deduced;
	if (deduced && deduced->row && !vector_push(&copied->outdated, deduced->row))
		return NULL;
	if (!deduced && !map_put(&copied->deduced_of_key, key, copied->deduced.count))
		return NULL;
	if (!deduced)
		deduced = vector_append(&copied->deduced);
	if (!deduced) {
		map_remove(&copied->deduced_of_key, key);
		return NULL;
	}
	copied->current = (struct deduced){.read_start = UINT64_MAX, .number = copied->exchanged};
	copied->current.row = find_deduced_row(copied, start, key >> 1, key & 1);
	*deduced = copied->current;
	return deduced;
}

const struct cfi_row *copied_code_row(struct copied_code *copied, uint64_t start, uint64_t address,
				      bool is_return_address)
{
	const struct deduced *deduced =
	    is_known(copied) ? deduce(copied, start, address << 1 | is_return_address) : NULL;

	return deduced && deduced->row ? deduced_row_get(deduced->row) : NULL;
}

/* The first bytes of the function at `start`, before `address`. */
static size_t prologue_of(struct copied_code *copied, uint64_t start, uint64_t address, const uint8_t **code_ret)
{
	size_t size;

	if (!is_known(copied) || address < start)
		return 0;
	size = address - start < PROLOGUE_BYTES ? (size_t)(address - start) : PROLOGUE_BYTES;
	return code_copies_at(copied->copies, copied->process, start, size, code_ret);
}

/* Whether the code has one of two byte sequences. */
static bool has_either(const uint8_t *code, size_t size, const void *first, const void *second, size_t length)
{
	return size && (memmem(code, size, first, length) || memmem(code, size, second, length));
}

bool copied_code_keeps_frame_pointer(struct copied_code *copied, uint64_t start, uint64_t address)
{
	const uint8_t *code = NULL;
	size_t size = prologue_of(copied, start, address, &code);

	/* push %rbp; mov %rsp,%rbp, which has two encodings */
	return has_either(code, size, "\x55\x48\x89\xe5", "\x55\x48\x8b\xec", 4);
}

int copied_code_follows_call(struct copied_code *copied, uint64_t return_address)
{
	const uint8_t *code;
	size_t size;

	if (!is_known(copied))
		return -1;
	size = code_copies_before(copied->copies, copied->process, return_address, DISASSEMBLY_INSTRUCTION_MAX, &code);
	return size ? modules_ends_with_call(copied->modules, code, size) : -1;
}
