// SPDX-License-Identifier: LGPL-2.1-or-later
/* A report for spreadsheets: RFC 4180, numbers without units. */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "output/escape.h"
#include "output/selection.h"

#define NS_PER_SECOND UINT64_C(1000000000)
#define END_OF_RECORD "\r\n"

/* Spreadsheets treat a cell that begins with one of these as a formula. */
static bool is_formula(const char *text)
{
	return *text && strchr("=+-@", *text) != NULL;
}

/* The content of a quoted cell. */
static void put_quoted_part(FILE *stream, const char *text, enum escape_mode mode)
{
	struct escape_piece piece;

	while (escape_next(&text, mode, &piece)) {
		if (piece.size == 1 && piece.text[0] == '"')
			putc('"', stream);
		fwrite(piece.text, 1, piece.size, stream);
	}
}

/* An unknown number is an empty cell. */
static void put_number(FILE *stream, uint64_t number)
{
	putc(',', stream);
	if (number != MMT_UNKNOWN)
		fprintf(stream, "%" PRIu64, number);
}

/* Since the start of the recording. */
static void put_seconds(const struct mmt_report *report, uint64_t ns, FILE *stream)
{
	uint64_t since_ns = ns > report->start_ns ? ns - report->start_ns : 0;

	fprintf(stream, "%" PRIu64 ".%09" PRIu64, since_ns / NS_PER_SECOND, since_ns % NS_PER_SECOND);
}

/* "2026-11-21T10:12:03.250+01:00"; an empty cell if the recording has no date. */
static void put_date(const struct mmt_report *report, uint64_t ns, FILE *stream)
{
	uint64_t realtime_ns = report->start_realtime_ns + (ns > report->start_ns ? ns - report->start_ns : 0);
	time_t seconds = (time_t)(realtime_ns / NS_PER_SECOND);
	char date[64], zone[16];
	struct tm local;

	putc(',', stream);
	if (!report->start_realtime_ns || !localtime_r(&seconds, &local) ||
	    !strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &local) ||
	    strftime(zone, sizeof(zone), "%z", &local) != 5)
		return;
	fprintf(stream, "%s.%03" PRIu64 "%.3s:%s", date, realtime_ns / 1000000 % 1000, zone, zone + 3);
}

static void put_steps(const struct mmt_report *report, const struct selection *selection, FILE *stream)
{
	char room[EXPORT_NAME_BYTES];

	fputs("seconds,time,rss_bytes,committed_bytes,unfreed_bytes,reserved_bytes,heap_in_use_bytes,heap_free_bytes",
	      stream);
	for (size_t i = 0; i < selection->count; i++) {
		fprintf(stream, ",\"#%" PRIu32 " ", selection->rows[i]->id);
		put_quoted_part(stream, selection_row_name(selection->rows[i], room), ESCAPE_FOR_TERMINAL);
		fputs(" unfreed_bytes\"", stream);
	}
	fputs(END_OF_RECORD, stream);
	for (size_t i = 0; i < report->step_count; i++) {
		const struct mmt_step *step = &report->steps[i];

		/* The end of the recording coincides with the end of a step. */
		if (i + 1 < report->step_count && step->to_ns >= report->steps[i + 1].to_ns)
			continue;
		put_seconds(report, step->to_ns, stream);
		put_date(report, step->to_ns, stream);
		put_number(stream, step->process_resident_bytes);
		put_number(stream, step->committed_bytes);
		put_number(stream, step->unfreed_bytes);
		put_number(stream, step->reserved_bytes);
		put_number(stream, step->heap_in_use_bytes);
		put_number(stream, step->heap_free_bytes);
		for (size_t j = 0; j < selection->count; j++) {
			const struct mmt_row *row = selection->rows[j];

			put_number(stream, i < row->step_count ? row->step_bytes[i] : MMT_UNKNOWN);
		}
		fputs(END_OF_RECORD, stream);
	}
}

static void put_time(const struct mmt_report *report, bool known, uint64_t ns, FILE *stream)
{
	putc(',', stream);
	if (known)
		put_seconds(report, ns, stream);
}

/* first_ns and last_ns are seconds there. */
#define COLUMN_NAME(name, unit, known, sum, csv, ...) MMT_IF_##csv("," #name)
#define PUT_COLUMN(name, unit, known, sum, csv, ...) MMT_IF_##csv(put_number(stream, row->name);)
#define PUT_EMPTY(name, unit, known, sum, csv, ...) MMT_IF_##csv(put_number(stream, MMT_UNKNOWN);)
#define HEAP_NAME(name, ...) ",heap_" #name
/* Without a first census, nobody knows what there was at the start. */
#define PUT_HEAP(name, ...)                                                                                            \
	put_number(stream, !heap->start && !strncmp(#name, "start_", sizeof("start_") - 1) ? MMT_UNKNOWN : kind->name);
#define PUT_NO_HEAP(name, ...) put_number(stream, MMT_UNKNOWN);

/* The kinds of blocks in a malloc heap, as rows without an id. */
static void put_kinds(const struct mmt_heap *heap, const struct mmt_text_options *options, FILE *stream)
{
	for (size_t i = 0; i < heap->kind_count && (!options->limit || i < options->limit); i++) {
		const struct mmt_heap_kind *kind = &heap->kinds[i];

		fprintf(stream, ",\"malloc heap of %" PRId32 ": ", heap->process->pid);
		put_quoted_part(stream,
				kind->name			 ? kind->name
				: kind->content == MMT_HEAP_TEXT ? "text"
								 : "blocks",
				ESCAPE_FOR_TERMINAL);
		if (kind->content == MMT_HEAP_POINTER)
			fprintf(stream, "+%#" PRIx64, kind->offset);
		putc('"', stream);
		MMT_ROW_FIGURES(PUT_EMPTY)
		fputs(",,,,", stream);
		MMT_HEAP_KIND_FIGURES(PUT_HEAP)
		fputs(END_OF_RECORD, stream);
	}
}

static void put_rows(const struct mmt_report *report, const struct selection *selection,
		     const struct mmt_text_options *options, FILE *stream)
{
	char room[EXPORT_NAME_BYTES];

	fputs("id,name" MMT_ROW_FIGURES(COLUMN_NAME) ",first_seconds,last_seconds,stack,identity" MMT_HEAP_KIND_FIGURES(
		  HEAP_NAME) END_OF_RECORD,
	      stream);
	for (size_t i = 0; i < selection->count; i++) {
		const struct mmt_row *row = selection->rows[i];
		const char *name = selection_row_name(row, room);

		fprintf(stream, "%" PRIu32 ",", row->id);
		fputs(is_formula(name) ? "\"'" : "\"", stream);
		put_quoted_part(stream, name, ESCAPE_FOR_TERMINAL);
		putc('"', stream);
		MMT_ROW_FIGURES(PUT_COLUMN)
		put_time(report, row->unfreed_count > 0, row->first_ns, stream);
		put_time(report, row->unfreed_count > 0, row->last_ns, stream);
		fputs(",\"", stream);
		/* In the order of flamegraph.pl: from the outermost function to the innermost. */
		for (size_t j = row->frame_count; j-- > 0;) {
			name = export_frame_name(row->frames[j], room);
			if (j + 1 == row->frame_count && is_formula(name))
				putc('\'', stream);
			put_quoted_part(stream, name, ESCAPE_FOR_STACK);
			if (j)
				putc(';', stream);
		}
		fputs("\",", stream);
		if (row->identity)
			fprintf(stream, "\"%016" PRIx64 "\"", row->identity);
		MMT_HEAP_KIND_FIGURES(PUT_NO_HEAP)
		fputs(END_OF_RECORD, stream);
	}
	for (size_t i = 0; i < report->heap_count; i++)
		put_kinds(&report->heaps[i], options, stream);
}

struct mmt_error *mmt_report_write_csv(const struct mmt_report *report, const struct mmt_text_options *options,
				       FILE *stream)
{
	struct selection selection;
	struct mmt_error *error = selection_create(report, options, report->every_ns == 0, &selection);

	if (error)
		return error;
	if (report->every_ns)
		put_steps(report, &selection, stream);
	else
		put_rows(report, &selection, options, stream);
	free(selection.rows);
	return error;
}
