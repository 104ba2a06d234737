// SPDX-License-Identifier: LGPL-2.1-or-later
/* When RSS is read again, and what is read for conditions. */
#include <check.h>
#include <linux/kcmp.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "capture/procfs/clock.h"
#include "capture/procfs/proc.h"
#include "capture/memory/residency.h"
#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "support/report-file.h"
#include "support/suite.h"

#define WAIT_NS 300000000ULL

__typeof__(text_file_read) __real_text_file_read, __wrap_text_file_read;

static const char *pressure; /* what the kernel says of it */

/* The kernel answers late. */
int __wrap_text_file_read(int directory, const char *path, char **text_ret)
{
	if (pressure && !strcmp(path, "/proc/pressure/memory")) {
		*text_ret = strdup(pressure);
		return 0;
	}
	nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	return __real_text_file_read(directory, path, text_ret);
}

/* Readings may take a small share of the time, but only their work counts: a single one that waited must not postpone
 * the next one by minutes. */
START_TEST(reading_that_waited_does_not_postpone_the_next)
{
	static const struct mmt_record_options options = {.stop_fd = -1};
	static struct recorder recorder = {.options = &options};
	const struct resident_series *series;
	struct recording_builder *builder = builder_create(report_file_path());
	uint64_t began_ns = clock_now_ns();

	recorder_state_init(&recorder);
	series = &recorder.jobs.memory->resident_series;
	recorder.writer = builder_writer(builder);
	recorder.writing = true;
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	ck_assert_ptr_null(resident_series_read(&recorder, true));
	ck_assert_uint_eq(series->sums.count, 1);
	ck_assert_uint_ge(clock_now_ns() - began_ns, WAIT_NS);
	ck_assert_uint_lt(series->next_ns, began_ns + 50 * WAIT_NS);
	resident_series_deinit(&recorder.jobs.memory->resident_series);
	process_table_deinit(&recorder.processes);
	builder_round(builder);
	builder_finish(builder, clock_now_ns());
}
END_TEST

/* Runs until the pipe is closed. */
static int wait_for_end(void *pipe)
{
	char byte;

	(void)!read(*(int *)pipe, &byte, 1);
	_exit(0);
}

/* Two children: one has a copy of the memory, the other borrows it. The memory counts once, and Pss is that of the two
 * that have memory of their own. */
START_TEST(memory_of_a_child_of_clone_vm_counts_once)
{
	static const struct mmt_record_options options = {.stop_fd = -1};
	static struct recorder recorder = {.options = &options};
	static char stack[65536] __attribute__((aligned(16)));
	const struct resident_series *series;
	struct recording_builder *builder = builder_create(report_file_path());
	pid_t copy, borrower;
	uint64_t own;
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	copy = fork();
	if (!copy) {
		close(ends[1]);
		wait_for_end(ends);
	}
	borrower = clone(wait_for_end, stack + sizeof(stack), CLONE_VM | SIGCHLD, ends);
	ck_assert_int_gt(borrower, 0);
	if (syscall(SYS_kcmp, getpid(), borrower, KCMP_VM, 0, 0) != 0) {
		kill(borrower, SIGKILL);
		SKIP_TEST("kcmp(2) is not permitted, or not in this kernel");
	}
	recorder_state_init(&recorder);
	series = &recorder.jobs.memory->resident_series;
	recorder.writer = builder_writer(builder);
	recorder.writing = true;
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, borrower, false));
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, copy, false));
	ck_assert_ptr_null(resident_series_read(&recorder, true));
	own = process_table_find(&recorder.processes, getpid())->resident_bytes;
	ck_assert_uint_eq(series->processes, 2);
	ck_assert_uint_eq(series->sums.items[0].resident_bytes,
			  own + process_table_find(&recorder.processes, copy)->resident_bytes);
	ck_assert_uint_eq(process_table_find(&recorder.processes, borrower)->resident_bytes, 0);
	ck_assert_uint_eq(series->pss_sums.count, 1);
	ck_assert_uint_lt(series->pss_sums.items[0].resident_bytes, series->sums.items[0].resident_bytes);
	kill(borrower, SIGKILL);
	close(ends[1]);
	ck_assert_int_eq(waitpid(borrower, NULL, 0), borrower);
	ck_assert_int_eq(waitpid(copy, NULL, 0), copy);
	resident_series_deinit(&recorder.jobs.memory->resident_series);
	process_table_deinit(&recorder.processes);
	builder_round(builder);
	builder_finish(builder, clock_now_ns());
}
END_TEST

/* Only if the caller has conditions: pressure since the first reading, whatever it was before, and mappings. */
START_TEST(figures_for_conditions)
{
	static struct mmt_record_options options = {.stop_fd = -1, .all_cpus = true};
	static struct recorder recorder = {.options = &options};
	const struct mmt_record_progress *progress = &recorder.progress;
	struct recording_builder *builder = builder_create(report_file_path());

	recorder_state_init(&recorder);
	recorder.writer = builder_writer(builder);
	recorder.writing = true;
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	pressure =
	    "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
	ck_assert_ptr_null(resident_series_read(&recorder, true));
	ck_assert(!progress->stalled_known && !progress->mappings);
	options.reading_interval_ns = 1000000000;
	options.counts_mappings = true;
	ck_assert_ptr_null(resident_series_read(&recorder, true));
	ck_assert(progress->stalled_known && progress->stalled_ns == 0);
	ck_assert(progress->mappings > 10 && progress->mappings < progress->mapping_limit);
	pressure = "some avg10=9.00 avg60=0.00 avg300=0.00 total=6000\n";
	ck_assert_ptr_null(resident_series_read(&recorder, true));
	ck_assert_uint_eq(progress->stalled_ns, 5000000);
	/* It cannot be read once. */
	pressure = "";
	ck_assert_ptr_null(resident_series_read(&recorder, true));
	pressure = "some avg10=9.00 avg60=0.00 avg300=0.00 total=9000\n";
	ck_assert_ptr_null(resident_series_read(&recorder, true));
	ck_assert(progress->stalled_known && progress->stalled_ns == 5000000);
	resident_series_deinit(&recorder.jobs.memory->resident_series);
	process_table_deinit(&recorder.processes);
	builder_round(builder);
	builder_finish(builder, clock_now_ns());
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("resident series");
	TCase *tcase = add_tcase(suite, "interval");

	tcase_add_checked_fixture(tcase, report_file_setup, report_file_teardown);
	tcase_add_tests(tcase, reading_that_waited_does_not_postpone_the_next,
			memory_of_a_child_of_clone_vm_counts_once, figures_for_conditions);
	return suite;
}
