// SPDX-License-Identifier: LGPL-2.1-or-later
#include "cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/message.h"

/* strtoull() takes signs, spaces and other bases: only digits are meant here. */
static bool parse_digits(const char **text, uint64_t *value_ret)
{
	char *end = NULL;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value_ret = strtoull(*text, &end, 10);
	*text = end;
	return errno == 0;
}

/* "2", "1.5" or ".5": digits, and a fraction, as `*part_ret` / `*scale_ret`; its digits after the sixth are ignored. */
static bool parse_decimal(const char **text, uint64_t *whole_ret, uint64_t *part_ret, uint64_t *scale_ret)
{
	*whole_ret = *part_ret = 0;
	*scale_ret = 1;
	if (**text != '.' && !parse_digits(text, whole_ret))
		return false;
	if (**text != '.')
		return true;
	if (!isdigit((unsigned char)(*text)[1]))
		return false;
	for ((*text)++; isdigit((unsigned char)**text); (*text)++) {
		if (*scale_ret < 1000000) {
			*part_ret = *part_ret * 10 + (uint64_t)(**text - '0');
			*scale_ret *= 10;
		}
	}
	return true;
}

const char *value_flag(const char *text, void *given_ret)
{
	(void)text;
	*(bool *)given_ret = true;
	return NULL;
}

const char *value_string(const char *text, void *string_ret)
{
	*(const char **)string_ret = text;
	return NULL;
}

const char *value_count(const char *text, void *count_ret)
{
	uint64_t value = 0;

	if (!parse_digits(&text, &value) || *text || value > SIZE_MAX)
		return "a number such as 0 or 20";
	*(size_t *)count_ret = (size_t)value;
	return NULL;
}

const char *value_size(const char *text, void *bytes_ret)
{
	static const char letters[] = "kmgt";
	uint64_t value = 0, part, scale;
	const char *letter = NULL;
	unsigned shift = 0;
	bool valid = parse_decimal(&text, &value, &part, &scale);

	if (valid && *text)
		letter = strchr(letters, tolower((unsigned char)*text));
	if (letter) {
		shift = 10 * (unsigned)(letter - letters + 1);
		text++;
	}
	if (!valid || (*text && strcasecmp(text, "b") != 0 && !(letter && strcasecmp(text, "ib") == 0)))
		return "a size such as 4096, 512K, 4M or 1.5G";
	if (scale > 1 && !shift)
		return "a whole number of bytes";
	if (value << shift >> shift != value)
		return "a smaller size";
	*(uint64_t *)bytes_ret = (value << shift) + (part << shift) / scale;
	return NULL;
}

const char *value_duration(const char *text, void *ns_ret)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
	    {"", 1000000000},	 {"s", 1000000000},	{"ms", 1000000},       {"us", 1000},
	    {"m", 60000000000u}, {"min", 60000000000u}, {"h", 3600000000000u},
	};
	uint64_t whole = 0, part, scale, total;

	if (!parse_decimal(&text, &whole, &part, &scale))
		return "a time such as 10s, 500ms, 2m or 1h";
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(whole, units[i].ns, &total) ||
		    __builtin_add_overflow(total, part * units[i].ns / scale, &total))
			return "a shorter time";
		if (!total)
			return "a time longer than 0";
		*(uint64_t *)ns_ret = total;
		return NULL;
	}
	return "a time such as 10s, 500ms, 2m or 1h";
}

#define NS_PER_SECOND 1000000000ull

/* "10:12" or "10:12:03" to seconds since midnight. */
static bool parse_time_of_day(const char **text, uint64_t *seconds_ret)
{
	uint64_t hour = 0, minute = 0, second = 0;

	if (!parse_digits(text, &hour) || *(*text)++ != ':' || !parse_digits(text, &minute))
		return false;
	if (**text == ':') {
		(*text)++;
		if (!parse_digits(text, &second))
			return false;
	}
	*seconds_ret = hour * 3600 + minute * 60 + second;
	return hour < 24 && minute < 60 && second < 60;
}

/* "2026-11-21T10:12", local time, to seconds since the epoch. */
static bool parse_date_time(const char **text, uint64_t *seconds_ret)
{
	uint64_t year = 0, month = 0, day = 0, seconds = 0;
	struct tm local = {.tm_isdst = -1};
	time_t timestamp;

	if (!parse_digits(text, &year) || *(*text)++ != '-' || !parse_digits(text, &month) || *(*text)++ != '-' ||
	    !parse_digits(text, &day) || (**text != 'T' && **text != ' '))
		return false;
	(*text)++;
	if (!parse_time_of_day(text, &seconds) || year < 1970 || year > 9999 || !month || month > 12 || !day ||
	    day > 31)
		return false;
	local.tm_year = (int)year - 1900;
	local.tm_mon = (int)month - 1;
	local.tm_mday = (int)day;
	local.tm_hour = (int)(seconds / 3600);
	local.tm_min = (int)(seconds / 60 % 60);
	local.tm_sec = (int)(seconds % 60);
	timestamp = mktime(&local);
	*seconds_ret = (uint64_t)timestamp;
	return timestamp >= 0 && local.tm_mday == (int)day;
}

const char *value_timestamp(const char *text, void *timestamp_ret)
{
	struct mmt_timestamp timestamp = {0};
	bool good;

	if (*text == '@') {
		text++;
		timestamp.kind = MMT_TIMESTAMP_CLOCK;
		good = parse_digits(&text, &timestamp.ns) && !*text;
	} else if (strchr(text, ':')) {
		bool dated = strchr(text, '-') != NULL;

		timestamp.kind = dated ? MMT_TIMESTAMP_REALTIME : MMT_TIMESTAMP_TIME_OF_DAY;
		good =
		    (dated ? parse_date_time(&text, &timestamp.ns) : parse_time_of_day(&text, &timestamp.ns)) && !*text;
		timestamp.ns *= NS_PER_SECOND;
	} else {
		timestamp.kind = *text == '-' ? MMT_TIMESTAMP_BEFORE_END : MMT_TIMESTAMP_SINCE_START;
		text += *text == '-';
		/* 0 is not a duration, but "0s" is a valid timestamp: the start. */
		good = !strcmp(text, "0") || !strcmp(text, "0s") || !value_duration(text, &timestamp.ns);
	}
	if (!good)
		return "a time such as 10s, -10s, 10:12:03, 2026-11-21T10:12 or @NANOSECONDS";
	*(struct mmt_timestamp *)timestamp_ret = timestamp;
	return NULL;
}

int value_choice(const char *const *words, const char *text, size_t length)
{
	for (int i = 0; words[i]; i++)
		if (strlen(words[i]) == length && !strncmp(words[i], text, length))
			return i;
	return -1;
}

const char *value_classes(const char *text, void *classes_ret)
{
	static const char *const words[] = {MMT_CLASS_WORDS(CHOICE) NULL};
	uint32_t *classes = classes_ret;

	do {
		size_t length = strcspn(text, ",");
		int kind = value_choice(words, text, length);

		if (kind < 0)
			return "a list of classes: anon, file, heap, shm, thread-stack, hugetlb, jit, gc-reserve";
		*classes |= 1u << kind;
		text += length;
	} while (*text++);
	return NULL;
}

const char *value_pids_add(struct value_pids *pids, pid_t pid)
{
	pid_t *items;

	for (size_t i = 0; i < pids->count; i++)
		if (pids->items[i] == pid)
			return NULL;
	items = reallocarray(pids->items, pids->count + 1, sizeof(*items));
	if (!items)
		return "a shorter list (out of memory)";
	pids->items = items;
	items[pids->count++] = pid;
	return NULL;
}

#define BLANKS " \t\n"

/* Skip the separator of two numbers: blanks and at most one comma. False: there is something else. */
static bool skip_separator(const char **text)
{
	const char *begin = *text;

	*text += strspn(*text, BLANKS);
	if (**text == ',') {
		++*text;
		*text += strspn(*text, BLANKS);
		return **text != '\0';
	}
	return *text != begin || !**text;
}

const char *value_pids(const char *text, void *pids)
{
	static const char *const expected = "a PID, or a list of them such as 123,456 or '123 456'";
	uint64_t value = 0;

	text += strspn(text, BLANKS);
	if (!*text)
		return "a PID: the list is empty (`pidof` prints nothing if no such program runs)";
	while (*text) {
		const char *refused;

		if (!parse_digits(&text, &value) || value == 0 || value > INT32_MAX || !skip_separator(&text))
			return expected;
		refused = value_pids_add(pids, (pid_t)value);
		if (refused)
			return refused;
	}
	return NULL;
}

const char *value_word(const char *text, void *value)
{
	struct value_words *words = value;
	const char **items;

	if (!*text)
		return "a name";
	items = reallocarray(words->items, words->count + 1, sizeof(*items));
	if (!items)
		return "a shorter list (out of memory)";
	words->items = items;
	items[words->count++] = text;
	return NULL;
}

#define WORD_MAX 32

static unsigned smaller(unsigned left, unsigned right)
{
	return left < right ? left : right;
}

unsigned value_distance(const char *from, const char *to)
{
	unsigned rows[WORD_MAX + 1][WORD_MAX + 1];
	size_t from_length = strlen(from), to_length = strlen(to);

	if (from_length > WORD_MAX || to_length > WORD_MAX)
		return WORD_MAX;
	for (size_t i = 0; i <= from_length; i++) {
		for (size_t j = 0; j <= to_length; j++) {
			if (!i || !j) {
				rows[i][j] = (unsigned)(i + j);
				continue;
			}
			rows[i][j] = smaller(smaller(rows[i - 1][j], rows[i][j - 1]) + 1,
					     rows[i - 1][j - 1] + (from[i - 1] != to[j - 1]));
			if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
				rows[i][j] = smaller(rows[i][j], rows[i - 2][j - 2] + 1);
		}
	}
	return rows[from_length][to_length];
}

#define VALUE_HELP 0x1000
#define VALUE_LIST 0x1001
#define VALUE_FIRST 0x2000 /* plus the place in the table */

struct tables {
	struct option names[OPTIONS_MAX + 1];
	char letters[3 * OPTIONS_MAX];
};

static void add_name(struct tables *tables, size_t *count, const char *name, bool argument, int value)
{
	if (*count < OPTIONS_MAX)
		tables->names[(*count)++] =
		    (struct option){.name = name, .has_arg = argument ? required_argument : no_argument, .val = value};
}

/* The arguments for getopt_long(), made from the option table. */
static void build_tables(const struct option_entry *table, enum options_order order, struct tables *tables)
{
	size_t count = 0;
	char *letter = tables->letters;

	memset(tables, 0, sizeof(*tables));
	if (order == OPTIONS_FIRST)
		*letter++ = '+';
	*letter++ = ':'; /* distinguishes a missing argument from an unknown option */
	*letter++ = 'h';
	add_name(tables, &count, "help", false, VALUE_HELP);
	add_name(tables, &count, "list-options", false, VALUE_LIST);
	for (int i = 0; table[i].name; i++) {
		bool argument = table[i].argument != NULL;

		add_name(tables, &count, table[i].name, argument, VALUE_FIRST + i);
		if (table[i].alias)
			add_name(tables, &count, table[i].alias, argument, VALUE_FIRST + i);
		if (table[i].letter) {
			*letter++ = table[i].letter;
			if (argument)
				*letter++ = ':';
		}
	}
}

static const struct option_entry *find_entry(const struct option_entry *table, int value)
{
	if (value >= VALUE_FIRST)
		return &table[value - VALUE_FIRST];
	for (; table->name; table++)
		if (table->letter && table->letter == value)
			return table;
	return NULL;
}

#define DURATION "--duration TIME stops after TIME"
#define CHART "use html, whose page has the same chart, or pprof"
#define OUTPUT "use `> FILE` or --html FILE, or `mmtrace export -o FILE` for other formats"
#define FORMAT "use --json, --csv or --html FILE, or `mmtrace export -f FORMAT`"

/* Options of other tools or of another command, and, if `removed`, of earlier versions, or only values of options. */
static const struct other_option {
	const char *commands[5], *option, *value, *instead;
	bool removed;
} others[] = {
    {{"report"},
     "annotate",
     "",
     "`objdump -d` or `gdb -batch -ex 'disassemble FUNCTION'` show the instructions of a module",
     true},
    {{"record"}, "pack", "", "leave it out: recordings are packed, except with --raw", true},
    {{"record", "pack"}, "no-code", "", "leave it out: packed recordings contain no instructions", true},
    {{"report", "export", "diff"}, "no-cache", "", "leave it out: names are not kept between reports", true},
    {{"record"}, "exact-order", "", "leave it out: the report orders racing calls by itself", true},
    {{"record"}, "check-exit", "", "--snapshot-interval checks a command more often", true},
    {{"record"}, "tid", "", "use -p, and `mmtrace report --focus thread=TID`", true},
    {{"record"}, "t", "", "use -p, and `mmtrace report --focus thread=TID`", true},
    {{"record"},
     "no-inherit",
     "",
     "leave it out; `mmtrace report --pid PID` shows a process without its children",
     true},
    {{"record"}, "madvise", "", "calls of madvise that succeed are recorded without it", true},
    {{"report", "export"}, "at", "", "use --to", true},
    {{"help"}, "completion", "", "the completion scripts are installed with mmtrace", true},
    {{"report", "export"}, "tail", "", "use --min-age", true},
    {{"report", "diff", "export", "top", "trace"},
     "hide",
     "",
     "reports name the responsible function without it; --focus and --by function select",
     true},
    {{"export"}, "every", "", "export each time with --to TIME", true},
    {{"export"}, "format", "massif", CHART, true},
    {{"export"}, "format", "heaptrack", CHART, true},
    {{"export"}, "format", "speedscope", "use pprof, which speedscope.app opens", true},
    {{"export"}, "format", "svg", "use html, whose page saves its graph as SVG, or folded for flamegraph.pl", true},
    {{"record"}, "d", "", DURATION, false},
    {{"record"}, "time", "", DURATION, false},
    {{"record"}, "timeout", "", DURATION, false},
    {{"record"}, "n", "", "--comm NAME records what runs under that name", false},
    {{"record"}, "name", "", "--comm NAME records what runs under that name", false},
    {{"record"}, "format", "", "`mmtrace report --json` and `mmtrace export --format` convert a recording", false},
    {{"report", "diff"}, "o", "", OUTPUT, false},
    {{"report", "diff"}, "output", "", OUTPUT, false},
    {{"report", "diff"}, "f", "", FORMAT, false},
    {{"report", "diff"}, "format", "", FORMAT, false},
    {{"dump"}, "o", "", "use `> FILE`", false},
    {{"dump"}, "output", "", "use `> FILE`", false},
};

/* NULL: the command never had the option (`value` is ""), or this value of it. */
static const struct other_option *find_other(const struct command *command, const char *option, const char *value)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		for (size_t j = 0; j < sizeof(others[i].commands) / sizeof(char *) && others[i].commands[j]; j++)
			if (!strcmp(others[i].commands[j], command->name) && !strcmp(others[i].option, option) &&
			    !strcmp(others[i].value, value))
				return &others[i];
	return NULL;
}

static int refuse_long(const struct command *command, const struct option_entry *table, const char *word)
{
	const struct other_option *other;
	const char *suggestion = NULL;
	char name[64] = "";
	unsigned best;
	size_t length;

	word += strspn(word, "-");
	length = strcspn(word, "=");
	snprintf(name, sizeof(name), "%.*s", (int)(length < sizeof(name) ? length : sizeof(name) - 1), word);
	for (const struct option_entry *entry = table; length && entry->name; entry++)
		if (strncmp(entry->name, name, length) == 0)
			return message_usage(command, "option --%s is ambiguous; write it out", name);
	other = find_other(command, name, "");
	if (other && other->removed)
		return message_usage(command, "option --%s was removed; %s", name, other->instead);
	if (other)
		return message_usage(command, "unknown option --%s; %s", name, other->instead);
	best = strlen(name) > 4 ? 3 : 2;
	for (; table->name; table++) {
		unsigned distance = value_distance(name, table->name);

		if (distance < best) {
			best = distance;
			suggestion = table->name;
		}
	}
	if (suggestion)
		return message_usage(command, "unknown option --%s; did you mean --%s?", name, suggestion);
	return message_usage(command, "unknown option --%s", name);
}

static int refuse(const struct command *command, const struct option_entry *table, int problem, char **argv)
{
	const struct option_entry *entry = find_entry(table, optopt);

	if (problem == ':')
		return message_usage(command, "option %s needs %s", argv[optind - 1], entry->argument);
	if (optopt >= VALUE_HELP)
		return message_usage(command, "option %s takes no value", argv[optind - 1]);
	if (optopt) {
		const struct other_option *other = find_other(command, (const char[]){(char)optopt, '\0'}, "");

		if (!other)
			return message_usage(command, "unknown option -%c", optopt);
		return message_usage(command, other->removed ? "option -%c was removed; %s" : "unknown option -%c; %s",
				     optopt, other->instead);
	}
	return refuse_long(command, table, argv[optind - 1]);
}

#define HELP_COLUMN 28
#define HELP_WIDTH 80

static const struct option_entry help_entry = {
    .letter = 'h', .name = "help", .help = "with -h: the options on one screen"};
static const struct option_entry only_entry = {.letter = 'h', .name = "help", .help = "print this"};

/* Print words from `column` on, where the cursor is; further lines are indented to it. */
static void put_wrapped(const char *words, int column)
{
	int at = column;

	while (*words) {
		int length = (int)strcspn(words, " ");

		if (at > column && at + 1 + length > HELP_WIDTH) {
			printf("\n%*s", column, "");
			at = column;
		} else if (at > column) {
			putchar(' ');
			at++;
		}
		printf("%.*s", length, words);
		at += length;
		words += length;
		words += strspn(words, " ");
	}
	putchar('\n');
}

static void put_entry(const struct option_entry *entry)
{
	int length =
	    entry->letter ? printf("  -%c, --%s", entry->letter, entry->name) : printf("      --%s", entry->name);

	if (entry->argument)
		length += printf(" %s", entry->argument);
	if (length + 2 > HELP_COLUMN) {
		putchar('\n');
		length = 0;
	}
	printf("%*s", HELP_COLUMN - length, "");
	put_wrapped(entry->help, HELP_COLUMN);
}

/* Print an option with the first clause of its description, or with its choices alone, as far as the line has room. */
static void put_brief(const struct option_entry *entry)
{
	int length =
	    entry->letter ? printf("  -%c, --%s", entry->letter, entry->name) : printf("      --%s", entry->name);
	int column = HELP_COLUMN, clause = (int)strcspn(entry->help, ";:(,");
	const char *words = entry->help;
	bool whole;

	if (entry->argument && length + 1 + (int)strlen(entry->argument) < HELP_COLUMN) {
		length += printf(" %s", entry->argument);
	} else if (entry->argument) {
		words = entry->argument;
		clause = (int)strlen(words);
		column = length + 1;
	}
	while (words[clause - 1] == ' ')
		clause--;
	whole = HELP_WIDTH - column >= clause;
	if (!whole)
		for (clause = HELP_WIDTH - column - 3; !strchr(" |", words[clause - 1]);)
			clause--;
	printf("%*s%.*s%s\n", length < column ? column - length : 1, "", clause, words, whole ? "" : "...");
}

#define REST "More" /* the group of options that few need */

/* Print the options that many need, each on a line, or the names of the others. */
static void put_screen(const struct option_entry *table, bool rare)
{
	int column = 0;

	for (bool rest = false; table->name; table++) {
		rest |= table->group && !strcmp(table->group, REST);
		if ((rest || table->rare) != rare)
			continue;
		if (!rare) {
			if (table->group)
				printf("%s:\n", table->group);
			put_brief(table);
			continue;
		}
		if (!column)
			column = printf(REST ":");
		else if (column + 3 + (int)strlen(table->name) > HELP_WIDTH)
			column = printf("\n     ") - 1;
		column += printf(" --%s", table->name);
	}
	if (column)
		putchar('\n');
}

/* With `complete` every option with its description, otherwise a screen of them. */
static int options_help(const struct command *command, const struct option_entry *table, bool complete)
{
	const char *lead = "Usage:";
	bool any = table->name;

	complete |= !any;
	for (const char *const *usage = command->usage; *usage; usage++) {
		printf("%-6s mmtrace %s%s%s\n", lead, command->name, **usage ? " " : "", *usage);
		lead = "";
	}
	putchar('\n');
	for (const char *const *example = command->examples; *example; example++)
		printf("  mmtrace %s\n%s", *example, example[1] ? "" : "\n");
	if (complete)
		put_wrapped(command->about, 0);
	if (!table->group)
		printf("%sOptions:\n", complete ? "\n" : "");
	for (; complete && table->name; table++) {
		if (table->group)
			printf("\n%s:\n", table->group);
		put_entry(table);
	}
	if (complete) {
		put_entry(any ? &help_entry : &only_entry);
	} else {
		put_screen(table, false);
		put_screen(table, true);
	}
	printf(complete ? "\nThe manual: mmtrace help %s\n"
			: "\nmmtrace %1$s --help describes every option; mmtrace help %1$s: the manual\n",
	       command->name);
	return EXIT_OK;
}

/* "--pid -p PID[,PID...] HELP"; "-" stands for no letter or no argument. */
static void list_entry(const struct option_entry *entry)
{
	printf("--%s -%.*s %s %s\n", entry->name, entry->letter ? 1 : 0, &entry->letter,
	       entry->argument ? entry->argument : "-", entry->help);
}

int options_parse(const struct command *command, const struct option_entry *table, enum options_order order, int argc,
		  char **argv, int *first_ret)
{
	struct tables tables;
	int value;

	build_tables(table, order, &tables);
	optind = 0; /* glibc: start again */
	opterr = 0;
	while ((value = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
		const struct option_entry *entry;
		const struct other_option *other;
		const char *expected; /* NULL: what is given */
		int place;

		if (value == '?' || value == ':')
			return refuse(command, table, value, argv);
		if (value == 'h' || value == VALUE_HELP)
			return options_help(command, table, value == VALUE_HELP);
		if (value == VALUE_LIST) {
			for (; table->name; table++)
				list_entry(table);
			list_entry(&help_entry);
			return EXIT_OK;
		}
		entry = find_entry(table, value);
		if (entry->exact && value >= VALUE_FIRST && strcmp(argv[optind - 1] + 2, entry->name) != 0)
			return message_usage(command, "%s is short for --%s: write it out", argv[optind - 1],
					     entry->name);
		if (entry->given)
			*entry->given = true;
		place = entry->choices ? value_choice(entry->choices, optarg, strlen(optarg)) : -1;
		if (place >= 0)
			*(int *)entry->value = place;
		expected = !entry->choices ? entry->parse(optarg, entry->value) : place < 0 ? entry->argument : NULL;
		other = expected && *optarg ? find_other(command, entry->name, optarg) : NULL;
		if (other)
			return message_usage(command, "--%s %s was removed; %s", entry->name, optarg, other->instead);
		if (expected)
			return message_usage(command, "--%s: '%s' is not %s", entry->name, optarg, expected);
	}
	*first_ret = optind;
	return -1;
}

int options_take_recording(const struct command *command, char **arguments, const char **input)
{
	if (arguments[0] && arguments[1])
		return message_usage(command, "unexpected argument '%s': pass only one recording", arguments[1]);
	if (arguments[0] && *input)
		return message_usage(command, "two recordings: --input %s and %s; pass only one", *input, arguments[0]);
	if (arguments[0])
		*input = arguments[0];
	if (!*input)
		*input = DEFAULT_FILE;
	return -1;
}
