// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which perf events the options select, with a directory that imitates the kernel's tracefs. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall-table.h"
#include "base/cleanup.h"
#include "capture/perf/perf-events.h"
#include "support/suite.h"
#include "support/temporary.h"

static char directory[TEMPORARY_PATH_SIZE];
static int tracefs = -1;
static struct event_set set;

static void write_text(const char *name, const char *text)
{
	int fd = openat(tracefs, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void add_tracepoint(const char *system, const char *name, unsigned id)
{
	char path[TEMPORARY_PATH_SIZE + 32], text[32];

	snprintf(path, sizeof(path), "events/%s", system);
	(void)mkdirat(tracefs, path, 0700);
	snprintf(path, sizeof(path), "events/%s/%s", system, name);
	ck_assert_int_eq(mkdirat(tracefs, path, 0700), 0);
	snprintf(path, sizeof(path), "events/%s/%s/id", system, name);
	snprintf(text, sizeof(text), "%u\n", id);
	write_text(path, text);
	snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
	write_text(path, "format:\n");
}

static void create(void)
{
	temporary_directory(directory);
	tracefs = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(tracefs, 0);
	ck_assert_int_eq(mkdirat(tracefs, "events", 0700), 0);
	write_text("events/header_page", "page");
	write_text("events/header_event", "event");
	add_tracepoint("task", "task_newtask", 1);
	for (unsigned call = 0; call < CALL_KINDS; call++) {
		const struct call_description *description = call_describe((enum call)call);
		char name[64];

		snprintf(name, sizeof(name), "sys_%s_%s", description->at_entry ? "enter" : "exit", description->name);
		add_tracepoint("syscalls", name, 100 + call);
		if (description->at_entry)
			continue;
		snprintf(name, sizeof(name), "sys_enter_%s", description->name);
		add_tracepoint("syscalls", name, 300 + call);
	}
	add_tracepoint("syscalls", "sys_exit_madvise", 200);
}

static void destroy(void)
{
	events_deinit(&set);
	close(tracefs);
	temporary_remove(directory);
}

static void make_set_for(const char *architecture, const struct mmt_record_options *options)
{
	struct mmt_error *error = events_create(options, &(struct tracepoint_source){.directory = tracefs}, false,
						architecture_find(architecture), &set);

	ck_assert_msg(!error, "%s", error ? error->message : "");
}

static void make_set(const struct mmt_record_options *options)
{
	make_set_for("x86_64", options);
}

static size_t count_role(enum attribute_role role)
{
	size_t count = 0;

	for (size_t i = 0; i < set.items.count; i++)
		count += set.items.items[i].role == role;
	return count;
}

static const struct event_description *find(const char *name)
{
	for (size_t i = 0; i < set.items.count; i++) {
		if (!strcmp(set.items.items[i].name, name))
			return &set.items.items[i];
	}
	ck_abort_msg("no event %s", name);
	return NULL;
}

/* Calls that are always recorded. */
static size_t count_default_calls(void)
{
	size_t count = 0;

	for (unsigned call = 0; call < CALL_KINDS; call++)
		count += !call_describe((enum call)call)->unrecorded;
	return count;
}

START_TEST(every_call_has_its_syscall)
{
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	make_set(&options);
	ck_assert_uint_eq(count_role(ROLE_SYSCALL), count_default_calls());
	for (size_t i = 0; i < set.items.count; i++)
		ck_assert_uint_eq(set.items.items[i].attribute.inherit, 1);
}
END_TEST

/* Instead of the event at its entry, so that there is no additional event, which would make each mapping slower. */
START_TEST(successful_madvise_is_recorded)
{
	const struct event_description *event;
	struct mmt_record_options options;
	size_t count;

	mmt_record_options_init(&options);
	make_set(&options);
	event = find("syscalls:sys_exit_madvise");
	ck_assert_int_eq(event->role, ROLE_SYSCALL);
	ck_assert_str_eq(event->filter, "ret == 0 || ret == -12");
	ck_assert(event->attribute.sample_type & PERF_SAMPLE_REGS_USER);
	ck_assert(!(event->attribute.sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER)));
	count = set.items.count;
	events_deinit(&set);
	options.no_madvise = true;
	make_set(&options);
	ck_assert_uint_eq(set.items.count, count);
}
END_TEST

/* Ordinary advice must cost no more than the filter. */
START_TEST(madvise_is_recorded_at_entry_and_filtered)
{
	const struct event_description *event;
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	options.no_madvise = true;
	make_set(&options);
	event = find("syscalls:sys_enter_madvise");
	ck_assert_int_eq(event->role, ROLE_SYSCALL);
	ck_assert_int_eq(event->ring, RING_SYSCALL);
	ck_assert_str_eq(event->filter, "behavior == 10 || behavior == 11");
	ck_assert(event->attribute.sample_type & PERF_SAMPLE_RAW);
	ck_assert(
	    !(event->attribute.sample_type & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER)));
	ck_assert_ptr_null(find("syscalls:sys_exit_mmap")->filter);
}
END_TEST

START_TEST(a_kernel_without_madvise_exits_is_reported)
{
	struct mmt_record_options options;
	struct mmt_error *error;

	ck_assert_int_eq(
	    renameat(tracefs, "events/syscalls/sys_exit_madvise", tracefs, "events/syscalls/sys_exit_other"), 0);
	mmt_record_options_init(&options);
	error = events_create(&options, &(struct tracepoint_source){.directory = tracefs}, false, &architecture_x86_64,
			      &set);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(error->message, "syscalls:sys_exit_madvise"));
	mmt_error_destroy(error);
}
END_TEST

/* A refused mseal changes nothing that later calls depend on. */
START_TEST(successful_mseal_is_recorded)
{
	const struct event_description *event;
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	make_set(&options);
	event = find("syscalls:sys_exit_mseal");
	ck_assert_int_eq(event->role, ROLE_SYSCALL);
	ck_assert_str_eq(event->filter, "ret == 0");
	ck_assert(event->attribute.sample_type & PERF_SAMPLE_REGS_USER);
	ck_assert(!(event->attribute.sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER)));
}
END_TEST

static uint64_t registers_of(const char *name)
{
	return find(name)->attribute.sample_regs_user;
}

/* Every register has a cost: releasing calls need only their arguments. */
START_TEST(calls_carry_their_arguments_and_no_more)
{
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	make_set(&options);
	ck_assert_uint_eq(registers_of("syscalls:sys_exit_munmap"),
			  architecture_argument_mask(&architecture_x86_64, 2));
	ck_assert_int_eq(__builtin_popcountll(registers_of("syscalls:sys_exit_munmap")), 2);
	ck_assert_uint_eq(registers_of("syscalls:sys_exit_mmap"),
			  architecture_argument_mask(&architecture_x86_64, 6) | architecture_x86_64.frame_registers);
	ck_assert_int_eq(__builtin_popcountll(registers_of("syscalls:sys_exit_mmap")), 9);
	ck_assert_uint_eq(registers_of("syscalls:sys_exit_mmap/stack-dump"),
			  architecture_x86_64.frame_registers | architecture_x86_64.saved_registers);
}
END_TEST

/* Frequent calls have their dump in a ring that may overflow; rare ones need no second event. */
START_TEST(rare_calls_have_their_dump_with_them)
{
	static const char *const often[] = {"mmap", "mremap", "brk", "mprotect"};
	static const char *const rare[] = {"pkey_mprotect", "shmat", "remap_file_pages"};
	struct mmt_record_options options;
	char name[64];

	mmt_record_options_init(&options);
	make_set(&options);
	ck_assert_uint_eq(count_role(ROLE_DUMP), 4);
	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "syscalls:sys_exit_%s", often[i]);
		ck_assert(!find(name)->has_dump);
		ck_assert_uint_eq(find(name)->attribute.sample_stack_user, 64);
		ck_assert_int_eq(find(name)->ring, RING_SYSCALL);
		strcat(name, "/stack-dump");
		ck_assert(find(name)->has_dump);
		ck_assert_uint_eq(find(name)->attribute.sample_stack_user, MMT_STACK_DUMP_BYTES_DEFAULT);
		ck_assert_int_eq(find(name)->ring, RING_DUMP);
	}
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "syscalls:sys_exit_%s", rare[i]);
		ck_assert(find(name)->has_dump);
		ck_assert_int_eq(find(name)->role, ROLE_SYSCALL);
		ck_assert_int_eq(find(name)->ring, RING_SYSCALL);
		ck_assert(find(name)->attribute.sample_type & PERF_SAMPLE_CALLCHAIN);
	}
}
END_TEST

/* The last in the set, so that they can be omitted: calls with a separate dump have a large one, too. */
START_TEST(large_dumps_come_last)
{
	struct mmt_record_options options;
	size_t count;

	mmt_record_options_init(&options);
	make_set(&options);
	count = set.items.count;
	ck_assert_uint_eq(count_role(ROLE_LARGE_DUMP), 4);
	ck_assert_uint_eq(find("syscalls:sys_exit_brk/large-stack-dump")->attribute.sample_stack_user,
			  MMT_STACK_DUMP_BYTES_MAX);
	ck_assert_int_eq(find("syscalls:sys_exit_brk/large-stack-dump")->ring, RING_LARGE_DUMP);
	ck_assert_uint_eq(registers_of("syscalls:sys_exit_brk/large-stack-dump"),
			  registers_of("syscalls:sys_exit_brk/stack-dump"));
	for (size_t i = 0; i < count; i++) {
		const struct event_description *event = &set.items.items[i];

		ck_assert(i < count - 4 || event->role == ROLE_LARGE_DUMP);
		ck_assert(event->has_large_dump == (event->role == ROLE_SYSCALL && call_has_stack(event->call) &&
						    !call_describe(event->call)->rare));
	}
	events_leave_out_large_dumps(&set);
	ck_assert_uint_eq(set.items.count, count - 4);
	ck_assert(!events_count_large_dumps(&set));
	ck_assert_uint_eq(count_role(ROLE_DUMP), 4);
}
END_TEST

START_TEST(page_faults_have_a_ring_of_their_own)
{
	struct mmt_record_options options;
	size_t count;

	mmt_record_options_init(&options);
	options.faults = MMT_FAULTS_NONE;
	make_set(&options);
	ck_assert_uint_eq(count_role(ROLE_FAULT), 0);
	count = set.items.count;
	events_deinit(&set);
	options.faults = MMT_FAULTS_AUTO;
	options.lean = true;
	make_set(&options);
	ck_assert_uint_eq(count_role(ROLE_FAULT), 0);
	events_deinit(&set);
	options.lean = false;
	make_set(&options);
	ck_assert_uint_eq(count_role(ROLE_FAULT), 4);
	/* On CPUs, one event without dumps takes the place of the one with dumps. */
	ck_assert(find("minor-faults")->in_turn && find("minor-faults")->has_dump);
	ck_assert(find("minor-faults")[1].in_turn && !find("minor-faults")[1].has_dump);
	ck_assert_uint_eq(find("minor-faults")[1].attribute.sample_period, 97);
	ck_assert_uint_eq(find("minor-faults")[1].attribute.sample_stack_user, EVENTS_LEAF_BYTES);
	ck_assert(events_put_faults_on_cpus(&set, 0));
	ck_assert_uint_eq(events_count_of_threads(&set), count);
	ck_assert(!events_leave_out_faults(&set, true));
	ck_assert_uint_eq(set.items.count, count);
	events_deinit(&set);
	options.faults = MMT_FAULTS_SAMPLED;
	make_set(&options);
	ck_assert(events_leave_out_faults(&set, false));
	ck_assert_uint_eq(count_role(ROLE_FAULT), 2);
	ck_assert(!find("minor-faults")->in_turn && find("minor-faults")->has_dump);
	ck_assert_int_eq(find("minor-faults")->ring, RING_FAULT);
	ck_assert_uint_eq(find("minor-faults")->attribute.sample_period, 97);
	ck_assert(!(find("minor-faults")->attribute.sample_type & PERF_SAMPLE_PERIOD));
	ck_assert_uint_eq(find("major-faults")->attribute.sample_period, 1);
	ck_assert_uint_eq(find("minor-faults")->attribute.sample_stack_user, MMT_STACK_DUMP_BYTES_DEFAULT);
	/* Arguments of calls stay in packed samples: a page fault has none. */
	ck_assert(!(find("minor-faults")->attribute.sample_regs_user &
		    architecture_argument_mask(architecture_find("x86_64"), 6)));
	ck_assert_uint_eq(events_count_large_dumps(&set), 4);
	ck_assert(!events_leave_out_faults(&set, true));
	ck_assert_uint_eq(set.items.count, count);
	ck_assert_uint_eq(events_count_large_dumps(&set), 4);
	events_deinit(&set);
	options.faults = MMT_FAULTS_ALL;
	make_set(&options);
	ck_assert_uint_eq(find("minor-faults")->attribute.sample_period, 1);
	ck_assert_uint_eq(find("minor-faults")->attribute.sample_stack_user, EVENTS_LEAF_BYTES);
	events_deinit(&set);
	options.call_graph = MMT_CALL_GRAPH_NONE;
	make_set(&options);
	ck_assert(!(find("minor-faults")->attribute.sample_type & (PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_STACK_USER)));
}
END_TEST

START_TEST(a_fixed_dump_size_adds_no_large_dumps)
{
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	options.call_graph = MMT_CALL_GRAPH_DWARF;
	options.stack_dump_bytes = 8192;
	make_set(&options);
	ck_assert_uint_eq(count_role(ROLE_DUMP), 4);
	ck_assert_uint_eq(count_role(ROLE_LARGE_DUMP), 0);
}
END_TEST

START_TEST(a_lean_set_has_one_event_for_each_call)
{
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	options.lean = true;
	make_set(&options);
	ck_assert_uint_eq(count_role(ROLE_SYSCALL), count_default_calls());
	ck_assert_uint_eq(count_role(ROLE_DUMP), 0);
	ck_assert_uint_eq(count_role(ROLE_LARGE_DUMP), 0);
	ck_assert(!find("dummy:u")->attribute.mmap_data);
	ck_assert(find("dummy:u")->attribute.mmap2);
	ck_assert_uint_eq(find("syscalls:sys_exit_mmap")->attribute.sample_stack_user, MMT_STACK_DUMP_BYTES_LEAN);
	ck_assert_int_eq(find("syscalls:sys_exit_mmap")->ring, RING_DUMP);
	ck_assert_int_eq(find("syscalls:sys_exit_munmap")->ring, RING_SYSCALL);
	for (size_t i = 0; i < set.items.count; i++)
		ck_assert(!(set.items.items[i].attribute.sample_type & PERF_SAMPLE_CALLCHAIN));
}
END_TEST

/* The result overwrites the first argument there. Each entry is opened before the exit, so that an exit without one
 * shows that the call began earlier. */
START_TEST(aarch64_records_entries)
{
	struct mmt_record_options options;
	size_t entries = 0;

	mmt_record_options_init(&options);
	make_set_for("aarch64", &options);
	ck_assert_uint_eq(count_role(ROLE_DUMP), 4);
	ck_assert_uint_eq(count_role(ROLE_LARGE_DUMP), 4);
	for (size_t i = 0; i < set.items.count; i++) {
		const struct event_description *event = &set.items.items[i];

		if (!event->is_enter)
			continue;
		entries++;
		ck_assert_uint_eq(event->attribute.sample_type, EVENTS_SAMPLE_TYPE | PERF_SAMPLE_RAW);
		ck_assert_int_eq(event->ring, RING_SYSCALL);
		ck_assert_int_eq(event[1].call, event->call);
		ck_assert(!event[1].is_enter);
		if (event->call == CALL_MMAP) /* MAP_FIXED, MAP_FIXED_NOREPLACE: otherwise the address is a hint */
			ck_assert_str_eq(event->filter, "flags & 0x100010");
		else
			ck_assert_ptr_null(event->filter);
	}
	ck_assert_uint_eq(entries, count_default_calls());
	ck_assert_uint_eq(count_role(ROLE_SYSCALL), 2 * entries);
}
END_TEST

/* Its entry is filtered by the advice, and has everything. */
START_TEST(aarch64_records_madvise_once_without_madvise)
{
	struct mmt_record_options options;

	mmt_record_options_init(&options);
	options.no_madvise = true;
	make_set_for("aarch64", &options);
	ck_assert(!find("syscalls:sys_enter_madvise")->is_enter);
	ck_assert_str_eq(find("syscalls:sys_enter_madvise")->filter, "behavior == 10 || behavior == 11");
	ck_assert_uint_eq(count_role(ROLE_SYSCALL), 2 * count_default_calls() - 1);
}
END_TEST

START_TEST(only_little_endian_architectures_are_known)
{
	ck_assert_ptr_eq(architecture_find("x86_64"), &architecture_x86_64);
	ck_assert_ptr_nonnull(architecture_find("aarch64"));
	ck_assert_ptr_null(architecture_find("aarch64_be"));
	ck_assert_ptr_null(architecture_find("riscv64"));
	ck_assert_ptr_null(architecture_find(""));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("events");
	TCase *tests = add_tcase(suite, "events");

	tcase_add_checked_fixture(tests, create, destroy);
	tcase_add_tests(tests, every_call_has_its_syscall, successful_madvise_is_recorded,
			madvise_is_recorded_at_entry_and_filtered, a_kernel_without_madvise_exits_is_reported,
			successful_mseal_is_recorded, calls_carry_their_arguments_and_no_more,
			rare_calls_have_their_dump_with_them, large_dumps_come_last,
			page_faults_have_a_ring_of_their_own, a_fixed_dump_size_adds_no_large_dumps,
			a_lean_set_has_one_event_for_each_call, aarch64_records_entries,
			aarch64_records_madvise_once_without_madvise, only_little_endian_architectures_are_known);
	return suite;
}
