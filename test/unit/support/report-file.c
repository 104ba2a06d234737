// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/report-file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "support/marks.h"
#include "support/temporary.h"

static char directory[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 32], old_path[TEMPORARY_PATH_SIZE + 64];

void report_file_setup(void)
{
	temporary_directory(directory);
	snprintf(path, sizeof(path), "%s/a.data", directory);
	snprintf(old_path, sizeof(old_path), "%s.old", path);
}

void report_file_teardown(void)
{
	unlink(path);
	unlink(old_path);
	ck_assert_int_eq(rmdir(directory), 0);
}

const char *report_file_path(void)
{
	return path;
}

static void add_pages(struct recording_builder *builder, enum format_feature feature,
		      struct recording_residency *residency)
{
	struct buffer buffer;

	buffer_init(&buffer, 1 << 16);
	ck_assert_ptr_null(section_write(&section_residency, residency, &buffer));
	builder_section(builder, feature, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	section_residency.deinit(residency);
}

void report_file_add_residency(struct recording_builder *builder, struct recording_residency *residency)
{
	add_pages(builder, FEATURE_MMTRACE_RESIDENCY, residency);
}

void report_file_add_swapped(struct recording_builder *builder, struct recording_residency *swapped)
{
	add_pages(builder, FEATURE_MMTRACE_SWAPPED, swapped);
}

void report_file_add_shared(struct recording_builder *builder, struct recording_residency *shared)
{
	add_pages(builder, FEATURE_MMTRACE_SHARED, shared);
}

void report_file_add_huge_pages(struct recording_builder *builder, struct recording_huge_pages *huge)
{
	struct buffer buffer;

	buffer_init(&buffer, 1 << 16);
	ck_assert_ptr_null(section_write(&section_huge_pages, huge, &buffer));
	builder_section(builder, FEATURE_MMTRACE_HUGE_PAGES, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	section_huge_pages.deinit(huge);
}

void report_file_survive(struct recording_builder *builder, int32_t pid)
{
	struct recording_residency residency = {0};
	struct process_residency *process = vector_append(&residency.processes);

	ck_assert_ptr_nonnull(process);
	process->pid = pid;
	report_file_add_residency(builder, &residency);
}

struct mmt_report *report_file_report(struct mmt_report_options *options)
{
	struct mmt_report_options defaults;
	struct mmt_report *report = NULL;
	struct mmt_error *error;

	if (!options) {
		mmt_report_options_init(&defaults);
		options = &defaults;
	}
	options->input = path;
	error = mmt_report_create(options, &report);
	ck_assert_msg(!error, "%s", error ? error->message : "");
	return report;
}
