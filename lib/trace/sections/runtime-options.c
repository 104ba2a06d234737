// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/sections.h"

#include "base/limits.h"
#include "base/strings.h"

#define VALUE_BYTES 24

/* Whose arguments these are, and the words of its variables. */
enum language { OTHER, JAVA, MONO, NODE, PYTHON };

static const struct {
	enum language language;
	const char *word;
	enum runtime_option option;
	uint64_t value;
} words[] = {{JAVA, "-XX:+PreserveFramePointer", OPTION_JAVA_FRAME_POINTERS, 1},
	     {JAVA, "-XX:-PreserveFramePointer", OPTION_JAVA_FRAME_POINTERS, 0},
	     {JAVA, "-Xcomp", OPTION_JAVA_COMPILED, 1},
	     {JAVA, "-Xint", OPTION_JAVA_COMPILED, 0},
	     {JAVA, "-Xmixed", OPTION_JAVA_COMPILED, 0},
	     {MONO, "disable_omit_fp", OPTION_MONO_FRAME_POINTERS, 1},
	     {NODE, "--perf-basic-prof", OPTION_NODE_PERF_MAP, 1},
	     {NODE, "--perf-basic-prof-only-functions", OPTION_NODE_PERF_MAP, 1},
	     {NODE, "--interpreted-frames-native-stack", OPTION_NODE_INTERPRETED_FRAMES, 1},
	     {PYTHON, "-Xperf", OPTION_PYTHON_PERF_MAP, 1},
	     {PYTHON, "perf", OPTION_PYTHON_PERF_MAP, 1}}; /* the value of -X */

/* Variables that are numbers. Of several with one option, the last one in this table counts. */
static const struct {
	const char *variable;
	enum runtime_option option;
	int base;
} numbers[] = {{"MALLOC_ARENA_MAX", OPTION_MALLOC_ARENA_MAX, 10},
	       {"COMPlus_PerfMapEnabled", OPTION_DOTNET_PERF_MAP, 16},
	       {"DOTNET_PerfMapEnabled", OPTION_DOTNET_PERF_MAP, 16},
	       {"PYTHONPERFSUPPORT", OPTION_PYTHON_PERF_MAP, 10}};

/* Of several values of an option, Java uses the last one in this order. */
static const struct {
	const char *variable; /* NULL: the arguments of the program */
	bool of_launcher;     /* a program that loads the JVM itself does not pass them on */
} of_order[] = {{"JAVA_TOOL_OPTIONS", false}, {"JDK_JAVA_OPTIONS", true}, {NULL, true}, {"_JAVA_OPTIONS", false}};

/* clang-format off */
/* Options that are followed by a value, which may look like the name of a class or script. */
static const char *const with_value[] = {
	"-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--source",
	"--add-modules", "--add-exports", "--limit-modules", "--enable-native-access", "--add-opens", "--add-reads",
	"--patch-module", "-r", "--require", "-W", "-X",
};
/* clang-format on */

struct scan {
	struct runtime_options *options;
	int32_t pid;
	uint64_t began_ns;
	size_t first; /* value of this program */
	bool complete;
	bool out_of_memory;
};

static void runtime_options_deinit(void *value)
{
	struct runtime_options *options = value;

	vector_deinit(&options->values);
}

/* The last value of an option counts. */
static void add(struct scan *scan, enum runtime_option option, uint64_t value)
{
	const struct option_value entry = {
	    .pid = scan->pid, .began_ns = scan->began_ns, .option = option, .value = value};
	size_t count = scan->options->values.count - scan->first;
	struct option_value *known =
	    count ? array_find(item, scan->options->values.items + scan->first, count, item->option == option) : NULL;

	if (known)
		known->value = value;
	else
		scan->out_of_memory |= !vector_push(&scan->options->values, entry);
}

/* V8 does not distinguish '-' and '_'. */
static bool is_same_word(const char *known, const char *word, size_t size)
{
	size_t i = 0;

	while (known[i] && i < size && (known[i] == word[i] || (i >= 2 && known[i] == '-' && word[i] == '_')))
		i++;
	return i == size && !known[i];
}

static void scan_word(struct scan *scan, enum language language, const char *word, size_t size)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (words[i].language == language && is_same_word(words[i].word, word, size))
			add(scan, words[i].option, words[i].value);
	}
	/* Such a file, or a word in quotes, may contain any option. */
	if (language == JAVA &&
	    (*word == '@' || starts_with(word, "-XX:Flags=") || starts_with(word, "-XX:VMOptionsFile=") ||
	     memchr(word, '"', size) || memchr(word, '\'', size)))
		scan->complete = false;
}

/* The arguments up to the main class or script, or what follows -jar, are the runtime's. */
static void scan_arguments(struct scan *scan, enum language language, const char *arguments, size_t size)
{
	const char *option = ""; /* whose value the word is, or, of the program's name, none; NULL: it is no value */

	for (size_t place = 0; place < size; place += strlen(arguments + place) + 1) {
		const char *word = arguments + place, *of = option;

		if (!of && *word != '-' && *word != '@')
			return;
		if (!of || (language == PYTHON && !strcmp(of, "-X")))
			scan_word(scan, language, word, strlen(word));
		option = NULL;
		for (size_t i = 0; !of && i < sizeof(with_value) / sizeof(*with_value); i++)
			option = strcmp(word, with_value[i]) ? option : word;
	}
}

/* NULL: it is not set. */
static const char *find_variable(const char *name, const char *variables, size_t size)
{
	size_t length = strlen(name);

	for (size_t place = 0; place < size; place += strlen(variables + place) + 1) {
		if (starts_with(variables + place, name) && variables[place + length] == '=')
			return variables + place + length + 1;
	}
	return NULL;
}

static void scan_words(struct scan *scan, enum language language, const char *text, const char *separators)
{
	for (size_t size; text && *text; text += size + (text[size] != '\0')) {
		size = strcspn(text, separators);
		scan_word(scan, language, text, size);
	}
}

bool runtime_options_scan(struct runtime_options *options, int32_t pid, uint64_t began_ns, const char *arguments,
			  size_t arguments_size, const char *variables, size_t variables_size)
{
	const char *slash = arguments_size ? strrchr(arguments, '/') : NULL;
	const char *program = slash ? slash + 1 : arguments_size ? arguments : "";
	enum language language = !strcmp(program, "java")	  ? JAVA
				 : starts_with(program, "mono")	  ? MONO
				 : starts_with(program, "node")	  ? NODE
				 : starts_with(program, "python") ? PYTHON
								  : OTHER;
	struct scan scan = {.options = options,
			    .pid = pid,
			    .began_ns = began_ns,
			    .first = options->values.count,
			    .complete = variables && (language == JAVA || language == MONO)};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		const char *text = find_variable(numbers[i].variable, variables, variables_size);
		char *end = NULL;
		uint64_t value = text ? strtoull(text, &end, numbers[i].base) : 0;

		if (text && end != text && !*end)
			add(&scan, numbers[i].option, value);
	}
	for (size_t i = 0; i < sizeof(of_order) / sizeof(*of_order); i++) {
		if (of_order[i].of_launcher && language != JAVA)
			continue;
		if (of_order[i].variable)
			scan_words(&scan, JAVA, find_variable(of_order[i].variable, variables, variables_size),
				   " \t\n\r\v\f");
		else
			scan_arguments(&scan, JAVA, arguments, arguments_size);
	}
	if (language == NODE || language == PYTHON)
		scan_arguments(&scan, language, arguments, arguments_size);
	scan_words(&scan, NODE, find_variable("NODE_OPTIONS", variables, variables_size), " ");
	scan_words(&scan, MONO, find_variable("MONO_DEBUG", variables, variables_size), ",");
	if (scan.complete)
		add(&scan, OPTIONS_READ, 0);
	return !scan.out_of_memory;
}

COMPARISON(compare, struct option_value,
	   order_of(a->pid, b->pid) ?: order_of(a->began_ns, b->began_ns) ?: order_of(a->option, b->option))

static void code_options(struct codec *codec, void *value)
{
	struct runtime_options *options = value;
	uint64_t count = codec_count(codec, options->values.count, VALUE_BYTES, UINT32_MAX);
	struct option_value *option;

	codec_each(codec, &options->values, count, option) {
		codec_u32(codec, option->pid);
		codec_u32(codec, option->option);
		codec_u64(codec, option->began_ns);
		codec_u64(codec, option->value);
		if (option_index && compare(option - 1, option) >= 0)
			codec_fail(codec, "options that are not ascending");
	}
}

const struct section_kind section_options = {
    "section of options",  1, 1, LIMIT_SECTION_BYTES, sizeof(struct runtime_options), code_options,
    runtime_options_deinit};

struct mmt_error *runtime_options_encode(struct runtime_options *options, struct buffer *buffer)
{
	size_t count = 0;

	vector_sort(&options->values, compare);
	/* A process that the recorder forgot meanwhile was read twice. */
	for (size_t i = 0; i < options->values.count; i++) {
		if (!i || compare(&options->values.items[count - 1], &options->values.items[i]))
			options->values.items[count++] = options->values.items[i];
	}
	options->values.count = count;
	return section_write(&section_options, options, buffer);
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
