// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/perf-map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/vector.h"

#define NO_ENTRY UINT32_MAX

struct entry {
	uint64_t start, end; /* end exclusive */
	size_t name;	     /* offset into names */
};

/* From here to the next segment one entry names every byte, or none does. */
struct segment {
	uint64_t start;
	uint32_t entry;
};

struct perf_map {
	VECTOR(struct entry) entries; /* in the order of the text */
	VECTOR(char) names;
	VECTOR(struct segment) segments; /* sorted */
	struct perf_map_stats stats;
};

static bool is_blank(uint8_t byte)
{
	return byte == ' ' || byte == '\t';
}

static void skip_blanks(struct bytes *line)
{
	while (bytes_left(line) && is_blank(*line->position))
		bytes_skip(line, 1);
}

static int hexadecimal_digit(uint8_t byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* A number and the blanks behind it; false: no number, too large, or not followed by a blank. */
static bool parse_number(struct bytes *line, uint64_t *number_ret)
{
	uint64_t number = 0;
	size_t digits = 0;

	skip_blanks(line);
	if (bytes_left(line) > 2 && line->position[0] == '0' && (line->position[1] | 0x20) == 'x')
		bytes_skip(line, 2);
	for (; bytes_left(line); digits++) {
		int digit = hexadecimal_digit(*line->position);

		if (digit < 0)
			break;
		if (number >> 60)
			return false;
		number = number << 4 | (uint64_t)digit;
		bytes_skip(line, 1);
	}
	if (!digits || !bytes_left(line) || !is_blank(*line->position))
		return false;
	skip_blanks(line);
	*number_ret = number;
	return true;
}

static bool append_name(struct perf_map *map, const uint8_t *name, size_t size)
{
	if (!vector_reserve_bytes((void **)&map->names.items, &map->names.capacity, map->names.count + size + 1, 1))
		return false;
	memcpy(map->names.items + map->names.count, name, size);
	map->names.items[map->names.count + size] = '\0';
	map->names.count += size + 1;
	return true;
}

/* False when out of memory. `complete`: a newline ended the line. */
static bool add_line(struct perf_map *map, struct bytes line, bool complete)
{
	struct entry entry = {.name = map->names.count};
	uint64_t size;
	size_t name_size;

	map->stats.lines++;
	if (!parse_number(&line, &entry.start) || !parse_number(&line, &size)) {
		map->stats.garbage += complete;
		return true;
	}
	name_size = bytes_left(&line);
	if (name_size && line.position[name_size - 1] == '\r')
		name_size--;
	name_size = strnlen((const char *)line.position, name_size);
	if (!name_size || entry.start + size < entry.start) {
		map->stats.garbage += complete;
		return true;
	}
	if (!size)
		return true;
	if (map->entries.count >= NO_ENTRY - 1)
		return true;
	entry.end = entry.start + size;
	if (!append_name(map, line.position, name_size) || !vector_push(&map->entries, entry))
		return false;
	map->stats.used++;
	return true;
}

static bool parse_lines(struct perf_map *map, struct bytes text)
{
	while (bytes_left(&text)) {
		const uint8_t *newline = memchr(text.position, '\n', bytes_left(&text));
		size_t size = newline ? (size_t)(newline - text.position) : bytes_left(&text);
		struct bytes line = bytes_sub(&text, size);

		bytes_skip(&text, newline ? 1 : 0);
		if (size && !add_line(map, line, newline))
			return false;
	}
	return true;
}

static int compare_numbers(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static size_t find_bound(const uint64_t *bounds, size_t count, uint64_t bound)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (bounds[middle] < bound)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* First piece at or after `piece` that has no owner; shortens the path for the next search. */
static size_t next_free(size_t *next, size_t piece)
{
	size_t free_piece = piece;

	while (next[free_piece] != free_piece)
		free_piece = next[free_piece];
	while (next[piece] != free_piece) {
		size_t step = next[piece];

		next[piece] = free_piece;
		piece = step;
	}
	return free_piece;
}

/*
 * All starts and ends cut the address space into pieces. The entries take the pieces they cover from the last entry to
 * the first, each only those that are still free; so a later line wins byte by byte, in about linear time whatever the
 * overlaps.
 */
static bool assign_pieces(const struct perf_map *map, const uint64_t *bounds, size_t count, uint32_t *owners)
{
	CLEANUP(free) size_t *next = malloc((count + 1) * sizeof(*next));

	if (!next)
		return false;
	for (size_t i = 0; i <= count; i++)
		next[i] = i;
	for (size_t i = map->entries.count; i-- > 0;) {
		size_t end = find_bound(bounds, count, map->entries.items[i].end);
		size_t piece = next_free(next, find_bound(bounds, count, map->entries.items[i].start));

		for (; piece < end; piece = next_free(next, piece)) {
			owners[piece] = (uint32_t)i;
			next[piece] = piece + 1;
		}
	}
	return true;
}

static bool build_segments(struct perf_map *map)
{
	size_t count = 0;
	CLEANUP(free) uint64_t *bounds = malloc((2 * map->entries.count + 1) * sizeof(*bounds));
	CLEANUP(free) uint32_t *owners = malloc((2 * map->entries.count + 1) * sizeof(*owners));

	if (!bounds || !owners)
		return false;
	for (size_t i = 0; i < map->entries.count; i++) {
		bounds[count++] = map->entries.items[i].start;
		bounds[count++] = map->entries.items[i].end;
	}
	qsort(bounds, count, sizeof(*bounds), compare_numbers);
	for (size_t i = 0, kept = 0, all = count; i < all; i++) {
		if (!kept || bounds[kept - 1] != bounds[i])
			bounds[kept++] = bounds[i];
		count = kept;
	}
	memset(owners, 0xff, count * sizeof(*owners));
	if (!assign_pieces(map, bounds, count, owners))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct segment segment = {.start = bounds[i], .entry = owners[i]};

		if (i && owners[i] == owners[i - 1])
			continue;
		if (!vector_push(&map->segments, segment))
			return false;
	}
	return true;
}

struct mmt_error *perf_map_create(const void *text, size_t size, struct perf_map **map_ret)
{
	struct perf_map *map = calloc(1, sizeof(*map));

	if (!map)
		return &error_no_memory;
	if (!parse_lines(map, bytes_over(text, size)) || !build_segments(map)) {
		perf_map_destroy(map);
		return &error_no_memory;
	}
	*map_ret = map;
	return NULL;
}

void perf_map_destroy(struct perf_map *map)
{
	if (!map)
		return;
	vector_deinit(&map->entries);
	vector_deinit(&map->names);
	vector_deinit(&map->segments);
	free(map);
}

const char *perf_map_find(const struct perf_map *map, uint64_t address, uint64_t *start_ret)
{
	size_t low = 0, high = map->segments.count;
	const struct entry *entry;

	/* Invariant: segments below `low` start at or before the address, those from `high` on behind it. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->segments.items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || map->segments.items[low - 1].entry == NO_ENTRY)
		return NULL;
	entry = &map->entries.items[map->segments.items[low - 1].entry];
	if (start_ret)
		*start_ret = entry->start;
	return map->names.items + entry->name;
}

struct perf_map_stats perf_map_stats(const struct perf_map *map)
{
	return map->stats;
}

/* What .NET appends to a method: how this body of it was compiled. */
static const char *const tier_suffixes[] = {
    "[QuickJitted]",
    "[OptimizedTier1]",
    "[OptimizedTier1OSR]",
    "[InstrumentedTier]",
    "[InstrumentedTierOptimized]",
    "[Optimized]",
    "[MinOptJitted]",
    "[PreJIT]",
    "[ReadyToRun]",
    "[PreStub]",
    "[Unknown]",
};

/* V8's prefix of a name; behind it stands how the function runs: ~ interpreted, ^ baseline, + mid tier, * optimised. */
static const char *const v8_prefixes[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};

static size_t without_tier(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(tier_suffixes) / sizeof(*tier_suffixes); i++) {
		size_t suffix = strlen(tier_suffixes[i]);

		if (length > suffix && !memcmp(name + length - suffix, tier_suffixes[i], suffix))
			return without_tier(name, length - suffix);
	}
	return length;
}

/* .NET: "RETURN-TYPE [ASSEMBLY] CLASS::METHOD(ARGUMENTS)": the class; of other names the name. */
static const char *behind_assembly(const char *name, const char *end)
{
	const char *arguments = memchr(name, '(', (size_t)(end - name));
	const char *scope = memmem(name, (size_t)(end - name), "::", 2);

	if (!scope || (arguments && scope > arguments))
		return name;
	for (const char *open = name; (open = memmem(open, (size_t)(scope - open), " [", 2)); open += 2) {
		const char *close = memchr(open, ']', (size_t)(scope - open));

		if (!close)
			break;
		if (close[1] == ' ' && close + 2 < scope) {
			static const char dynamic_class[] = "dynamicClass::";
			const char *class_name = close + 2;
			size_t prefix = sizeof(dynamic_class) - 1;

			if ((size_t)(end - class_name) > prefix && !memcmp(class_name, dynamic_class, prefix))
				class_name += prefix;
			return class_name;
		}
	}
	return name;
}

/* Length of a type's address at `text`, which .NET writes as a comment in the names of its stubs; 0: there is none. */
static size_t type_comment(const char *text, const char *end)
{
	static const char opening[] = " /* MT: 0x";
	const char *close;

	if ((size_t)(end - text) < sizeof(opening) || memcmp(text, opening, sizeof(opening) - 1))
		return 0;
	close = memmem(text, (size_t)(end - text), "*/", 2);
	return close ? (size_t)(close + 2 - text) : 0;
}

void perf_map_normalise(const char *name, char *text, size_t size)
{
	const char *end = name + without_tier(name, strlen(name));
	const char *mark = NULL;
	size_t used = 0;

	if (!size)
		return;
	for (size_t i = 0; i < sizeof(v8_prefixes) / sizeof(*v8_prefixes); i++) {
		size_t length = strlen(v8_prefixes[i]);

		if (!strncmp(name, v8_prefixes[i], length) && strchr("~^+*", name[length]))
			mark = name + length;
	}
	for (name = behind_assembly(name, end); name < end && used + 1 < size;) {
		size_t comment = type_comment(name, end);

		if (comment)
			name += comment;
		else if (name == mark)
			name++;
		else
			text[used++] = *name++;
	}
	text[used] = '\0';
}
