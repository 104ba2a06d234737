// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Unwinding is a function of the values it reads, one after the other, and each value decides what is read next. So all
 * stacks seen form a tree: a node says what to read, the value leads to the next node, a leaf is a stack. Nodes are
 * found by a hash of the way to them; because hashes can be equal by chance, a leaf is compared with everything it was
 * made from.
 */
#include "code/unwind.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vector.h"
#include "code/unwind-state.h"

#define READS_PER_STACK 64 /* on average, at most */

#define NODE_LEAF (1ULL << 63)	  /* the rest: index of the entry */
#define NODE_ADDRESS (1ULL << 32) /* read a code address; else a pointer. The rest: offset as in struct unwind_read */

struct entry {
	uint64_t generation, address;
	uint32_t callchain; /* id */
	uint32_t value;
	size_t read_start, read_count;
	uint8_t flags;
};

struct unwind_memo {
	size_t limit;
	const struct unwind_rules *rules; /* of the stacks in it, NULL: none yet */
	struct map nodes;
	struct intern callchains;
	VECTOR(struct entry) entries;
	VECTOR(struct unwind_read) reads;
};

/* What is fixed before the first read. */
struct start {
	uint64_t generation, address, stack_pointer;
	uint32_t callchain;
	uint8_t flags;
};

struct mmt_error *unwind_memo_create(size_t limit, struct unwind_memo **memo_ret)
{
	struct unwind_memo *memo = calloc(1, sizeof(*memo));

	if (!memo)
		return &error_no_memory;
	memo->limit = limit;
	*memo_ret = memo;
	return NULL;
}

static void forget_all(struct unwind_memo *memo)
{
	map_deinit(&memo->nodes);
	intern_deinit(&memo->callchains);
	vector_deinit(&memo->entries);
	vector_deinit(&memo->reads);
}

void unwind_memo_destroy(struct unwind_memo *memo)
{
	if (!memo)
		return;
	forget_all(memo);
	free(memo);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static bool describe_start(const struct unwind_memo *memo, uint64_t generation, const struct unwind_input *input,
			   struct start *start_ret)
{
	uint64_t known = input->registers ? input->registers->known : 0;
	bool have_address = known >> memo->rules->instruction_pointer & 1;
	bool have_stack = known >> memo->rules->stack_pointer & 1;

	*start_ret = (struct start){.generation = generation};
	if (have_address)
		start_ret->address = input->registers->values[memo->rules->instruction_pointer];
	if (have_stack)
		start_ret->stack_pointer = input->registers->values[memo->rules->stack_pointer];
	start_ret->flags = (uint8_t)(have_address | have_stack << 1 | (input->stack_size > 0) << 2 |
				     input->callchain_full << 3 | (start_ret->stack_pointer & 7) << 4);
	start_ret->callchain =
	    intern_find(&memo->callchains, input->callchain, input->callchain_count * sizeof(*input->callchain));
	return start_ret->callchain != INTERN_NONE;
}

static uint64_t hash_start(const struct start *start)
{
	return mix(mix(mix(mix(0, start->generation), start->address), start->callchain), start->flags);
}

/* The read at `offset` as this stack has it. */
static struct unwind_read read_again(const struct unwind_input *input, uint64_t stack_pointer, uint32_t offset,
				     bool is_address)
{
	struct unwind_read read = {.offset = offset, .kind = UNWIND_READ_MISSING};
	uint32_t number = offset - UNWIND_READ_REGISTER;

	if (offset & UNWIND_READ_REGISTER) {
		if (!input->registers || number >= UNWIND_REGISTERS || !(input->registers->known >> number & 1))
			return read;
		read.value = input->registers->values[number];
	} else {
		if ((size_t)offset + sizeof(read.value) > input->stack_size)
			return read;
		memcpy(&read.value, input->stack + offset, sizeof(read.value));
	}
	if (is_address) {
		read.kind = UNWIND_READ_ADDRESS;
	} else if (read.value - stack_pointer < UNWIND_STACK_REACH) {
		read.kind = UNWIND_READ_RELATIVE;
		read.value -= stack_pointer;
	} else {
		read.kind = UNWIND_READ_OUTSIDE;
	}
	return read;
}

static uint64_t hash_read(uint64_t hash, const struct unwind_read *read)
{
	return mix(mix(hash, (uint64_t)read->kind << 32 | read->offset), read->value);
}

static bool matches(const struct unwind_memo *memo, const struct entry *entry, const struct start *start,
		    const struct unwind_input *input)
{
	if (entry->generation != start->generation || entry->address != start->address ||
	    entry->callchain != start->callchain || entry->flags != start->flags)
		return false;
	for (size_t i = 0; i < entry->read_count; i++) {
		const struct unwind_read *read = &memo->reads.items[entry->read_start + i];
		struct unwind_read again =
		    read_again(input, start->stack_pointer, read->offset, read->kind == UNWIND_READ_ADDRESS);

		if (again.kind != read->kind || again.value != read->value)
			return false;
	}
	return true;
}

bool unwind_memo_get(struct unwind_memo *memo, uint64_t generation, const struct unwind_input *input,
		     uint32_t *value_ret)
{
	struct start start;
	uint64_t hash;

	if (!memo->rules || !describe_start(memo, generation, input, &start))
		return false;
	hash = hash_start(&start);
	for (size_t i = 0; i <= UNWIND_READS_MAX; i++) {
		const uint64_t *node = map_get(&memo->nodes, hash);
		struct unwind_read read;

		if (!node)
			return false;
		if (*node & NODE_LEAF) {
			const struct entry *entry = &memo->entries.items[*node & ~NODE_LEAF];

			if (!matches(memo, entry, &start, input))
				return false;
			*value_ret = entry->value;
			return true;
		}
		read = read_again(input, start.stack_pointer, (uint32_t)*node, *node & NODE_ADDRESS);
		hash = hash_read(hash, &read);
	}
	return false;
}

/* Room for one more, by forgetting if need be. */
static void make_room(struct unwind_memo *memo, const struct unwind_result *result)
{
	size_t reads = memo->limit * READS_PER_STACK;

	if (memo->rules != result->rules || memo->entries.count >= memo->limit ||
	    memo->reads.count + result->read_count > reads || memo->nodes.count + result->read_count > reads)
		forget_all(memo);
	memo->rules = result->rules;
}

void unwind_memo_put(struct unwind_memo *memo, uint64_t generation, const struct unwind_input *input,
		     const struct unwind_result *result, uint32_t value)
{
	struct entry entry = {.generation = generation, .value = value, .read_count = result->read_count};
	struct start start;
	uint64_t hash;

	if (result->reads_overflow || !result->rules || !memo->limit)
		return;
	make_room(memo, result);
	if (intern_put(&memo->callchains, input->callchain, input->callchain_count * sizeof(*input->callchain)) ==
		INTERN_NONE ||
	    !describe_start(memo, generation, input, &start))
		return;
	entry.address = start.address;
	entry.callchain = start.callchain;
	entry.flags = start.flags;
	entry.read_start = memo->reads.count;
	for (size_t i = 0; i < result->read_count; i++) {
		if (!vector_push(&memo->reads, result->reads[i]))
			return;
	}
	if (!vector_push(&memo->entries, entry))
		return;
	hash = hash_start(&start);
	for (size_t i = 0; i < result->read_count; i++) {
		const struct unwind_read *read = &result->reads[i];
		const uint64_t *node = map_get(&memo->nodes, hash);

		/* A missing value is found either way: keep the way that also finds the value. */
		if (!(node && read->kind == UNWIND_READ_MISSING && !(*node & NODE_LEAF) &&
		      (uint32_t)*node == read->offset) &&
		    !map_put(&memo->nodes, hash, read->offset | (read->kind == UNWIND_READ_ADDRESS ? NODE_ADDRESS : 0)))
			return;
		hash = hash_read(hash, read);
	}
	(void)map_put(&memo->nodes, hash, NODE_LEAF | (memo->entries.count - 1));
}
