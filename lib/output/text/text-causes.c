// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/text/text-causes.h"

#include <inttypes.h>
#include <string.h>

#include "base/wide-sum.h"
#include "output/text/row-verdict.h"

#define CAUSES_SHOWN 6
#define KIND_COLUMNS 14
#define NAME_COLUMNS_MIN 16
#define KIND_COLUMN 46 /* column of the class */
#define NAME_COLUMN (KIND_COLUMN + KIND_COLUMNS + 2)

static const char *describe_pattern(enum mmt_pattern pattern)
{
	static const char *const words[MMT_PATTERN_KINDS] = {
	    [MMT_PATTERN_ARENA] = "malloc arenas",   [MMT_PATTERN_THREAD_STACK] = "thread stacks",
	    [MMT_PATTERN_HEAP] = "malloc heap",	     [MMT_PATTERN_GC_HEAP] = "heap of a managed runtime",
	    [MMT_PATTERN_CODE] = "code of programs", [MMT_PATTERN_JVM_NATIVE] = "memory of the JVM",
	};

	return pattern < MMT_PATTERN_KINDS && words[pattern] ? words[pattern] : "memory";
}

/* Print a rate only if the memory was mapped throughout the window, or if that is unknown. */
static void put_rate(struct text *text, const struct mmt_cause *cause)
{
	bool grows = cause->verdict == MMT_LIFETIME_LEAK || cause->verdict == MMT_LIFETIME_UNKNOWN;
	char size[MMT_SIZE_TEXT], rate[MMT_SIZE_TEXT + 1] = "-";

	if (grows && cause->bytes_per_minute != MMT_UNKNOWN)
		snprintf(rate, sizeof(rate), "+%s", mmt_format_bytes(cause->bytes_per_minute, size));
	text_format(text, TEXT_PLAIN, "  %12s  ", rate);
}

static void put_name(struct text *text, const struct mmt_cause *cause)
{
	char count[MMT_SIZE_TEXT], size[MMT_SIZE_TEXT], rest[3 * MMT_SIZE_TEXT] = "";
	unsigned width = text->options->width, room;

	if (cause->reserved_bytes)
		snprintf(rest, sizeof(rest), ", of %s mapped", mmt_format_bytes(cause->unfreed_bytes, size));
	snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest), "  #%" PRIu32, cause->groups[0]);
	if (cause->group_count > 1)
		snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest), " and %s more",
			 mmt_format_count(cause->group_count - 1, count));
	room = width > text->column + (unsigned)strlen(rest) + NAME_COLUMNS_MIN
		   ? width - text->column - (unsigned)strlen(rest)
		   : NAME_COLUMNS_MIN;
	text_put_name(text, TEXT_STRONG, cause->name ? cause->name : describe_pattern(cause->pattern),
		      width ? room : 0);
	text_put(text, TEXT_PLAIN, rest);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_cause(struct text *text, const struct mmt_report *report, const struct mmt_cause *cause)
{
	struct row_verdict verdict = row_verdict(report, cause->verdict, cause->pattern, cause->unfreed_count);
	char size[MMT_SIZE_TEXT];

	text_format(text, TEXT_STRONG, "  %10s", mmt_format_bytes(cause->memory_bytes, size));
	put_rate(text, cause);
	text_put(text, verdict.style, verdict.word ? verdict.word : "-");
	text_pad_to(text, KIND_COLUMN);
	if (cause->file)
		text_put_name(text, TEXT_PLAIN, base_name(cause->file), KIND_COLUMNS);
	else
		text_put(text, TEXT_PLAIN, mmt_class_name(cause->memory_class));
	text_pad_to(text, NAME_COLUMN);
	put_name(text, cause);
	text_end_line(text);
}

static void put_heads(struct text *text)
{
	text_format(text, TEXT_FAINT, "  %10s  %12s  verdict", "memory", "per minute");
	text_pad_to(text, KIND_COLUMN);
	text_put(text, TEXT_FAINT, "what");
	text_pad_to(text, NAME_COLUMN);
	text_put(text, TEXT_FAINT, "mapped by");
	text_end_line(text);
}

void text_causes(struct text *text, const struct mmt_report *report)
{
	uint64_t rest_bytes = 0;
	size_t count = 0;
	char size[MMT_SIZE_TEXT];

	while (count < report->cause_count && report->causes[count].memory_bytes)
		count++;
	if (!count || (count == 1 && report->causes[0].group_count == 1))
		return;
	text_end_line(text);
	put_heads(text);
	for (size_t i = 0; i < count; i++) {
		if (i < CAUSES_SHOWN)
			put_cause(text, report, &report->causes[i]);
		else
			rest_bytes = saturating_add(rest_bytes, report->causes[i].memory_bytes, MMT_BYTES_MAX);
	}
	if (count > CAUSES_SHOWN) {
		text_format(text, TEXT_PLAIN, "  %10s  in %zu other places", mmt_format_bytes(rest_bytes, size),
			    count - CAUSES_SHOWN);
		text_end_line(text);
	}
	text_end_line(text);
}
