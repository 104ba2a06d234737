// SPDX-License-Identifier: LGPL-2.1-or-later
/* JIT code of living processes (this one and its children): what is read of it, and what is evicted for what. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "capture/procfs/clock.h"
#include "capture/jit-code/jit-reader.h"
#include "capture/procfs/proc.h"
#include "capture/recorder/recorder.h"
#include "support/emulator.h"
#include "support/recorder-state.h"
#include "support/suite.h"

enum { ANY = PROT_READ | PROT_WRITE | PROT_EXEC, DATA = PROT_READ | PROT_WRITE };

static struct mmt_record_options options;
static struct recorder recorder;
static size_t page_bytes;
static char messages[1024];
static uint64_t thread_ns, step_ns;
static bool kernel_is_old, memory_is_denied;

__typeof__(clock_thread_ns) __real_clock_thread_ns, __wrap_clock_thread_ns;
__typeof__(mapping_query) __real_mapping_query, __wrap_mapping_query;
__typeof__(process_file_open) __real_process_file_open, __wrap_process_file_open;

/* However slow the machine, no pass takes longer than its limit. */
uint64_t __wrap_clock_thread_ns(void)
{
	return thread_ns += step_ns;
}

int __wrap_process_file_open(struct blocking_calls *calls, pid_t pid, const char *name)
{
	if (!memory_is_denied || strcmp(name, "mem") != 0)
		return __real_process_file_open(calls, pid, name);
	errno = EACCES;
	return -1;
}

enum mapped_kind __wrap_mapping_query(int maps, uint64_t address, struct procmaps_line *line_ret)
{
	return kernel_is_old ? MAPPED_UNKNOWN : __real_mapping_query(maps, address, line_ret);
}

static void take_message(void *context, bool warning, const char *text)
{
	(void)context;
	ck_assert(warning);
	strncat(messages, text, sizeof(messages) - strlen(messages) - 1);
}

static void set_up(void)
{
	options = (struct mmt_record_options){.code = MMT_CODE_ALL, .message = take_message};
	recorder = (struct recorder){.options = &options};
	recorder_state_init(&recorder);
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	messages[0] = 0;
	step_ns = 1000;
}

static void set_up_before_6_11(void)
{
	set_up();
	kernel_is_old = true;
}

static void tear_down(void)
{
	jit_reader_deinit(recorder.jobs.jit_reader);
	process_table_deinit(&recorder.processes);
}

static uint8_t *map_pages(size_t count, int protection)
{
	uint8_t *pages = mmap(NULL, count * page_bytes, DATA, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(pages, MAP_FAILED);
	for (size_t i = 0; i < count; i++)
		memset(pages + i * page_bytes, (int)(0x90 + i), page_bytes / 2);
	ck_assert_int_eq(mprotect(pages, count * page_bytes, protection), 0);
	return pages;
}

static void note(pid_t pid, uint64_t time_ns)
{
	ck_assert_ptr_null(jit_reader_note(&recorder, pid, "//anon", time_ns, false));
}

/* Ignoring the time limit. */
static void look(void)
{
	recorder.jobs.jit_reader->next_ns = 0;
	recorder.jobs.jit_reader->spent_ns = 0;
	ck_assert_ptr_null(jit_reader_read(&recorder));
}

static void expect_pages(size_t program, size_t count)
{
	ck_assert_uint_lt(program, recorder.jobs.jit_reader->programs.count);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.items[program].pages.items.count, count);
}

/* A child that shares our pages until it is killed. */
static pid_t start_child(void)
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	while (!child)
		pause();
	return child;
}

static void end_child(pid_t child)
{
	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
	jit_reader_end_process(&recorder, child);
}

/* Room for this many pages, even if none of their bytes compress. */
static void limit_store(size_t pages)
{
	ck_assert_ptr_null(
	    jit_store_init(&recorder.jobs.jit_reader->store, pages * page_bytes, 4 * pages * page_bytes));
}

/* While it is data, its memory takes nothing from the neighbouring code; it becomes code again without a record. */
START_TEST(neighbouring_data_takes_no_room)
{
	uint8_t *code = map_pages(2, ANY);

	note(getpid(), 1);
	ck_assert_int_eq(mprotect(code + page_bytes, page_bytes, DATA), 0);
	look();
	expect_pages(0, 1);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.items[0].pages.items.items[0].address, (uintptr_t)code);
	ck_assert_int_eq(mprotect(code, page_bytes, DATA), 0);
	ck_assert_int_eq(mprotect(code + page_bytes, page_bytes, ANY), 0);
	look();
	expect_pages(0, 2);
	memset(code, 0xcc, page_bytes);
	ck_assert_int_eq(mprotect(code, page_bytes, ANY), 0);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	expect_pages(0, 2);
	/* 0x90 was replaced by 0xcc. */
	ck_assert_uint_eq(recorder.jobs.jit_reader->code.programs.items[0].changes.count, 1);
	ck_assert_str_eq(messages, "");
}
END_TEST

START_TEST(unmapped_code_stays)
{
	uint8_t *code = map_pages(3, ANY);

	ck_assert_int_eq(munmap(code + page_bytes, page_bytes), 0);
	note(getpid(), 1);
	look();
	expect_pages(0, 2);
	ck_assert_int_eq(munmap(code + 2 * page_bytes, page_bytes), 0);
	look();
	expect_pages(0, 2);
}
END_TEST

/* A pass that has no time left continues where the last one ended, and always reads something. */
START_TEST(short_passes_read_all_code)
{
	uint8_t *code = map_pages(5, ANY);

	for (size_t i = 1; i < 5; i += 2)
		ck_assert_int_eq(mprotect(code + i * page_bytes, page_bytes, DATA), 0);
	note(getpid(), 1);
	step_ns = 2000000;
	for (size_t i = 1; i <= 3; i++) {
		look();
		ck_assert_uint_ge(recorder.jobs.jit_reader->programs.items[0].pages.items.count, i);
	}
	/* And then the first again. */
	memset(code, 0xcc, page_bytes);
	for (size_t i = 0; i < recorder.jobs.jit_reader->programs.items[0].pages.items.count; i++)
		recorder.jobs.jit_reader->programs.items[0].pages.items.items[i].due_ns = 0;
	for (size_t i = 0; i < 5; i++)
		look();
	ck_assert_uint_gt(recorder.jobs.jit_reader->programs.items[0].pages.items.items[0].due_ns, 0);
}
END_TEST

/* Of the ended children the first is evicted, and no more than necessary. */
START_TEST(ended_children_are_evicted_first)
{
	uint8_t *code = map_pages(3, ANY);
	pid_t children[2];

	limit_store(8);
	for (size_t i = 0; i < 2; i++) {
		children[i] = start_child();
		note(children[i], 1);
		look();
		expect_pages(i, 3);
		end_child(children[i]);
	}
	ck_assert_ptr_ne(map_pages(1, ANY), code);
	note(getpid(), 1);
	look();
	expect_pages(0, 0);
	expect_pages(1, 3);
	expect_pages(2, 4);
	ck_assert_uint_eq(recorder.jobs.jit_reader->store.plain_bytes, 7 * page_bytes);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	ck_assert_uint_eq(recorder.jobs.jit_reader->code.programs.count, 2);
	ck_assert_ptr_nonnull(strstr(messages, "not all JIT code is copied: the limit of a recording"));
}
END_TEST

/* A living process is evicted for a requested one, and is not read again; nothing else is evicted for it. */
START_TEST(requested_processes_evict_others)
{
	pid_t child;

	(void)map_pages(3, ANY);
	child = start_child();
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	limit_store(4);
	note(child, 1);
	look();
	expect_pages(0, 3);
	note(getpid(), 1);
	look();
	expect_pages(0, 0);
	expect_pages(1, 3);
	look();
	expect_pages(0, 0);
	end_child(child);

	child = start_child();
	note(child, 1);
	look();
	/* The first child is gone. */
	expect_pages(0, 3);
	ck_assert_ptr_nonnull(recorder.jobs.jit_reader->programs.items[0].pages.items.items[2].bytes);
	ck_assert_uint_le(recorder.jobs.jit_reader->store.plain_bytes, 4 * page_bytes);
	end_child(child);
}
END_TEST

/* Requested processes stay after they ended; of living processes that were not requested, the first stays. */
START_TEST(requested_processes_are_not_evicted)
{
	pid_t children[3];

	(void)map_pages(2, ANY);
	limit_store(4);
	for (size_t i = 0; i < 3; i++) {
		children[i] = start_child();
		if (!i)
			ck_assert_ptr_nonnull(process_table_add(&recorder.processes, children[i], true));
		note(children[i], 1);
		look();
		if (!i)
			end_child(children[i]);
	}
	look();
	expect_pages(0, 2);
	expect_pages(1, 2);
	ck_assert_uint_eq(recorder.jobs.jit_reader->store.plain_bytes, 4 * page_bytes);
	for (size_t i = 0; i < 2; i++)
		ck_assert(!recorder.jobs.jit_reader->programs.items[i].evicted);
	end_child(children[1]);
	end_child(children[2]);
}
END_TEST

/* If there is no room for both, the program that the process executes now is kept, even if both were requested. */
START_TEST(earlier_programs_of_a_process_are_evicted)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;

	(void)map_pages(3, ANY);
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	limit_store(3);
	note(getpid(), 1);
	look();
	expect_pages(0, 3);
	ck_assert_ptr_null(jit_reader_end_program(&recorder, getpid(), clock_now_ns()));
	note(getpid(), clock_now_ns());
	look();
	expect_pages(0, 0);
	ck_assert(reader->programs.items[0].evicted);
	expect_pages(1, 3);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	ck_assert_uint_eq(recorder.jobs.jit_reader->code.programs.count, 1);
	ck_assert_uint_eq(recorder.jobs.jit_reader->code.programs.items[0].until_ns, UINT64_MAX);
	ck_assert_uint_eq(recorder.jobs.jit_reader->code.programs.items[0].runs.count, 1);
}
END_TEST

/* Only the stored code of ended programs stays. */
START_TEST(ended_programs_are_forgotten)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;
	uint8_t *code = map_pages(2, ANY);
	pid_t children[3];

	memset(code, 0, 2 * page_bytes);
	for (size_t i = 0; i < 3; i++) {
		children[i] = start_child();
		note(children[i], 1);
		look();
		expect_pages(i, 2);
		code[page_bytes] = 0xc3;
	}
	for (size_t i = 0; i < 3; i++)
		end_child(children[i]);
	/* No page of the first was written to; one page of the others was. */
	look();
	ck_assert_uint_eq(reader->programs.count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(reader->programs.items[i].pid, children[i + 1]);
		expect_pages(i, 1);
		ck_assert_uint_eq(reader->programs.items[i].pages.index_of_address.capacity, 0);
	}
	/* The PID of the second is reused. */
	ck_assert_ptr_null(jit_reader_end_program(&recorder, children[1], 100));
	note(children[1], 200);
	ck_assert_uint_eq(reader->programs.count, 3);
	ck_assert_uint_eq(reader->programs.items[2].noted_ns, 200);
	ck_assert_uint_eq(reader->programs.items[0].until_ns, 100);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	ck_assert_uint_eq(recorder.jobs.jit_reader->code.programs.count, 2);
}
END_TEST

/* A child with no stored code is kept while its process is known: more records may follow. */
START_TEST(child_without_code_is_kept_while_known)
{
	pid_t child = start_child();

	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, child, false));
	(void)map_pages(1, ANY);
	note(child, 1);
	end_child(child);
	look();
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.count, 1);
	process_table_deinit(&recorder.processes);
	recorder.processes = (struct process_table){0};
	look();
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.count, 0);
	note(getpid(), 1);
	look();
	expect_pages(0, 1);
}
END_TEST

/* Requested processes are read first in every other pass, and the others in turn. */
START_TEST(processes_are_read_in_turn)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;
	pid_t child;

	(void)map_pages(2, ANY);
	child = start_child();
	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	note(child, 1);
	note(getpid(), 1);
	look();
	ck_assert_ptr_eq(reader->reading, &reader->programs.items[0]);
	ck_assert(reader->others_first);
	look();
	ck_assert_ptr_eq(reader->reading, &reader->programs.items[1]);
	ck_assert(!reader->others_first);
	end_child(child);
	look();
	look();
	ck_assert_ptr_eq(reader->reading, &reader->programs.items[1]);
}
END_TEST

/* Without a warning nothing is missing. */
START_TEST(missing_descriptors_are_reported)
{
	struct rlimit limit, low;
	pid_t child;

	(void)map_pages(1, ANY);
	child = start_child();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = 16;
	note(child, 1);
	note(getpid(), 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	look();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	end_child(child);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	expect_pages(0, 0);
	expect_pages(1, 1);
	ck_assert_ptr_nonnull(strstr(messages, "JIT code of 1 program is not copied"));
}
END_TEST

/* Each pass may wait for the target's mmap_lock, however often earlier ones did. */
START_TEST(waits_of_earlier_passes_do_not_count)
{
	(void)map_pages(1, ANY);
	note(getpid(), 1);
	look();
	expect_pages(0, 1);
	recorder.jobs.jit_reader->programs.items[0].pagemap.waited_ns = LIMIT_RESIDENCY_WAIT_NS;
	(void)map_pages(1, ANY);
	look();
	expect_pages(0, 2);
}
END_TEST

/* The kernel shows the mappings of a process whose memory may not be read. */
START_TEST(unreadable_memory_is_reported)
{
	(void)map_pages(1, ANY);
	note(getpid(), 1);
	memory_is_denied = true;
	look();
	memory_is_denied = false;
	expect_pages(0, 0);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	expect_pages(0, 1);
	ck_assert_str_eq(messages, "");

	note(getppid(), 1);
	memory_is_denied = true;
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	memory_is_denied = false;
	ck_assert_ptr_nonnull(strstr(messages, "JIT code of 1 program is not copied: permission denied"));
}
END_TEST

/* While it waits for its share of the time, it does not claim to have read anything. */
START_TEST(read_times_are_honest)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;
	uint64_t read_ns;

	(void)map_pages(1, ANY);
	note(getpid(), 1);
	look();
	read_ns = reader->read_ns;
	ck_assert_uint_gt(read_ns, 0);
	reader->next_ns = 0;
	reader->spent_ns = INT64_MAX / 2;
	ck_assert_ptr_null(jit_reader_read(&recorder));
	ck_assert_uint_eq(reader->read_ns, read_ns);
	ck_assert_int_lt(reader->spent_ns, INT64_MAX / 2);
	ck_assert_uint_gt(reader->reckoned_ns, read_ns);
}
END_TEST

/* Which program of a process JIT code belongs to, with records in any order. */

enum { PID = 42 };

static void end_program_at(uint64_t time_ns)
{
	ck_assert_ptr_null(jit_reader_end_program(&recorder, PID, time_ns));
}

static void expect_program(size_t index, uint64_t until_ns, bool ended, uint64_t noted_ns)
{
	const struct jit_program *program;

	ck_assert_uint_lt(index, recorder.jobs.jit_reader->programs.count);
	program = &recorder.jobs.jit_reader->programs.items[index];
	ck_assert_uint_eq(program->until_ns, until_ns);
	ck_assert(program->ended == ended);
	ck_assert_uint_eq(program->noted_ns, noted_ns);
}

/* As when its memory was opened then. */
static void open_at(uint64_t time_ns)
{
	recorder.jobs.jit_reader->programs.items[0].opened = true;
	recorder.jobs.jit_reader->programs.items[0].opened_ns = time_ns;
}

START_TEST(only_jit_code_is_noted)
{
	ck_assert_ptr_null(jit_reader_note(&recorder, PID, "/usr/lib/libc.so.6", 100, false));
	ck_assert(!jit_reader_knows(&recorder, PID));
	note(PID, 100);
	ck_assert(jit_reader_knows(&recorder, PID));
	options.code = MMT_CODE_NONE;
	note(PID, 300);
	expect_program(0, UINT64_MAX, false, 100);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.count, 1);
}
END_TEST

START_TEST(records_in_time_order)
{
	note(PID, 100);
	open_at(150);
	end_program_at(200);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.count, 1);
	expect_program(0, 200, true, 100);
	note(PID, 300);
	expect_program(1, UINT64_MAX, false, 300);
	ck_assert_ptr_null(jit_reader_end_program(&recorder, PID + 1, 400));
	expect_program(1, UINT64_MAX, false, 300);
}
END_TEST

/* The new program's code is reported before its exec. */
START_TEST(late_exec_record)
{
	note(PID, 100);
	open_at(150);
	note(PID, 300);
	end_program_at(200);
	expect_program(0, 200, true, 300);
	expect_program(1, UINT64_MAX, false, 300);
	note(PID, 250);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.count, 2);
}
END_TEST

/* Nothing was read of the old program: all code is the new one's, if it has any. */
START_TEST(exec_record_before_reading)
{
	note(PID, 100);
	note(PID, 300);
	open_at(350);
	end_program_at(200);
	expect_program(0, UINT64_MAX, false, 300);
	end_program_at(320);
	expect_program(0, UINT64_MAX, false, 0);
	ck_assert(!jit_reader_knows(&recorder, PID));
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.count, 1);
}
END_TEST

START_TEST(reused_pid)
{
	note(PID, 100);
	jit_reader_end_process(&recorder, PID);
	expect_program(0, UINT64_MAX, true, 0);
	end_program_at(200);
	expect_program(0, 200, true, 0);
	note(PID, 300);
	expect_program(1, UINT64_MAX, false, 300);
}
END_TEST

static void add_reading(TCase *tests)
{
	tcase_add_tests(tests, neighbouring_data_takes_no_room, unmapped_code_stays, short_passes_read_all_code,
			ended_children_are_evicted_first, requested_processes_evict_others,
			requested_processes_are_not_evicted, earlier_programs_of_a_process_are_evicted,
			ended_programs_are_forgotten, child_without_code_is_kept_while_known,
			processes_are_read_in_turn, missing_descriptors_are_reported,
			waits_of_earlier_passes_do_not_count, unreadable_memory_is_reported);
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-reader");
	TCase *tests = add_tcase(suite, "jit-reader"), *old = add_tcase(suite, "before 6.11");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_checked_fixture(old, set_up_before_6_11, tear_down);
	tcase_add_tests(tests, read_times_are_honest, only_jit_code_is_noted, records_in_time_order, late_exec_record,
			exec_record_before_reading, reused_pid);
	if (!emulator_hides("the pages of a process that are code")) {
		add_reading(tests);
		add_reading(old);
	}
	return suite;
}
