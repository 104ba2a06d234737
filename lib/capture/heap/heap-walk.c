// SPDX-License-Identifier: LGPL-2.1-or-later
/* The layouts of glibc: malloc/malloc.c and malloc/arena.c. A chunk is {size of the chunk below if that is free, own
 * size and flags, user's bytes}; it is in use if the next chunk has PREV_IN_USE. Freed chunks in a tcache or fastbin
 * look as if they were in use. */
#include "capture/heap/heap-readings.h"

#include "base/limits.h"

#define WINDOW_BYTES (1u << 20)
#define PAGE_BYTES 4096u /* the smallest page: larger ones are multiples of it */
#define WORD 8u

enum { PREV_IN_USE = 1, IS_MMAPPED = 2, NON_MAIN_ARENA = 4, FLAGS = 7 };
#define ALIGNMENT 16u
#define CHUNK_BYTES_MIN 32u
#define FENCE_BYTES 16u /* a chunk of this size ends a segment */
#define CHAIN 8		/* headers in a row that are no coincidence */
#define KEPT_PAGES 256
#define SAMPLE_BYTES (1u << 20)
#define SAMPLES 32 /* that are read again */
#define DAMAGE_READS 3
#define CHECK_SHARE 16 /* reads for each look at the clock */
#define PART_BYTES (64ULL << 20)

/* struct malloc_state */
#define ARENA_FASTBINS 16
#define ARENA_TOP 96
#define ARENA_BINS 112
#define ARENA_NEXT 2160
#define ARENA_BYTES 2200
#define NONCONTIGUOUS 2u /* in the flags, the second u32 */
#define FASTBINS 10
#define BINS 127
#define EMPTY_BINS_MIN 8

/* heap_info, before glibc 2.35, and since */
#define HEAP_INFO_BYTES 32
#define HEAP_INFO_BYTES_2_35 48

/* struct tcache_perthread_struct: counts and pointers, from 2.30 on, and from 2.42 on */
#define TCACHE_BINS 64
#define TCACHE_CHUNK 0x290
#define TCACHE_CHUNK_2_42 0x300
#define TCACHE_ENTRIES (TCACHE_BINS * 2)
#define TCACHE_ENTRIES_2_42 (76 * 2)

struct chunk {
	uint64_t address, below, head, words[2];
};

struct region {
	uint64_t start, end; /* of chunks */
	uint64_t arena;
	uint64_t top; /* 0: in another region of the arena */
	bool main;    /* of the main arena */
};

/* A part of the heap as it was walked, to see later how much it has changed. */
struct sample {
	const struct region *region;
	uint64_t start, end, bytes; /* bytes in use, or in fastbins */
};

struct walk {
	const struct heap_source *source;
	struct mmt_heap_census *census;
	struct heap_contents contents;
	uint64_t window_start;
	size_t window_bytes;
	uint8_t *window;	   /* behind it are the pages of peek() */
	uint64_t kept[KEPT_PAGES]; /* numbers of these pages */
	VECTOR(struct region) regions;
	VECTOR(struct sample) samples;
	struct map arenas; /* seen, and their heaps */
	uint64_t main_arena;
	VECTOR(uint64_t) fastbins; /* free chunks; ascending */
	size_t next_fastbin;
	struct map tcache_keys;
	uint64_t key_bits;     /* 1 << key % 64 of each key */
	unsigned guesses;      /* words that were looked up as a key */
	uint64_t late_bytes;   /* counted before the last key that was found, so that some of them may be free */
	bool fast_unsure;      /* a fastbin could not be followed */
	uint64_t unsure_bytes; /* of chunks that may be in use or in a fastbin */
	unsigned checks;       /* of the time */
	struct sample last;    /* part before the bytes at stopped_at, which are no chunk */
	uint64_t last_head;    /* size of the chunk there */
	bool damaged;	       /* these bytes still are no chunk */
	bool stopped;	       /* the time is over */
	bool parts;	       /* only parts of the heap are walked */
	bool measuring;	       /* a bounded amount, even if the time is over */
};

static size_t read_memory(struct walk *walk, uint64_t address, void *data, size_t size)
{
	return walk->source->read(walk->source->context, address, data, size);
}

static bool is_over(struct walk *walk)
{
	if (walk->measuring)
		return false;
	if (++walk->checks % CHECK_SHARE == 0)
		walk->stopped = walk->stopped || walk->source->is_over(walk->source->context);
	return walk->stopped;
}

static void forget_memory(struct walk *walk)
{
	walk->window_bytes = 0;
	memset(walk->kept, 0xff, sizeof(walk->kept));
}

static bool is_in_window(const struct walk *walk, uint64_t address, size_t size)
{
	return address >= walk->window_start && address - walk->window_start + size <= walk->window_bytes;
}

static COLD void move_window(struct walk *walk, uint64_t address, size_t size, uint64_t end)
{
	uint64_t start = address & ~(uint64_t)(PAGE_BYTES - 1), wanted = end > start ? end - start : 0;

	walk->window_start = start;
	walk->window_bytes = 0;
	if (address + size <= end && !is_over(walk))
		walk->window_bytes = read_memory(walk, start, walk->window, smaller_of(wanted, WINDOW_BYTES));
}

/* These bytes, out of the window; NULL: they are not in memory. */
static inline const void *look(struct walk *walk, uint64_t address, size_t size, uint64_t end)
{
	if (!is_in_window(walk, address, size))
		move_window(walk, address, size, end);
	return is_in_window(walk, address, size) ? walk->window + (address - walk->window_start) : NULL;
}

/* As look(), for single words anywhere: leaves the window where it is. Pages are kept, because lists often lead to the
 * same page again. */
static bool peek(struct walk *walk, uint64_t address, void *data, size_t size)
{
	uint64_t page = address / PAGE_BYTES, *kept = &walk->kept[page % KEPT_PAGES];
	uint8_t *bytes = walk->window + WINDOW_BYTES + page % KEPT_PAGES * PAGE_BYTES;

	if (address >= walk->window_start && address - walk->window_start < walk->window_bytes &&
	    size <= walk->window_bytes - (address - walk->window_start)) {
		memcpy(data, walk->window + (address - walk->window_start), size);
		return true;
	}
	if ((address + size - 1) / PAGE_BYTES != page)
		return !is_over(walk) && read_memory(walk, address, data, size) == size;
	if (*kept != page) {
		*kept = UINT64_MAX;
		if (is_over(walk) || read_memory(walk, page * PAGE_BYTES, bytes, PAGE_BYTES) != PAGE_BYTES)
			return false;
		*kept = page;
	}
	memcpy(data, bytes + address % PAGE_BYTES, size);
	return true;
}

/* The bytes of fenceposts, and of chunks that were never written, may not be in memory. */
static bool load(struct walk *walk, const struct region *region, uint64_t address, struct chunk *chunk)
{
	const void *bytes = look(walk, address, CHUNK_BYTES_MIN, region->end);

	chunk->address = address;
	if (bytes) {
		memcpy(&chunk->below, bytes, CHUNK_BYTES_MIN);
		return true;
	}
	*chunk = (struct chunk){.address = address};
	bytes = look(walk, address, FENCE_BYTES, region->end);
	if (bytes)
		memcpy(&chunk->below, bytes, FENCE_BYTES);
	return bytes;
}

static uint64_t size_of(const struct chunk *chunk)
{
	return chunk->head & ~(uint64_t)FLAGS;
}

static bool is_plausible(const struct region *region, uint64_t address, uint64_t head)
{
	uint64_t size = head & ~(uint64_t)FLAGS;

	return size >= CHUNK_BYTES_MIN && size % ALIGNMENT == 0 && !(head & IS_MMAPPED) &&
	       !(region->main && head & NON_MAIN_ARENA) && size <= region->end - address;
}

static bool is_fence(uint64_t head)
{
	return (head & ~(uint64_t)(PREV_IN_USE | NON_MAIN_ARENA)) == FENCE_BYTES || head == PREV_IN_USE;
}

/* Does a chain of headers begin here? It is one, too, if it reaches the top or a fencepost. */
static bool begins_chain(struct walk *walk, const struct region *region, uint64_t address)
{
	uint64_t words[2] = {0}, size = 0;

	for (unsigned i = 0; i < CHAIN; i++, address += size) {
		uint64_t below = size;

		if (address == region->top && i)
			return true;
		if (region->end - address < sizeof(words) || !peek(walk, address, words, sizeof(words)))
			return false;
		if (i && !(words[1] & PREV_IN_USE) && words[0] != below)
			return false;
		size = words[1] & ~(uint64_t)FLAGS;
		if (i > 1 && is_fence(words[1]))
			return true;
		if (!is_plausible(region, address, words[1]))
			return false;
	}
	return true;
}

/* Find the next chunk; `end`: there is none. */
static uint64_t resynchronize(struct walk *walk, const struct region *region, uint64_t address, uint64_t end)
{
	for (address = (address + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1); address < end; address += ALIGNMENT) {
		const void *bytes = look(walk, address, ALIGNMENT, region->end);
		uint64_t head;

		if (address == region->top)
			return address;
		if (walk->stopped)
			return end;
		if (!bytes) {
			address = (address | (PAGE_BYTES - 1)) + 1;
			address = walk->source->find_resident(walk->source->context, address, end) - ALIGNMENT;
			continue;
		}
		memcpy(&head, (const uint8_t *)bytes + WORD, sizeof(head));
		if (is_plausible(region, address, head) && begins_chain(walk, region, address))
			return address;
	}
	return end;
}

/* ---- the data of libc ---- */

/* Empty bins point to themselves, and some always are empty; behind them are the next arena, and sizes. */
static bool is_arena(const uint8_t *data, uint64_t address, uint64_t unused)
{
	uint64_t tail[5]; /* next, next_free, attached_threads, system_mem, max_system_mem */
	unsigned empty = 0;

	(void)unused;
	memcpy(tail, data + ARENA_NEXT, sizeof(tail));
	/* The break of a static program begins within a page. */
	if (!tail[0] || tail[0] % ALIGNMENT || !tail[3] || tail[3] % ALIGNMENT || tail[4] < tail[3])
		return false;
	for (unsigned i = 0; i < BINS; i++) {
		uint64_t words[2], self = address + ARENA_BINS - 2 * WORD + (uint64_t)i * 2 * WORD;

		memcpy(words, data + ARENA_BINS + (size_t)i * 2 * WORD, sizeof(words));
		if (!words[0] || !words[1] || words[0] % WORD || words[1] % WORD)
			return false;
		empty += words[0] == self && words[1] == self;
	}
	return empty >= EMPTY_BINS_MIN;
}

static bool is_word(const uint8_t *data, uint64_t address, uint64_t wanted)
{
	(void)address;
	return !memcmp(data, &wanted, sizeof(wanted));
}

bool heap_is_glibc(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (!strncmp(name, "/libc.so.6", 10) || !strncmp(name, "/libc-2.", 8));
}

/* Find what `matches` in the data of libc, or of a program that contains it; 0: nothing. Replace the window. */
static uint64_t find_in_libc(struct walk *walk, size_t bytes,
			     bool (*matches)(const uint8_t *data, uint64_t address, uint64_t wanted), uint64_t wanted)
{
	const struct heap_source *source = walk->source;
	bool has_libc = array_find(mapping, source->mappings, source->mapping_count, heap_is_glibc(mapping->path));

	walk->window_bytes = 0;
	array_each(mapping, source->mappings, source->mapping_count) {
		if (!mapping->module || !mapping->writable || (has_libc && !heap_is_glibc(mapping->module->path)))
			continue;
		for (uint64_t place = mapping->start; place < mapping->end && !is_over(walk);) {
			uint64_t left = mapping->end - place;
			size_t size = read_memory(walk, place, walk->window, left < WINDOW_BYTES ? left : WINDOW_BYTES);

			for (size_t offset = 0; offset + bytes <= size; offset += WORD) {
				if (matches(walk->window + offset, place + offset, wanted))
					return place + offset;
			}
			place = size == WINDOW_BYTES
				    ? place + size - PAGE_BYTES
				    : source->find_resident(source->context, place + size + PAGE_BYTES, mapping->end);
		}
	}
	return 0;
}

/* ---- tcache and fastbins ---- */

static uint64_t key_bit(uint64_t word)
{
	return 1ULL << word % 64;
}

/* Few words pass the first test, which costs next to nothing. */
static inline bool has_key(const struct walk *walk, const struct chunk *chunk)
{
	return walk->key_bits & key_bit(chunk->words[1]) && map_get(&walk->tcache_keys, chunk->words[1]);
}

/* A block that was just handed out has a word of the program in place of the key, which may be in many blocks: a count,
 * a pointer. The key is the address of the tcache, or a random number, which libc keeps in its data: no small number
 * and no pointer. */
static bool is_key(struct walk *walk, uint64_t word, uint64_t tcache)
{
	uint64_t high = word >> 48;

	if (word == tcache)
		return true;
	if (!high || high == UINT16_MAX || walk->guesses >= LIMIT_HEAP_TCACHES)
		return false;
	walk->guesses++;
	return find_in_libc(walk, WORD, is_word, word);
}

/* Note the key of the blocks in a tcache if the chunk is one: a random number, or before glibc 2.34 its address. */
static struct mmt_error *note_tcache(struct walk *walk, const struct chunk *chunk, bool first)
{
	uint64_t entries[TCACHE_BINS], place = chunk->address + 2 * WORD;

	place += size_of(chunk) == TCACHE_CHUNK ? TCACHE_ENTRIES : TCACHE_ENTRIES_2_42;
	if (!peek(walk, place, entries, sizeof(entries)))
		return NULL;
	for (unsigned i = 0; i < TCACHE_BINS; i++) {
		uint64_t block[3]; /* size, next and key */

		if (!entries[i])
			continue;
		if (entries[i] % ALIGNMENT || !peek(walk, entries[i] - WORD, block, sizeof(block)) ||
		    (block[0] & ~(uint64_t)FLAGS) != CHUNK_BYTES_MIN + i * ALIGNMENT || !block[2])
			return NULL;
		if (map_get(&walk->tcache_keys, block[2]) || walk->tcache_keys.count >= LIMIT_HEAP_TCACHES ||
		    !is_key(walk, block[2], chunk->address + 2 * WORD))
			return NULL;
		if (!first)
			walk->late_bytes = walk->census->in_use_low;
		walk->key_bits |= key_bit(block[2]);
		return map_put(&walk->tcache_keys, block[2], 1) ? NULL : &error_no_memory;
	}
	return NULL;
}

COMPARISON(compare_addresses, uint64_t, order_of(*a, *b))

/* Is this a free chunk of the fastbin? */
static bool is_in_fastbin(struct walk *walk, uint64_t address, uint64_t size, uint64_t *next_ret)
{
	uint64_t words[2];

	if (!address || address % ALIGNMENT || !peek(walk, address + WORD, words, sizeof(words)) ||
	    (words[0] & ~(uint64_t)FLAGS) != size)
		return false;
	*next_ret = words[1];
	return true;
}

/* Follow a fastbin. Brent's algorithm finds cycles. */
static struct mmt_error *collect_fastbin(struct walk *walk, uint64_t address, uint64_t size)
{
	uint64_t earlier = 0, next, ignored;

	for (uint64_t count = 0, power = 1; address; count++) {
		if (!is_in_fastbin(walk, address, size, &next) || address == earlier ||
		    walk->fastbins.count >= LIMIT_HEAP_FASTBIN_CHUNKS) {
			walk->fast_unsure = true;
			return NULL;
		}
		if (!vector_push(&walk->fastbins, address))
			return &error_no_memory;
		if (count == power) {
			earlier = address;
			power *= 2;
		}
		/* Since glibc 2.32, pointers are mangled with their position. */
		ignored = next ^ (address + 2 * WORD) >> 12;
		address = next && (!ignored || is_in_fastbin(walk, ignored, size, &(uint64_t){0})) ? ignored : next;
	}
	return NULL;
}

/* ---- regions ---- */

/* Where the contiguous mappings that may be heap end. */
static uint64_t find_end(const struct heap_source *source, const struct heap_mapping *mapping)
{
	const struct heap_mapping *end = source->mappings + source->mapping_count;

	while (mapping + 1 < end && mapping[1].start == mapping->end && mapping[1].writable && !mapping[1].module)
		mapping++;
	return mapping->end;
}

static bool is_in(uint64_t address, uint64_t start, uint64_t end)
{
	return address >= start && address < end;
}

static struct mmt_error *add_region(struct walk *walk, uint64_t arena, uint64_t start, uint64_t end, uint64_t top)
{
	const struct region region = {start, end, arena, is_in(top, start, end) ? top : 0, arena == walk->main_arena};

	if (start >= end)
		return NULL;
	if (walk->regions.count >= LIMIT_HEAP_REGIONS) {
		walk->stopped = true;
		return NULL;
	}
	return vector_push(&walk->regions, region) ? NULL : &error_no_memory;
}

/* Count the chunks with mappings of their own at the start of a mapping: later ones are below earlier ones, and the
 * kernel merges them. Return where they end. */
static uint64_t count_mmapped(struct walk *walk, uint64_t start, uint64_t end)
{
	uint64_t words[2], size;

	while (end - start > PAGE_BYTES && peek(walk, start, words, sizeof(words))) {
		size = words[1] & ~(uint64_t)FLAGS;
		if ((words[1] & FLAGS) != IS_MMAPPED || words[0] >= PAGE_BYTES || words[0] % ALIGNMENT || !size ||
		    (size + words[0]) % PAGE_BYTES || size > end - start)
			break;
		walk->census->mmapped_count++;
		walk->census->mmapped_bytes += size;
		start += size + words[0];
	}
	return start;
}

/* The main arena is the break, and where another program used that or it cannot grow, anonymous memory. */
static struct mmt_error *find_main_regions(struct walk *walk, uint64_t arena)
{
	const struct heap_source *source = walk->source;
	uint64_t top = 0, start, end = 0;
	uint32_t flags = 0;
	struct mmt_error *error = NULL;

	(void)(peek(walk, arena + ARENA_TOP, &top, sizeof(top)) && peek(walk, arena + 4, &flags, sizeof(flags)));
	array_while(mapping, source->mappings, source->mapping_count, !error) {
		bool is_break = !strcmp(mapping->path, "[heap]");

		if (mapping->start < end || !mapping->writable || mapping->module || (*mapping->path && !is_break))
			continue;
		start = is_break ? mapping->start : count_mmapped(walk, mapping->start, mapping->end);
		if (is_break || is_in(top, start, mapping->end)) {
			end = find_end(source, mapping);
			error = add_region(walk, arena, start, end, top);
		} else if (flags & NONCONTIGUOUS &&
			   begins_chain(walk, &(struct region){.end = mapping->end, .main = true}, start)) {
			error = add_region(walk, arena, start, mapping->end, top);
		}
	}
	return error;
}

/* Add the heaps of an arena that has no break, of which each leads to the one before it. */
static struct mmt_error *add_heaps(struct walk *walk, uint64_t arena, uint64_t first)
{
	/* Sizes of the largest heap: 64 MiB, or four huge pages (glibc.malloc.hugetlb=2) */
	static const uint64_t alignments[] = {64ULL << 20, 8ULL << 20, 128ULL << 20,
					      4ULL << 30,  2ULL << 30, 256ULL << 10};
	uint64_t top = 0, heap = 0, info[3] = {0};
	struct mmt_error *error = NULL;

	(void)peek(walk, arena + ARENA_TOP, &top, sizeof(top));
	for (size_t i = 0; i < sizeof(alignments) / sizeof(*alignments) && info[0] != arena; i++) {
		heap = top & ~(alignments[i] - 1);
		info[0] = 0;
		(void)peek(walk, heap, info, sizeof(info));
	}
	while (!error && heap && !map_get(&walk->arenas, heap) && peek(walk, heap, info, sizeof(info)) &&
	       info[0] == arena) {
		const struct heap_mapping *mapping = heap_mapping_find(walk->source, heap);
		uint64_t limit = mapping ? find_end(walk->source, mapping) : heap;
		uint64_t end = info[2] < limit - heap ? heap + info[2] : limit;
		uint64_t start = heap == first ? (arena + ARENA_BYTES + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1)
					       : heap + (arena - first);

		if (!map_put(&walk->arenas, heap, 1))
			return &error_no_memory;
		error = add_region(walk, arena, start, end, top);
		heap = info[1];
	}
	return error;
}

static struct mmt_error *find_arenas(struct walk *walk)
{
	uint64_t arena = walk->main_arena;
	struct mmt_error *error = NULL;

	while (!error && arena && !map_get(&walk->arenas, arena) && !is_over(walk)) {
		uint64_t before = (arena & ~(uint64_t)(PAGE_BYTES - 1)), first = 0, heads[FASTBINS];
		bool has_fastbins;

		if (!map_put(&walk->arenas, arena, 1))
			return &error_no_memory;
		walk->census->arenas++;
		has_fastbins = peek(walk, arena + ARENA_FASTBINS, heads, sizeof(heads));
		for (unsigned i = 0; has_fastbins && !error && i < FASTBINS; i++)
			error = collect_fastbin(walk, heads[i], CHUNK_BYTES_MIN + i * ALIGNMENT);
		if (!error && arena == walk->main_arena)
			error = find_main_regions(walk, arena);
		else if (!error && (arena - before == HEAP_INFO_BYTES || arena - before == HEAP_INFO_BYTES_2_35) &&
			 peek(walk, before, &first, sizeof(first)) && first == arena)
			error = add_heaps(walk, arena, before);
		if (!peek(walk, arena + ARENA_NEXT, &arena, sizeof(arena)))
			break;
	}
	vector_sort(&walk->fastbins, compare_addresses);
	return error;
}

/* ---- chunks ---- */

static struct mmt_error *count_in_use(struct walk *walk, const struct chunk *chunk, uint64_t below)
{
	struct mmt_heap_census *census = walk->census;
	size_t *next = &walk->next_fastbin;
	uint64_t size = size_of(chunk);
	struct mmt_error *error = NULL;

	if (size == TCACHE_CHUNK || size == TCACHE_CHUNK_2_42)
		error = note_tcache(walk, chunk, false);
	if (error)
		return error;
	while (*next < walk->fastbins.count && walk->fastbins.items[*next] < chunk->address)
		++*next;
	if (*next < walk->fastbins.count && walk->fastbins.items[*next] == chunk->address) {
		census->fastbin_bytes += size;
		return NULL;
	}
	if (has_key(walk, chunk)) {
		census->tcache_bytes += size;
		return NULL;
	}
	if (walk->fast_unsure && size < CHUNK_BYTES_MIN + FASTBINS * ALIGNMENT)
		walk->unsure_bytes += size;
	census->in_use_count++;
	census->in_use_low += size;
	return heap_contents_add(&walk->contents, size, chunk->words, below);
}

/* Is the chunk correct, and is the next one? */
static bool load_next(struct walk *walk, const struct region *region, const struct chunk *chunk, struct chunk *next)
{
	return is_plausible(region, chunk->address, chunk->head) && size_of(chunk) < region->end - chunk->address &&
	       load(walk, region, chunk->address + size_of(chunk), next) &&
	       (next->head & PREV_IN_USE || next->below == size_of(chunk)) &&
	       (is_fence(next->head) || is_plausible(region, next->address, next->head));
}

/* Go on behind bytes that are no chunk. Return where. */
static uint64_t skip(struct walk *walk, const struct region *region, const struct chunk *chunk, uint64_t end)
{
	if (!walk->census->stopped_at && !walk->stopped) {
		walk->census->stopped_at = chunk->address;
		walk->last = (struct sample){region, chunk->address, chunk->address, 0};
		walk->last_head = chunk->head;
		if (walk->samples.count && walk->samples.items[walk->samples.count - 1].end == chunk->address)
			walk->last = walk->samples.items[walk->samples.count - 1];
	}
	return resynchronize(walk, region, chunk->address + ALIGNMENT, end);
}

/* Fenceposts end a segment of the break; behind them are bytes of others, and the next segment. */
static uint64_t skip_fences(struct walk *walk, const struct region *region, struct chunk *chunk, uint64_t end)
{
	while (is_fence(chunk->head) && size_of(chunk)) {
		walk->census->walked_bytes += size_of(chunk);
		if (!load(walk, region, chunk->address + FENCE_BYTES, chunk))
			break;
	}
	if (!region->main) {
		walk->census->walked_bytes += region->end - chunk->address;
		return end;
	}
	return resynchronize(walk, region, chunk->address, end);
}

/* The top moves while the program runs. */
static bool is_top(struct walk *walk, struct region *region, uint64_t address)
{
	uint64_t top = 0;

	return read_memory(walk, region->arena + ARENA_TOP, &top, sizeof(top)) == sizeof(top) &&
	       (region->top = top) == address;
}

static uint64_t counted_bytes(const struct walk *walk)
{
	return walk->census->in_use_low + walk->census->fastbin_bytes;
}

/* Walk correct chunks. Return the first other one, in *chunk. */
static struct mmt_error *walk_chain(struct walk *walk, const struct region *region, uint64_t end, struct chunk *chunk)
{
	uint64_t below = 0, start = chunk->address, before = counted_bytes(walk);
	struct mmt_error *error = NULL;
	struct chunk next;
	bool more = true;

	while (!error && more) {
		more = chunk->address < end && chunk->address != region->top && !is_fence(chunk->head) &&
		       load_next(walk, region, chunk, &next);
		if (chunk->address - start >= (more ? SAMPLE_BYTES : 1)) {
			const struct sample sample = {region, start, chunk->address, counted_bytes(walk) - before};

			start = chunk->address;
			before = counted_bytes(walk);
			error = vector_push(&walk->samples, sample) ? NULL : &error_no_memory;
		}
		if (error || !more)
			break;
		walk->census->walked_bytes += size_of(chunk);
		if (next.head & PREV_IN_USE) {
			error = count_in_use(walk, chunk, below);
		} else {
			/* malloc_trim() returns the pages behind the header of a free chunk. */
			uint64_t first = (chunk->address + 6 * WORD + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
			uint64_t last = (chunk->address + size_of(chunk)) & ~(uint64_t)(PAGE_BYTES - 1);

			walk->census->free_count++;
			walk->census->free_bytes += size_of(chunk);
			if (first < last)
				walk->census->trimmable_bytes +=
				    walk->source->resident_bytes(walk->source->context, first, last);
		}
		below = next.head & PREV_IN_USE ? 0 : size_of(chunk);
		*chunk = next;
	}
	return error;
}

/* Do chunks reach from stopped_at to the end of the region, which has grown since its mapping was read? Heaps of
 * arenas without a break say how large they are and whose, which is another one's if they were unmapped meanwhile. */
static bool has_grown(struct walk *walk)
{
	const struct region *region = walk->last.region;
	struct region grown = *region;
	struct chunk chunk = {.address = walk->census->stopped_at};
	uint64_t heap = region->start & ~(uint64_t)(PAGE_BYTES - 1), info[3] = {0};

	if (!region->main &&
	    (!peek(walk, heap, info, sizeof(info)) || info[0] != region->arena || info[2] > region->end - heap))
		return true;
	if (is_top(walk, &grown, chunk.address))
		return true;
	if (grown.top < region->end || region->end - chunk.address > SAMPLE_BYTES)
		return false;
	grown.end = grown.top;
	while (chunk.address < region->end && load(walk, region, chunk.address, &chunk) &&
	       is_plausible(&grown, chunk.address, chunk.head))
		chunk.address += size_of(&chunk);
	return chunk.address >= region->end;
}

/* Do chunks still end at stopped_at? If not, the process has changed them, so that nothing is wrong there. A thread
 * that lost its CPU while it changed them looks like damage, until it runs again. */
static bool is_damaged(struct walk *walk)
{
	for (unsigned tries = 0; tries < DAMAGE_READS; tries++) {
		struct chunk chunk, next;

		if (walk->source->wait)
			walk->source->wait(walk->source->context);
		forget_memory(walk);
		if (has_grown(walk))
			return false;
		(void)load(walk, walk->last.region, walk->last.start, &chunk);
		while (chunk.address < walk->last.end && load_next(walk, walk->last.region, &chunk, &next))
			chunk = next;
		if (chunk.address != walk->last.end || !load(walk, walk->last.region, chunk.address, &chunk) ||
		    chunk.head != walk->last_head || load_next(walk, walk->last.region, &chunk, &next) ||
		    (is_plausible(walk->last.region, chunk.address, chunk.head) &&
		     !load(walk, walk->last.region, chunk.address + size_of(&chunk), &next)))
			return false;
	}
	return true;
}

/* Walk the chunks that begin from `start` to `end`. *reached_ret: where the last one ends. */
static struct mmt_error *walk_chunks(struct walk *walk, struct region *region, uint64_t start, uint64_t end,
				     uint64_t *reached_ret)
{
	uint64_t address =
	    begins_chain(walk, region, start) || start == region->top ? start : resynchronize(walk, region, start, end);
	uint64_t again = 0; /* tried again with a new reading */
	struct mmt_error *error = NULL;

	walk->next_fastbin = 0;
	while (!error && address < end && !is_over(walk)) {
		struct chunk chunk;

		if (load(walk, region, address, &chunk))
			error = walk_chain(walk, region, end, &chunk);
		address = chunk.address;
		if (error || address >= end || walk->stopped)
			break;
		if (is_top(walk, region, address)) {
			uint64_t size = smaller_of(size_of(&chunk), region->end - address);
			uint64_t first = (address + 4 * WORD + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);

			/* Later segments may be below earlier ones. */
			address += size;
			walk->census->top_bytes += size;
			walk->census->walked_bytes += size;
			/* malloc_trim() returns the top of the main arena only. */
			if (region->main && first < address)
				walk->census->trimmable_bytes +=
				    walk->source->resident_bytes(walk->source->context, first, address);
			/* Without its header, nobody knows where the top ends. */
			if (!size)
				address = end;
			else if (!begins_chain(walk, region, address))
				address = resynchronize(walk, region, address, end);
			continue;
		}
		if (is_fence(chunk.head)) {
			address = skip_fences(walk, region, &chunk, end);
		} else if (again != address) {
			again = address;
			forget_memory(walk);
		} else {
			address = skip(walk, region, &chunk, end);
		}
	}
	*reached_ret = address;
	return error;
}

static void finish_sums(struct walk *walk, struct mmt_heap_census *census)
{
	size_t count = walk->samples.count, step = count / SAMPLES + 1, read = 0;
	uint64_t change = 0;

	/* The parts are from different moments: a block that is freed in one and allocated in another may count twice,
	 * or not at all. What has changed in some of them since shows how much that can be. */
	walk->measuring = true;
	walk->damaged = walk->census->stopped_at && is_damaged(walk);
	for (size_t i = 0; i < count; i += step, read++) {
		const struct sample *sample = &walk->samples.items[i];
		struct chunk chunk, next;
		uint64_t bytes = 0;

		forget_memory(walk);
		(void)load(walk, sample->region, sample->start, &chunk);
		while (chunk.address < sample->end && chunk.address - sample->start < 2 * SAMPLE_BYTES &&
		       load_next(walk, sample->region, &chunk, &next)) {
			if (next.head & PREV_IN_USE && !has_key(walk, &chunk))
				bytes += size_of(&chunk);
			chunk = next;
		}
		change += magnitude_of((int64_t)(bytes - sample->bytes)) + subtract(sample->end, chunk.address);
	}
	walk->measuring = false;
	change = read ? change / read * count + change % read * count / read : 0;
	walk->stopped |= walk->source->is_over(walk->source->context);
	census->walked_bytes = smaller_of(census->walked_bytes, census->mapped_bytes);
	census->in_use_high = census->in_use_low + (census->mapped_bytes - census->walked_bytes);
	census->in_use_high += change;
	change += walk->unsure_bytes + (walk->stopped ? walk->late_bytes : 0);
	census->in_use_low -= change < census->in_use_low ? change : census->in_use_low;
	census->result = walk->stopped || walk->parts ? MMT_HEAP_SAMPLED
			 : walk->damaged	      ? MMT_HEAP_DAMAGED
			 : census->stopped_at	      ? MMT_HEAP_CHANGING
			 : census->arenas	      ? MMT_HEAP_COMPLETE
						      : MMT_HEAP_NOT_WALKED;
}

static struct mmt_error *walk_once(struct walk *walk)
{
	struct mmt_error *error = heap_contents_init(&walk->contents, walk->source) ?: find_arenas(walk);
	uint64_t step, number = 0, part_bytes;

	/* The tcache of the thread that began an arena is the first chunk of it. */
	array_while(region, walk->regions.items, walk->regions.count, !error) {
		struct chunk chunk;

		walk->census->mapped_bytes += region->end - region->start;
		if (load(walk, region, region->start, &chunk) &&
		    (size_of(&chunk) == TCACHE_CHUNK || size_of(&chunk) == TCACHE_CHUNK_2_42))
			error = note_tcache(walk, &chunk, true);
	}
	/* Of a heap that takes longer than the time allows, walk parts at equal distances. */
	step = walk->census->mapped_bytes / LIMIT_HEAP_WALKED_BYTES + 1;
	walk->parts = step > 1;
	part_bytes = walk->parts ? PART_BYTES : UINT64_MAX;
	array_while(region, walk->regions.items, walk->regions.count, !error) {
		uint64_t start = region->start, reached = start;

		for (; !error && start < region->end && !walk->stopped; number++) {
			uint64_t end = region->end - start < part_bytes ? region->end : start + part_bytes;

			if (number % step == 0 && reached < end)
				error = walk_chunks(walk, region, larger_of(reached, start), end, &reached);
			start = end;
		}
	}
	error = error ?: heap_contents_finish(&walk->contents, walk->census);
	finish_sums(walk, walk->census);
	heap_contents_deinit(&walk->contents);
	map_deinit(&walk->arenas);
	vector_deinit(&walk->regions);
	vector_deinit(&walk->fastbins);
	vector_deinit(&walk->samples);
	return error;
}

struct mmt_error *heap_walk(const struct heap_source *source, struct mmt_heap_census *census)
{
	struct walk walk = {
	    .source = source, .census = census, .window = malloc(WINDOW_BYTES + KEPT_PAGES * PAGE_BYTES)};
	const struct mmt_heap_census empty = *census;
	struct mmt_error *error = walk.window ? NULL : &error_no_memory;

	if (!error) {
		forget_memory(&walk);
		walk.main_arena = find_in_libc(&walk, ARENA_BYTES, is_arena, 0);
		error = walk_once(&walk);
	}
	/* Keys that were found late may be in chunks that were counted as in use. */
	if (!error && walk.late_bytes && !walk.stopped) {
		struct mmt_heap_census first = *census;
		struct walk second = {.source = source,
				      .census = census,
				      .window = walk.window,
				      .main_arena = walk.main_arena,
				      .tcache_keys = walk.tcache_keys,
				      .key_bits = walk.key_bits};

		*census = empty;
		walk = second;
		forget_memory(&walk);
		first.allocator_name = NULL;
		heap_census_deinit(&first);
		error = walk_once(&walk);
	}
	map_deinit(&walk.tcache_keys);
	free(walk.window);
	return error;
}
