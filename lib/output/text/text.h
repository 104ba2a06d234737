/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of text on a stream: columns counted as a terminal shows them, colour, escaped names, wrapped rows of parts. */
#pragma once

#include <locale.h>

#include <mmtrace/output.h>

#include "base/vector.h"
#include "output/escape.h"

enum text_style { TEXT_PLAIN, TEXT_STRONG, TEXT_FAINT, TEXT_GOOD, TEXT_BAD };

#define TEXT_NUMBERS 8 /* a power of two */

/* How much the first screen of a report shows. What is left out stands below it. */
struct text_room {
	unsigned frames, causes, notes, parts;
	bool extras, hints;
};

#define TEXT_ROOMS 17
extern const struct text_room text_rooms[TEXT_ROOMS]; /* from most to least */

struct text {
	FILE *stream;
	const struct mmt_text_options *options;
	enum escape_mode escape;
	unsigned column;	 /* of the current line */
	unsigned lines;		 /* that have ended */
	unsigned indent;	 /* of the lines that continue a row */
	locale_t utf8, previous; /* for column widths, in this thread only */
	char numbers[TEXT_NUMBERS][2 * MMT_SIZE_TEXT];
	unsigned number_count; /* formatted so far */
	VECTOR(char) sentence; /* with its end, if it has begun */
	bool no_memory;	       /* for a sentence */
	const struct text_room *room;
	bool below;	       /* the first screen */
	bool has_table;	       /* of causes */
	const char *next_hint; /* whose command is the line "next"; NULL: there is none */
	const struct mmt_process *next_process;
};

void text_begin(struct text *text, FILE *stream, const struct mmt_text_options *options);
/* Restores the locale of the thread. False: out of memory, so that a sentence is missing. */
bool text_end(struct text *text) MMT_MUST_CHECK;

/* Trusted ASCII text. */
void text_put(struct text *text, enum text_style style, const char *plain);
void text_format(struct text *text, enum text_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A name from a recording. If it has more than `columns_max` (0: any number), its module, its arguments and those of
 * its templates are left out as far as necessary; then "..." replaces its namespaces, or the middle of the function. */
void text_put_name(struct text *text, enum text_style style, const char *name, unsigned columns_max);
/* A sentence that may contain names from a recording, and the end of its last line. Further lines have this indent. */
void text_put_sentence(struct text *text, enum text_style style, const char *sentence, unsigned indent);

/* Add to a sentence, which may contain names from a recording; and print it. */
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool text_has_sentence(const struct text *text);
void text_end_sentence(struct text *text, enum text_style style, unsigned indent);
/* A sentence as a line. */
#define TEXT_LINE_INDENT 4 /* of the continuation of a line that is too long */
#define text_sentence(text, style, indent, ...) (text_add(text, __VA_ARGS__), text_end_sentence(text, style, indent))
#define text_line(text, style, ...) text_sentence(text, style, TEXT_LINE_INDENT, __VA_ARGS__)
/* "name (pid 12)" */
void text_add_process(struct text *text, const struct mmt_process *process);
unsigned text_name_columns(const struct text *text, const char *name);

void text_pad_to(struct text *text, unsigned column);
void text_end_line(struct text *text);

/* Begin the next part of a row, `columns` wide: behind three spaces or, if it does not fit, on a new line, indented. */
void text_begin_part(struct text *text, unsigned columns);
/* The sentence as a part; and text as one. */
void text_end_part(struct text *text, enum text_style style);
#define text_part(text, style, ...) (text_add(text, __VA_ARGS__), text_end_part(text, style))

/* Room for a number, valid until TEXT_NUMBERS more were formatted. */
char *text_number(struct text *text);
#define text_bytes(text, bytes) mmt_format_bytes(bytes, text_number(text))
#define text_change(text, bytes) mmt_format_change(bytes, text_number(text))
#define text_count(text, count) mmt_format_count(count, text_number(text))
#define text_duration(text, duration_ns) mmt_format_duration(duration_ns, text_number(text))
/* The duration since the recording started. */
const char *text_since(struct text *text, const struct mmt_report *report, uint64_t time_ns);
/* "1 event", "1,338 events". */
const char *text_counted(struct text *text, uint64_t count, const char *singular, const char *plural);

/* The singular or the plural, depending on the count. */
const char *text_plural(uint64_t count, const char *singular, const char *plural);

/* Values over time as a part of the line, a sparkline; nothing if all are 0. Digits where no characters beyond ASCII
 * are allowed. The lowest bar is 0; the others go from the smallest value that is not 0 to the largest, or are all high
 * if these differ by no more than `floor`. */
void text_trend(struct text *text, const uint64_t points[MMT_TREND_POINTS], uint64_t floor);
