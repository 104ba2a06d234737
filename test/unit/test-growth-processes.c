// SPDX-License-Identifier: LGPL-2.1-or-later
/* The verdict on several processes: what they share counts once, and one that grows is not hidden by the others. */
#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <mmtrace/output.h>

#include "support/report-file.h"
#include "support/suite.h"

#define MEBIBYTE (1ull << 20)
#define PAGE 4096ull
#define SECOND_NS 1000000000ull
#define READINGS 80
#define PARENT 100
#define POOL (64 * MEBIBYTE)

/* What a process has in one reading. */
struct size {
	bool ended;
	uint64_t resident, pss, private, faults, swapped, lazy_free, anonymous, pss_anon;
};

static uint64_t time_of(unsigned reading)
{
	return SECOND_NS * (reading + 1);
}

static struct recording_builder *begin(int processes)
{
	struct recording_builder *builder = builder_create(report_file_path());

	for (int i = 0; i < processes; i++) {
		builder_snapshot(builder, SNAPSHOT_START, 1000, PARENT + i, NULL, 0);
		builder_comm(builder, 1001, PARENT + i, PARENT + i, i ? "worker" : "parent");
	}
	return builder;
}

static void put_size(struct recording_builder *builder, unsigned reading, int32_t pid, const struct size *size)
{
	const struct builder_pss pss = {.reading = reading + 1,
					.resident_bytes = size->resident,
					.pss_bytes = size->pss,
					.swap_pss_bytes = size->swapped,
					.private_bytes = size->private,
					.faults = size->faults,
					.anonymous_bytes = size->anonymous,
					.pss_anon_bytes = size->pss_anon};

	if (size->ended)
		return;
	builder_note(builder, time_of(reading), pid, NOTE_RESIDENT, size->resident, reading + 1);
	if (size->swapped)
		builder_note(builder, time_of(reading), pid, NOTE_SWAPPED, size->swapped, reading + 1);
	if (size->lazy_free)
		builder_note(builder, time_of(reading), pid, NOTE_LAZY_FREE, size->lazy_free, reading + 1);
	if (size->pss)
		builder_pss(builder, time_of(reading), pid, &pss);
}

static struct mmt_report *finish_window(struct recording_builder *builder, unsigned from)
{
	struct mmt_report_options options;

	builder_round(builder);
	builder_finish(builder, time_of(READINGS));
	mmt_report_options_init(&options);
	if (from)
		options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, (int64_t)time_of(from) - 1};
	return report_file_report(&options);
}

static struct mmt_report *finish(struct recording_builder *builder)
{
	return finish_window(builder, 0);
}

static uint64_t ends_before_ns; /* before the first reading without it, a process ends */

/* Writes the readings of these processes, the first of which is the parent. */
static struct mmt_report *report_of(int processes, struct size (*size_of)(int process, unsigned reading))
{
	struct recording_builder *builder = begin(processes);

	for (unsigned reading = 0; reading < READINGS; reading++) {
		for (int i = 0; i < processes; i++) {
			struct size size = size_of(i, reading), before = size_of(i, reading ? reading - 1 : 0);

			if (size.ended && !before.ended)
				builder_exit(builder, time_of(reading) - (ends_before_ns ?: SECOND_NS / 2), PARENT + i,
					     PARENT + i);
			put_size(builder, reading, PARENT + i, &size);
		}
		builder_round(builder);
	}
	return finish(builder);
}

static char *text_of(const struct mmt_report *report)
{
	struct mmt_text_options options = {0};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_null(mmt_report_write_text(report, &options, stream));
	fclose(stream);
	return text;
}

static void expect_text(const struct mmt_report *report, const char *part)
{
	char *text = text_of(report);

	ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part, text);
	free(text);
}

static void expect_no_text(const struct mmt_report *report, const char *part)
{
	char *text = text_of(report);

	ck_assert_msg(!strstr(text, part), "\"%s\" in:\n%s", part, text);
	free(text);
}

/* The parent has filled a pool of shared memory; each of four workers touches more and more of it. */
static struct size shared_pool(int process, unsigned reading)
{
	uint64_t touched = POOL / READINGS * (reading + 1), all = POOL - touched + touched / 5;

	return process ? (struct size){.resident = MEBIBYTE + touched,
				       .pss = MEBIBYTE + touched / 5,
				       .private = MEBIBYTE,
				       .faults = touched / PAGE}
		       : (struct size){.resident = MEBIBYTE + POOL,
				       .pss = MEBIBYTE + all,
				       .private = MEBIBYTE + POOL - touched,
				       .faults = POOL / PAGE};
}

START_TEST(shared_memory_counts_once)
{
	struct mmt_report *report = report_of(5, shared_pool);

	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "steady");
	ck_assert(report->growth.by_pss);
	ck_assert_int_le(llabs(mmt_growth_change(&report->growth)), MEBIBYTE);
	ck_assert_uint_gt(report->growth.end_bytes - report->growth.start_bytes, 4 * POOL - 8 * MEBIBYTE);
	ck_assert_int_eq(report->growth.outside_bytes, 0);
	expect_text(report, "Pss has no steady trend: ");
	expect_text(report, "Pss counts memory that the processes share once.");
	expect_text(report, "  shared by 5 processes\n");
	ck_assert_uint_lt(report->growth.end_private_bytes, report->growth.start_private_bytes);
	mmt_report_destroy(report);
}
END_TEST

/* Four workers write to the memory that they have from their parent, and get copies of it. */
static struct size copies_on_write(int process, unsigned reading)
{
	uint64_t copied = POOL / READINGS * (reading + 1), shared = (POOL - copied) / 5;

	return process ? (struct size){.resident = MEBIBYTE + POOL,
				       .pss = MEBIBYTE + copied + shared,
				       .private = MEBIBYTE + copied,
				       .faults = copied / PAGE}
		       : (struct size){.resident = MEBIBYTE + POOL,
				       .pss = MEBIBYTE + shared + copied,
				       .private = MEBIBYTE + copied,
				       .faults = 1000};
}

START_TEST(copies_on_write_are_growth)
{
	struct mmt_report *report = report_of(5, copies_on_write);

	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "growing");
	ck_assert_uint_eq(report->growth.end_bytes, report->growth.start_bytes);
	ck_assert_int_ge(mmt_growth_change(&report->growth), (int64_t)(4 * POOL - 8 * MEBIBYTE));
	ck_assert_int_eq(report->growth.outside_bytes, 0);
	for (size_t i = 0; i < report->process_count; i++)
		ck_assert_int_eq(report->processes[i].readings->grows, report->processes[i].pid != PARENT);
	/* What the parent has alone at last, others have stopped sharing. */
	ck_assert_int_le(mmt_process_growth(&report->processes[0]), MEBIBYTE);
	expect_no_text(report, "idle");
	expect_text(report, "  shared pages and other processes\n");
	expect_text(report, " MiB  private\n");
	mmt_report_destroy(report);
}
END_TEST

/* A process that is not recorded shares the pool with two that are, until it ends. */
static struct size outsider(int process, unsigned reading)
{
	uint64_t share = reading < READINGS / 2 ? POOL / 3 : POOL / 2;

	return (struct size){.resident = MEBIBYTE + POOL,
			     .pss = MEBIBYTE + share,
			     .private = MEBIBYTE,
			     .faults = 1000u + reading + (unsigned)process};
}

START_TEST(end_of_an_outsider_is_no_growth)
{
	struct mmt_report *report = report_of(2, outsider);
	int64_t moved = 2 * (int64_t)(POOL / 2 - POOL / 3);

	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "steady");
	ck_assert_int_le(llabs(report->growth.outside_bytes - moved), 16 * (int64_t)PAGE);
	ck_assert_int_le(llabs(mmt_growth_change(&report->growth)), 16 * (int64_t)PAGE);
	ck_assert_uint_eq(report->growth.end_pss_bytes - report->growth.start_pss_bytes, (uint64_t)moved);
	expect_text(report, "stopped sharing memory with these: Pss changed by +21.33 MiB");
	mmt_report_destroy(report);
}
END_TEST

/* One of four grows; the others end one after the other. */
static struct size one_grows(int process, unsigned reading)
{
	bool ended = process && reading >= (unsigned)process * READINGS / 4;

	return (struct size){.ended = ended, .resident = process ? 30 * MEBIBYTE : (20 + reading) * MEBIBYTE};
}

START_TEST(ended_processes_hide_none_that_grows)
{
	struct mmt_report *report = report_of(4, one_grows);

	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "growing");
	ck_assert(report->growth.by_process);
	ck_assert(!report->growth.by_pss && !report->growth.pss_missing);
	ck_assert(report->processes[0].readings->grows && !report->processes[1].readings->grows);
	expect_text(report, "GROWING: 1 process grows\n    +79.00 MiB  ");
	expect_text(report, "All 4 processes together: RSS -11.00 MiB.");
	mmt_report_destroy(report);
}
END_TEST

/* A process leaks, unmaps everything and ends. The last reading is before that, or shows it; or the process lives on.
 */
START_TEST(end_of_a_process_hides_no_growth)
{
	const uint64_t start = 1ull << 40, end_ns = time_of(READINGS - 1);
	struct recording_builder *builder = begin(1);
	struct mmt_report *report;

	for (unsigned i = 0; i < READINGS - 1; i++) {
		builder_mmap_exit(builder, time_of(i) - 1, PARENT, PARENT, start + 2 * i * MEBIBYTE, MEBIBYTE, 1);
		put_size(builder, i, PARENT, &(struct size){.resident = (20 + i) * MEBIBYTE});
		builder_round(builder);
	}
	for (unsigned i = 0; i < READINGS - 1; i++)
		builder_munmap_exit(builder, end_ns - SECOND_NS / 2 + i, PARENT, PARENT, start + 2 * i * MEBIBYTE,
				    MEBIBYTE);
	if (_i)
		put_size(builder, READINGS - 1, PARENT, &(struct size){.resident = 19 * MEBIBYTE});
	if (_i < 2)
		builder_exit(builder, end_ns + 1, PARENT, PARENT);
	report = finish(builder);
	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), _i < 2 ? "growing" : "too-short");
	if (_i < 2) {
		ck_assert_int_eq(mmt_growth_change(&report->growth), 78 * (int64_t)MEBIBYTE);
		expect_text(report, "79.00 MiB were unmapped in the last 2.0 s: --to 78.9");
	} else {
		expect_no_text(report, "were unmapped in the last");
	}
	mmt_report_destroy(report);
}
END_TEST

/* A server forks a process for each request, which has what the server has and 4 MiB. */
START_TEST(processes_for_each_request_are_no_growth)
{
	struct recording_builder *builder = begin(1);
	struct mmt_report *report;

	for (unsigned reading = 0; reading < READINGS; reading++) {
		int32_t child = PARENT + 1 + (int32_t)reading, earlier = child - 1;
		struct size server = {.resident = (10 * MEBIBYTE) + reading * MEBIBYTE / 4};
		struct size request = {.resident = server.resident + 4 * MEBIBYTE};

		if (reading)
			builder_exit(builder, time_of(reading) - SECOND_NS / 2, earlier, earlier);
		builder_fork(builder, time_of(reading) - SECOND_NS / 4, child, child, PARENT, PARENT);
		put_size(builder, reading, PARENT, &server);
		put_size(builder, reading, child, &request);
		builder_round(builder);
	}
	report = finish(builder);
	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "growing");
	ck_assert_int_eq(mmt_growth_change(&report->growth), (READINGS - 1) * (int64_t)MEBIBYTE / 4);
	ck_assert_uint_eq(report->growth.start_bytes, 10 * MEBIBYTE);
	ck_assert_uint_eq(report->growth.peak_bytes, report->growth.end_bytes);
	/* The rest of a child is the server's. */
	ck_assert_uint_eq(report->growth.peak_with_brief_bytes, report->growth.peak_bytes + 4 * MEBIBYTE);
	expect_text(report, "peak 33.75 MiB with short-lived processes");
	expect_text(report, "Processes that came and went, such as one for each request, do not count.");
	mmt_report_destroy(report);
}
END_TEST

/* A worker of 4 MiB is replaced every 11 seconds. The recording shows the end of the first one and the beginning of the
 * last one: these count as the others do, which are not brief. */
START_TEST(worker_that_is_cut_by_the_recording_counts)
{
	struct recording_builder *builder = begin(2);
	const struct size server = {.resident = 10 * MEBIBYTE}, size = {.resident = 4 * MEBIBYTE};
	int32_t worker = PARENT + 1;
	struct mmt_report *report;

	builder_note(builder, 1500, worker, NOTE_STARTED, 1, (uint64_t)PARENT << NOTE_PARENT_SHIFT);
	for (unsigned reading = 0; reading < READINGS; reading++) {
		if (reading % 11 == 2) {
			builder_exit(builder, time_of(reading) - SECOND_NS / 2, worker, worker);
			worker++;
			builder_fork(builder, time_of(reading) - SECOND_NS / 4, worker, worker, PARENT, PARENT);
		}
		put_size(builder, reading, PARENT, &server);
		put_size(builder, reading, worker, &size);
		builder_round(builder);
	}
	report = finish(builder);
	ck_assert_uint_eq(report->growth.start_bytes, 14 * MEBIBYTE);
	ck_assert_uint_eq(report->growth.end_bytes, 14 * MEBIBYTE);
	expect_no_text(report, "came and went");
	mmt_report_destroy(report);
}
END_TEST

enum server { FOUND, FORKED, ALWAYS_BRIEF, LATE_WORKER, WINDOW, SHELL, ENDED_WORKER, SERVERS };

#define LATE 30 /* the reading in which a late worker starts, or the window, or before which a worker ends */

/*
 * A server leaks a quarter of a MiB for each request, and forks up to three brief children, which share its memory.
 * Each worker of a pool has written to half of the 16 MiB that it had from the server, and shares the rest of them.
 * `brief_of`: the process that has the children. A worker has 4 MiB that only its children share.
 */
static struct mmt_report *report_of_server(int workers, int brief_of, enum server kind)
{
	struct recording_builder *builder = begin(kind == FORKED || kind == LATE_WORKER ? 1 : 1 + workers);
	const struct event_mapping program = {.start = 0x400000,
					      .length = PAGE,
					      .inode = 7,
					      .protection = PROT_READ | PROT_EXEC,
					      .flags = MAP_PRIVATE,
					      .path = "/bin/sh"};
	const int32_t shell = PARENT - 1;
	unsigned before = 0; /* brief children in the reading before */

	for (int32_t pid = PARENT + 1; pid <= PARENT + workers; pid++) {
		if (kind == FORKED)
			builder_fork(builder, 1500, pid, pid, PARENT, PARENT);
		else if (kind != LATE_WORKER)
			builder_note(builder, 1500, pid, NOTE_STARTED, 1, (uint64_t)PARENT << NOTE_PARENT_SHIFT);
	}
	for (int32_t pid = PARENT; kind == ENDED_WORKER && pid <= PARENT + workers; pid++)
		builder_snapshot(builder, SNAPSHOT_START, 1600, pid, &program, 1);
	if (kind == SHELL) {
		builder_snapshot(builder, SNAPSHOT_START, 1000, shell, &program, 1);
		builder_note(builder, 1500, PARENT, NOTE_STARTED, 1, (uint64_t)shell << NOTE_PARENT_SHIFT);
	}
	for (unsigned reading = 0; reading < READINGS; reading++) {
		uint64_t leaked = 2 * MEBIBYTE + reading * MEBIBYTE / 4, pool = 8 * MEBIBYTE;
		unsigned brief = kind == ALWAYS_BRIEF ? 1 + reading % 3 : (reading + 1) % 4;
		int alive = kind == LATE_WORKER && reading < LATE ? 0 : workers;

		alive -= kind == ENDED_WORKER && reading >= LATE;
		if (kind == ENDED_WORKER && reading == LATE)
			builder_exit(builder, time_of(reading) - SECOND_NS / 4, PARENT + workers, PARENT + workers);
		if (brief_of > alive)
			brief = 0;
		if (kind == SHELL)
			put_size(builder, reading, shell,
				 &(struct size){.resident = 2 * MEBIBYTE,
						.pss = MEBIBYTE / 2,
						.private = MEBIBYTE / 2,
						.faults = 1,
						.anonymous = MEBIBYTE,
						.pss_anon = MEBIBYTE / 2});
		for (int32_t pid = PARENT + 1; kind == LATE_WORKER && reading == LATE && pid <= PARENT + workers; pid++)
			builder_fork(builder, time_of(reading) - SECOND_NS / 4, pid, pid, PARENT, PARENT);
		for (int i = 0; i <= alive; i++) {
			unsigned sharers = brief_of == i ? 1 + brief : 1; /* of what is the process's own */
			uint64_t own = i ? pool + 4 * MEBIBYTE : pool + leaked;
			struct size size = {.resident = MEBIBYTE + pool + own, .private = sharers == 1 ? own : 0};

			size.faults = reading * 1000;
			size.anonymous = pool + own;
			size.pss_anon = pool / (1 + (unsigned)alive + brief) + own / sharers;
			size.pss = MEBIBYTE / 8 + size.pss_anon;
			put_size(builder, reading, PARENT + i, &size);
		}
		/* Those of the reading before have ended. */
		for (unsigned i = 0; i < 8; i++) {
			int32_t pid = PARENT + 10 + (int32_t)(4 * reading + i % 4) - (i < 4 ? 4 : 0);
			const struct size size = {.resident = 16 * MEBIBYTE + leaked, .faults = 10};

			if (i < 4 && i < before)
				builder_exit(builder, time_of(reading) - SECOND_NS / 2, pid, pid);
			if (i < 4 || i - 4 >= brief)
				continue;
			builder_fork(builder, time_of(reading) - SECOND_NS / 4, pid, pid, PARENT + brief_of,
				     PARENT + brief_of);
			put_size(builder, reading, pid, &size);
		}
		before = brief;
		builder_round(builder);
	}
	return finish_window(builder, kind == WINDOW ? LATE : 0);
}

/* The growth of a server is what it leaks, whoever has the brief children: Pss with workers, RSS without. A worker that
 * starts late, or ends, has 12 MiB and an eighth alone. */
START_TEST(brief_children_hold_nothing_of_their_parent)
{
	const enum server kind = (enum server)_i;
	const int64_t leaked = (READINGS - 1 - (kind == WINDOW ? LATE : 0)) * (int64_t)MEBIBYTE / 4;

	for (int workers = kind == SHELL || kind == ENDED_WORKER; workers < 3; workers++) {
		for (int brief_of = 0; brief_of <= workers; brief_of++) {
			struct mmt_report *report = report_of_server(workers, brief_of, kind);
			const struct mmt_growth *growth = &report->growth;
			int64_t grown = leaked + (kind == LATE_WORKER	 ? workers * 97 * (int64_t)MEBIBYTE / 8
						  : kind == ENDED_WORKER ? -97 * (int64_t)MEBIBYTE / 8
									 : 0);
			/* What brief children hold is an estimate if there are always some. */
			int64_t most = kind == ALWAYS_BRIEF ? MEBIBYTE / 2 : 64 * 1024;

			ck_assert_str_eq(mmt_verdict_name(growth->verdict), "growing");
			ck_assert_int_eq(growth->by_pss, workers > 0);
			ck_assert_int_le(llabs(mmt_growth_change(growth) - grown), most);
			ck_assert_int_le(llabs(growth->bytes_per_minute - 15 * (int64_t)MEBIBYTE), MEBIBYTE / 2);
			for (size_t i = 0; i < report->process_count; i++)
				if (report->processes[i].pid == PARENT)
					ck_assert_int_eq(mmt_process_growth(&report->processes[i]), leaked);
			if (kind != ENDED_WORKER)
				ck_assert_uint_eq(growth->peak_bytes, growth->end_bytes);
			if (workers && kind != ENDED_WORKER)
				ck_assert_uint_ge(growth->peak_pss_bytes, growth->end_pss_bytes);
			mmt_report_destroy(report);
			report_file_teardown();
			report_file_setup();
		}
	}
}
END_TEST

/* A server leaks a quarter of a MiB for each request. Its children share its memory, and need up to 48 MiB of their
 * own.
 */
static struct size server_with_children(int process, unsigned reading)
{
	uint64_t resident = 10 * MEBIBYTE + reading * MEBIBYTE / 4, shared = resident - MEBIBYTE;
	struct size size = {.resident = resident,
			    .pss = resident - shared / 2,
			    .private = resident - shared,
			    .faults = reading * 10000,
			    .anonymous = resident - MEBIBYTE};

	if (process) {
		uint64_t own = (16 + reading * 7 % 5 * 8) * MEBIBYTE;

		size = (struct size){.resident = shared + own,
				     .pss = shared / 2 + own,
				     .private = own,
				     .faults = reading * 10000,
				     .anonymous = shared + own};
	}
	return size;
}

START_TEST(shared_memory_of_a_server_grows)
{
	struct mmt_report *report = report_of(2, server_with_children);

	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "growing");
	ck_assert(report->growth.by_process);
	ck_assert(report->processes[0].readings->grows);
	ck_assert(!report->processes[1].readings->grows);
	ck_assert_int_eq(mmt_process_growth(&report->processes[0]), (READINGS - 1) * (int64_t)MEBIBYTE / 4);
	expect_text(report, ", +15.00 MiB per minute\n");
	mmt_report_destroy(report);
}
END_TEST

/* One of two processes was too large for its Pss to be read. */
static struct size without_pss(int process, unsigned reading)
{
	struct size size = copies_on_write(process, reading);

	size.pss = process ? size.pss : 0;
	return size;
}

/* One of three, with little memory, must not be read by the recorder. */
static struct size with_a_stranger(int process, unsigned reading)
{
	if (process == 2)
		return (struct size){.resident = MEBIBYTE};
	return copies_on_write(process, reading);
}

START_TEST(small_process_without_pss_counts_with_rss)
{
	struct mmt_report *report = report_of(3, with_a_stranger);

	ck_assert(report->growth.by_pss && !report->growth.pss_missing);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(missing_pss_is_said)
{
	struct mmt_report *report = report_of(2, without_pss);

	ck_assert(!report->growth.by_pss && report->growth.pss_missing);
	ck_assert_uint_eq(report->growth.end_bytes, 2 * (MEBIBYTE + POOL));
	expect_text(report, "Memory that the processes share may count several times");
	mmt_report_destroy(report);
}
END_TEST

/* Pss was read at every eighth reading alone, because it is expensive. */
static struct size seldom(int process, unsigned reading)
{
	struct size size = shared_pool(process, reading);

	size.pss = reading % 8 && reading != READINGS - 1 ? 0 : size.pss;
	return size;
}

START_TEST(pss_is_estimated_between_its_readings)
{
	struct mmt_report *report = report_of(5, seldom);
	struct recording_builder *builder;

	ck_assert(report->growth.by_pss);
	ck_assert_int_le(llabs(mmt_growth_change(&report->growth)), MEBIBYTE);
	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "steady");
	ck_assert_uint_le(report->growth.peak_pss_bytes, report->growth.start_pss_bytes + MEBIBYTE);
	mmt_report_destroy(report);
	/* Also in a window that starts between two of them. */
	report_file_teardown();
	report_file_setup();
	builder = begin(5);
	for (unsigned reading = 0; reading < READINGS; reading++) {
		for (int i = 0; i < 5; i++) {
			struct size size = seldom(i, reading);

			put_size(builder, reading, PARENT + i, &size);
		}
		builder_round(builder);
	}
	report = finish_window(builder, 20);
	ck_assert(report->growth.by_pss);
	ck_assert_int_le(llabs(mmt_growth_change(&report->growth)), MEBIBYTE);
	for (size_t i = 0; i < report->judged_reading_count; i++)
		ck_assert_uint_le(report->judged_readings[i].resident_bytes, POOL + 6 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* One of four workers leaks 1 MiB a second. Another one, which shares the pool, starts and ends between readings of
 * Pss. */
static struct size worker_ends(int process, unsigned reading)
{
	bool lives = reading >= 20 && reading < 52;
	unsigned sharers = lives ? 5 : 4;
	uint64_t leaked = process == 2 ? reading * MEBIBYTE : 0;

	return (struct size){.ended = process == 4 && !lives,
			     .resident = MEBIBYTE + POOL + leaked,
			     .pss = reading % 8 && reading != READINGS - 1 ? 0 : MEBIBYTE + POOL / sharers + leaked,
			     .private = MEBIBYTE + leaked,
			     .faults = 1000 + leaked / PAGE};
}

/* Another one ends and is replaced by the next one between two readings of Pss, as with a limit of requests. */
static struct size worker_is_replaced(int process, unsigned reading)
{
	unsigned sharers = reading < 33 || reading >= 36 ? 5 : 4;
	struct size size = worker_ends(process == 2 ? 2 : 1, reading);

	size.ended = process == 4 ? reading >= 33 : process == 5 && reading < 36;
	size.pss = size.pss ? MEBIBYTE + POOL / sharers + (process == 2 ? reading * MEBIBYTE : 0) : 0;
	return size;
}

/* The only one ends: its parent, which leaks, then has the pool alone. */
static struct size only_worker_ends(int process, unsigned reading)
{
	struct size size = worker_ends(process ? 1 : 2, reading);

	size.ended = process && reading >= 52;
	size.private += reading >= 52 ? POOL : 0;
	size.pss = size.pss ? size.private + (reading >= 52 ? 0 : POOL / 2) : 0;
	return size;
}

/* Another one reads ever more of the pool meanwhile, which adds to its RSS but not to the Pss of all. */
static struct size worker_ends_as_pool_is_read(int process, unsigned reading)
{
	struct size size = worker_ends(process, reading);
	uint64_t unread = POOL / 2 * (READINGS - 1 - reading) / (READINGS - 1);
	unsigned sharers = reading >= 20 && reading < 52 ? 5 : 4;

	size.resident -= process ? 0 : unread;
	if (size.pss)
		size.pss += process ? unread / (sharers - 1) - unread / sharers : -(unread / sharers);
	return size;
}

START_TEST(worker_that_ends_moves_no_pss)
{
	struct mmt_report *report = _i == 3   ? report_of(5, worker_ends_as_pool_is_read)
				    : _i == 2 ? report_of(2, only_worker_ends)
				    : _i      ? report_of(6, worker_is_replaced)
					      : report_of(5, worker_ends);
	double least = 1e9, most = 0;

	ck_assert(report->growth.by_pss);
	ck_assert_uint_eq(report->judged_reading_count, READINGS);
	for (unsigned i = 0; i < READINGS; i++) {
		double rest = (double)report->judged_readings[i].resident_bytes - i * (double)MEBIBYTE;

		least = rest < least ? rest : least;
		most = rest > most ? rest : most;
	}
	/* What the worker that ended had alone is gone. */
	ck_assert_double_le(most - least, 1.1 * (double)MEBIBYTE);
	ck_assert_int_le(llabs(report->growth.bytes_per_minute - 60 * (int64_t)MEBIBYTE), 3 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* Another one ends while Pss is read: that of the others is from after its end already. */
static struct size worker_ends_in_reading(int process, unsigned reading)
{
	struct size size = worker_ends(process == 2 ? 2 : 1, reading);

	size.ended = process == 4 && reading >= 50;
	size.pss = MEBIBYTE + POOL / (reading < 49 || process == 4 ? 5 : 4) + (process == 2 ? reading * MEBIBYTE : 0);
	return size;
}

START_TEST(reading_in_which_a_worker_ends_does_not_count)
{
	struct mmt_report *report;

	ends_before_ns = SECOND_NS - 20000000;
	report = report_of(5, worker_ends_in_reading);
	ends_before_ns = 0;
	ck_assert_uint_eq(report->judged_reading_count, READINGS - 1);
	ck_assert_int_eq(report->growth.outside_bytes, 0);
	/* What it had alone is gone. */
	ck_assert_int_le(llabs(mmt_growth_change(&report->growth) - (READINGS - 2) * (int64_t)MEBIBYTE), (int64_t)PAGE);
	ck_assert_int_le(llabs(report->growth.bytes_per_minute - 60 * (int64_t)MEBIBYTE), 3 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* The first of two processes that share a pool leaks 1 MiB a second after a peak. */
static struct size peak_at_start(int process, unsigned reading)
{
	uint64_t own = process ? MEBIBYTE : reading < 2 ? READINGS / 2 * MEBIBYTE : (8 + reading) * MEBIBYTE;

	return (struct size){
	    .resident = POOL + own, .pss = POOL / 2 + own, .private = own, .faults = 1000 + reading * 100000};
}

/* Header, verdict and processes begin at the same time. */
START_TEST(growth_of_several_begins_after_a_peak)
{
	struct mmt_report *report = report_of(2, peak_at_start);
	const struct mmt_growth *growth = &report->growth;

	ck_assert_str_eq(mmt_verdict_name(growth->verdict), "growing");
	ck_assert(growth->by_pss);
	ck_assert_uint_eq(growth->start_ns, time_of(2));
	ck_assert_uint_eq(growth->start_bytes, 2 * POOL + 11 * MEBIBYTE);
	ck_assert_uint_eq(growth->start_pss_bytes, POOL + 11 * MEBIBYTE);
	ck_assert_uint_eq(growth->start_private_bytes, 11 * MEBIBYTE);
	ck_assert_int_eq(mmt_process_growth(&report->processes[0]), mmt_growth_change(growth));
	expect_text(report, "Pss 75.00 MiB after 2.9 s, 152.0 MiB at end");
	expect_text(report, "went from 139.0 MiB to 216.0 MiB.");
	mmt_report_destroy(report);
}
END_TEST

/* A server forks a child, which ends. Pss is not read again, or at the end. */
static struct size last_one(int process, unsigned reading)
{
	bool alone = reading >= READINGS / 2;

	return (struct size){.ended = process && alone,
			     .resident = MEBIBYTE + POOL,
			     .pss = alone ? 0 : MEBIBYTE + POOL / 2,
			     .private = MEBIBYTE,
			     .faults = 1000};
}

static struct size last_one_read_at_end(int process, unsigned reading)
{
	struct size size = last_one(process, reading < 10 ? READINGS : reading);

	if (reading == READINGS - 1) {
		size.pss = MEBIBYTE + POOL - 8 * PAGE;
		size.private = size.pss;
	}
	return size;
}

/* The last one grows, and its Pss is not read any more. */
static struct size last_one_grows(int process, unsigned reading)
{
	struct size size = last_one(process, reading);

	size.resident += reading > READINGS / 2 ? (reading - READINGS / 2) * MEBIBYTE : 0;
	return size;
}

START_TEST(last_process_grows_by_all_it_maps)
{
	struct mmt_report *report = report_of(2, last_one_grows);

	ck_assert(report->growth.by_pss);
	ck_assert_int_ge(mmt_process_growth(&report->processes[0]), (READINGS / 2 - 2) * (int64_t)MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(last_process_shares_nothing)
{
	struct mmt_report *report = report_of(2, last_one);

	ck_assert(report->growth.by_pss);
	ck_assert_uint_eq(report->growth.end_pss_bytes, MEBIBYTE + POOL);
	ck_assert_uint_eq(report->growth.end_private_bytes, MEBIBYTE + POOL);
	ck_assert_int_eq(mmt_growth_change(&report->growth), -(int64_t)MEBIBYTE);
	expect_text(report, "  shared with other processes\n");
	mmt_report_destroy(report);
	report = report_of(2, last_one_read_at_end);
	ck_assert_int_eq(mmt_growth_change(&report->growth), 0);
	for (size_t i = 0; i < report->judged_reading_count; i++)
		ck_assert_uint_ge(report->judged_readings[i].resident_bytes, MEBIBYTE + POOL - 8 * PAGE);
	ck_assert(!report->processes[0].readings->grows);
	mmt_report_destroy(report);
}
END_TEST

/* Pss was not read until the eighth reading, nor ever of the third process; all have memory in swap. */
static struct size swapped(int process, unsigned reading)
{
	struct size size = with_a_stranger(process, reading);

	size.swapped = 8 * MEBIBYTE;
	size.pss = reading % 8 == 7 ? size.pss : 0;
	return size;
}

START_TEST(swap_counts_before_pss_is_read)
{
	struct mmt_report *report = report_of(3, swapped);

	ck_assert(report->growth.by_pss);
	ck_assert_uint_eq(report->growth.start_swap_bytes, 24 * MEBIBYTE);
	ck_assert_uint_eq(report->growth.end_swap_bytes, 24 * MEBIBYTE);
	for (size_t i = 0; i < report->judged_reading_count; i++)
		ck_assert_uint_eq(report->judged_readings[i].swapped_bytes, 24 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* The third process starts after Pss was first read, and before it is read again. */
static struct size late(int process, unsigned reading)
{
	uint64_t read = reading % 8 == 0 || reading == READINGS - 1 ? MEBIBYTE : 0;

	if (process == 2)
		return (struct size){.ended = reading < 20,
				     .resident = 40 * MEBIBYTE,
				     .pss = 30 * read,
				     .private = 25 * read,
				     .faults = 1000};
	return (struct size){.resident = POOL, .pss = POOL / MEBIBYTE / 2 * read, .private = read, .faults = 1000};
}

START_TEST(late_process_counts_before_its_pss_is_read)
{
	struct mmt_report *report = report_of(3, late);

	ck_assert(report->growth.by_pss);
	ck_assert_uint_eq(report->judged_reading_count, READINGS);
	for (size_t i = 20; i < READINGS; i++)
		ck_assert_uint_eq(report->judged_readings[i].resident_bytes, POOL + 30 * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* Workers that share the memory of their parent, of which the first copies more and more, end together: by the last
 * readings, two are left that share all of it. */
START_TEST(workers_that_end_together_hide_no_growth)
{
	struct recording_builder *builder = begin(1);
	struct mmt_report *report;

	for (int32_t i = 1; i < 5; i++)
		builder_fork(builder, 1002, PARENT + i, PARENT + i, PARENT, PARENT);
	for (unsigned reading = 0; reading < READINGS; reading++) {
		bool ending = reading >= READINGS - 1 - (unsigned)_i;
		uint64_t copied = reading * MEBIBYTE / 4, each = (POOL - copied) / 5 + copied / 4;

		for (int32_t i = 0; i < 5; i++) {
			struct size size = {.resident = MEBIBYTE + POOL, .pss = MEBIBYTE + each, .private = MEBIBYTE};

			if (i == 1)
				size = (struct size){.resident = MEBIBYTE + POOL,
						     .pss = MEBIBYTE + (POOL - copied) / 5 + copied,
						     .private = MEBIBYTE + copied,
						     .faults = copied / PAGE};
			if (ending)
				size.pss = MEBIBYTE + POOL / 2;
			if (!ending || i == 0 || i == 4)
				put_size(builder, reading, PARENT + i, &size);
			if (i && reading + 2 + (unsigned)_i == READINGS && i != 4)
				builder_exit(builder, time_of(reading) + SECOND_NS / 2, PARENT + i, PARENT + i);
		}
		builder_round(builder);
	}
	for (int32_t i = 4; i >= 0; i -= 4)
		builder_exit(builder, time_of(READINGS - 1) + SECOND_NS / 2 - i, PARENT + i, PARENT + i);
	report = finish(builder);
	ck_assert(report->growth.by_pss);
	ck_assert_int_eq(report->growth.verdict, MMT_VERDICT_GROWING);
	ck_assert_uint_eq(report->growth.end_ns, time_of(READINGS - 2 - (unsigned)_i));
	/* Each Pss is rounded down. */
	ck_assert_uint_eq((report->growth.end_pss_bytes + PAGE) / (MEBIBYTE / 4),
			  20 + POOL / (MEBIBYTE / 4) + READINGS - 2 - (unsigned)_i);
	ck_assert_int_ge(report->growth.bytes_per_minute, 14 * (int64_t)MEBIBYTE);
	ck_assert_int_le(report->growth.bytes_per_minute, 16 * (int64_t)MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* The other goes on to grow, so that what ends first does not end the series. */
START_TEST(a_small_process_that_ends_first_hides_no_growth)
{
	struct recording_builder *builder = begin(1);
	struct mmt_report *report;

	builder_fork(builder, 1002, PARENT + 1, PARENT + 1, PARENT, PARENT);
	for (unsigned reading = 0; reading < READINGS; reading++) {
		struct size size = {.resident = 10 * reading * MEBIBYTE}, small = {.resident = MEBIBYTE};

		put_size(builder, reading, PARENT, &size);
		if (reading < READINGS - 1)
			put_size(builder, reading, PARENT + 1, &small);
		else
			builder_exit(builder, time_of(reading) - SECOND_NS / 2, PARENT + 1, PARENT + 1);
		builder_round(builder);
	}
	builder_exit(builder, time_of(READINGS - 1) + SECOND_NS / 2, PARENT, PARENT);
	report = finish(builder);
	ck_assert_int_eq(report->growth.verdict, MMT_VERDICT_GROWING);
	ck_assert_uint_eq(report->growth.end_ns, time_of(READINGS - 1));
	ck_assert_uint_eq(report->growth.peak_bytes, 10 * (READINGS - 1) * MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* A parent whose children, of these sizes, live for two readings each, one after the other. */
static struct mmt_report *report_of_children(const unsigned *mebibytes, unsigned count, bool select)
{
	const int32_t pids[] = {PARENT + 1, PARENT + (int32_t)count};
	struct recording_builder *builder = begin(1);
	struct mmt_report_options options;

	for (unsigned reading = 0; reading < READINGS; reading++) {
		struct size size = {.resident = 10 * MEBIBYTE};
		unsigned child = reading / 2 - 10;

		put_size(builder, reading, PARENT, &size);
		if (reading >= 20 && child < count) {
			int32_t pid = PARENT + 1 + (int32_t)child;

			if (reading % 2 == 0)
				builder_fork(builder, time_of(reading) - SECOND_NS / 4, pid, pid, PARENT, PARENT);
			size.resident = mebibytes[child] * MEBIBYTE;
			put_size(builder, reading, pid, &size);
			if (reading % 2)
				builder_exit(builder, time_of(reading) + SECOND_NS / 4, pid, pid);
		}
		builder_round(builder);
	}
	builder_finish(builder, time_of(READINGS));
	mmt_report_options_init(&options);
	options.pids = select ? pids : NULL;
	options.pid_count = select ? 2 : 0;
	return report_file_report(&options);
}

static void expect_brief(const unsigned *mebibytes, unsigned count, const bool *brief)
{
	struct mmt_report *report = report_of_children(mebibytes, count, false);
	unsigned found = 0;

	for (size_t i = 0; i < report->process_count; i++) {
		const struct mmt_process *process = &report->processes[i];

		if (process->pid == PARENT)
			continue;
		found++;
		ck_assert_int_eq(process->readings->brief, brief[process->pid - PARENT - 1]);
	}
	ck_assert_uint_eq(found, count);
	mmt_report_destroy(report);
}

START_TEST(brief_process_has_others_like_it)
{
	expect_brief((unsigned[]){4, 4}, 2, (bool[]){false, false});
	expect_brief((unsigned[]){4, 5, 6}, 3, (bool[]){true, true, true});
	expect_brief((unsigned[]){4, 64, 4}, 3, (bool[]){true, false, true});
}
END_TEST

START_TEST(selected_processes_count)
{
	struct mmt_report *report;
	unsigned mebibytes[30];

	for (unsigned i = 0; i < 30; i++)
		mebibytes[i] = 4;
	report = report_of_children(mebibytes, 30, true);
	ck_assert_uint_eq(report->process_count, 2);
	ck_assert_uint_eq(report->growth.start_bytes, 4 * MEBIBYTE);
	ck_assert_uint_eq(report->growth.end_bytes, 4 * MEBIBYTE);
	ck_assert(!report->processes[0].readings->brief && !report->processes[1].readings->brief);
	ck_assert_uint_eq(report->growth.peak_with_brief_bytes, 0);
	expect_no_text(report, "with short-lived");
	mmt_report_destroy(report);
}
END_TEST

/* The second process grows, and an outsider stops sharing memory with it. */
static struct size grows_and_inherits(int process, unsigned reading)
{
	uint64_t grown = reading * MEBIBYTE / 4, inherited = POOL / 2;
	bool over = reading >= READINGS / 2;
	struct size size = {.resident = MEBIBYTE + POOL, .pss = MEBIBYTE + POOL / 2, .private = MEBIBYTE};

	size.faults = 1000;
	if (!process)
		return size;
	size.resident += grown + inherited;
	size.pss += grown + (over ? inherited : inherited / 2);
	size.private += grown + (over ? inherited : 0);
	size.faults += grown / PAGE;
	return size;
}

START_TEST(share_of_a_process_is_its_growth)
{
	struct mmt_report *report = report_of(2, grows_and_inherits);

	ck_assert(report->growth.by_pss);
	ck_assert_uint_gt(report->processes[1].readings->end_private_bytes,
			  report->processes[1].readings->start_private_bytes + POOL / 2);
	expect_text(report, "\n    +20.00 MiB  worker (pid 101), +15");
	mmt_report_destroy(report);
}
END_TEST

/* The second process fills a cache, and then gives back as much as the first one gains. */
static struct size plateau_of_two(int process, unsigned reading)
{
	uint64_t filled = reading < 20 ? reading : 20;

	return (struct size){.resident = process ? (20 + 20 * filled - (reading < 20 ? 0 : reading - 20)) * MEBIBYTE
						 : (20 + (reading < 20 ? 0 : reading - 20)) * MEBIBYTE};
}

START_TEST(plateau_of_all_is_not_that_of_the_verdict)
{
	struct mmt_report *report = report_of(2, plateau_of_two);

	ck_assert(report->growth.by_process);
	ck_assert_str_eq(mmt_verdict_name(report->growth.sum_verdict), "plateau");
	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "growing");
	ck_assert_uint_eq(report->growth.settled_ns, 0);
	mmt_report_destroy(report);
}
END_TEST

/* Both together are level from reading 20 on, but the parent grows until 45, by what the other process gives back. */
static struct size plateau_of_one(int process, unsigned reading)
{
	unsigned filled = reading < 20 ? reading : 20, grown = reading < 45 ? reading : 45;

	grown = grown < 20 ? 0 : grown - 20;
	return (struct size){.resident = (process ? 20 + 20 * filled - 2 * grown : 20 + 2 * grown) * MEBIBYTE};
}

START_TEST(level_since_no_process_grows)
{
	struct mmt_report *report = report_of(2, plateau_of_one);

	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "plateau");
	ck_assert_uint_ge(report->growth.settled_ns, time_of(40));
	ck_assert_uint_le(report->growth.settled_ns, time_of(46));
	mmt_report_destroy(report);
}
END_TEST

/* A heap grows by 100 MiB; in one reading, 64 MiB of it are given back with MADV_FREE. */
static unsigned given_back_in;

static struct size lazy(int process, unsigned reading)
{
	(void)process;
	return (struct size){.resident = 100 * MEBIBYTE + reading * 100 * MEBIBYTE / READINGS,
			     .lazy_free = reading == given_back_in ? 64 * MEBIBYTE : 0};
}

/* Only what is left of it when recording ends is in RSS for nothing. */
START_TEST(lazily_freed_memory_is_given_back)
{
	static const char line[] = "64.00 MiB of RSS was freed with MADV_FREE already";
	struct mmt_report *report;

	given_back_in = READINGS - 1;
	report = report_of(1, lazy);
	ck_assert_uint_eq(report->processes[0].readings->lazy_free_bytes, 64 * MEBIBYTE);
	expect_text(report, line);
	mmt_report_destroy(report);
	report_file_teardown();
	report_file_setup();
	given_back_in = READINGS / 2;
	report = report_of(1, lazy);
	ck_assert_uint_eq(report->processes[0].readings->lazy_free_bytes, 0);
	expect_no_text(report, line);
	mmt_report_destroy(report);
}
END_TEST

/* Of a hostile file: no sum overflows. */
static struct size absurd(int process, unsigned reading)
{
	uint64_t value = reading % 3 ? UINT64_MAX - (unsigned)process : reading;

	return (struct size){
	    .resident = value, .pss = value + 1, .private = value, .faults = value, .lazy_free = value};
}

START_TEST(absurd_sizes_do_no_harm)
{
	mmt_report_destroy(report_of(3, absurd));
}
END_TEST

#define POOL_START 0x7f0000000000ull

static void add_pages(process_residencies *processes, int32_t pid, uint64_t bytes)
{
	const struct resident_run run = {POOL_START, POOL_START + bytes};
	struct process_residency *process = vector_append(processes);

	ck_assert_ptr_nonnull(process);
	process->pid = pid;
	process->time_ns = 1;
	process->resident_bytes = POOL;
	ck_assert(vector_push(&process->runs, run));
}

/* A parent has 64 MiB, of which a worker maps the first half; the worker then writes to a quarter and gets a copy, so
 * that both have it alone. `known`: the recorder has read which pages are shared. */
static struct mmt_report *report_of_copies(bool known)
{
	const struct event_mapping line = {.start = POOL_START,
					   .length = POOL,
					   .protection = PROT_READ | PROT_WRITE,
					   .flags = MAP_PRIVATE,
					   .path = ""};
	const struct size start[] = {{.resident = POOL, .pss = POOL * 3 / 4, .private = POOL / 2},
				     {.resident = POOL / 2, .pss = POOL / 4, .faults = 1}};
	const struct size end[] = {
	    {.resident = POOL, .pss = POOL * 7 / 8, .private = POOL * 3 / 4},
	    {.resident = POOL / 2, .pss = POOL * 3 / 8, .private = POOL / 4, .faults = POOL / 4 / PAGE + 1}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0}, shared = {0};

	for (int i = 0; i < 2; i++)
		builder_snapshot(builder, SNAPSHOT_START, 1000, PARENT + i, &line, 1);
	for (unsigned reading = 0; reading < READINGS; reading++) {
		for (int i = 0; i < 2; i++)
			put_size(builder, reading, PARENT + i, reading < READINGS / 2 ? &start[i] : &end[i]);
		builder_round(builder);
	}
	for (int i = 0; i < 2; i++) {
		add_pages(&residency.at_start, PARENT + i, i ? POOL / 2 : POOL);
		add_pages(&residency.processes, PARENT + i, i ? POOL / 2 : POOL);
		add_pages(&shared.at_start, PARENT + i, POOL / 2);
		add_pages(&shared.processes, PARENT + i, POOL / 4);
	}
	report_file_add_residency(builder, &residency);
	if (known)
		report_file_add_shared(builder, &shared);
	else
		section_residency.deinit(&shared);
	return finish(builder);
}

/* The parts are of private pages; with the line of shared ones they add up to the change of Pss. Recordings from before
 * that was read have parts of RSS. */
START_TEST(parts_are_of_private_pages)
{
	struct mmt_report *report = report_of_copies(true);

	ck_assert(report->growth.by_pss);
	ck_assert(report->growth.parts_private);
	ck_assert_uint_eq(report->growth.part_count, 1);
	ck_assert_int_eq(report->growth.parts[0].place, MMT_GROWTH_BEFORE);
	ck_assert_int_eq(report->growth.parts[0].bytes, POOL / 2);
	ck_assert_int_eq(report->growth.changing_bytes, 0);
	ck_assert_int_eq(report->growth.unexplained_bytes, 0);
	expect_text(report, "    +32.00 MiB  private, in anonymous memory, mapped before this recording began\n");
	expect_text(report, "    -16.00 MiB  shared by 2 processes\n");
	expect_no_text(report, "RSS of all processes");
	mmt_report_destroy(report);
	report = report_of_copies(false);
	ck_assert(!report->growth.parts_private);
	expect_text(report, "    +32.00 MiB  private\n");
	expect_text(report, "    -16.00 MiB  shared by 2 processes\n");
	mmt_report_destroy(report);
}
END_TEST

/* A process that shares a pool with a worker lends its memory to a child and ends first: the child then has what the
 * parent had. */
START_TEST(child_of_clone_vm_outlives_its_parent)
{
	const struct size parent = {.resident = POOL, .pss = POOL - 8 * MEBIBYTE, .private = POOL - 16 * MEBIBYTE};
	const struct size worker = {.resident = 17 * MEBIBYTE, .pss = 9 * MEBIBYTE, .private = MEBIBYTE, .faults = 100};
	struct recording_builder *builder = begin(2);
	const int32_t child = PARENT + 2;
	struct mmt_report *report;

	builder_fork(builder, 1500, child, child, PARENT, PARENT);
	builder_new_task(builder, 1500, PARENT, PARENT, child, CLONE_VM);
	for (unsigned reading = 0; reading < READINGS; reading++) {
		if (reading == READINGS / 2)
			builder_exit(builder, time_of(reading) - SECOND_NS / 2, PARENT, PARENT);
		if (reading < READINGS / 2)
			put_size(builder, reading, PARENT, &parent);
		put_size(builder, reading, PARENT + 1, &worker);
		put_size(builder, reading, child, &parent);
		builder_round(builder);
	}
	report = finish(builder);
	ck_assert(report->growth.by_pss);
	ck_assert_str_eq(mmt_verdict_name(report->growth.verdict), "steady");
	ck_assert_uint_eq(report->growth.start_pss_bytes, parent.pss + worker.pss);
	ck_assert_uint_eq(report->growth.end_pss_bytes, parent.pss + worker.pss);
	ck_assert_int_eq(mmt_growth_change(&report->growth), 0);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("growth-processes");
	TCase *tests = add_tcase(suite, "growth-processes");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_tests(tests, shared_memory_counts_once, copies_on_write_are_growth, end_of_an_outsider_is_no_growth,
			ended_processes_hide_none_that_grows, processes_for_each_request_are_no_growth,
			missing_pss_is_said, shared_memory_of_a_server_grows, small_process_without_pss_counts_with_rss,
			pss_is_estimated_between_its_readings, growth_of_several_begins_after_a_peak,
			reading_in_which_a_worker_ends_does_not_count, last_process_shares_nothing,
			last_process_grows_by_all_it_maps, swap_counts_before_pss_is_read,
			late_process_counts_before_its_pss_is_read, brief_process_has_others_like_it,
			worker_that_is_cut_by_the_recording_counts, selected_processes_count, share_of_a_process_is_its_growth,
			plateau_of_all_is_not_that_of_the_verdict, level_since_no_process_grows, lazily_freed_memory_is_given_back,
			absurd_sizes_do_no_harm, child_of_clone_vm_outlives_its_parent, parts_are_of_private_pages);
	tcase_add_loop_test(tests, brief_children_hold_nothing_of_their_parent, 0, SERVERS);
	tcase_add_loop_test(tests, end_of_a_process_hides_no_growth, 0, 3);
	tcase_add_loop_test(tests, worker_that_ends_moves_no_pss, 0, 4);
	tcase_add_loop_test(tests, workers_that_end_together_hide_no_growth, 0, 3);
	tcase_add_test(tests, a_small_process_that_ends_first_hides_no_growth);
	return suite;
}
