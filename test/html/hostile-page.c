// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A page in which every name is hostile, for test/html/page.sh: hostile-page [diff] >page.html. A name that is executed
 * sets window.hostile or opens a dialog.
 */
#include <mmtrace/output.h>
#include <stdlib.h>
#include <string.h>

#include "support/sample-report.h"

#define SCRIPT "</script><script>window.hostile=1;alert(1)</script>"
#define IMAGE "<img src=x onerror=\"window.hostile=1;alert(1)\">"
#define COMMENT "<!--<script>"
#define LINK "\xe2\x80\xa8</textarea><a href=\"javascript:alert(1)\">here</a>\xe2\x80\xae"
#define WARNING "<b>note</b> " SCRIPT

static const struct mmt_frame frames[] = {
    {.kind = MMT_FRAME_NATIVE, .function = "mmap", .module = "libc.so.6"},
    {.kind = MMT_FRAME_NATIVE, .function = SCRIPT, .module = IMAGE, .source_file = SCRIPT, .source_line = 1},
    {.kind = MMT_FRAME_JIT, .function = COMMENT, .module = LINK},
    {.kind = MMT_FRAME_JIT, .function = LINK, .module = SCRIPT},
};
static const struct mmt_frame *const stack[] = {&frames[0], &frames[1], &frames[2], &frames[3]};
static const struct mmt_process process = {.pid = 1, .name = SCRIPT, .checked = true};
static const char *const warnings[] = {WARNING};
static const enum mmt_warning codes[] = {MMT_WARNING_MODULE_UNUSABLE};
/* The name of a file and of the function that touched it. */
static const struct mmt_toucher toucher = {.name = IMAGE, .bytes = 3 << 20};
static const struct mmt_growth_part growth_part = {.place = MMT_GROWTH_BEFORE,
						   .memory_class = MMT_CLASS_FILE,
						   .name = SCRIPT,
						   .bytes = 4 << 20,
						   .touched_bytes = 3 << 20,
						   .touchers = &toucher,
						   .toucher_count = 1};
static const struct mmt_lifetime lifetimes[] = {{0, MMT_STILL_MAPPED, 8192, 2}, {3, 5, 4096, 1}};

static struct mmt_report hostile_report(struct mmt_row *rows, struct mmt_part *parts)
{
	static struct mmt_oom_kill marks[2];
	struct mmt_report report = sample_report();

	rows[0] = sample_rows[0];
	rows[1] = (struct mmt_row){.id = 2,
				   .frames = stack,
				   .frame_count = sizeof(stack) / sizeof(stack[0]),
				   .unfreed_bytes = 8192,
				   .unfreed_count = 2,
				   .allocated_bytes = 12288,
				   .allocated_count = 3,
				   .resident_bytes = MMT_UNKNOWN};
	parts[0] = (struct mmt_part){.row = 1,
				     .thread = {.pid = 1, .tid = 1, .name = IMAGE},
				     .memory_class = MMT_CLASS_FILE,
				     .file = "/tmp/" IMAGE,
				     .resident_bytes = MMT_UNKNOWN,
				     .lifetimes = lifetimes,
				     .lifetime_count = 2};
	parts[1] = parts[0];
	parts[1].row = 0;
	parts[1].thread.name = SCRIPT;
	parts[1].thread.tid = 2;
	parts[1].memory_class = MMT_CLASS_ANON;
	report.growth.parts_known = true;
	report.growth.parts = &growth_part;
	report.growth.part_count = 1;
	report.input = SCRIPT;
	report.command_line = IMAGE;
	report.processes = &process;
	report.rows = rows;
	report.row_count = 2;
	report.parts = parts;
	report.part_count = 2;
	report.lifetime_steps = 10;
	report.lifetime_step_ns = (report.end_ns - report.start_ns) / 10 + 1;
	report.from_ns = report.start_ns;
	report.to_ns = report.end_ns;
	for (unsigned i = 0; i < 2; i++)
		marks[i] = (struct mmt_oom_kill){
		    .pid = 1, .time_ns = report.start_ns + (report.end_ns - report.start_ns) * (1 + 2 * i) / 4};
	report.oom_kills = marks;
	report.oom_kill_count = 2;
	report.completeness.warnings = warnings;
	report.completeness.warning_codes = codes;
	report.completeness.warning_count = 1;
	report.completeness.damaged = true;
	report.completeness.damage = SCRIPT;
	return report;
}

int main(int argc, char **argv)
{
	static struct mmt_row rows[2];
	static struct mmt_part parts[2];
	const struct mmt_text_options options = {0};
	struct mmt_report report = hostile_report(rows, parts);
	struct mmt_diff *diff = NULL;
	struct mmt_error *error;

	if (argc > 1 && strcmp(argv[1], "diff") == 0) {
		error = mmt_diff_create(&report, &report, &diff);
		if (!error)
			error = mmt_diff_write_html(diff, &options, stdout);
		mmt_diff_destroy(diff);
	} else {
		error = mmt_report_write_html(&report, &options, stdout);
	}
	if (error) {
		fprintf(stderr, "hostile-page: %s\n", error->message);
		mmt_error_destroy(error);
		return EXIT_FAILURE;
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
