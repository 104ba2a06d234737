/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records a command and prints the call stacks that mapped what it never unmapped. */
#include <inttypes.h>
#include <stdio.h>

#include <mmtrace/output.h>
#include <mmtrace/record.h>
#include <mmtrace/report.h>

static struct mmt_error *record(char **command, const char *file)
{
	struct mmt_error *error, *write_error = NULL;
	struct mmt_record_summary summary;
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	options.command = command; /* or, for a running process: options.pids */
	options.output = file;
	error = mmt_record(&options, &summary, &write_error);
	return error ? error : write_error;
}

static void print_row(const struct mmt_row *row)
{
	char size[MMT_SIZE_TEXT];

	printf("%s in %" PRIu64 " mappings\n", mmt_format_bytes(row->unfreed_bytes, size), row->unfreed_count);
	for (size_t i = 0; i < row->frame_count; i++) {
		fputs("    ", stdout);
		mmt_write_escaped(row->frames[i]->function ? row->frames[i]->function : "?", stdout);
		putchar('\n');
	}
}

int main(int argc, char **argv)
{
	struct mmt_report_options options;
	struct mmt_report *report = NULL;
	struct mmt_error *error;

	if (argc < 2)
		return fprintf(stderr, "usage: %s COMMAND [ARGUMENT...]\n", argv[0]), 2;
	mmt_report_options_init(&options);
	options.input = "example.data";
	error = record(argv + 1, options.input);
	if (!error)
		error = mmt_report_create(&options, &report);
	if (error) {
		fprintf(stderr, "%s\n", error->message);
		mmt_error_destroy(error);
		return 1;
	}
	for (size_t i = 0; i < report->row_count && i < 3; i++)
		print_row(&report->rows[i]);
	mmt_report_destroy(report);
	return 0;
}
