// SPDX-License-Identifier: LGPL-2.1-or-later
/* A call's MMAP2 record or its stack dump, separated from the call by other events. */
#include <check.h>
#include <errno.h>
#include <mmtrace/pack.h>
#include <mmtrace/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/replay/replay.h"
#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"

enum { ALONE = 900, PID = 100, OTHER = 101, THIRD = 102, CHILD = 200 };

#define MEBIBYTE (1ull << 20)
#define ADDRESS 0x10000000000ull

static char directory[TEMPORARY_PATH_SIZE], path[TEMPORARY_PATH_SIZE + 32];
static struct recording_builder *builder;

static const struct event_mapping file = {.start = ADDRESS,
					  .length = MEBIBYTE,
					  .device_major = 8,
					  .device_minor = 1,
					  .inode = 77,
					  .protection = PROT_READ,
					  .flags = MAP_PRIVATE,
					  .path = "/data/file"};

static void create(void)
{
	temporary_directory(directory);
	snprintf(path, sizeof(path), "%s/a.data", directory);
	builder = builder_create(path);
	builder_comm(builder, 1000, PID, PID, "program");
	builder_comm(builder, 1000, PID, OTHER, "other");
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, NULL, 0);
}

static void destroy(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(directory), 0);
}

static struct mmt_report *report_by(enum mmt_row_key by)
{
	struct mmt_report_options options;
	struct mmt_report *report = NULL;
	struct mmt_error *error;

	builder_round(builder);
	builder_finish(builder, 100000);
	mmt_report_options_init(&options);
	options.input = path;
	options.by = by;
	error = mmt_report_create(&options, &report);
	ck_assert_msg(!error, "%s", error ? error->message : "");
	return report;
}

static void map_file(uint64_t time_ns)
{
	const uint64_t caller = 0x401000;

	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .time_ns = time_ns,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {0, MEBIBYTE, PROT_READ, MAP_PRIVATE, 3, 0},
						     .result = ADDRESS,
						     .callchain = &caller,
						     .callchain_count = 1});
}

static void check_file(void)
{
	struct mmt_report *report = report_by(MMT_BY_FILE);

	ck_assert_uint_eq(report->row_count, 1);
	ck_assert_str_eq(report->rows[0].name, "/data/file");
	ck_assert_uint_eq(report->rows[0].unfreed_bytes, MEBIBYTE);
	mmt_report_destroy(report);
}

START_TEST(snapshot_before_the_call_returns)
{
	builder_mapping(builder, 2000, PID, PID, &file);
	builder_snapshot(builder, SNAPSHOT_INTERVAL, 3000, PID, &file, 1);
	map_file(4000);
	check_file();
}
END_TEST

START_TEST(fork_before_the_call_returns)
{
	builder_mapping(builder, 2000, PID, PID, &file);
	builder_fork(builder, 3000, CHILD, CHILD, PID, OTHER);
	map_file(4000);
	check_file();
}
END_TEST

/* Growth that a snapshot has shown is not counted again with the thread's next call. */
START_TEST(growth_shown_by_a_snapshot_is_counted_once)
{
	const struct event_mapping stack = {.start = ADDRESS,
					    .length = MEBIBYTE,
					    .protection = PROT_READ | PROT_WRITE,
					    .flags = MAP_PRIVATE | MAP_ANONYMOUS,
					    .path = "[stack]"};
	struct mmt_report *report;

	builder_mapping(builder, 2000, PID, PID, &stack);
	builder_snapshot(builder, SNAPSHOT_INTERVAL, 3000, PID, &stack, 1);
	builder_munmap_exit(builder, 4000, PID, OTHER, ADDRESS, MEBIBYTE);
	builder_munmap_exit(builder, 5000, PID, PID, 2 * ADDRESS, MEBIBYTE);
	builder_snapshot(builder, SNAPSHOT_STOP, 6000, PID, NULL, 0);
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->process_count, 1);
	ck_assert(report->processes[0].checked);
	ck_assert_uint_eq(report->processes[0].mismatch_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

/* `doubtful`: as if events were lost. */
static void expect_setuid_execs(const char *name, uint64_t several, bool doubtful)
{
	struct mmt_report *report = report_by(MMT_BY_STACK);
	size_t found = 0;
	char number[32];

	snprintf(number, sizeof(number), "the calls of %llu programs", (unsigned long long)several);
	for (size_t i = 0; i < report->completeness.warning_count; i++) {
		const char *lack = report->completeness.warnings[i];

		if (!strstr(lack, "set-user-ID or set-group-ID"))
			continue;
		found++;
		ck_assert_msg(name && strstr(lack, name), "%s", lack);
		ck_assert_int_eq(!!strstr(lack, number), several > 1);
		ck_assert_int_eq(!!strstr(lack, "lost, or "), doubtful);
	}
	ck_assert_uint_eq(found, !!name);
	mmt_report_destroy(report);
}

/* Unnamed JIT code in each of 40 processes, with a note for each. */
START_TEST(omitted_notes_are_counted)
{
	const struct event_mapping code = {.start = ADDRESS,
					   .length = MEBIBYTE,
					   .protection = PROT_READ | PROT_EXEC,
					   .flags = MAP_PRIVATE | MAP_ANONYMOUS,
					   .path = "//anon"};
	const uint64_t caller = ADDRESS + 0x1000;
	struct mmt_report *report;

	for (int32_t pid = ALONE; pid < ALONE + 40; pid++) {
		builder_comm(builder, 1000, pid, pid, "generates");
		builder_snapshot(builder, SNAPSHOT_START, 1000, pid, &code, 1);
		builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
							     .time_ns = 2000,
							     .pid = pid,
							     .tid = pid,
							     .arguments = {0, MEBIBYTE, PROT_READ,
									   MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
							     .result = 2 * ADDRESS,
							     .callchain = &caller,
							     .callchain_count = 1});
	}
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->completeness.warning_count, 33);
	ck_assert_ptr_nonnull(strstr(report->completeness.warnings[31], "no names for JIT code in process"));
	ck_assert_str_eq(report->completeness.warnings[32], "8 more notes are not shown");
	ck_assert_int_eq(report->completeness.warning_codes[31], MMT_WARNING_JIT_CODE_UNNAMED);
	ck_assert_int_eq(report->completeness.warning_codes[32], MMT_WARNING_MORE_WARNINGS);
	mmt_report_destroy(report);
}
END_TEST

/* An exec and an exit without the program's own mapping: the kernel has removed the events. */
START_TEST(set_user_id_execs_are_reported)
{
	builder_exec(builder, 2000, PID, PID, "set-user-id");
	builder_exit(builder, 2100, PID, PID);
	expect_setuid_execs("program set-user-id", 1, false);
}
END_TEST

START_TEST(set_user_id_execs_are_counted)
{
	for (int32_t pid = ALONE; pid < ALONE + 3; pid++) {
		builder_fork(builder, 2000, pid, pid, PID, PID);
		builder_exec(builder, 2100, pid, pid, pid == ALONE ? "set-user-id" : "later");
		builder_exit(builder, 2200, pid, pid);
	}
	/* The last one's PID has been reused. */
	builder_fork(builder, 3000, ALONE + 2, ALONE + 2, PID, PID);
	builder_mapping(builder, 3100, ALONE + 2, ALONE + 2, &file);
	builder_exit(builder, 3200, ALONE + 2, ALONE + 2);
	expect_setuid_execs("(set-user-id and others)", 3, false);
}
END_TEST

/* Per-CPU events continue after the kernel's EXIT; a program whose mapping was recorded has ended normally. */
START_TEST(recorded_programs_are_not_reported)
{
	builder_exec(builder, 2000, PID, PID, "set-user-id");
	builder_exit(builder, 2100, PID, PID);
	builder_mapping(builder, 2200, PID, PID, &file);
	builder_exit(builder, 2300, PID, PID);
	builder_fork(builder, 3000, ALONE, ALONE, OTHER, OTHER);
	builder_exec(builder, 3100, ALONE, ALONE, "other");
	builder_mapping(builder, 3200, ALONE, ALONE, &file);
	builder_exit(builder, 3300, ALONE, ALONE);
	expect_setuid_execs(NULL, 0, false);
}
END_TEST

/* The first apparent one was recorded after all: the name is that of the other. */
START_TEST(the_set_user_id_program_is_named)
{
	builder_exec(builder, 2000, PID, PID, "seen");
	builder_exit(builder, 2100, PID, PID);
	builder_fork(builder, 2200, ALONE, ALONE, OTHER, OTHER);
	builder_exec(builder, 2300, ALONE, ALONE, "set-user-id");
	builder_exit(builder, 2400, ALONE, ALONE);
	builder_mapping(builder, 2500, PID, PID, &file);
	expect_setuid_execs("program set-user-id", 1, false);
}
END_TEST

/* A later program of the same thread shows that its events continued, whether or not that program is recorded. */
START_TEST(a_program_that_executes_another_was_recorded)
{
	builder_exec(builder, 2000, PID, PID, "set-user-id");
	builder_exit(builder, 2100, PID, PID);
	builder_exec(builder, 2200, PID, PID, "seen");
	builder_mapping(builder, 2300, PID, PID, &file);
	builder_exit(builder, 2400, PID, PID);
	expect_setuid_execs(NULL, 0, false);
}
END_TEST

START_TEST(only_the_last_program_of_a_thread_is_counted)
{
	builder_exec(builder, 2000, PID, PID, "seen");
	builder_exit(builder, 2100, PID, PID);
	builder_exec(builder, 2200, PID, PID, "set-user-id");
	builder_exit(builder, 2300, PID, PID);
	expect_setuid_execs("program set-user-id", 1, false);
}
END_TEST

/* The PID is another process now, which is recorded: what was known of the first one stays. */
START_TEST(a_reused_tid_is_another_thread)
{
	builder_exec(builder, 2000, PID, PID, "set-user-id");
	builder_exit(builder, 2100, PID, PID);
	builder_fork(builder, 3000, PID, PID, ALONE, ALONE);
	builder_exec(builder, 3100, PID, PID, "seen");
	builder_mapping(builder, 3200, PID, PID, &file);
	builder_exit(builder, 3300, PID, PID);
	expect_setuid_execs("program set-user-id", 1, false);
}
END_TEST

/* The missing mapping may be among the lost ones: the warning states the doubt. */
START_TEST(loss_makes_setuid_execs_programs_doubtful)
{
	builder_exec(builder, 2000, PID, PID, "set-user-id");
	builder_exit(builder, 2100, PID, PID);
	builder_lost(builder, 2500, BUILDER_SYSCALL_ID, 1);
	expect_setuid_execs("program set-user-id", 1, true);
}
END_TEST

/* A ring that stays full writes no LOST record: only the recorder's count shows it. */
START_TEST(loss_without_a_record_makes_them_doubtful)
{
	for (int32_t pid = ALONE; pid < ALONE + 2; pid++) {
		builder_fork(builder, 2000, pid, pid, PID, PID);
		builder_exec(builder, 2100, pid, pid, "set-user-id");
		builder_exit(builder, 2200, pid, pid);
	}
	builder_lose(builder, 5);
	expect_setuid_execs("(set-user-id and others)", 2, true);
}
END_TEST

static void map_anonymous(uint64_t time_ns, int32_t tid)
{
	builder_mmap_exit(builder, time_ns, PID, tid, ADDRESS, MEBIBYTE, 0x401000);
}

/* Two threads get the same address without a release: it was lost, or has not arrived yet. */
START_TEST(ambiguous_race_is_counted)
{
	struct mmt_report *report;

	map_anonymous(2000, PID);
	map_anonymous(3000, OTHER);
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->completeness.ambiguous_events, 1);
	ck_assert_uint_eq(report->unfreed_bytes, MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(race_with_a_late_release_is_not_counted)
{
	struct mmt_report *report;

	map_anonymous(2000, PID);
	map_anonymous(3000, OTHER);
	builder_munmap_exit(builder, 4000, PID, PID, ADDRESS, MEBIBYTE);
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->completeness.ambiguous_events, 0);
	ck_assert_uint_eq(report->unfreed_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->freed_bytes, MEBIBYTE);
	mmt_report_destroy(report);
}
END_TEST

/* Moved from a range that no snapshot has read: mapped, but of unknown origin. */
START_TEST(unknown_pages_are_counted)
{
	struct mmt_report *report;

	builder_comm(builder, 1500, ALONE, ALONE, "alone");
	builder_call(builder, &(struct builder_call){.call = CALL_MREMAP,
						     .time_ns = 2000,
						     .pid = ALONE,
						     .tid = ALONE,
						     .arguments = {ADDRESS, MEBIBYTE, MEBIBYTE, MREMAP_MAYMOVE, 0},
						     .result = (int64_t)(2 * ADDRESS)});
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->process_count, 2);
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(report->processes[i].unknown_bytes, report->processes[i].pid == ALONE ? MEBIBYTE : 0);
	mmt_report_destroy(report);
}
END_TEST

/* The call with a stack of one caller. */
static void call_from(uint64_t caller, struct builder_call call)
{
	static const uint64_t stack[8];

	call.callchain = &caller;
	call.callchain_count = 1;
	call.instruction_pointer = caller;
	call.stack_pointer = 0x7fff0000;
	call.frame_pointer = 0x7fff0100;
	call.stack = stack;
	call.stack_size = sizeof(stack);
	builder_call(builder, &call);
}

/* Each with the stack of its own number. */
static void add_mmap(bool dump, uint64_t time_ns, int32_t tid, uint64_t place)
{
	const uint64_t caller = 0x401000 + 0x1000 * place;

	call_from(caller, (struct builder_call){.call = CALL_MMAP,
						.dump = dump,
						.time_ns = time_ns,
						.pid = PID,
						.tid = tid,
						.arguments = {0, MEBIBYTE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
						.result = (int64_t)(ADDRESS + place * MEBIBYTE)});
}

/* The first is unmapped before its own dump arrives, the second too; all three were mapped at once. */
START_TEST(peaks_of_threads_whose_dumps_come_late)
{
	struct mmt_report *report;

	add_mmap(false, 2000, PID, 0);
	add_mmap(true, 2100, PID, 0);
	add_mmap(false, 3000, PID, 1);
	add_mmap(false, 3100, OTHER, 2);
	builder_munmap_exit(builder, 3200, PID, THIRD, ADDRESS, 3 * MEBIBYTE);
	add_mmap(true, 3300, OTHER, 2);
	add_mmap(true, 3400, PID, 1);
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->row_count, 3);
	for (size_t i = 0; i < report->row_count; i++)
		ck_assert_uint_eq(report->rows[i].peak_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->peak_bytes, 3 * MEBIBYTE);
	ck_assert_uint_eq(report->peak_ns, 3100);
	ck_assert_uint_eq(report->unfreed_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

enum { SYSCALL, SMALL, LARGE, SAMPLES };

/* A sample of a call in JIT code: the syscall event and the small dump end after one frame, the large one has three. */
static void add_deep_sample(unsigned sample, uint64_t time_ns)
{
	static const uint64_t stack[16] = {0, 0, 0x7fff0050, 0x402000, [10] = 0x7fff0060, 0x403000, 0, 0x404000};
	const uint64_t caller = 0x401000;

	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .dump = sample == SMALL,
						     .large_dump = sample == LARGE,
						     .time_ns = time_ns,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {0, MEBIBYTE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
						     .result = (int64_t)ADDRESS,
						     .callchain = &caller,
						     .callchain_count = 1,
						     .instruction_pointer = caller,
						     .stack_pointer = 0x7fff0000,
						     .frame_pointer = 0x7fff0010,
						     .stack = stack,
						     .stack_size = sample == LARGE ? sizeof(stack) : 64});
}

/* The samples of a call, in this order. */
static size_t count_frames(const unsigned *samples, size_t count, bool off)
{
	const struct event_mapping code = {.start = 0x400000,
					   .length = 0x100000,
					   .protection = PROT_READ | PROT_EXEC,
					   .flags = MAP_PRIVATE | MAP_ANONYMOUS,
					   .path = "//anon"};
	struct mmt_report *report;
	size_t frames;

	unlink(path);
	builder = builder_create_with_large_dumps(path);
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, &code, 1);
	if (off)
		builder_note(builder, 1500, 0, NOTE_LARGE_DUMPS, 0, 1);
	for (size_t i = 0; i < count; i++)
		add_deep_sample(samples[i], 2000 + i);
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->row_count, 1);
	ck_assert_uint_eq(report->rows[0].unfreed_bytes, MEBIBYTE);
	ck_assert_uint_eq(report->completeness.large_dumps_off_ns, off ? 100000 - 1500 : 0);
	ck_assert_uint_eq(report->stack_dump_bytes, off ? BUILDER_STACK_BYTES : MMT_STACK_DUMP_BYTES_MAX);
	frames = report->rows[0].frame_count;
	mmt_report_destroy(report);
	return frames;
}

START_TEST(the_larger_of_two_dumps_counts)
{
	/* The kernel writes the large one first, as it was opened last. */
	static const unsigned orders[][SAMPLES] = {{LARGE, SMALL, SYSCALL},
						   {SMALL, LARGE, SYSCALL},
						   {LARGE, SYSCALL, SMALL},
						   {SYSCALL, SMALL, LARGE},
						   {SYSCALL, LARGE, SMALL}};

	builder_finish(builder, 100000);
	/* Without large dumps no call waits for one. */
	ck_assert_uint_eq(count_frames((unsigned[]){SYSCALL, SMALL}, 2, true), 2);
	ck_assert_uint_eq(count_frames((unsigned[]){SMALL, SYSCALL}, 2, true), 2);
	/* If it was lost, the small one stays. */
	ck_assert_uint_eq(count_frames((unsigned[]){SYSCALL, SMALL}, 2, false), 2);
	ck_assert_uint_eq(count_frames((unsigned[]){SMALL, SYSCALL}, 2, false), 2);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		ck_assert_uint_eq(count_frames(orders[i], SAMPLES, false), 4);
}
END_TEST

/* Two calls from the same place and depth, with the same result. */
static struct event twin(uint64_t flags, const uint8_t *stack, size_t stack_size)
{
	struct event event = {.kind = EVENT_CALL, .call = {.call = CALL_MMAP, .result = (int64_t)ADDRESS}};
	struct register_values *registers = &event.call.stack.registers;

	registers->known = 1U << 7 | 1U << 6 | 1U << 8 | 1U << 15;
	registers->values[6] = 0x7fff0100;
	registers->values[7] = 0x7fff0000;
	registers->values[8] = flags;
	registers->values[15] = 0x401000;
	event.call.stack.bytes = stack;
	event.call.stack.byte_count = stack_size;
	return event;
}

START_TEST(dump_of_another_call_is_distinguished)
{
	const uint8_t short_stack[4] = {1, 2, 3, 4}, long_stack[6] = {1, 2, 3, 4, 5, 6};
	const uint8_t other_stack[6] = {1, 2, 9, 4, 5, 6};
	const struct event syscall_event = twin(MAP_PRIVATE, short_stack, sizeof(short_stack));
	struct event dump = twin(MAP_PRIVATE, long_stack, sizeof(long_stack));
	struct kept_sample kept = {0};
	struct lost_events lost = {0};

	ck_assert_ptr_null(kept_sample_set(&kept, &syscall_event));
	ck_assert(kept_sample_is_of(&kept, &dump, &lost));
	dump.call.stack.registers.known &= ~(1ULL << 8);
	ck_assert(kept_sample_is_of(&kept, &dump, &lost));
	dump = twin(MAP_SHARED, long_stack, sizeof(long_stack));
	ck_assert(!kept_sample_is_of(&kept, &dump, &lost));
	dump = twin(MAP_PRIVATE, other_stack, sizeof(other_stack));
	ck_assert(!kept_sample_is_of(&kept, &dump, &lost));
	/* The dump arrives first. */
	ck_assert_ptr_null(kept_sample_set(&kept, &dump));
	ck_assert(!kept_sample_is_of(&kept, &syscall_event, &lost));
	dump = twin(MAP_PRIVATE, long_stack, sizeof(long_stack));
	ck_assert_ptr_null(kept_sample_set(&kept, &dump));
	ck_assert(kept_sample_is_of(&kept, &syscall_event, &lost));
	kept.cpu = 1;
	ck_assert(!kept_sample_is_of(&kept, &syscall_event, &lost));
	kept_sample_deinit(&kept);
	ck_assert(!kept_sample_is_of(&kept, &syscall_event, &lost));
}
END_TEST

/* The other sample of the one that is kept may be among those that were lost since. */
START_TEST(losses_between_two_samples_separate_them)
{
	static const struct {
		int32_t cpu;
		uint64_t sequence;
		bool parted;
	} cases[] = {{0, 9, false}, {1, 20, false}, {0, 11, true}, {-1, 12, true}, {100000, 13, true}};
	const struct event syscall_event = twin(MAP_PRIVATE, NULL, 0);
	struct event dump = syscall_event;

	dump.sequence = 10;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct kept_sample kept = {0};
		struct lost_events lost = {0};

		ck_assert_ptr_null(kept_sample_set(&kept, &dump));
		ck_assert(lost_events_note(&lost, cases[i].cpu, cases[i].sequence));
		ck_assert_int_eq(kept_sample_is_of(&kept, &syscall_event, &lost), !cases[i].parted);
		kept_sample_deinit(&kept);
		vector_deinit(&lost.latest);
	}
}
END_TEST

static void add_mprotect(bool dump, uint64_t time_ns, int64_t result)
{
	const uint64_t caller = 0x401000;

	call_from(caller, (struct builder_call){.call = CALL_MPROTECT,
						.dump = dump,
						.time_ns = time_ns,
						.pid = PID,
						.tid = PID,
						.arguments = {ADDRESS, 2 * MEBIBYTE, PROT_READ},
						.result = result});
}

/* Count calls that have a stack. */
static size_t count_stacks(void)
{
	struct mmt_report_options report;
	const struct replay_options options = {.report = &report};
	struct replay replay;
	size_t count = 0;

	mmt_report_options_init(&report);
	report.input = path;
	ck_assert_ptr_null(replay_init(&replay, &options));
	ck_assert_ptr_null(replay_find_stacks(&replay));
	for (uint64_t call = 1; call <= replay.calls; call++)
		count += call_stacks_get(&replay.stacks, call) != 0;
	replay_deinit(&replay);
	return count;
}

/* In reserved memory: a refused call commits nothing, one that met a hole does; each has one stack. */
START_TEST(failed_mprotect_is_unwound_once)
{
	static const struct {
		int64_t result;
		size_t commits;
	} cases[] = {{-EACCES, 0}, {-ENOMEM, 1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct mmt_report_options report;
		const struct replay_options options = {.report = &report};
		struct replay replay;
		size_t commits = 0;

		if (i) {
			destroy();
			create();
		}
		builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
							     .time_ns = 2000,
							     .pid = PID,
							     .tid = PID,
							     .arguments = {0, MEBIBYTE, 0, MAP_PRIVATE | MAP_ANONYMOUS},
							     .result = (int64_t)ADDRESS});
		add_mprotect(true, 3000, cases[i].result);
		add_mprotect(false, 3100, cases[i].result);
		builder_round(builder);
		builder_finish(builder, 100000);
		mmt_report_options_init(&report);
		report.input = path;
		ck_assert_ptr_null(replay_init(&replay, &options));
		ck_assert_ptr_null(replay_run(&replay));
		for (size_t k = 0; k < replay.ledger.accounts.count; k++)
			commits += replay.ledger.accounts.items[k].committed_count;
		ck_assert_uint_eq(commits, cases[i].commits);
		ck_assert_uint_eq(replay.ledger.failures.count, 1);
		replay_deinit(&replay);
		ck_assert_uint_eq(count_stacks(), 2);
	}
}
END_TEST

#define COMMITTED_PAGES 10000

/* One page of each process's reserved memory, by one of two stacks. */
static void add_page(bool dump, uint64_t time_ns, int32_t pid, uint64_t page, uint64_t caller)
{
	call_from(caller, (struct builder_call){.call = CALL_MPROTECT,
						.dump = dump,
						.time_ns = time_ns,
						.pid = pid,
						.tid = pid,
						.arguments = {ADDRESS + page * 4096, 4096, PROT_READ}});
}

static void add_reservation(int32_t pid)
{
	builder_call(builder,
		     &(struct builder_call){.call = CALL_MMAP,
					    .time_ns = 2000,
					    .pid = pid,
					    .tid = pid,
					    .arguments = {0, COMMITTED_PAGES * 4096ULL, 0, MAP_PRIVATE | MAP_ANONYMOUS},
					    .result = (int64_t)ADDRESS});
}

/* The first half by one stack, the remainder by another; another process's memory was made accessible before and is
 * reported after all of them. */
static void add_late_commits(void)
{
	uint64_t time_ns = 3000;

	builder_comm(builder, 1000, ALONE, ALONE, "alone");
	builder_snapshot(builder, SNAPSHOT_START, 1000, ALONE, NULL, 0);
	add_reservation(PID);
	add_reservation(ALONE);
	add_page(false, time_ns++, ALONE, 0, 0x401000);
	add_page(true, time_ns++, ALONE, 0, 0x401000);
	add_page(false, time_ns++, ALONE, 1, 0x402000);
	for (uint64_t page = 0; page < COMMITTED_PAGES; page++, time_ns += 2) {
		uint64_t caller = page < COMMITTED_PAGES / 2 ? 0x401000 : 0x402000;

		add_page(false, time_ns, PID, page, caller);
		add_page(true, time_ns + 1, PID, page, caller);
	}
	add_page(true, time_ns, ALONE, 1, 0x402000);
}

/* Intervals of calls with late stacks do not accumulate. */
START_TEST(late_commits_are_joined)
{
	struct mmt_report_options report;
	const struct replay_options options = {.report = &report};
	struct replay replay;

	add_late_commits();
	builder_round(builder);
	builder_finish(builder, 100000);
	mmt_report_options_init(&report);
	report.input = path;
	ck_assert_ptr_null(replay_init(&replay, &options));
	ck_assert_ptr_null(replay_run(&replay));
	ck_assert_uint_eq(space_counts(processes_find(replay.processes, PID)->space).intervals, 2);
	replay_deinit(&replay);
}
END_TEST

START_TEST(late_commits_have_their_stacks)
{
	struct mmt_report *report;

	add_late_commits();
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->row_count, 3);
	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];
		uint64_t half = COMMITTED_PAGES / 2 * 4096ULL;

		if (!row->frame_count)
			ck_assert_uint_eq(row->reserved_bytes, (COMMITTED_PAGES - 2) * 4096ULL);
		else
			ck_assert_uint_eq(row->committed_bytes, half + 4096);
	}
	/* Each call has one, also those that reserved the memory. */
	ck_assert_uint_eq(report->completeness.truncated_stacks, 2 + 2 + COMMITTED_PAGES);
	mmt_report_destroy(report);
}
END_TEST

/* Processes without a snapshot, in turn: each keeps its own, in any order of their exits. */
START_TEST(early_calls_are_their_process_own)
{
	enum { CALLS = 3 };
	struct mmt_report *report;

	for (int32_t i = 0; i < CALLS * 3; i++)
		call_from(0x401000 + 0x1000 * (uint64_t)i,
			  (struct builder_call){.call = CALL_MMAP,
						.time_ns = 2000 + 10 * (uint64_t)i,
						.pid = CHILD + i % 3,
						.tid = CHILD + i % 3,
						.arguments = {0, MEBIBYTE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
						.result = (int64_t)(ADDRESS + (uint64_t)i * MEBIBYTE)});
	builder_exit(builder, 3000, CHILD + 1, CHILD + 1);
	report = report_by(MMT_BY_STACK);
	ck_assert_uint_eq(report->row_count, 3 * CALLS);
	for (size_t i = 0; i < report->row_count; i++) {
		const struct mmt_row *row = &report->rows[i];
		uint64_t number = (row->frames[0]->address - 0x401000) / 0x1000;

		ck_assert_uint_eq(row->allocated_bytes, MEBIBYTE);
		ck_assert_uint_lt(number, CALLS * 3);
		/* The ended process has released everything while others live. */
		ck_assert_uint_eq(row->unfreed_bytes, number % 3 == 1 ? 0 : MEBIBYTE);
		if (number % 3 != 1)
			ck_assert_int_eq(row->threads[0].pid, CHILD + (int32_t)(number % 3));
	}
	mmt_report_destroy(report);
}
END_TEST

#define STACKS 16

/* The stacks of the calls, and the end of the recording. */
struct found_stacks {
	uint32_t numbers[STACKS];
	uint64_t end_ns;
};

static struct found_stacks find_stacks(void)
{
	struct mmt_report_options report;
	const struct replay_options options = {.report = &report};
	struct found_stacks found = {0};
	struct replay replay;

	mmt_report_options_init(&report);
	report.input = path;
	ck_assert_ptr_null(replay_init(&replay, &options));
	ck_assert_ptr_null(replay_find_stacks(&replay));
	ck_assert_uint_le(replay.calls, STACKS);
	for (uint64_t call = 1; call <= replay.calls; call++)
		found.numbers[call - 1] = call_stacks_get(&replay.stacks, call);
	found.end_ns = replay.last_ns;
	replay_deinit(&replay);
	return found;
}

static void add_early_mmap(bool dump, uint64_t time_ns, uint64_t place)
{
	call_from(0x401000 + 0x1000 * place,
		  (struct builder_call){.call = CALL_MMAP,
					.dump = dump,
					.time_ns = time_ns,
					.pid = CHILD,
					.tid = CHILD,
					.arguments = {0, MEBIBYTE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS},
					.result = (int64_t)(ADDRESS + place * MEBIBYTE)});
}

/* Without its dumps, a packed recording gives each call its stack. */
START_TEST(packed_calls_have_their_stacks)
{
	const struct mmt_pack_options options = {.input = path};
	struct mmt_pack_summary summary;
	struct found_stacks recorded, packed;

	/* Two threads, whose dumps come in the other order. */
	add_mmap(false, 2000, PID, 0);
	add_mmap(false, 2010, OTHER, 1);
	add_mmap(true, 2020, OTHER, 1);
	add_mmap(true, 2030, PID, 0);
	/* A dump that is lost, and one that comes first. */
	add_mmap(false, 2100, OTHER, 2);
	builder_comm(builder, 2110, PID, PID, "renamed");
	add_mmap(true, 2190, PID, 3);
	add_mmap(false, 2200, PID, 3);
	add_mmap(false, 2210, OTHER, 4);
	builder_comm(builder, 2220, PID, PID, "again");
	add_mmap(true, 2230, OTHER, 4);
	/* A process whose code is not known until its first snapshot. */
	builder_fork(builder, 2300, CHILD, CHILD, PID, PID);
	builder_exec(builder, 2305, CHILD, CHILD, "child");
	add_early_mmap(false, 2310, 5);
	add_early_mmap(true, 2320, 5);
	add_early_mmap(false, 2330, 6);
	add_early_mmap(true, 2340, 6);
	add_mmap(false, 2350, PID, 7);
	add_mmap(true, 2360, PID, 7);
	builder_snapshot(builder, SNAPSHOT_EXEC, 2400, CHILD, NULL, 0);
	/* Its dump never comes. */
	add_mmap(false, 2500, OTHER, 8);
	builder_comm(builder, 2510, PID, PID, "last");
	builder_round(builder);
	builder_finish(builder, 100000);

	recorded = find_stacks();
	for (size_t i = 0; i < 9; i++)
		ck_assert_uint_ne(recorded.numbers[i], 0);
	/* The second pack is of the packed recording. */
	for (unsigned times = 0; times < 2; times++) {
		ck_assert_ptr_null(mmt_pack(&options, &summary));
		packed = find_stacks();
		ck_assert_mem_eq(&recorded, &packed, sizeof(recorded));
	}
}
END_TEST

/* The dump is left out of the middle of the packed recording, but not of the end that it shows. */
START_TEST(packed_recording_of_a_killed_recorder_ends_when_it_did)
{
	const struct mmt_pack_options options = {.input = path};
	struct mmt_pack_summary summary;

	add_mmap(false, 2000, PID, 0);
	add_mmap(true, 2010, PID, 0);
	add_mmap(false, 2100, PID, 1);
	add_mmap(true, 2110, PID, 1);
	builder_round(builder);
	/* What is not younger than the round before is complete. */
	builder_comm(builder, 2105, PID, OTHER, "other");
	builder_round(builder);
	builder_abandon(builder);
	for (int packed = 0; packed < 3; packed++) {
		struct found_stacks found = find_stacks();

		ck_assert_uint_ne(found.numbers[1], 0);
		ck_assert_uint_eq(found.end_ns, 2110);
		ck_assert_ptr_null(mmt_pack(&options, &summary));
	}
}
END_TEST

/* NULL: they are not a window. */
static struct mmt_report *report_between(struct mmt_timestamp from, struct mmt_timestamp to)
{
	struct mmt_report_options options;
	struct mmt_report *report = NULL;
	struct mmt_error *error;

	mmt_report_options_init(&options);
	options.input = path;
	options.from = from;
	options.to = to;
	error = mmt_report_create(&options, &report);
	ck_assert_int_eq(error == NULL, report != NULL);
	mmt_error_destroy(error);
	return report;
}

/* A window contains what lies between its times. */
START_TEST(windows_end_at_their_times)
{
	static const struct mmt_timestamp times[] = {
	    {0}, {MMT_TIMESTAMP_CLOCK, 3500}, {MMT_TIMESTAMP_CLOCK, 5500}, {0}};

	for (uint64_t i = 0; i < 6; i++)
		add_mmap(false, 2000 + 1000 * i, PID, i); /* two before each time, and two behind the last */
	builder_round(builder);
	builder_finish(builder, 100000);
	for (unsigned from = 0; from < 3; from++) {
		for (unsigned to = 1; to < 4; to++) {
			struct mmt_report *report = report_between(times[from], times[to]);

			ck_assert_int_eq(report != NULL, from < to);
			if (report)
				ck_assert_uint_eq(report->unfreed_bytes, 2 * (to - from) * MEBIBYTE);
			mmt_report_destroy(report);
		}
	}
}
END_TEST

/* Compressed, each takes less room than any process. */
START_TEST(more_processes_than_the_file_can_have)
{
	struct mmt_report_options options;
	struct mmt_report *report = NULL;
	struct mmt_error *error;

	for (int32_t i = 0; i < 60000; i++)
		builder_comm(builder, 2000 + (uint64_t)i, 1000 + i, 1000 + i, "x");
	builder_round(builder);
	builder_finish(builder, 100000);
	mmt_report_options_init(&options);
	options.input = path;
	error = mmt_report_create(&options, &report);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
	ck_assert_ptr_nonnull(strstr(error->message, "processes"));
	mmt_error_destroy(error);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("replay");
	TCase *halves = add_tcase(suite, "mapping records"), *dumps = add_tcase(suite, "stack dumps");
	TCase *early = add_tcase(suite, "early calls"), *windows = add_tcase(suite, "windows");

	tcase_add_checked_fixture(halves, create, destroy);
	tcase_add_tests(halves, snapshot_before_the_call_returns, fork_before_the_call_returns,
			growth_shown_by_a_snapshot_is_counted_once, ambiguous_race_is_counted,
			race_with_a_late_release_is_not_counted, unknown_pages_are_counted, omitted_notes_are_counted,
			set_user_id_execs_are_reported, set_user_id_execs_are_counted,
			recorded_programs_are_not_reported, the_set_user_id_program_is_named,
			a_program_that_executes_another_was_recorded, only_the_last_program_of_a_thread_is_counted,
			a_reused_tid_is_another_thread, loss_makes_setuid_execs_programs_doubtful,
			loss_without_a_record_makes_them_doubtful);
	tcase_add_checked_fixture(dumps, create, destroy);
	tcase_add_tests(dumps, peaks_of_threads_whose_dumps_come_late, the_larger_of_two_dumps_counts,
			dump_of_another_call_is_distinguished, losses_between_two_samples_separate_them,
			failed_mprotect_is_unwound_once, late_commits_are_joined, late_commits_have_their_stacks);
	tcase_add_checked_fixture(early, create, destroy);
	tcase_add_tests(early, early_calls_are_their_process_own, packed_calls_have_their_stacks,
			packed_recording_of_a_killed_recorder_ends_when_it_did);
	tcase_add_checked_fixture(windows, create, destroy);
	tcase_add_tests(windows, windows_end_at_their_times, more_processes_than_the_file_can_have);
	return suite;
}
