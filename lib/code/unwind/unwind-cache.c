// SPDX-License-Identifier: LGPL-2.1-or-later
/* The result of unwinding depends only on the values read, in order, and each value decides what is read next. All
 * stacks seen therefore form a decision tree. The tree stores only the points where stacks differ: a branch names the
 * next read, and the value leads to the next branch or to the only remaining stack. That stack is then compared with
 * all its reads, which makes the result correct whatever path led to it. */

#include "base/map.h"
#include "code/unwind/unwind-state.h"

#define READS_PER_STACK 64 /* maximum average */

#define NODE_BRANCH (1ULL << 63) /* the other bits: index of the branch, or of an entry if this bit is clear */

/* Everything fixed before the first read. */
struct start {
	uint64_t generation, address;
	uint64_t stack_pointer; /* stacks that differ only in it are equal */
	uint32_t callchain;	/* id */
	uint8_t flags;
};

struct unwind_cache_entry {
	struct start start;
	uint32_t value;
	size_t read_start, read_count;
};

/* A branch for entries with the same reads up to here and different values after it. */
struct branch {
	size_t entry; /* any of these entries */
	size_t depth; /* index of the first read that differs */
	uint32_t offset;
	bool is_address; /* see read_again() */
};

struct unwind_cache {
	size_t limit;
	const struct unwind_rules *rules; /* of the cached stacks; NULL: none yet */
	struct map ways;		  /* hash of a start, or of a branch and a value -> node */
	struct intern callchains;
	VECTOR(struct unwind_cache_entry) entries;
	VECTOR(struct branch) branches;
	VECTOR(struct unwind_read) reads;
};

struct mmt_error *unwind_cache_create(size_t limit, struct unwind_cache **cache_ret)
{
	struct unwind_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return &error_no_memory;
	cache->limit = limit;
	*cache_ret = cache;
	return NULL;
}

static void forget_all(struct unwind_cache *cache)
{
	map_deinit(&cache->ways);
	intern_deinit(&cache->callchains);
	vector_deinit(&cache->entries);
	vector_deinit(&cache->branches);
	vector_deinit(&cache->reads);
}

void unwind_cache_destroy(struct unwind_cache *cache)
{
	if (!cache)
		return;
	forget_all(cache);
	free(cache);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return hash_number(hash ^ value);
}

static bool describe_start(const struct unwind_cache *cache, uint64_t generation, const struct unwind_input *input,
			   struct start *start_ret)
{
	uint64_t known = input->registers ? input->registers->known : 0;
	bool have_address = known >> cache->rules->instruction_pointer & 1;
	bool have_stack = known >> cache->rules->stack_pointer & 1;

	*start_ret = (struct start){.generation = generation};
	if (have_address)
		start_ret->address = input->registers->values[cache->rules->instruction_pointer];
	if (have_stack)
		start_ret->stack_pointer = input->registers->values[cache->rules->stack_pointer];
	start_ret->flags =
	    (uint8_t)(have_address | have_stack << 1 | (input->stack_size > 0) << 2 | input->callchain_full << 3 |
		      (start_ret->stack_pointer & 7) << 4 | (input->stack != NULL) << 7);
	start_ret->callchain =
	    intern_find(&cache->callchains, input->callchain, input->callchain_count * sizeof(*input->callchain));
	return start_ret->callchain != INTERN_NONE;
}

static uint64_t hash_start(const struct start *start)
{
	return mix(mix(mix(mix(0, start->generation), start->address), start->callchain), start->flags);
}

/* Repeat the read at `offset` for this stack. */
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

static uint64_t hash_way(size_t branch, const struct unwind_read *read)
{
	return mix(mix(mix(NODE_BRANCH, branch), read->kind), read->value);
}

static bool is_same_start(const struct start *one, const struct start *other)
{
	return one->generation == other->generation && one->address == other->address &&
	       one->callchain == other->callchain && one->flags == other->flags;
}

static bool matches(const struct unwind_cache *cache, const struct unwind_cache_entry *entry, const struct start *start,
		    const struct unwind_input *input)
{
	if (!is_same_start(&entry->start, start))
		return false;
	for (size_t i = 0; i < entry->read_count; i++) {
		uint32_t offset = cache->reads.items[entry->read_start + i].offset;

		if (offset < input->stack_size)
			__builtin_prefetch(input->stack + offset);
	}
	for (size_t i = 0; i < entry->read_count; i++) {
		const struct unwind_read *read = &cache->reads.items[entry->read_start + i];
		struct unwind_read again =
		    read_again(input, start->stack_pointer, read->offset, read->kind == UNWIND_READ_ADDRESS);

		if (again.kind != read->kind || again.value != read->value)
			return false;
	}
	return true;
}

bool unwind_cache_get(struct unwind_cache *cache, uint64_t generation, const struct unwind_input *input,
		      uint32_t *value_ret)
{
	const struct unwind_cache_entry *entry;
	const uint64_t *node;
	struct start start;

	if (!cache->rules || !describe_start(cache, generation, input, &start))
		return false;
	/* Follow the tree to a candidate. */
	node = map_get(&cache->ways, hash_start(&start));
	while (node && *node & NODE_BRANCH) {
		size_t index = *node & ~NODE_BRANCH;
		const struct branch *branch = &cache->branches.items[index];
		struct unwind_read read = read_again(input, start.stack_pointer, branch->offset, branch->is_address);

		node = map_get(&cache->ways, hash_way(index, &read));
	}
	entry = node ? &cache->entries.items[*node] : NULL;
	if (!entry || !matches(cache, entry, &start, input))
		return false;
	*value_ret = entry->value;
	return true;
}

/* False: out of memory. */
static bool add_entry(struct unwind_cache *cache, const struct start *start, const struct unwind_result *result,
		      uint32_t value)
{
	struct unwind_cache_entry entry = {
	    .start = *start, .value = value, .read_start = cache->reads.count, .read_count = result->read_count};

	return vector_push_all(&cache->reads, result->reads, result->read_count) && vector_push(&cache->entries, entry);
}

/* Path of a new stack through the tree, up to read number `depth`. */
struct descent {
	uint64_t way;  /* key of the last node, or of the missing one */
	uint64_t node; /* valid unless `is_open` */
	size_t branch; /* last branch passed */
	bool is_open;
};

static struct descent descend(const struct unwind_cache *cache, const struct start *start,
			      const struct unwind_result *result, size_t depth)
{
	struct descent descent = {.way = hash_start(start)};

	for (;;) {
		const uint64_t *node = map_get(&cache->ways, descent.way);
		const struct branch *branch;

		descent.is_open = !node;
		descent.node = node ? *node : 0;
		if (!node || !(*node & NODE_BRANCH))
			return descent;
		branch = &cache->branches.items[*node & ~NODE_BRANCH];
		if (branch->depth >= depth || branch->depth >= result->read_count)
			return descent;
		descent.branch = *node & ~NODE_BRANCH;
		descent.way = hash_way(descent.branch, &result->reads[branch->depth]);
	}
}

/* Insert a stack into the tree. */
static void insert(struct unwind_cache *cache, const struct start *start, const struct unwind_result *result,
		   uint32_t value)
{
	struct descent descent = descend(cache, start, result, SIZE_MAX);
	size_t nearest = descent.node; /* the entry that shares the most reads with the new stack */
	struct unwind_cache_entry *entry;
	const struct unwind_read *reads;
	size_t depth = 0; /* index of the first read that differs */
	const struct unwind_read *old, *new;
	struct branch branch;
	size_t index;

	if (descent.is_open)
		nearest = cache->branches.items[descent.branch].entry;
	else if (descent.node & NODE_BRANCH)
		nearest = cache->branches.items[descent.node & ~NODE_BRANCH].entry;
	entry = &cache->entries.items[nearest];
	reads = cache->reads.items + entry->read_start;
	while (depth < entry->read_count && depth < result->read_count &&
	       reads[depth].offset == result->reads[depth].offset && reads[depth].kind == result->reads[depth].kind &&
	       reads[depth].value == result->reads[depth].value)
		depth++;
	/* Hash collision: do not cache this stack. */
	if (!is_same_start(&entry->start, start))
		return;
	if (depth == entry->read_count && depth == result->read_count) {
		entry->value = value; /* update the existing stack */
		return;
	}
	/* The result is not a function of its reads: one stack has fewer reads, or reads something else after the same
	 * values. */
	if (depth == entry->read_count || depth == result->read_count ||
	    reads[depth].offset != result->reads[depth].offset)
		return;
	descent = descend(cache, start, result, depth + 1);
	if (!add_entry(cache, start, result, value))
		return;
	if (descent.is_open) {
		(void)map_put(&cache->ways, descent.way, cache->entries.count - 1);
		return;
	}
	/* Insert a branch into the path: to the old node, and to the new entry. */
	old = &cache->reads.items[cache->entries.items[nearest].read_start + depth];
	new = &cache->reads.items[cache->entries.items[cache->entries.count - 1].read_start + depth];
	branch = (struct branch){.entry = nearest, .depth = depth, .offset = old->offset};
	branch.is_address = old->kind == UNWIND_READ_ADDRESS || new->kind == UNWIND_READ_ADDRESS;
	index = cache->branches.count;
	/* This order keeps everything reachable if memory runs out. */
	if (vector_push(&cache->branches, branch) && map_put(&cache->ways, hash_way(index, old), descent.node) &&
	    map_put(&cache->ways, hash_way(index, new), cache->entries.count - 1))
		(void)map_put(&cache->ways, descent.way, NODE_BRANCH | index);
}

void unwind_cache_put(struct unwind_cache *cache, uint64_t generation, const struct unwind_input *input,
		      const struct unwind_result *result, uint32_t value)
{
	struct start start;

	if (result->reads_overflow || !result->rules || !cache->limit)
		return;
	if (cache->rules != result->rules || cache->entries.count >= cache->limit ||
	    cache->reads.count + result->read_count > cache->limit * READS_PER_STACK)
		forget_all(cache);
	cache->rules = result->rules;
	if (intern_put(&cache->callchains, input->callchain, input->callchain_count * sizeof(*input->callchain)) ==
		INTERN_NONE ||
	    !describe_start(cache, generation, input, &start))
		return;
	if (map_get(&cache->ways, hash_start(&start)))
		insert(cache, &start, result, value);
	else if (add_entry(cache, &start, result, value))
		(void)map_put(&cache->ways, hash_start(&start), cache->entries.count - 1);
}
