// SPDX-License-Identifier: LGPL-2.1-or-later
/* Any bytes are a recording: report it, write some kinds of output, which the bytes determine, and check that the
 * report's figures are consistent. No programs are opened, and no names helper is started, which would cost more than
 * the report: see the functions that the linker replaces. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/helper-process.h"
#include <mmtrace/diff.h>
#include <mmtrace/export.h>
#include <mmtrace/output.h>

#define DESCRIPTORS "/proc/self/fd/"

__attribute__((visibility("default"))) const char *__asan_default_options(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__typeof__(open) __real_open, __wrap_open;
__typeof__(getrandom) __real_getrandom, __wrap_getrandom;
__typeof__(malloc_trim) __real_malloc_trim, __wrap_malloc_trim;
__typeof__(helper_process_start) __real_helper_process_start, __wrap_helper_process_start;

/* For speed: ASAN_OPTIONS=malloc_context_size=30 shows where memory of a finding was allocated. */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1:malloc_context_size=1:check_printf=0";
}

/* The linker replaces open(). */
int __wrap_open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (!strncmp(path, DESCRIPTORS, strlen(DESCRIPTORS)))
		return __real_open(path, flags, mode);
	errno = ENOENT;
	return -1;
}

bool __wrap_helper_process_start(struct helper *helper, int type, helper_process_main *main, void *context)
{
	(void)helper, (void)type, (void)main, (void)context;
	return false;
}

/* Each map has a seed; the kernel's would make crashes depend on chance, too. */
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags)
{
	(void)flags;
	memset(buffer, 0x5a, length);
	return (ssize_t)length;
}

int __wrap_malloc_trim(size_t pad)
{
	(void)pad;
	return 0;
}

static void check_sums(const struct mmt_report *report)
{
	uint64_t unfreed = 0, accessible_or_not = 0;

	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];

		/* Sums of that size are not exact. */
		if (row->allocated_bytes >= MMT_BYTES_MAX)
			return;
		if (row->allocated_bytes - row->freed_bytes != row->unfreed_bytes ||
		    row->allocated_count - row->freed_count != row->unfreed_count)
			abort();
		unfreed += row->unfreed_bytes;
		/* A row may have made accessible what another one reserved: only the sum must be right. */
		accessible_or_not += row->committed_bytes + row->reserved_bytes;
	}
	if (unfreed != report->unfreed_bytes || accessible_or_not != unfreed)
		abort();
}

static ssize_t discard(void *cookie, const char *data, size_t size)
{
	(void)cookie;
	(void)data;
	return (ssize_t)size;
}

static FILE *open_nothing(void)
{
	FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = discard});

	if (!stream)
		abort();
	return stream;
}

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "%s\n", error->message);
	abort();
}

static void write_diff(struct mmt_report *report, const struct mmt_text_options *options, FILE *stream)
{
	struct mmt_diff *diff;

	require(mmt_diff_create(report, report, &diff));
	/* A recording without any duration may as well follow itself. */
	if (report->end_ns > report->start_ns && (diff->bytes || diff->entry_count))
		abort();
	require(mmt_diff_write_text(diff, options, stream));
	require(mmt_diff_write_json(diff, options, stream));
	mmt_diff_destroy(diff);
}

static const struct mmt_text_options terminal = {.width = 80};

static void export(const struct mmt_report *report, const char *format, FILE *stream)
{
	require(mmt_export(report, format, MMT_WEIGHT_MEMORY, NULL, stream));
}

static void write_texts(struct mmt_report *report, FILE *stream)
{
	require(mmt_report_write_text(report, &terminal, stream));
	require(mmt_report_write_json(report, &terminal, stream));
	require(mmt_report_write_csv(report, &terminal, stream));
}

static void write_page(struct mmt_report *report, FILE *stream)
{
	require(mmt_report_write_html(report, &terminal, stream));
	export(report, "pprof", stream);
	export(report, "perfetto", stream);
}

static void write_others(struct mmt_report *report, FILE *stream)
{
	export(report, "firefox", stream);
	export(report, "rows", stream);
	write_diff(report, &terminal, stream);
}

static void write_nothing(struct mmt_report *report, FILE *stream)
{
	(void)report;
	(void)stream;
}

/* The times of a report. */
struct span {
	uint64_t start_ns, end_ns;
};

/* Returns false if there is no report. */
static bool try_report(const struct mmt_report_options *options, void (*write)(struct mmt_report *, FILE *),
		       struct span *span_ret)
{
	struct mmt_report *report;
	struct mmt_error *error = mmt_report_create(options, &report);
	FILE *stream;

	if (error) {
		mmt_error_destroy(error);
		return false;
	}
	check_sums(report);
	stream = open_nothing();
	write(report, stream);
	fclose(stream);
	*span_ret = (struct span){report->start_ns, report->end_ns};
	mmt_report_destroy(report);
	return true;
}

/* The middle of the recording, in steps: other readings of pages, sizes and maps apply there. */
static void try_window(struct mmt_report_options *options)
{
	struct span span;
	uint64_t quarter_ns;

	if (!try_report(options, write_nothing, &span))
		return;
	quarter_ns = (span.end_ns - span.start_ns) / 4;
	options->from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, span.start_ns + quarter_ns};
	options->to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, span.start_ns + 3 * quarter_ns};
	options->every_ns = quarter_ns / 4 + 1;
	options->by = MMT_BY_FUNCTION;
	try_report(options, write_texts, &span);
}

/* Whatever else changes, the same bytes are treated in the same way. */
static unsigned choose(const uint8_t *data, size_t size, unsigned count)
{
	uint32_t hash = 2166136261;

	for (size_t i = 0; i < size; i += 61)
		hash = (hash ^ data[i]) * 16777619;
	return hash % count;
}

static int open_memory(void)
{
	int fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ways[])(struct mmt_report *, FILE *) = {write_texts, write_page, write_others, NULL};
	static locale_t locale;
	static int fd = -1;
	struct mmt_report_options options;
	struct span span;
	char path[64];
	unsigned way;

	if (fd < 0)
		fd = open_memory();
	if (!locale)
		mallopt(M_TOP_PAD, 64 << 20); /* each report would grow and shrink the heap */
	/* Keeps the file of the locale mapped, which each text and each line of JSON would open. */
	if (!locale)
		locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), DESCRIPTORS "%d", fd);
	mmt_report_options_init(&options);
	options.input = path;
	options.lifetime_steps = 16;
	way = choose(data, size, sizeof(ways) / sizeof(*ways));
	if (ways[way])
		try_report(&options, ways[way], &span);
	else
		try_window(&options);
	return 0;
}
