// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/unwind/instruction-analysis.h"

#include "base/limits.h"

enum {
	FRAME_POINTER = 6,
	STACK_POINTER = 7,
	RETURN_COLUMN = 16,
	WORD = 8,
	INSTRUCTIONS_MAX = 1000, /* instructions on all paths together */
	PATHS_MAX = 16,		 /* paths that wait to be followed */
	STORED_MAX = 16,	 /* words pushed but not popped */
	AMOUNT_MAX = 1 << 20,	 /* change per instruction: keeps all sums small */
};

/* Registers that a function must preserve. */
#define PRESERVED (1u << 3 | 1u << FRAME_POINTER | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15)

/* A stack location, relative to a register's value at the start. */
struct operand_place {
	uint8_t base; /* STACK_POINTER or FRAME_POINTER, as of the start */
	int32_t offset;
};

enum content_kind {
	CONTENT_INITIAL, /* unchanged since the start */
	CONTENT_SAVED,	 /* the word that was in `place` at the start */
	CONTENT_UNKNOWN,
};

struct content {
	uint8_t kind; /* enum content_kind */
	struct operand_place place;
};

struct path {
	uint64_t address;
	bool ends_at_padding; /* after a call */
	struct operand_place stack_pointer;
	struct content registers[DEDUCED_REGISTERS];
	struct {
		struct operand_place place;
		struct content content;
	} stored[STORED_MAX]; /* words stored since the start */
	unsigned stored_count;
};

/* Result of following a path. */
enum path_end {
	PATH_UNKNOWN,
	PATH_MERGES, /* it joins a path already followed, or exceeds a limit */
	PATH_RETURNS,
	PATH_LEAPS,
	PATH_SWITCHES_STACK,
};

struct search {
	bool pads_inside;
	bool has_limit; /* some path was not followed to its end */
	struct path waiting[PATHS_MAX];
	unsigned waiting_count;
	uint64_t visited[INSTRUCTIONS_MAX];
	unsigned visited_count;
};

static bool same_place(struct operand_place left, struct operand_place right)
{
	return left.base == right.base && left.offset == right.offset;
}

static struct content content_at(const struct path *path, struct operand_place place)
{
	for (unsigned i = path->stored_count; i-- > 0;) {
		if (same_place(path->stored[i].place, place))
			return path->stored[i].content;
	}
	return (struct content){.kind = CONTENT_SAVED, .place = place};
}

static void set_register(struct path *path, uint8_t number, struct content content)
{
	if (number < DEDUCED_REGISTERS)
		path->registers[number] = content;
}

static void pop(struct path *path, uint8_t number)
{
	set_register(path, number, content_at(path, path->stack_pointer));
	if (path->stored_count && same_place(path->stored[path->stored_count - 1].place, path->stack_pointer))
		path->stored_count--;
	path->stack_pointer.offset += WORD;
}

static bool is_plausible(int32_t amount)
{
	return amount > -AMOUNT_MAX && amount < AMOUNT_MAX;
}

/* Set the stack pointer to the frame pointer plus `amount`. */
static bool take_frame_pointer(struct path *path, int32_t amount)
{
	if (path->registers[FRAME_POINTER].kind != CONTENT_INITIAL || !is_plausible(amount))
		return false;
	path->stack_pointer = (struct operand_place){.base = FRAME_POINTER, .offset = amount};
	return true;
}

/* False: the path cannot be followed any further. */
static bool apply(struct path *path, const struct instruction *instruction)
{
	struct operand_place place = path->stack_pointer;

	switch ((enum instruction_kind)instruction->kind) {
	case INSTRUCTION_PUSH:
		path->stack_pointer.offset -= WORD;
		if (path->stored_count == STORED_MAX)
			return false;
		path->stored[path->stored_count].place = path->stack_pointer;
		path->stored[path->stored_count++].content = instruction->reg < DEDUCED_REGISTERS
								 ? path->registers[instruction->reg]
								 : (struct content){.kind = CONTENT_UNKNOWN};
		return true;
	case INSTRUCTION_POP:
		pop(path, instruction->reg);
		return true;
	case INSTRUCTION_LOAD:
		if (!is_plausible(instruction->amount))
			return false;
		place.offset += instruction->amount;
		set_register(path, instruction->reg, content_at(path, place));
		return true;
	case INSTRUCTION_ADD:
		if (!is_plausible(instruction->amount))
			return false;
		path->stack_pointer.offset += instruction->amount;
		return true;
	case INSTRUCTION_LEAVE:
		if (!take_frame_pointer(path, 0))
			return false;
		pop(path, FRAME_POINTER);
		return true;
	case INSTRUCTION_FRAME:
		return take_frame_pointer(path, instruction->amount);
	case INSTRUCTION_OTHER:
		for (uint8_t i = 0; i < DEDUCED_REGISTERS; i++) {
			if (instruction->written >> i & 1)
				path->registers[i] = (struct content){.kind = CONTENT_UNKNOWN};
		}
		return true;
	case INSTRUCTION_PADDING:
		/* Padding between functions: the call before it does not return. */
		return !path->ends_at_padding;
	case INSTRUCTION_CALL:
	case INSTRUCTION_JUMP:
	case INSTRUCTION_BRANCH:
		return true;
	case INSTRUCTION_RETURN:
	case INSTRUCTION_LEAP:
	case INSTRUCTION_SWITCH:
	case INSTRUCTION_END:
		break;
	}
	return false;
}

static enum path_end follow(struct search *search, struct path *path, struct disassembly *disassembly,
			    const struct analyzed_code *code)
{
	static const enum path_end ends[] = {[INSTRUCTION_RETURN] = PATH_RETURNS,
					     [INSTRUCTION_LEAP] = PATH_LEAPS,
					     [INSTRUCTION_SWITCH] = PATH_SWITCHES_STACK,
					     [INSTRUCTION_END] = PATH_UNKNOWN};

	while (!array_find(visited, search->visited, search->visited_count, *visited == path->address)) {
		const uint8_t *bytes = NULL;
		struct instruction instruction;
		size_t size;

		search->has_limit |= search->visited_count == INSTRUCTIONS_MAX;
		if (search->visited_count == INSTRUCTIONS_MAX)
			break;
		search->visited[search->visited_count++] = path->address;
		size = code->read(code->context, path->address, DISASSEMBLY_INSTRUCTION_MAX, &bytes);
		if (!size || (path->ends_at_padding && code->begins && code->begins(code->context, path->address)))
			return PATH_UNKNOWN;
		disassembly_decode(disassembly, bytes, size, path->address, &instruction);
		if (!apply(path, &instruction))
			return ends[instruction.kind];
		path->ends_at_padding = instruction.kind == INSTRUCTION_CALL && !search->pads_inside;
		path->address += instruction.size;
		if (instruction.kind == INSTRUCTION_BRANCH) {
			search->has_limit |= search->waiting_count == PATHS_MAX;
			if (search->waiting_count < PATHS_MAX) {
				search->waiting[search->waiting_count] = *path;
				search->waiting[search->waiting_count++].address = instruction.target;
			}
		}
		if (instruction.kind == INSTRUCTION_JUMP)
			path->address = instruction.target;
	}
	return PATH_MERGES;
}

/* The row of a path that reached its return instruction. False: it cannot be a return. */
static bool describe(const struct path *path, struct deduced_row *deduced)
{
	struct cfi_row *row = &deduced->row;

	if (path->stack_pointer.base == STACK_POINTER && path->stack_pointer.offset < 0)
		return false;
	*row = (struct cfi_row){.cfa_kind = CFI_CFA_REGISTER,
				.cfa_register = path->stack_pointer.base,
				.cfa_offset = path->stack_pointer.offset + WORD,
				.return_column = RETURN_COLUMN,
				.deduced = true};
	for (uint8_t i = 0; i < DEDUCED_REGISTERS; i++) {
		const struct content *content = &path->registers[i];
		struct cfi_rule rule = {.number = i, .kind = CFI_RULE_UNDEFINED};

		if (!(PRESERVED >> i & 1) || content->kind == CONTENT_INITIAL)
			continue;
		if (content->kind == CONTENT_SAVED) {
			rule.kind = CFI_RULE_AT_REGISTER;
			rule.reg = content->place.base;
			rule.offset = content->place.offset;
		}
		deduced->rules[row->rule_count++] = rule;
	}
	deduced->rules[row->rule_count++] =
	    (struct cfi_rule){.number = RETURN_COLUMN, .kind = CFI_RULE_OFFSET, .offset = -WORD};
	return true;
}

/* The row of a path that left for its host function: nothing that the code pushed may still be on the stack. */
static bool describe_host(const struct path *path, const struct cfi_row *host, struct deduced_row *deduced)
{
	if (path->stack_pointer.base != STACK_POINTER || path->stack_pointer.offset < 0 ||
	    host->cfa_kind != CFI_CFA_REGISTER || host->cfa_register != STACK_POINTER ||
	    !is_plausible(host->cfa_offset) || host->rule_count > sizeof(deduced->rules) / sizeof(*deduced->rules))
		return false;
	for (uint8_t i = 0; i < host->rule_count; i++) {
		if (host->rules[i].kind != CFI_RULE_OFFSET)
			return false;
		deduced->rules[i] = host->rules[i];
	}
	deduced->row = (struct cfi_row){.cfa_kind = CFI_CFA_REGISTER,
					.cfa_register = STACK_POINTER,
					.cfa_offset = path->stack_pointer.offset + host->cfa_offset,
					.rule_count = host->rule_count,
					.return_column = host->return_column,
					.deduced = true};
	return true;
}

bool deduced_row_find(struct disassembly *disassembly, const struct analyzed_code *code, uint64_t address,
		      bool is_return_address, bool pads_inside, struct deduced_row *deduced_ret)
{
	struct search search = {.pads_inside = pads_inside, .waiting_count = 1};
	bool switches_stack = false, ends_otherwise = false;

	search.waiting[0] = (struct path){.address = address,
					  .ends_at_padding = is_return_address && !pads_inside,
					  .stack_pointer = {.base = STACK_POINTER}};
	while (search.waiting_count) {
		struct path path = search.waiting[--search.waiting_count];
		enum path_end end = follow(&search, &path, disassembly, code);

		if ((end == PATH_RETURNS && describe(&path, deduced_ret)) ||
		    (end == PATH_LEAPS && code->host && describe_host(&path, code->host, deduced_ret)))
			return true;
		switches_stack |= end == PATH_SWITCHES_STACK;
		ends_otherwise |= end != PATH_SWITCHES_STACK && end != PATH_MERGES;
	}
	deduced_ret->row = (struct cfi_row){.deduced = true, .other_stack = true};
	return switches_stack && !ends_otherwise && !search.has_limit;
}

const struct cfi_row *deduced_row_get(struct deduced_row *deduced)
{
	deduced->row.rules = deduced->rules;
	return &deduced->row;
}

uint64_t function_range_find(struct disassembly *disassembly, const struct analyzed_code *code, uint64_t start,
			     uint64_t limit)
{
	uint64_t address = start, furthest = start, guessed;

	if (limit <= start || limit - start > LIMIT_FUNCTION_RANGE_BYTES)
		limit = start + LIMIT_FUNCTION_RANGE_BYTES;
	while (address < limit) {
		const uint8_t *bytes = NULL;
		size_t size = code->read(code->context, address, DISASSEMBLY_INSTRUCTION_MAX, &bytes);
		struct instruction instruction;

		disassembly_decode(disassembly, bytes, size, address, &instruction);
		address += instruction.size;
		/* Everything from here on is unknown. */
		if (instruction.flow == FLOW_UNKNOWN) {
			address = address > furthest ? address : furthest;
			guessed = start + FUNCTION_RANGE_GUESSED;
			address = address > guessed ? address : guessed;
			break;
		}
		if ((instruction.kind == INSTRUCTION_JUMP || instruction.kind == INSTRUCTION_BRANCH) &&
		    instruction.target > furthest && instruction.target < limit)
			furthest = instruction.target;
		if (instruction.flow == FLOW_ENDS && address > furthest)
			break;
	}
	return address < limit ? address : limit;
}
