// SPDX-License-Identifier: LGPL-2.1-or-later
/* Any bytes are a recording: report it, and check that the report's figures are consistent. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mmtrace/diff.h>
#include <mmtrace/output.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sums(const struct mmt_report *report)
{
	uint64_t unfreed = 0, accessible_or_not = 0;

	for (size_t i = 0; i < report->group_count; i++) {
		const struct mmt_group *group = &report->groups[i];

		if (group->allocated_bytes - group->freed_bytes != group->unfreed_bytes ||
		    group->allocated_count - group->freed_count != group->unfreed_count)
			abort();
		unfreed += group->unfreed_bytes;
		/* A group may have made accessible what another one reserved: only the sum must be right. */
		accessible_or_not += group->committed_bytes + group->reserved_bytes;
	}
	if (unfreed != report->unfreed_bytes || accessible_or_not != unfreed)
		abort();
}

static void write_everything(struct mmt_report *report)
{
	struct mmt_text_options options = {.width = 80};
	FILE *stream = fopen("/dev/null", "w");
	struct mmt_diff *diff;

	if (!stream || mmt_report_write_text(report, &options, stream) ||
	    mmt_report_write_json(report, &options, stream) || mmt_diff_create(report, report, &diff))
		abort();
	if (diff->bytes || diff->entry_count || mmt_diff_write_text(diff, &options, stream) ||
	    mmt_diff_write_json(diff, &options, stream))
		abort();
	mmt_diff_destroy(diff);
	mmt_error_destroy(mmt_report_write_annotation(report, "*", &options, stream)); /* there may be no frame */
	fclose(stream);
}

/* Returns false if there is no report. *start_ns_ret, *end_ns_ret: the times that it covers. */
static bool try_report(const struct mmt_report_options *options, uint64_t *start_ns_ret, uint64_t *end_ns_ret)
{
	struct mmt_report *report;
	struct mmt_error *error = mmt_report_create(options, &report);

	if (error) {
		mmt_error_destroy(error);
		return false;
	}
	check_sums(report);
	write_everything(report);
	*start_ns_ret = report->start_ns;
	*end_ns_ret = report->end_ns;
	mmt_report_destroy(report);
	return true;
}

/* The middle of the recording, in steps: other readings of pages, sizes and maps apply there. */
static void try_windows(struct mmt_report_options *options, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t quarter_ns = (end_ns - start_ns) / 4;

	options->from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, start_ns + quarter_ns};
	try_report(options, &start_ns, &end_ns);
	options->to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, options->from.ns + 2 * quarter_ns};
	options->every_ns = quarter_ns / 4 + 1;
	options->lifetime_steps = 16;
	try_report(options, &start_ns, &end_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);
	struct mmt_report_options options;
	uint64_t start_ns, end_ns;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	mmt_report_options_init(&options);
	options.input = path;
	if (try_report(&options, &start_ns, &end_ns))
		try_windows(&options, start_ns, end_ns);
	close(fd);
	return 0;
}
