// SPDX-License-Identifier: LGPL-2.1-or-later
/* JIT code of living processes (this one and its children): what is read of it, when, and what makes room for what. */
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

#include "base/compression.h"
#include "base/limits.h"
#include "capture/procfs/clock.h"
#include "capture/jit-code/jit-reader.h"
#include "capture/procfs/proc.h"
#include "capture/recorder/recorder.h"
#include "support/emulator.h"
#include "support/recorder-state.h"
#include "support/suite.h"
#include "trace/sections/sections.h"

enum { ANY = PROT_READ | PROT_WRITE | PROT_EXEC, DATA = PROT_READ | PROT_WRITE };

static struct mmt_record_options options;
static struct recorder recorder;
static struct jit_code code; /* of the recording */
static size_t page_bytes;
static char messages[1024];
static uint64_t thread_ns, step_ns;
static bool memory_is_denied;

__typeof__(clock_thread_ns) __real_clock_thread_ns, __wrap_clock_thread_ns;
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

static void tear_down(void)
{
	section_code.deinit(&code);
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
	recorder.jobs.jit_reader->budget.left_ns = 0;
	ck_assert_ptr_null(jit_reader_read(&recorder));
}

static void expect_pages(size_t program, size_t count)
{
	ck_assert_uint_lt(program, recorder.jobs.jit_reader->programs.count);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.items[program].pages.count, count);
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

/* Ends the recording. */
static void decode_recorded(void)
{
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	ck_assert_ptr_null(jit_reader_encode(&recorder, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	if (buffer.size)
		ck_assert_ptr_null(section_read(&section_code, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &code));
	buffer_deinit(&buffer);
}

static uint8_t byte_at(pid_t pid, uint64_t address)
{
	const struct jit_code_program *program = jit_code_find(&code, pid, 0);
	const uint8_t *bytes;

	ck_assert_ptr_nonnull(program);
	ck_assert_uint_eq(jit_code_at(&code, program, address, 1, &bytes), 1);
	return *bytes;
}

/* Room for this many pages. */
static void limit_store(size_t pages)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;

	ck_assert_ptr_null(compressor_init(&reader->compressor));
	buffer_init(&reader->scratch, 1 << 20);
	reader->page_bytes = page_bytes;
	reader->stored_pages_max = pages;
	reader->stored_bytes_max = SIZE_MAX;
}

/* While it is data, its memory takes nothing from the neighbouring code; it becomes code again without a record. */
START_TEST(neighbouring_data_takes_no_room)
{
	uint8_t *memory = map_pages(2, ANY);
	uint64_t code_address = (uintptr_t)memory;

	note(getpid(), 1);
	ck_assert_int_eq(mprotect(memory + page_bytes, page_bytes, DATA), 0);
	look();
	expect_pages(0, 1);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.items[0].pages.items[0].address, code_address);
	ck_assert_int_eq(mprotect(memory, page_bytes, DATA), 0);
	ck_assert_int_eq(mprotect(memory + page_bytes, page_bytes, ANY), 0);
	look();
	expect_pages(0, 2);
	memset(memory, 0xcc, page_bytes);
	ck_assert_int_eq(mprotect(memory, page_bytes, ANY), 0);
	decode_recorded();
	ck_assert_uint_eq(code.programs.count, 1);
	ck_assert_uint_eq(byte_at(getpid(), code_address), 0xcc);
	ck_assert_uint_eq(byte_at(getpid(), code_address + page_bytes), 0x91);
	ck_assert_str_eq(messages, "");
}
END_TEST

START_TEST(unmapped_code_stays)
{
	uint8_t *memory = map_pages(3, ANY);

	ck_assert_int_eq(munmap(memory + page_bytes, page_bytes), 0);
	note(getpid(), 1);
	look();
	expect_pages(0, 2);
	ck_assert_int_eq(munmap(memory + 2 * page_bytes, page_bytes), 0);
	look();
	expect_pages(0, 2);
}
END_TEST

/* A pass that has no time left continues where the last one ended, and always reads something. */
START_TEST(short_passes_read_all_code)
{
	uint8_t *memory = map_pages(5, ANY);

	for (size_t i = 1; i < 5; i += 2)
		ck_assert_int_eq(mprotect(memory + i * page_bytes, page_bytes, DATA), 0);
	note(getpid(), 1);
	step_ns = 2000000;
	for (size_t i = 1; i <= 3; i++) {
		look();
		ck_assert_uint_ge(recorder.jobs.jit_reader->programs.items[0].pages.count, i);
	}
	/* And then the first again. */
	memset(memory, 0xcc, page_bytes);
	for (size_t i = 0; i < recorder.jobs.jit_reader->programs.items[0].pages.count; i++)
		recorder.jobs.jit_reader->programs.items[0].pages.items[i].due_ns = 0;
	for (size_t i = 0; i < 5; i++)
		look();
	ck_assert_uint_gt(recorder.jobs.jit_reader->programs.items[0].pages.items[0].due_ns, 0);
}
END_TEST

/* Of the ended children the code of the first is dropped, and no more than necessary; that of living processes stays.
 */
START_TEST(code_of_ended_children_makes_room)
{
	uint8_t *memory = map_pages(3, ANY);
	pid_t children[2];

	limit_store(7);
	for (size_t i = 0; i < 2; i++) {
		children[i] = start_child();
		note(children[i], 1);
		look();
		expect_pages(i, 3);
		end_child(children[i]);
	}
	ck_assert_ptr_ne(map_pages(1, ANY), memory);
	note(getpid(), 1);
	look();
	expect_pages(0, 0);
	expect_pages(1, 3);
	expect_pages(2, 4);
	ck_assert_uint_eq(recorder.jobs.jit_reader->stored_pages, 7);
	decode_recorded();
	ck_assert_uint_eq(code.programs.count, 2);
	ck_assert_ptr_nonnull(strstr(messages, "not all JIT code is copied: the limit of a recording"));
}
END_TEST

/* A living process that finds no room does not read these pages again. */
START_TEST(pages_without_room_are_not_read_again)
{
	pid_t child;

	(void)map_pages(3, ANY);
	child = start_child();
	limit_store(4);
	note(child, 1);
	look();
	note(getpid(), 1);
	look();
	expect_pages(0, 3);
	expect_pages(1, 3);
	ck_assert_uint_eq(recorder.jobs.jit_reader->stored_pages, 4);
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.items[1].pages.items[2].due_ns, UINT64_MAX);
	/* At the end there is room. */
	end_child(child);
	decode_recorded();
	ck_assert_uint_eq(code.programs.count, 1);
	ck_assert_int_eq(code.programs.items[0].pid, getpid());
	ck_assert_uint_eq(code.programs.items[0].runs.items[0].size, 3 * page_bytes);
}
END_TEST

/* Code that does not compress is limited by its compressed size; a page that has room again is stored. */
START_TEST(compressed_bytes_are_limited)
{
	uint8_t *memory = map_pages(2, ANY);
	struct jit_reader *reader = recorder.jobs.jit_reader;

	limit_store(100);
	reader->stored_bytes_max = page_bytes;
	for (uint32_t i = 0, value = 1; i < page_bytes; i++, value = value * 1664525 + 1013904223)
		memory[page_bytes + i] = (uint8_t)(value >> 24);
	note(getpid(), 1);
	look();
	ck_assert(reader->full);
	ck_assert_ptr_nonnull(reader->programs.items[0].pages.items[0].frame);
	ck_assert_ptr_null(reader->programs.items[0].pages.items[1].frame);
	ck_assert_uint_lt(reader->stored_bytes, page_bytes / 10);
	reader->stored_bytes_max = 2 * page_bytes;
	decode_recorded();
	ck_assert_uint_eq(byte_at(getpid(), (uintptr_t)memory + page_bytes + 5), memory[page_bytes + 5]);
}
END_TEST

/* The program that the process executes now is kept, and that before it makes room. */
START_TEST(earlier_programs_make_room)
{
	(void)map_pages(3, ANY);
	limit_store(3);
	note(getpid(), 1);
	look();
	expect_pages(0, 3);
	ck_assert_ptr_null(jit_reader_end_program(&recorder, getpid(), clock_now_ns()));
	note(getpid(), clock_now_ns());
	look();
	expect_pages(0, 0);
	expect_pages(1, 3);
	decode_recorded();
	ck_assert_uint_eq(code.programs.count, 1);
	ck_assert_uint_eq(code.programs.items[0].until_ns, UINT64_MAX);
	ck_assert_uint_eq(code.programs.items[0].runs.count, 1);
}
END_TEST

static struct jit_page *first_page(void)
{
	return &recorder.jobs.jit_reader->programs.items[0].pages.items[0];
}

/* A page that changes is read again soon, and others less and less often; blank pages are not stored. */
START_TEST(changing_pages_are_read_again)
{
	uint8_t *memory = map_pages(1, ANY);
	uint8_t *blank = map_pages(1, ANY);

	memset(blank, 0, page_bytes);
	note(getpid(), 1);
	look();
	expect_pages(0, 2);
	ck_assert_uint_eq(recorder.jobs.jit_reader->stored_pages, 1);
	for (size_t i = 0; i < 2; i++) {
		struct jit_page *page = first_page() + i;

		ck_assert_uint_eq(page->again_ns, JIT_PAGE_AGAIN_NS);
		ck_assert(!page->frame == (page->address == (uintptr_t)blank));
	}
	for (uint64_t again_ns = JIT_PAGE_AGAIN_NS; again_ns < JIT_PAGE_AGAIN_NS_MAX; again_ns *= 2) {
		uint64_t due_ns = first_page()->due_ns;

		look();
		if (first_page()->due_ns == due_ns)
			first_page()->due_ns = 0;
		look();
		ck_assert_uint_eq(first_page()->again_ns, 2 * again_ns);
	}
	memory[7] = blank[7] = 0xcc;
	for (size_t i = 0; i < 2; i++)
		first_page()[i].due_ns = 0;
	look();
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(first_page()[i].again_ns, JIT_PAGE_AGAIN_NS);
	/* What was stored stays if the page becomes blank. */
	memset(memory, 0, page_bytes);
	memset(blank, 0, page_bytes);
	decode_recorded();
	ck_assert_uint_eq(byte_at(getpid(), (uintptr_t)memory + 7), 0xcc);
	ck_assert_uint_eq(byte_at(getpid(), (uintptr_t)blank + 7), 0xcc);
}
END_TEST

/* Only the stored code of ended programs stays. */
START_TEST(ended_programs_are_forgotten)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;
	uint8_t *memory = map_pages(2, ANY);
	pid_t children[3];

	memset(memory, 0, 2 * page_bytes);
	for (size_t i = 0; i < 3; i++) {
		children[i] = start_child();
		note(children[i], 1);
		look();
		expect_pages(i, 2);
		memory[page_bytes] = 0xc3;
	}
	for (size_t i = 0; i < 3; i++)
		end_child(children[i]);
	/* No page of the first was written to; one page of the others was. */
	look();
	ck_assert_uint_eq(reader->programs.count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(reader->programs.items[i].pid, children[i + 1]);
		expect_pages(i, 1);
		ck_assert_uint_eq(reader->programs.items[i].page_of_address.capacity, 0);
	}
	/* The PID of the second is reused. */
	ck_assert_ptr_null(jit_reader_end_program(&recorder, children[1], 100));
	note(children[1], 200);
	ck_assert_uint_eq(reader->programs.count, 3);
	ck_assert_uint_eq(reader->programs.items[2].noted_ns, 200);
	ck_assert_uint_eq(reader->programs.items[0].until_ns, 100);
	decode_recorded();
	ck_assert_uint_eq(code.programs.count, 2);
}
END_TEST

/* Each pass without time begins with the next process. */
START_TEST(processes_are_read_in_turn)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;
	pid_t child;

	(void)map_pages(2, ANY);
	child = start_child();
	note(child, 1);
	note(getpid(), 1);
	step_ns = 2 * LIMIT_CODE_PASS_NS;
	look();
	ck_assert(reader->programs.items[0].opened_ns && !reader->programs.items[1].opened_ns);
	look();
	ck_assert(reader->programs.items[1].opened_ns);
	end_child(child);
}
END_TEST

/* A record of code may be read when its process is gone. */
START_TEST(gone_processes_are_forgotten)
{
	pid_t child = start_child();

	(void)map_pages(1, ANY);
	end_child(child);
	note(child, 1);
	look();
	look();
	ck_assert_uint_eq(recorder.jobs.jit_reader->programs.count, 0);
	note(getpid(), 1);
	look();
	expect_pages(0, 1);
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	ck_assert_str_eq(messages, "");
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
	decode_recorded();
	ck_assert_uint_eq(code.programs.count, 1);
	ck_assert_int_eq(code.programs.items[0].pid, getpid());
	ck_assert_ptr_nonnull(strstr(messages, "JIT code of 1 program is not copied: too many files were open; "));
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

START_TEST(memory_that_is_readable_later_is_read)
{
	(void)map_pages(1, ANY);
	note(getpid(), 1);
	memory_is_denied = true;
	look();
	memory_is_denied = false;
	expect_pages(0, 0);
	decode_recorded();
	ck_assert_uint_eq(code.programs.count, 1);
	ck_assert_str_eq(messages, "");
}
END_TEST

/* The kernel shows the mappings of a process whose memory may not be read. */
START_TEST(unreadable_memory_is_reported)
{
	note(getppid(), 1);
	memory_is_denied = true;
	ck_assert_ptr_null(jit_reader_finish(&recorder));
	memory_is_denied = false;
	ck_assert_ptr_nonnull(strstr(messages, "JIT code of 1 program is not copied: permission denied"));
}
END_TEST

/* While it waits for its share of the time, it reads nothing. */
START_TEST(the_share_of_the_time_is_kept)
{
	struct jit_reader *reader = recorder.jobs.jit_reader;
	uint64_t before_ns = clock_now_ns();

	(void)map_pages(1, ANY);
	note(getpid(), 1);
	look();
	reader->next_ns = 0;
	reader->budget.left_ns = -INT64_MAX / 2;
	ck_assert_ptr_null(jit_reader_read(&recorder));
	ck_assert_int_gt(reader->budget.left_ns, -INT64_MAX / 2);
	ck_assert_uint_ge(reader->budget.at_ns, before_ns);
	ck_assert_uint_eq(reader->next_ns, 0);
}
END_TEST

/* Which program of a process JIT code belongs to, with records in any order. */

enum { PID = 42 };

static void end_program_at(uint64_t time_ns)
{
	ck_assert_ptr_null(jit_reader_end_program(&recorder, PID, time_ns));
}

static bool knows_code(void)
{
	const struct jit_reader *reader = recorder.jobs.jit_reader;
	const uint64_t *index = map_get(&reader->program_of_pid, PID);

	return index && reader->programs.items[*index].noted_ns;
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
	recorder.jobs.jit_reader->programs.items[0].opened_ns = time_ns;
}

START_TEST(only_jit_code_is_noted)
{
	ck_assert_ptr_null(jit_reader_note(&recorder, PID, "/usr/lib/libc.so.6", 100, false));
	ck_assert(!knows_code());
	note(PID, 100);
	ck_assert(knows_code());
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
	ck_assert(!knows_code());
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

Suite *test_suite(void)
{
	Suite *suite = suite_create("jit-reader");
	TCase *tests = add_tcase(suite, "jit-reader");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, the_share_of_the_time_is_kept, only_jit_code_is_noted, records_in_time_order,
			late_exec_record, exec_record_before_reading, reused_pid);
	if (!emulator_hides("the pages of a process that are code"))
		tcase_add_tests(tests, neighbouring_data_takes_no_room, unmapped_code_stays, short_passes_read_all_code,
				code_of_ended_children_makes_room, pages_without_room_are_not_read_again,
				compressed_bytes_are_limited, earlier_programs_make_room, changing_pages_are_read_again,
				ended_programs_are_forgotten, processes_are_read_in_turn, gone_processes_are_forgotten,
				missing_descriptors_are_reported, waits_of_earlier_passes_do_not_count,
				memory_that_is_readable_later_is_read, unreadable_memory_is_reported);
	return suite;
}
