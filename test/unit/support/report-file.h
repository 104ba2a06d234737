/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One recording in a directory of its own, and reports of it. Any failure ends the test. */
#pragma once

#include <mmtrace/report.h>

#include "support/recording-builder.h"
#include "trace/sections/sections.h"

/* A checked fixture: creates the directory, and checks that it contains only the recording at the end. */
void report_file_setup(void);
void report_file_teardown(void);

/* Between the two. */
const char *report_file_path(void);

/* Adds the section of page readings, of swapped pages, or of huge pages, and releases them. */
void report_file_add_residency(struct recording_builder *builder, struct recording_residency *residency);
void report_file_add_swapped(struct recording_builder *builder, struct recording_residency *swapped);
void report_file_add_shared(struct recording_builder *builder, struct recording_residency *shared);
void report_file_add_huge_pages(struct recording_builder *builder, struct recording_huge_pages *huge);

/* The recorder read the pages of this process when it stopped. For one process of a recording. */
void report_file_survive(struct recording_builder *builder, int32_t pid);

/* The report of the recording; sets options->input. Without options: the default ones. */
struct mmt_report *report_file_report(struct mmt_report_options *options);
