// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/runtime-options.h"

#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

#define OPTIONS_VERSION 1
#define VALUE_BYTES 24

enum value_kind {
	VALUE_ON,	/* the option has no value: 1 */
	VALUE_OFF,	/* the option turns another one off: 0 */
	VALUE_NUMBER,	/* decimal */
	VALUE_HEX,	/* .NET's variables */
	VALUE_SIZE,	/* with k, m, g or t: bytes */
	VALUE_MEBIBYTES /* bytes */
};

/* `variable` NULL: an argument, or a word in a variable that holds arguments. `text`: the whole word, or what precedes
 * the value; in a variable, "" stands for the variable's value. */
static const struct {
	enum runtime_option option;
	enum value_kind kind;
	const char *variable, *text;
} known[] = {
    {OPTION_JAVA_FRAME_POINTERS, VALUE_ON, NULL, "-XX:+PreserveFramePointer"},
    {OPTION_JAVA_FRAME_POINTERS, VALUE_OFF, NULL, "-XX:-PreserveFramePointer"},
    {OPTION_JAVA_COMPILED, VALUE_ON, NULL, "-Xcomp"},
    {OPTION_JAVA_HEAP, VALUE_SIZE, NULL, "-Xmx"},
    {OPTION_JAVA_HEAP, VALUE_SIZE, NULL, "-XX:MaxHeapSize="},
    {OPTION_JAVA_RAM_PERCENTAGE, VALUE_NUMBER, NULL, "-XX:MaxRAMPercentage="},
    {OPTION_JAVA_THREAD_STACK, VALUE_SIZE, NULL, "-Xss"},
    {OPTION_JAVA_DIRECT_MEMORY, VALUE_SIZE, NULL, "-XX:MaxDirectMemorySize="},
    {OPTION_JAVA_PERF_MAP, VALUE_ON, NULL, "-XX:+DumpPerfMapAtExit"},
    {OPTION_MONO_FRAME_POINTERS, VALUE_ON, "MONO_DEBUG", "disable_omit_fp"},
    {OPTION_NODE_PERF_MAP, VALUE_ON, NULL, "--perf-basic-prof"},
    {OPTION_NODE_PERF_MAP, VALUE_ON, NULL, "--perf-basic-prof-only-functions"},
    {OPTION_NODE_OLD_SPACE, VALUE_MEBIBYTES, NULL, "--max-old-space-size="},
    {OPTION_NODE_OLD_SPACE, VALUE_MEBIBYTES, NULL, "--max_old_space_size="},
    {OPTION_DOTNET_PERF_MAP, VALUE_HEX, "COMPlus_PerfMapEnabled", ""},
    {OPTION_DOTNET_PERF_MAP, VALUE_HEX, "DOTNET_PerfMapEnabled", ""},
    {OPTION_DOTNET_SERVER_GC, VALUE_HEX, "COMPlus_gcServer", ""},
    {OPTION_DOTNET_SERVER_GC, VALUE_HEX, "DOTNET_gcServer", ""},
    {OPTION_DOTNET_HEAP_LIMIT, VALUE_HEX, "DOTNET_GCHeapHardLimit", ""},
    {OPTION_PYTHON_PERF, VALUE_NUMBER, "PYTHONPERFSUPPORT", ""},
    {OPTION_PYTHON_PERF, VALUE_ON, NULL, "-Xperf"},
    {OPTION_RUBY_PERF, VALUE_ON, NULL, "--yjit-perf"},
    {OPTION_ARENA_MAX, VALUE_NUMBER, "MALLOC_ARENA_MAX", ""},
    {OPTION_GO_DONTNEED, VALUE_NUMBER, "GODEBUG", "madvdontneed="},
};

/* Variables that hold arguments, and whether these count more than those of the command line. */
static const struct {
	const char *name;
	bool last;
} carriers[] = {{"JDK_JAVA_OPTIONS", false},
		{"JAVA_TOOL_OPTIONS", false},
		{"NODE_OPTIONS", false},
		{"RUBYOPT", false},
		{"_JAVA_OPTIONS", true}};

struct scan {
	struct runtime_options *options;
	int32_t pid;
	uint64_t began_ns;
	size_t first; /* value of this program */
	bool out_of_memory;
};

void runtime_options_deinit(struct runtime_options *options)
{
	vector_deinit(&options->values);
}

/* The last value of an option counts. */
static void add(struct scan *scan, enum runtime_option option, uint64_t value)
{
	const struct option_value entry = {
	    .pid = scan->pid, .began_ns = scan->began_ns, .option = option, .value = value};

	for (size_t i = scan->first; i < scan->options->values.count; i++) {
		if (scan->options->values.items[i].option == (uint32_t)option) {
			scan->options->values.items[i].value = value;
			return;
		}
	}
	scan->out_of_memory |= !vector_push(&scan->options->values, entry);
}

/* False: not a number of this kind. A fraction is cut. */
static bool parse_value(const char *text, size_t size, enum value_kind kind, uint64_t *value_ret)
{
	static const char units[] = "kmgt";
	char number[32], *end;
	const char *unit;

	if (kind == VALUE_ON || kind == VALUE_OFF) {
		*value_ret = kind == VALUE_ON;
		return !size;
	}
	if (!size || size >= sizeof(number))
		return false;
	memcpy(number, text, size);
	number[size] = '\0';
	*value_ret = strtoull(number, &end, kind == VALUE_HEX ? 16 : 10);
	unit = *end && kind == VALUE_SIZE ? strchr(units, *end | 0x20) : NULL;
	if (end == number || number[0] == '-')
		return false;
	if (unit || kind == VALUE_MEBIBYTES)
		*value_ret <<= unit ? 10 * (unit - units + 1) : 20;
	return unit ? !end[1] : !*end || *end == '.';
}

/* `variable` NULL: the word is an argument. */
static void scan_word(struct scan *scan, const char *variable, const char *word, size_t size)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t length = strlen(known[i].text);
		uint64_t value;

		if ((variable ? known[i].variable && !strcmp(variable, known[i].variable) : !known[i].variable) &&
		    size >= length && !memcmp(word, known[i].text, length) &&
		    parse_value(word + length, size - length, known[i].kind, &value))
			add(scan, known[i].option, value);
	}
}

static void scan_words(struct scan *scan, const char *variable, const char *text, const char *separators)
{
	for (size_t size; *text; text += size + (text[size] != '\0')) {
		size = strcspn(text, separators);
		scan_word(scan, variable, text, size);
	}
}

static void scan_variable(struct scan *scan, const char *text, bool last)
{
	const char *value = strchr(text, '=');
	char name[32];

	if (!value || (size_t)(value - text) >= sizeof(name))
		return;
	memcpy(name, text, (size_t)(value - text));
	name[value++ - text] = '\0';
	if (!last)
		scan_words(scan, name, value, ",");
	for (size_t i = 0; i < sizeof(carriers) / sizeof(*carriers); i++) {
		if (carriers[i].last == last && !strcmp(name, carriers[i].name))
			scan_words(scan, NULL, value, " \t\n");
	}
}

static void scan_variables(struct scan *scan, const char *variables, size_t size, bool last)
{
	for (size_t place = 0; place < size; place += strlen(variables + place) + 1)
		scan_variable(scan, variables + place, last);
}

static void scan_arguments(struct scan *scan, const char *arguments, size_t size)
{
	for (size_t place = 0, length; place < size; place += length + 1) {
		const char *word = arguments + place;

		length = strlen(word);
		/* Python's -X perf */
		if (!strcmp(word, "-X") && place + 3 < size && !strcmp(word + 3, "perf"))
			scan_word(scan, NULL, "-Xperf", 6);
		else
			scan_word(scan, NULL, word, length);
	}
}

bool runtime_options_scan(struct runtime_options *options, int32_t pid, uint64_t began_ns, const char *arguments,
			  size_t arguments_size, const char *variables, size_t variables_size)
{
	struct scan scan = {.options = options, .pid = pid, .began_ns = began_ns, .first = options->values.count};

	scan_variables(&scan, variables, variables_size, false);
	scan_arguments(&scan, arguments, arguments_size);
	scan_variables(&scan, variables, variables_size, true);
	return !scan.out_of_memory;
}

static int compare(const void *left, const void *right)
{
	const struct option_value *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->began_ns != b->began_ns)
		return a->began_ns < b->began_ns ? -1 : 1;
	return (a->option > b->option) - (a->option < b->option);
}

struct mmt_error *runtime_options_encode(struct runtime_options *options, struct buffer *buffer)
{
	struct buffer plain;

	vector_sort(&options->values, compare);
	buffer_init(&plain, LIMIT_SECTION_BYTES);
	buffer_put_u32(&plain, (uint32_t)options->values.count);
	for (size_t i = 0; i < options->values.count; i++) {
		const struct option_value *value = &options->values.items[i];

		buffer_put_u32(&plain, (uint32_t)value->pid);
		buffer_put_u32(&plain, value->option);
		buffer_put_u64(&plain, value->began_ns);
		buffer_put_u64(&plain, value->value);
	}
	return sections_pack(&plain, OPTIONS_VERSION, buffer);
}

struct mmt_error *runtime_options_decode(struct bytes *bytes, size_t *room, struct runtime_options *options_ret)
{
	static const char what[] = "section of options";
	struct runtime_options options = {0};
	uint32_t version = OPTIONS_VERSION;
	struct mmt_error *error;
	struct buffer plain;
	struct bytes inner;
	uint64_t count;

	buffer_init(&plain, LIMIT_SECTION_BYTES);
	error = sections_unpack(bytes, &version, what, room, &plain);
	inner = bytes_over(plain.data, plain.size);
	count = error ? 0 : bytes_count_u32(&inner, VALUE_BYTES, LIMIT_OPTIONS);
	for (uint64_t i = 0; !error && i < count; i++) {
		struct option_value value = {.pid = (int32_t)bytes_u32(&inner), .option = bytes_u32(&inner)};

		value.began_ns = bytes_u64(&inner);
		value.value = bytes_u64(&inner);
		if (i && compare(&options.values.items[i - 1], &value) >= 0)
			bytes_fail(&inner, "options that are not ascending");
		if (!vector_push(&options.values, value))
			error = &error_no_memory;
	}
	if (!error)
		error = bytes_finish(&inner, what);
	buffer_deinit(&plain);
	if (error)
		runtime_options_deinit(&options);
	else
		*options_ret = options;
	return error;
}

const uint64_t *runtime_options_find(const struct runtime_options *options, int32_t pid, uint64_t began_ns,
				     enum runtime_option option)
{
	const struct option_value key = {.pid = pid, .began_ns = began_ns, .option = option};
	const struct option_value *found =
	    options->values.count ? bsearch(&key, options->values.items, options->values.count, sizeof(key), compare)
				  : NULL;

	return found ? &found->value : NULL;
}
