// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text/text.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/strings.h"
#include "output/selection.h"

#define TEXT_PART_MAX 512
#define NAME_BYTES 4096	    /* longer names are only cut in the middle */
#define NAMESPACE_COLUMNS 8 /* shorter ones stay */

static const char *const style_codes[] = {
    [TEXT_PLAIN] = "",	      [TEXT_STRONG] = "\x1b[1m", [TEXT_FAINT] = "\x1b[2m",
    [TEXT_GOOD] = "\x1b[32m", [TEXT_BAD] = "\x1b[1;31m",
};

void text_begin(struct text *text, FILE *stream, const struct mmt_text_options *options)
{
	*text = (struct text){
	    .stream = stream,
	    .options = options,
	    .room = text_rooms,
	    .escape = options->ascii ? ESCAPE_FOR_ASCII : ESCAPE_FOR_TERMINAL,
	};
	/* wcwidth() depends on the thread's locale; without this one each character counts as one column. */
	text->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (text->utf8)
		text->previous = uselocale(text->utf8);
}

bool text_end(struct text *text)
{
	if (text->utf8) {
		uselocale(text->previous);
		freelocale(text->utf8);
		text->utf8 = (locale_t)0;
	}
	vector_deinit(&text->sentence);
	return !text->no_memory;
}

static void begin_style(struct text *text, enum text_style style)
{
	if (text->options->colour)
		fputs(style_codes[style], text->stream);
}

static void end_style(struct text *text, enum text_style style)
{
	if (text->options->colour && style != TEXT_PLAIN)
		fputs("\x1b[0m", text->stream);
}

void text_put(struct text *text, enum text_style style, const char *plain)
{
	begin_style(text, style);
	fputs(plain, text->stream);
	end_style(text, style);
	text->column += (unsigned)strlen(plain);
}

void text_format(struct text *text, enum text_style style, const char *format, ...)
{
	char line[TEXT_PART_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	text_put(text, style, line);
}

unsigned text_name_columns(const struct text *text, const char *name)
{
	struct escape_piece piece;
	unsigned columns = 0;

	while (escape_next(&name, text->escape, &piece))
		columns += piece.columns;
	return columns;
}

static void put_piece(struct text *text, const struct escape_piece *piece)
{
	fwrite(piece->text, 1, piece->size, text->stream);
	text->column += piece->columns;
}

/* Put `name` with "..." in place of what lies between these columns. */
static void put_pieces(struct text *text, const char *name, unsigned first, unsigned last)
{
	struct escape_piece piece;
	bool cut = false;

	for (unsigned at = 0; escape_next(&name, text->escape, &piece); at += piece.columns) {
		if (at + piece.columns <= first || at >= last) {
			put_piece(text, &piece);
		} else if (!cut) {
			cut = true;
			fputs("...", text->stream);
			text->column += 3;
		}
	}
}

/* What is in parentheses at the end of a name: a module, or arguments. NULL: nothing. */
static char *find_parentheses(char *name)
{
	size_t end = strlen(name), depth = 0;

	if (ends_with(name, " const"))
		end -= strlen(" const");
	if (!end || name[end - 1] != ')')
		return NULL;
	do {
		end--;
		depth += name[end] == ')' ? 1 : 0;
		depth -= name[end] == '(' ? 1 : 0;
	} while (end && depth);
	while (end && name[end - 1] == ' ')
		end--;
	return !end || depth || (end >= 8 && !strncmp(name + end - 8, "operator", 8)) ? NULL : name + end;
}

/* Leave out the arguments of templates. */
static void empty_templates(char name[NAME_BYTES])
{
	static const char dots[] = "...";
	char brief[NAME_BYTES + sizeof(dots)];
	size_t length = 0, depth = 0;

	for (const char *at = name; *at && length < NAME_BYTES; at++) {
		if (*at == '>' && at > name && at[-1] != '-' && depth && !--depth) {
			memcpy(brief + length, dots, sizeof(dots) - 1);
			length += sizeof(dots) - 1;
		}
		if (!depth)
			brief[length++] = *at;
		depth += *at == '<';
	}
	if (depth || length >= NAME_BYTES || strstr(name, "operator"))
		return;
	memcpy(name, brief, length);
	name[length] = '\0';
}

/* The function behind its namespaces, classes or packages; *class_ret: its innermost class, or the function itself. */
static const char *find_function(const char *name, const char **class_ret)
{
	const char *function = name, *slash = strchr(name, ' ') ? NULL : strrchr(name, '/');

	*class_ret = name;
	for (const char *next = name; (next = strstr(next, "::")) != NULL; next += 2) {
		*class_ret = function;
		function = next + 2;
	}
	if (function > name || !slash)
		return function;
	return *class_ret = slash + 1;
}

static void put_short_name(struct text *text, const char *name, unsigned columns_max)
{
	unsigned columns, first = (columns_max - 3) * 2 / 3, last = columns_max - 3 - first;
	char brief[NAME_BYTES], *end, *path;
	const char *function, *class = name;

	if (strlen(name) < sizeof(brief) && *name != '/') {
		memcpy(brief, name, strlen(name) + 1);
		/* A script behind its function: "py::load:/srv/app/cache.py", "JS:*load /srv/app/cache.js:1:2". */
		path = starts_with(brief, "py::")  ? strstr(brief, ":/")
		       : starts_with(brief, "JS:") ? strstr(brief, " /") ?: strstr(brief, " file:/")
						   : NULL;
		if (path)
			memmove(path + 1, strrchr(path, '/') + 1, strlen(strrchr(path, '/')));
		while (text_name_columns(text, brief) > columns_max && (end = find_parentheses(brief)) != NULL)
			*end = '\0';
		if (text_name_columns(text, brief) > columns_max)
			empty_templates(brief);
		name = brief;
	}
	function = *name == '/' ? name : find_function(name, &class);
	if (function > name + NAMESPACE_COLUMNS && text_name_columns(text, name) > columns_max) {
		columns = text_name_columns(text, function) + 2;
		if (columns + 1 > columns_max) {
			name = function;
		} else {
			/* "...", the class and the function; or the beginning of the class and the function. */
			bool fits = text_name_columns(text, class) + 3 <= columns_max || columns + 3 > columns_max;

			name = fits ? name : class;
			last = fits ? columns_max - 3 : columns;
			first = columns_max - 3 - last;
		}
	}
	columns = text_name_columns(text, name);
	put_pieces(text, name, columns > columns_max ? first : columns, columns - last);
}

void text_put_name(struct text *text, enum text_style style, const char *name, unsigned columns_max)
{
	unsigned columns = text_name_columns(text, name);

	begin_style(text, style);
	if (columns_max > 3 && columns > columns_max)
		put_short_name(text, name, columns_max);
	else
		put_pieces(text, name, columns, columns);
	end_style(text, style);
}

/* A word, of which the middle is left out if it does not fit on a line of its own. */
static void put_word(struct text *text, const char *word, size_t size, unsigned columns)
{
	unsigned width = text->options->width, room = width > text->column ? width - text->column : 0;
	struct escape_piece piece;
	char brief[NAME_BYTES];

	if (!width || columns <= room || room < NAMESPACE_COLUMNS || size >= sizeof(brief)) {
		for (const char *end = word + size; word < end && escape_next(&word, text->escape, &piece);)
			put_piece(text, &piece);
		return;
	}
	memcpy(brief, word, size);
	brief[size] = '\0';
	put_short_name(text, brief, room);
}

static void put_words(struct text *text, enum text_style style, const char *sentence, unsigned indent)
{
	unsigned width = text->options->width;
	const char *end;

	begin_style(text, style);
	for (const char *word = sentence;; word = end + 1) {
		struct escape_piece piece;
		unsigned columns = 0;

		end = strchrnul(word, ' ');
		for (const char *at = word; at < end && escape_next(&at, text->escape, &piece);)
			columns += piece.columns;
		/* A space or a new line, depending on what follows. The style ends with the line, as pagers expect. */
		if (word != sentence && width && text->column > indent && text->column + 1 + columns > width) {
			end_style(text, style);
			text_end_line(text);
			text_pad_to(text, indent);
			begin_style(text, style);
		} else if (word != sentence) {
			putc(' ', text->stream);
			text->column++;
		}
		put_word(text, word, (size_t)(end - word), columns);
		if (!*end)
			break;
	}
	end_style(text, style);
}

void text_put_sentence(struct text *text, enum text_style style, const char *sentence, unsigned indent)
{
	put_words(text, style, sentence, indent);
	text_end_line(text);
}

void text_add(struct text *text, const char *format, ...)
{
	size_t used = text->sentence.count ? text->sentence.count - 1 : 0;
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (size < 0 || !vector_reserve_bytes((void **)&text->sentence.items, &text->sentence.capacity,
					      used + (size_t)size + 1, 1)) {
		text->no_memory = true;
		return;
	}
	va_start(arguments, format);
	vsnprintf(text->sentence.items + used, (size_t)size + 1, format, arguments);
	va_end(arguments);
	text->sentence.count = used + (size_t)size + 1;
}

bool text_has_sentence(const struct text *text)
{
	return text->sentence.count > 1;
}

void text_end_sentence(struct text *text, enum text_style style, unsigned indent)
{
	if (text_has_sentence(text))
		text_put_sentence(text, style, text->sentence.items, indent);
	text->sentence.count = 0;
}

void text_add_process(struct text *text, const struct mmt_process *process)
{
	text_add(text, "%s (pid %" PRId32, selection_process_name(process), process->pid);
	if (process->container_pid && process->container_pid != process->pid)
		text_add(text, ", %" PRId32 " in its container", process->container_pid);
	text_add(text, ")");
}

void text_pad_to(struct text *text, unsigned column)
{
	while (text->column < column) {
		putc(' ', text->stream);
		text->column++;
	}
}

void text_end_line(struct text *text)
{
	putc('\n', text->stream);
	text->column = 0;
	text->lines++;
}

void text_begin_part(struct text *text, unsigned columns)
{
	if (text->options->width && text->column > text->indent && text->column + 3 + columns > text->options->width) {
		text_end_line(text);
		text_pad_to(text, text->indent);
	} else if (text->column > text->indent) {
		text_put(text, TEXT_PLAIN, "   ");
	} else {
		text_pad_to(text, text->indent);
	}
}

void text_end_part(struct text *text, enum text_style style)
{
	if (text_has_sentence(text)) {
		text_begin_part(text, text_name_columns(text, text->sentence.items));
		put_words(text, style, text->sentence.items, text->indent);
	}
	text->sentence.count = 0;
}

char *text_number(struct text *text)
{
	return text->numbers[text->number_count++ % TEXT_NUMBERS];
}

const char *text_since(struct text *text, const struct mmt_report *report, uint64_t time_ns)
{
	return text_duration(text, time_ns > report->start_ns ? time_ns - report->start_ns : 0);
}

const char *text_counted(struct text *text, uint64_t count, const char *singular, const char *plural)
{
	char *counted = text_number(text), number[MMT_SIZE_TEXT];

	snprintf(counted, sizeof(text->numbers[0]), "%s %s", mmt_format_count(count, number),
		 text_plural(count, singular, plural));
	return counted;
}

const char *text_plural(uint64_t count, const char *singular, const char *plural)
{
	return count == 1 ? singular : plural;
}

#define TREND_COLUMNS 16

/* 0 to `levels` - 1; only the value 0 has level 0. */
static unsigned trend_level(uint64_t value, uint64_t lowest, uint64_t highest, unsigned levels)
{
	unsigned level;

	if (!value)
		return 0;
	if (highest == lowest || value <= lowest)
		return highest == lowest ? levels - 1 : 1;
	/* To the nearest level: what rises to the end must not look level there. */
	level = 1 + (unsigned)((long double)(value - lowest) / (long double)(highest - lowest) *
				   (long double)(levels - 2) +
			       0.5L);
	return level < levels ? level : levels - 1;
}

void text_trend(struct text *text, const uint64_t points[MMT_TREND_POINTS], uint64_t floor)
{
	static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	uint64_t values[TREND_COLUMNS] = {0}, highest = 0, lowest = UINT64_MAX;

	for (unsigned column = 0; column < TREND_COLUMNS; column++) {
		uint64_t *value = &values[column];

		/* The highest value of the points of a column, so that no peak is hidden. */
		for (unsigned point = column * MMT_TREND_POINTS / TREND_COLUMNS;
		     point < (column + 1) * MMT_TREND_POINTS / TREND_COLUMNS; point++)
			*value = larger_of(points[point], *value);
		highest = larger_of(*value, highest);
		lowest = *value && *value < lowest ? *value : lowest;
	}
	if (!highest)
		return;
	if (highest - lowest <= floor)
		lowest = highest;
	text_begin_part(text, TREND_COLUMNS);
	for (unsigned column = 0; column < TREND_COLUMNS; column++) {
		if (text->options->ascii)
			fprintf(text->stream, "%u", trend_level(values[column], lowest, highest, 10));
		else
			fputs(bars[trend_level(values[column], lowest, highest, 8)], text->stream);
	}
	text->column += TREND_COLUMNS;
}
