// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/jit/code-timeline.h"

#include <ctype.h>
#include <errno.h>

#include "base/limits.h"

/* Read a hexadecimal number and the blanks around it; false: not a number, too large, or not followed by a blank. */
static bool parse_number(const char **position, uint64_t *number_ret)
{
	static const char blanks[] = " \t";
	char *end;

	*position += strspn(*position, blanks);
	if (!isxdigit((unsigned char)**position))
		return false;
	errno = 0;
	*number_ret = strtoull(*position, &end, 16);
	*position = end + strspn(end, blanks);
	return !errno && *position > end;
}

/* The line is copied to where its name will be. False: out of memory. */
static bool add_line(struct perf_map *map, struct bytes line, uint64_t from_ns)
{
	struct timed_range range = {.from_ns = from_ns};
	size_t name_offset = map->names.count, length = bytes_left(&line);
	const char *name;
	uint64_t size;
	char *text;

	if (!vector_reserve_bytes((void **)&map->names.items, &map->names.capacity, name_offset + length + 1, 1))
		return false;
	name = text = map->names.items + name_offset;
	memcpy(text, line.position, length);
	length -= text[length - 1] == '\r';
	text[length] = '\0';
	if (!parse_number(&name, &range.start) || !parse_number(&name, &size) || !*name || !size ||
	    range.start + size < range.start)
		return true;
	if (map->ranges.count == LIMIT_TIMELINE_RANGES) {
		map->dropped++;
		return true;
	}
	range.end = range.start + size;
	length = strlen(name) + 1;
	memmove(text, name, length);
	map->names.count += length;
	return vector_push(&map->name_offsets, name_offset) && vector_push(&map->ranges, range);
}

struct mmt_error *perf_map_create(const void *text, size_t size, const struct perf_map_step *steps, size_t step_count,
				  struct perf_map **map_ret)
{
	struct perf_map *map = calloc(1, sizeof(*map));
	struct mmt_error *error = &error_no_memory;
	struct bytes left = bytes_over(text, size);
	bool good = true;

	if (!map)
		return error;
	for (size_t i = 1; i < step_count; i++) {
		if (steps[i].time_ns < steps[i - 1].time_ns || steps[i].length < steps[i - 1].length)
			step_count = 0;
	}
	while (good && bytes_left(&left)) {
		const uint8_t *newline = memchr(left.position, '\n', bytes_left(&left));
		size_t length = newline ? (size_t)(newline - left.position) : bytes_left(&left), too_short;
		struct bytes line = bytes_sub(&left, length);

		bytes_skip(&left, newline ? 1 : 0);
		/* The line may be as old as the last reading in which it was not complete. */
		too_short = partition_point(step_count, i, steps[i].length < size - bytes_left(&left));
		good = !length || add_line(map, line, too_short ? steps[too_short - 1].time_ns + 1 : 0);
	}
	if (good)
		error = code_timeline_create(map->ranges.items, map->ranges.count, &map->timeline);
	if (error)
		perf_map_destroy(map);
	else
		*map_ret = map;
	return error;
}

void perf_map_destroy(struct perf_map *map)
{
	if (!map)
		return;
	code_timeline_destroy(map->timeline);
	vector_deinit(&map->ranges);
	vector_deinit(&map->name_offsets);
	vector_deinit(&map->names);
	free(map);
}

struct named_code perf_map_entry(const struct perf_map *map, uint32_t entry)
{
	const struct timed_range *range = &map->ranges.items[entry];

	return (struct named_code){.name = map->names.items + map->name_offsets.items[entry],
				   .start = range->start,
				   .size = range->end - range->start,
				   .from_ns = range->from_ns};
}

/* Suffixes that .NET appends to a method to show how it was compiled. */
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

/* V8's prefix of a name, followed by a character for the tier: ~ interpreted, ^ baseline, + mid tier, * optimised. */
static const char *const v8_prefixes[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};

/* .NET names are "RETURN-TYPE [ASSEMBLY] CLASS::METHOD(ARGUMENTS)": return the class, or the name itself if it has
 * another form. */
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

/* Length of a type's address at `text`, which .NET writes as a comment into the names of its stubs; 0: none. */
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
	const char *end = name + strlen(name), *mark = NULL;
	size_t used = 0;

	if (!size)
		return;
	for (size_t i = 0; i < sizeof(tier_suffixes) / sizeof(*tier_suffixes); i++) {
		size_t suffix = strlen(tier_suffixes[i]);

		if ((size_t)(end - name) <= suffix || memcmp(end - suffix, tier_suffixes[i], suffix))
			continue;
		end -= suffix;
		i = SIZE_MAX; /* there may be more than one */
	}
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
