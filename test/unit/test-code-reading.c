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
#include "capture/perf/clock.h"
#include "capture/jit-code/jit-code.h"
#include "capture/procfs/proc.h"
#include "capture/recorder.h"
#include "support/emulator.h"
#include "support/suite.h"

enum { ANY = PROT_READ | PROT_WRITE | PROT_EXEC, DATA = PROT_READ | PROT_WRITE };

static struct mmt_record_options options;
static struct recorder recorder;
static size_t page_bytes;
static char messages[1024];
static uint64_t thread_ns;
static bool kernel_is_old, memory_is_denied;

__typeof__(clock_thread_ns) __real_clock_thread_ns, __wrap_clock_thread_ns;
__typeof__(mapping_query) __real_mapping_query, __wrap_mapping_query;
__typeof__(process_file_open) __real_process_file_open, __wrap_process_file_open;

/* However slow the machine, no pass takes longer than its limit. */
uint64_t __wrap_clock_thread_ns(void)
{
	return thread_ns += 1000;
}

int __wrap_process_file_open(struct blocking_calls *calls, pid_t pid, const char *name)
{
	if (!memory_is_denied || strcmp(name, "mem") != 0)
		return __real_process_file_open(calls, pid, name);
	errno = EACCES;
	return -1;
}

enum mapped_kind __wrap_mapping_query(int maps, uint64_t address, uint64_t *end_ret)
{
	*end_ret = UINT64_MAX;
	return kernel_is_old ? MAPPED_UNKNOWN : __real_mapping_query(maps, address, end_ret);
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
	page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	messages[0] = 0;
}

static void set_up_before_6_11(void)
{
	set_up();
	kernel_is_old = true;
}

static void tear_down(void)
{
	jit_code_deinit(&recorder.jobs.jit_code);
	code_copies_deinit(&recorder.jobs.code);
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

static void note_at(pid_t pid, const uint8_t *pages, size_t count, int protection, uint64_t time_ns)
{
	const struct jit_mapping mapping = {.pid = pid,
					    .start = (uintptr_t)pages,
					    .end = (uintptr_t)pages + count * page_bytes,
					    .time_ns = time_ns,
					    .protection = (uint32_t)protection,
					    .path = "//anon"};

	ck_assert_ptr_null(jit_code_note(&recorder, &mapping));
}

static void note(pid_t pid, const uint8_t *pages, size_t count)
{
	note_at(pid, pages, count, PROT_EXEC, 1);
}

/* Ignoring the time limit. */
static void look(void)
{
	recorder.jobs.jit_code.next_ns = 0;
	recorder.jobs.jit_code.spent_ns = 0;
	ck_assert_ptr_null(jit_code_read(&recorder));
}

static void expect_pages(size_t program, size_t count)
{
	ck_assert_uint_lt(program, recorder.jobs.jit_code.programs.count);
	ck_assert_uint_eq(recorder.jobs.jit_code.programs.items[program].pages.items.count, count);
}

/* By its version: if the kernel were queried, a query that always fails would look like an old kernel. */
static bool kernel_answers_queries(void)
{
	unsigned major = 0, minor = 0;
	struct utsname name;

	return !uname(&name) && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 11));
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
	jit_code_end_process(&recorder, child);
}

/* Room for this many pages, even if none of their bytes compress. */
static void limit_store(size_t pages)
{
	ck_assert_ptr_null(code_store_init(&recorder.jobs.jit_code.store, pages * page_bytes, 4 * pages * page_bytes));
}

/* While it is data, its memory takes nothing from the neighbouring code; it becomes code again without a record. */
START_TEST(neighbouring_data_takes_no_room)
{
	uint8_t *code = map_pages(2, ANY);

	note(getpid(), code, 2);
	ck_assert_int_eq(mprotect(code + page_bytes, page_bytes, DATA), 0);
	look();
	expect_pages(0, 1);
	ck_assert_uint_eq(recorder.jobs.jit_code.programs.items[0].pages.items.items[0].address, (uintptr_t)code);
	ck_assert_int_eq(mprotect(code, page_bytes, DATA), 0);
	ck_assert_int_eq(mprotect(code + page_bytes, page_bytes, ANY), 0);
	look();
	expect_pages(0, 2);
	memset(code, 0xcc, page_bytes);
	ck_assert_int_eq(mprotect(code, page_bytes, ANY), 0);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	expect_pages(0, 2);
	/* 0x90 was replaced by 0xcc. */
	ck_assert_uint_eq(recorder.jobs.jit_code.programs.items[0].pages.changes.count, 1);
	ck_assert_str_eq(messages, "");
}
END_TEST

START_TEST(unmapped_code_is_forgotten)
{
	uint8_t *code = map_pages(3, ANY);

	note(getpid(), code, 1);
	note(getpid(), code + 2 * page_bytes, 1);
	look();
	expect_pages(0, 2);
	ck_assert_int_eq(munmap(code + 2 * page_bytes, page_bytes), 0);
	look();
	ck_assert_uint_eq(recorder.jobs.jit_code.programs.items[0].ranges.count, 1);
	/* What was read of it stays. */
	expect_pages(0, 2);
}
END_TEST

/* Code that appears at new addresses and disappears leaves room for code that stays. */
START_TEST(short_lived_code_leaves_room)
{
	size_t count = 3 * LIMIT_CODE_RANGES;
	uint8_t *code = map_pages(1, ANY), *gone = mmap(NULL, 2 * count * page_bytes, PROT_NONE,
							MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(gone, MAP_FAILED);
	ck_assert_int_eq(munmap(gone, 2 * count * page_bytes), 0);
	for (size_t i = 0; i < count; i++)
		note(getpid(), gone + 2 * i * page_bytes, 1);
	note(getpid(), code, 1);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	expect_pages(0, 1);
	ck_assert_uint_lt(recorder.jobs.jit_code.programs.items[0].ranges.count, LIMIT_CODE_RANGES);
	if (kernel_answers_queries() && !kernel_is_old)
		ck_assert_uint_eq(recorder.jobs.jit_code.programs.items[0].ranges.count, 1);
	ck_assert_str_eq(messages, "");
}
END_TEST

/* Only for ranges not noted yet, and the time it takes is counted. */
START_TEST(time_spent_searching_for_room_counts)
{
	struct jit_code *jit_code = &recorder.jobs.jit_code;
	uint8_t *place = NULL;

	jit_code->spent_ns = INT64_MAX / 2;
	for (size_t i = 0; i < LIMIT_CODE_RANGES; i++)
		note(getpid(), place += 2 * page_bytes, 1);
	ck_assert(!jit_code->programs.items[0].ranges.cut);
	note(getpid(), place + 2 * page_bytes, 1);
	ck_assert_uint_eq(jit_code->programs.items[0].ranges.count, LIMIT_CODE_RANGES);
	ck_assert(jit_code->programs.items[0].ranges.cut);
	jit_code->spent_ns = 0;
	note_at(getpid(), place + 2 * page_bytes, 1, DATA, 1);
	ck_assert_uint_eq(jit_code->programs.items[0].ranges.count, LIMIT_CODE_RANGES);
	note(getpid(), place + 2 * page_bytes, 1);
	ck_assert_uint_lt(jit_code->programs.items[0].ranges.count, LIMIT_CODE_RANGES);
	ck_assert_int_gt(jit_code->spent_ns, 0);
}
END_TEST

/* Of addresses that are mostly still in use, each pass checks a part, at intervals. */
START_TEST(room_is_searched_in_steps)
{
	size_t step_bytes = 2 * PRUNE_STEP_RANGES * page_bytes;
	uint8_t *code = mmap(NULL, 2 * PRUNE_FROM * page_bytes, PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct jit_program *program;
	uint64_t begin_ns;

	ck_assert_ptr_ne(code, MAP_FAILED);
	for (size_t i = 0; i < PRUNE_FROM; i++) {
		ck_assert_int_eq(mprotect(code + (2 * i + 1) * page_bytes, page_bytes, PROT_NONE), 0);
		note(getpid(), code + 2 * i * page_bytes, 1);
	}
	program = &recorder.jobs.jit_code.programs.items[0];
	ck_assert(!program->opened);
	/* In the second step. */
	ck_assert_int_eq(munmap(code + step_bytes, page_bytes), 0);
	program->prune_ns = UINT64_MAX;
	note(getpid(), code, 1);
	ck_assert_uint_eq(program->prune_position, 0);
	begin_ns = clock_now_ns();
	for (size_t i = 1; i <= PRUNE_FROM / PRUNE_STEP_RANGES; i++) {
		program->prune_ns = 0;
		note(getpid(), code, 1);
		ck_assert_uint_ge(program->prune_position, (uintptr_t)code + i * step_bytes - page_bytes);
		ck_assert_uint_le(program->prune_position, (uintptr_t)code + i * step_bytes + page_bytes);
		ck_assert_uint_ge(program->prune_ns, begin_ns + PRUNE_STEP_NS);
		ck_assert_uint_eq(program->ranges.count, PRUNE_FROM - (i == 2));
		/* One more range appears. */
		program->prune_ns = UINT64_MAX;
		if (i == 2)
			note(getpid(), code - 2 * page_bytes, 1);
	}
	/* That was all of it. */
	program->prune_ns = 0;
	note(getpid(), code, 1);
	ck_assert_uint_eq(program->prune_position, 0);
	ck_assert_uint_ge(program->prune_ns, begin_ns + PRUNE_INTERVAL_NS);
}
END_TEST

/* A full ring reports many places at once: none is lost unless there are too many. */
START_TEST(many_places_at_one_time_are_noted)
{
	size_t stay = LIMIT_CODE_RANGES / 8 * 5, gone = LIMIT_CODE_RANGES / 2;
	uint8_t *code = mmap(NULL, 4 * stay * page_bytes, DATA, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_ptr_ne(code, MAP_FAILED);
	for (size_t i = 0; i < stay; i++) {
		ck_assert_int_eq(mprotect(code + 4 * i * page_bytes, page_bytes, PROT_EXEC), 0);
		note(getpid(), code + 4 * i * page_bytes, 1);
	}
	for (size_t i = 0; i < gone; i++) {
		recorder.jobs.jit_code.spent_ns = 0;
		recorder.jobs.jit_code.programs.items[0].prune_ns = UINT64_MAX;
		note(getpid(), code + (4 * i + 2) * page_bytes, 1);
	}
	ck_assert(!recorder.jobs.jit_code.programs.items[0].ranges.cut);
	ck_assert_uint_ge(recorder.jobs.jit_code.programs.items[0].ranges.count, stay);
}
END_TEST

/* Each step reads a limited number of lines of the maps: lines below the places need steps too. */
START_TEST(places_above_many_mappings_are_noted)
{
	size_t others = 3 * PRUNE_STEP_LINES;
	uint8_t *memory =
	    mmap(NULL, (others + 2 * PRUNE_FROM) * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *code = memory + others * page_bytes;
	struct jit_program *program;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	for (size_t i = 0; i < others; i += 2)
		ck_assert_int_eq(mprotect(memory + i * page_bytes, page_bytes, PROT_READ), 0);
	for (size_t i = 0; i < PRUNE_FROM; i++)
		note(getpid(), code + 2 * i * page_bytes, 1);
	program = &recorder.jobs.jit_code.programs.items[0];
	for (size_t i = 0; i < 3; i++) {
		program->prune_ns = 0;
		note(getpid(), code, 1);
		ck_assert_uint_lt(program->prune_position, (uintptr_t)code);
		ck_assert_uint_eq(program->ranges.count, PRUNE_FROM);
	}
	program->prune_ns = 0;
	note(getpid(), code, 1);
	/* They are not executable: they are one mapping, and all of them are removed except the one noted now. */
	ck_assert_uint_eq(program->ranges.count, 1);
}
END_TEST

/* A warning reports places that could not be noted, unless a snapshot has read them since. */
START_TEST(too_many_places_are_counted)
{
	uint8_t *code = map_pages(2, ANY);

	note(getpid(), code, 1);
	recorder.jobs.jit_code.programs.items[0].ranges.cut = true;
	jit_code_begin_snapshot(&recorder, getpid());
	note(getpid(), code, 1);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	ck_assert_str_eq(messages, "");
	recorder.jobs.jit_code.programs.items[0].ranges.cut = true;
	ck_assert_ptr_null(jit_code_finish(&recorder));
	ck_assert_ptr_nonnull(strstr(messages, "more than 16384 address ranges"));
}
END_TEST

/* Of the ended children the first is evicted, and no more than necessary. */
START_TEST(ended_children_are_evicted_first)
{
	uint8_t *code = map_pages(6, ANY);
	pid_t children[2];

	limit_store(8);
	for (size_t i = 0; i < 2; i++) {
		children[i] = start_child();
		note(children[i], code + i * page_bytes, 3);
		look();
		expect_pages(i, 3);
		end_child(children[i]);
	}
	note(getpid(), code, 4);
	look();
	expect_pages(0, 0);
	expect_pages(1, 3);
	expect_pages(2, 4);
	ck_assert_uint_eq(recorder.jobs.jit_code.store.plain_bytes, 7 * page_bytes);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	ck_assert_uint_eq(recorder.jobs.code.processes.count, 2);
	ck_assert_ptr_nonnull(strstr(messages, "not all JIT code is copied: the limit of a recording"));
}
END_TEST

/* A living process is evicted for a requested one, and is not read again; nothing else is evicted for it. */
START_TEST(requested_processes_evict_others)
{
	uint8_t *code = map_pages(6, ANY);
	pid_t child = start_child();

	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	limit_store(4);
	note(child, code, 3);
	look();
	expect_pages(0, 3);
	note(getpid(), code + 3 * page_bytes, 3);
	look();
	expect_pages(0, 0);
	expect_pages(1, 3);
	look();
	expect_pages(0, 0);
	end_child(child);

	child = start_child();
	note(child, code, 6);
	look();
	/* The first child is gone. */
	expect_pages(0, 3);
	ck_assert(recorder.jobs.jit_code.programs.items[0].pages.items.items[2].kept != CODE_STORE_NONE);
	ck_assert_uint_le(recorder.jobs.jit_code.store.plain_bytes, 4 * page_bytes);
	end_child(child);
}
END_TEST

/* Requested processes stay after they ended; of living processes that were not requested, the first stays. */
START_TEST(requested_processes_are_not_evicted)
{
	uint8_t *code = map_pages(6, ANY);
	pid_t children[3];

	limit_store(4);
	for (size_t i = 0; i < 3; i++) {
		children[i] = start_child();
		if (!i)
			ck_assert_ptr_nonnull(process_table_add(&recorder.processes, children[i], true));
		note(children[i], code + i * page_bytes, 2);
		look();
		if (!i)
			end_child(children[i]);
	}
	look();
	expect_pages(0, 2);
	expect_pages(1, 2);
	ck_assert_uint_eq(recorder.jobs.jit_code.store.plain_bytes, 4 * page_bytes);
	for (size_t i = 0; i < 2; i++)
		ck_assert(!recorder.jobs.jit_code.programs.items[i].evicted);
	end_child(children[1]);
	end_child(children[2]);
}
END_TEST

/* If there is no room for both, the program that the process executes now is kept, even if both were requested. */
START_TEST(earlier_programs_of_a_process_are_evicted)
{
	struct jit_code *jit_code = &recorder.jobs.jit_code;
	uint8_t *code = map_pages(3, ANY);

	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	limit_store(3);
	note(getpid(), code, 3);
	look();
	expect_pages(0, 3);
	ck_assert_ptr_null(jit_code_end_program(&recorder, getpid(), clock_now_ns()));
	note_at(getpid(), code, 2, PROT_EXEC, clock_now_ns());
	look();
	expect_pages(0, 0);
	ck_assert(jit_code->programs.items[0].evicted);
	expect_pages(1, 2);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	ck_assert_uint_eq(recorder.jobs.code.processes.count, 1);
	ck_assert_uint_eq(recorder.jobs.code.processes.items[0].until_ns, UINT64_MAX);
	ck_assert_uint_eq(recorder.jobs.code.processes.items[0].runs.count, 2);
}
END_TEST

/* The stored code of ended programs stays, and so do the warnings about them. */
START_TEST(ended_programs_are_forgotten)
{
	struct jit_code *jit_code = &recorder.jobs.jit_code;
	uint8_t *code = map_pages(3, ANY);
	pid_t children[3];

	memset(code, 0, 2 * page_bytes);
	for (size_t i = 0; i < 3; i++) {
		children[i] = start_child();
		note(children[i], code + i * page_bytes, i + 1 < 3 ? 2 : 1);
		look();
	}
	expect_pages(0, 2);
	expect_pages(1, 2);
	jit_code->programs.items[0].ranges.cut = true;
	for (size_t i = 0; i < 3; i++)
		end_child(children[i]);
	/* No page of the first was written to; one page of the second was. */
	look();
	ck_assert_uint_eq(jit_code->programs.count, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(jit_code->programs.items[i].pid, children[i + 1]);
		expect_pages(i, 1);
		ck_assert_uint_eq(jit_code->programs.items[i].pages.index_of_address.capacity, 0);
		ck_assert_ptr_null(jit_code->programs.items[i].ranges.blocks.items);
	}
	/* The PID of the second is reused. */
	ck_assert_ptr_null(jit_code_end_program(&recorder, children[1], 100));
	note_at(children[1], code, 1, PROT_EXEC, 200);
	ck_assert_uint_eq(jit_code->programs.count, 3);
	ck_assert_uint_eq(jit_code->programs.items[2].ranges.count, 1);
	ck_assert_uint_eq(jit_code->programs.items[0].until_ns, 100);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	ck_assert_uint_eq(recorder.jobs.code.processes.count, 2);
	ck_assert_ptr_nonnull(strstr(messages, "more than 16384 address ranges"));
}
END_TEST

/* A child with no stored code is kept while its process is known: more records may follow. */
START_TEST(child_without_code_is_kept_while_known)
{
	pid_t child = start_child();

	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, child, false));
	note(child, map_pages(1, ANY), 1);
	end_child(child);
	look();
	ck_assert_uint_eq(recorder.jobs.jit_code.programs.count, 1);
	process_table_deinit(&recorder.processes);
	recorder.processes = (struct process_table){0};
	look();
	ck_assert_uint_eq(recorder.jobs.jit_code.programs.count, 0);
	note(getpid(), map_pages(1, ANY), 1);
	look();
	expect_pages(0, 1);
}
END_TEST

/* Requested processes are read first in every other pass, and the others in turn. */
START_TEST(processes_are_read_in_turn)
{
	struct jit_code *jit_code = &recorder.jobs.jit_code;
	uint8_t *code = map_pages(2, ANY);
	pid_t child = start_child();

	ck_assert_ptr_nonnull(process_table_add(&recorder.processes, getpid(), true));
	note(child, code, 1);
	note(getpid(), code, 1);
	look();
	ck_assert_ptr_eq(jit_code->reading, &jit_code->programs.items[0]);
	ck_assert(jit_code->others_first);
	look();
	ck_assert_ptr_eq(jit_code->reading, &jit_code->programs.items[1]);
	ck_assert(!jit_code->others_first);
	end_child(child);
	look();
	look();
	ck_assert_ptr_eq(jit_code->reading, &jit_code->programs.items[1]);
}
END_TEST

/* Without a warning nothing is missing. */
START_TEST(missing_descriptors_are_reported)
{
	struct rlimit limit, low;
	uint8_t *code = map_pages(1, ANY);
	pid_t child = start_child();

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = 16;
	note(child, code, 1);
	note(getpid(), code, 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	look();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	end_child(child);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	expect_pages(0, 0);
	expect_pages(1, 1);
	ck_assert_ptr_nonnull(strstr(messages, "JIT code of 1 program is not copied"));
}
END_TEST

/* Each pass may wait for the target's mmap_lock, however often earlier ones did. */
START_TEST(waits_of_earlier_passes_do_not_count)
{
	uint8_t *code = map_pages(2, ANY);

	note(getpid(), code, 1);
	look();
	expect_pages(0, 1);
	recorder.jobs.jit_code.programs.items[0].pagemap.waited_ns = LIMIT_RESIDENCY_WAIT_NS;
	note(getpid(), code + page_bytes, 1);
	look();
	expect_pages(0, 2);
}
END_TEST

/* The kernel shows the mappings of a process whose memory may not be read. */
START_TEST(unreadable_memory_is_reported)
{
	note(getpid(), map_pages(1, ANY), 1);
	memory_is_denied = true;
	look();
	memory_is_denied = false;
	expect_pages(0, 0);
	ck_assert_ptr_null(jit_code_finish(&recorder));
	expect_pages(0, 1);
	ck_assert_str_eq(messages, "");

	note(getppid(), map_pages(1, ANY), 1);
	memory_is_denied = true;
	ck_assert_ptr_null(jit_code_finish(&recorder));
	memory_is_denied = false;
	ck_assert_ptr_nonnull(strstr(messages, "JIT code of 1 program is not copied: permission denied"));
}
END_TEST

/* While it waits for its share of the time, it does not claim to have read anything. */
START_TEST(read_times_are_honest)
{
	struct jit_code *jit_code = &recorder.jobs.jit_code;
	uint64_t read_ns;

	note(getpid(), map_pages(1, ANY), 1);
	look();
	read_ns = jit_code->read_ns;
	ck_assert_uint_gt(read_ns, 0);
	jit_code->next_ns = 0;
	jit_code->spent_ns = INT64_MAX / 2;
	ck_assert_ptr_null(jit_code_read(&recorder));
	ck_assert_uint_eq(jit_code->read_ns, read_ns);
	ck_assert_int_lt(jit_code->spent_ns, INT64_MAX / 2);
	ck_assert_uint_gt(jit_code->reckoned_ns, read_ns);
}
END_TEST

/* Processes of which no page is read. */
static void add_rooms(TCase *tests)
{
	tcase_add_tests(tests, time_spent_searching_for_room_counts, room_is_searched_in_steps,
			many_places_at_one_time_are_noted);
}

static void add_reading(TCase *tests, TCase *old)
{
	add_rooms(tests);
	tcase_add_test(tests, short_lived_code_leaves_room);
	tcase_add_test(old, short_lived_code_leaves_room);
	tcase_add_tests(tests, ended_children_are_evicted_first, requested_processes_evict_others,
			requested_processes_are_not_evicted, earlier_programs_of_a_process_are_evicted,
			ended_programs_are_forgotten, child_without_code_is_kept_while_known,
			processes_are_read_in_turn, missing_descriptors_are_reported,
			waits_of_earlier_passes_do_not_count, unreadable_memory_is_reported);
	if (kernel_answers_queries()) {
		tcase_add_tests(tests, neighbouring_data_takes_no_room, unmapped_code_is_forgotten);
	} else {
		skip_test("neighbouring_data_takes_no_room",
			  "the kernel cannot be queried about single mappings (before 6.11)");
		skip_test("unmapped_code_is_forgotten",
			  "the kernel cannot be queried about single mappings (before 6.11)");
	}
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("code reading");
	TCase *tests = add_tcase(suite, "code reading"), *old = add_tcase(suite, "before 6.11");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_checked_fixture(old, set_up_before_6_11, tear_down);
	add_rooms(old);
	tcase_add_test(old, places_above_many_mappings_are_noted);
	tcase_add_tests(tests, too_many_places_are_counted, read_times_are_honest);
	if (!emulator_hides("the pages of a process that are code"))
		add_reading(tests, old);
	return suite;
}
