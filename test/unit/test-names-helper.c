// SPDX-License-Identifier: LGPL-2.1-or-later
/* What files of strangers can do to the helper process must cost only the names of that file. */
#include "code/names/names-helper.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/strings.h"
#include "support/suite.h"
#include "support/temporary.h"

#define MODULES 10
#define MEMORY_ROOM (256u << 20)

/* What a module does in the helper when it is opened. */
enum deed {
	HARMLESS,
	CRASH,
	LOOP,
	WAIT,
	STOP,
	EAT_MEMORY,
	LACK_MEMORY,
	EXIT,
	KILLED,
	ALARMED,
	WRITE_NONSENSE,
	WRITE_PART
};

/* Shared with the helper. */
static struct plan {
	enum deed deeds[MODULES + 1];
	enum symbols_use harmful_up_to; /* the last use in which a module does that */
	pid_t helper;
} * plan;
static char fifo[TEMPORARY_PATH_SIZE];

static void describe(const struct remote_names *names, struct buffer *description)
{
	buffer_put_u32(description, names->number);
}

/* Sends an answer, or the first half of its size, to the parent and never returns. */
static _Noreturn void write_nonsense(size_t size)
{
	static const uint8_t answer[] = {3, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};

	for (int fd = STDERR_FILENO + 1; send(fd, answer, size, MSG_NOSIGNAL) < 0; fd++)
		;
	for (;;)
		pause();
}

static struct symbols *open_module(void *context, struct bytes *description, enum symbols_use use)
{
	static struct symbols *own;
	int self;

	(void)context;
	plan->helper = getpid();
	if (use <= plan->harmful_up_to) {
		switch (plan->deeds[bytes_u32(description)]) {
		case HARMLESS:
			break;
		case CRASH:
			abort();
		case LOOP:
			for (volatile unsigned turns = 0;; turns++)
				;
		case WAIT:
			(void)open(fifo, O_RDONLY);
			break;
		case EAT_MEMORY:
			while (malloc(1 << 20))
				;
			_exit(1); /* as libdw does */
		case LACK_MEMORY: /* as libelf and libiberty do */
			errno = ENOMEM;
			return NULL;
		case EXIT:
			_exit(0);
		case KILLED:
			raise(SIGKILL);
			break;
		case ALARMED:
			raise(SIGALRM);
			break;
		case STOP:
			raise(SIGSTOP);
			break;
		case WRITE_NONSENSE:
			write_nonsense(11);
		case WRITE_PART:
			write_nonsense(4);
		}
	}
	self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (!own)
		own =
		    symbols_create(&(struct symbols_source){.path = "/proc/self/exe", .fd = self, .use = SYMBOLS_OWN});
	close(self);
	return own;
}

static struct names_helper *helper;
static struct remote_names names[MODULES + 1];

static void setup(void)
{
	memset(names, 0, sizeof(names));
	plan = mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(plan, MAP_FAILED);
	for (uint32_t i = 0; i <= MODULES; i++)
		names[i].number = i;
	plan->harmful_up_to = SYMBOLS_OWN;
	helper = names_helper_create(&(struct names_calls){describe, open_module, NULL});
	ck_assert_ptr_nonnull(helper);
}

static void teardown(void)
{
	names_helper_destroy(helper);
	for (uint32_t i = 0; i <= MODULES; i++)
		vector_deinit(&names[i].special);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no process is left */
}

/* In this program, by its file. */
static uint64_t known_address(void)
{
	static uint64_t address;
	uint64_t end;

	if (!address)
		ck_assert(remote_names_range(helper, &names[1], "test_suite", 0, &address, &end));
	return address;
}

static const char *function_of(uint32_t module)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	ck_assert_uint_eq(remote_names_find(helper, &names[module], known_address(), frames), 1);
	return frames[0].function;
}

/* Module 2 does it; all others keep their names, asked for one by one and all at once. */
static void expect_damage(enum deed deed, enum module_state state)
{
	struct names_query queries[MODULES];
	uint64_t address = known_address();

	plan->deeds[2] = deed;
	ck_assert_ptr_null(function_of(2));
	ck_assert_int_eq(names[2].state, state);
	ck_assert_int_eq(names[2].use, SYMBOLS_NONE);
	for (uint32_t i = 1; i <= MODULES; i++) {
		ck_assert_pstr_eq(function_of(i), i == 2 ? NULL : "test_suite");
		ck_assert(i == 2 || names[i].state == MODULE_READABLE);
		queries[i - 1] = (struct names_query){&names[i], address};
	}
	plan->deeds[5] = deed;
	names[5].helper = 0;
	remote_names_fetch(helper, queries, MODULES);
	for (uint32_t i = 1; i <= MODULES; i++)
		ck_assert_pstr_eq(function_of(i), i == 2 || i == 5 ? NULL : "test_suite");
	ck_assert_int_eq(names[5].state, state);
	ck_assert_int_eq(names[6].state, MODULE_READABLE);
}

START_TEST(a_crash)
{
	expect_damage(CRASH, MODULE_POOR_NAMES);
}
END_TEST

START_TEST(an_invalid_answer)
{
	expect_damage(WRITE_NONSENSE, MODULE_POOR_NAMES);
}
END_TEST

START_TEST(an_exit)
{
	expect_damage(EXIT, MODULE_LIMITED_NAMES);
}
END_TEST

/* As after its own limit of time. */
START_TEST(an_alarm)
{
	expect_damage(ALARMED, MODULE_SLOW_NAMES);
}
END_TEST

static void *ask_once(void *context)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES];

	(void)remote_names_find(helper, &names[1], 0, frames);
	return context;
}

START_TEST(the_thread_that_asks_first_ends)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, ask_once, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_pstr_eq(function_of(2), "test_suite");
	ck_assert_int_eq(names_helper_failure(helper), 0);
}
END_TEST

START_TEST(somebody_kills_it)
{
	expect_damage(KILLED, MODULE_UNREAD_NAMES);
	ck_assert_int_eq(names_helper_failure(helper), -1);
}
END_TEST

/* The hard limit, which mmtrace does not raise, is lower than its own. */
START_TEST(an_endless_loop)
{
	struct rlimit limit = {5, 5};

	plan->deeds[2] = LOOP;
	plan->harmful_up_to = SYMBOLS_ALL;
	ck_assert_int_eq(setrlimit(RLIMIT_CPU, &limit), 0);
	ck_assert_pstr_eq(function_of(2), "test_suite");
	ck_assert_int_eq(names[2].state, MODULE_SLOW_NAMES);
}
END_TEST

START_TEST(no_progress)
{
	static const enum deed deeds[] = {WAIT, STOP, WRITE_PART};

	temporary_name(fifo);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	plan->harmful_up_to = SYMBOLS_ALL;
	for (uint32_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++) {
		plan->deeds[2 + i] = deeds[i];
		ck_assert_pstr_eq(function_of(2 + i), "test_suite");
		ck_assert_int_eq(names[2 + i].state, MODULE_SLOW_NAMES);
	}
	temporary_remove(fifo);
}
END_TEST

START_TEST(an_invalid_list)
{
	plan->deeds[2] = WRITE_NONSENSE;
	plan->harmful_up_to = SYMBOLS_ALL;
	ck_assert_ptr_null(remote_names_special(helper, &names[2], 0));
	ck_assert_int_eq(names[2].state, MODULE_POOR_NAMES);
	ck_assert(names[2].special_listed);
}
END_TEST

/* No module is at fault, and the names that were fetched stay, also after another one was asked for. */
START_TEST(killed_while_it_has_nothing_to_do)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	siginfo_t end;

	ck_assert_pstr_eq(function_of(1), "test_suite");
	(void)remote_names_find(helper, &names[3], 0, frames);
	ck_assert_int_eq(kill(plan->helper, SIGKILL), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)plan->helper, &end, WEXITED | WNOWAIT), 0);
	plan->deeds[1] = CRASH;
	ck_assert_pstr_eq(function_of(1), "test_suite");
	ck_assert_pstr_eq(function_of(2), "test_suite");
	ck_assert_pstr_eq(function_of(3), "test_suite");
	for (uint32_t i = 1; i <= 3; i++)
		ck_assert_int_eq(names[i].state, MODULE_READABLE);
	ck_assert_int_eq(names_helper_failure(helper), -1);
}
END_TEST

START_TEST(it_cannot_be_started)
{
	struct module_frame frames[LIMIT_INLINED_FRAMES];
	struct rlimit limit, none;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){0, limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_uint_eq(remote_names_find(helper, &names[1], 0, frames), 1);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(names_helper_failure(helper), EMFILE);
	ck_assert_pstr_eq(function_of(1), "test_suite");
	ck_assert_int_eq(names[1].state, MODULE_UNREAD_NAMES);
	ck_assert_pstr_eq(function_of(2), "test_suite");
	ck_assert_int_eq(names[2].state, MODULE_READABLE);
}
END_TEST

/* After damage by debug information there are the names of the symbols. */
START_TEST(own_symbols_are_left)
{
	plan->deeds[2] = CRASH;
	plan->harmful_up_to = SYMBOLS_ALL;
	ck_assert_pstr_eq(function_of(2), "test_suite");
	ck_assert_int_eq(names[2].state, MODULE_POOR_NAMES);
	ck_assert_int_eq(names[2].use, SYMBOLS_OWN);
}
END_TEST

START_TEST(a_memory_bomb)
{
	struct rlimit before, limit;

#ifdef __SANITIZE_ADDRESS__
	SKIP_TEST("AddressSanitizer has memory of its own");
#endif
	ck_assert_int_eq(getrlimit(RLIMIT_DATA, &before), 0);
	limit = before;
	limit.rlim_cur = MEMORY_ROOM;
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &limit), 0);
	expect_damage(EAT_MEMORY, MODULE_LIMITED_NAMES);
	ck_assert_int_eq(setrlimit(RLIMIT_DATA, &before), 0);
}
END_TEST

/* No names are not taken for a file that has none, or for mangled ones. */
START_TEST(a_failed_allocation)
{
	expect_damage(LACK_MEMORY, MODULE_LIMITED_NAMES);
}
END_TEST

/* Whatever the number of answers before. */
START_TEST(killed_after_some_answers)
{
	for (uint32_t killed = 1; killed <= MODULES; killed++) {
		if (killed > 1) {
			teardown();
			setup();
		}
		plan->deeds[killed] = known_address() ? KILLED : HARMLESS;
		for (uint32_t i = 2; i <= MODULES; i++)
			ck_assert_pstr_eq(function_of(i), i == killed ? NULL : "test_suite");
	}
}
END_TEST

/* Many bombs do not take forever. */
START_TEST(only_so_many_helpers)
{
	char name[2] = "";
	uint64_t start, end;

	(void)known_address();
	for (uint32_t i = 2; i <= MODULES; i++)
		plan->deeds[i] = CRASH;
	for (uint32_t i = 2; i <= MODULES; i++)
		(void)remote_names_range(helper, &names[i], name, 0, &start, &end);
	ck_assert_int_eq(names[2].state, MODULE_POOR_NAMES);
	ck_assert_ptr_null(function_of(1));
	ck_assert_int_eq(names[1].state, MODULE_UNREAD_NAMES);
}
END_TEST

/* Each silent file system costs one helper, also when programs of several of them take turns. */
START_TEST(silent_places_are_remembered)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount = mounts ? getmntent(mounts) : NULL;
	char places[2][PATH_MAX];
	siginfo_t info;
	uint32_t count = 0;

	for (; mount && count < 2; mount = getmntent(mounts)) {
		if (strcmp(mount->mnt_dir, "/") != 0 && (!count || !starts_with(places[0], mount->mnt_dir)))
			snprintf(places[count++], PATH_MAX, "%s/file", mount->mnt_dir);
	}
	ck_assert_uint_ge(count, 1); /* /proc */
	endmntent(mounts);
	for (uint32_t i = 0; i < count; i++) {
		ck_assert_pstr_eq(function_of(i + 1), "test_suite");
		ck_assert_int_eq(kill(plan->helper, SIGSTOP), 0);
		/* Its threads do not stop at once. */
		ck_assert_int_eq(waitid(P_PID, (id_t)plan->helper, &info, WSTOPPED | WNOWAIT | __WALL), 0);
		ck_assert(!names_helper_file_answers(helper, places[i]));
	}
	ck_assert_pstr_eq(function_of(count + 1), "test_suite");
	for (uint32_t i = 0; i < count; i++)
		ck_assert(!names_helper_file_answers(helper, places[i]));
	ck_assert(names_helper_file_answers(helper, "/file"));
}
END_TEST

/* The helper must not keep a pipe of this process open, and Ctrl-C is for this process. */
START_TEST(it_has_no_descriptors_and_ignores_signals)
{
	int ends[2];
	char byte;

	ck_assert_int_eq(setpgid(0, 0), 0);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_pstr_eq(function_of(1), "test_suite");
	close(ends[1]);
	alarm(60);
	ck_assert_int_eq(read(ends[0], &byte, 1), 0);
	alarm(0);
	close(ends[0]);
	signal(SIGINT, SIG_IGN);
	ck_assert_int_eq(kill(0, SIGINT), 0);
	ck_assert_pstr_eq(function_of(3), "test_suite");
	ck_assert_int_eq(names[3].state, MODULE_READABLE);
	signal(SIGINT, SIG_DFL);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("names-helper");
	TCase *tests = add_tcase(suite, "names helper");

	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_tests(tests, a_crash, an_invalid_answer, an_exit, an_alarm, the_thread_that_asks_first_ends,
			somebody_kills_it, an_endless_loop, no_progress, an_invalid_list,
			killed_while_it_has_nothing_to_do, it_cannot_be_started, own_symbols_are_left, a_memory_bomb,
			a_failed_allocation, killed_after_some_answers, only_so_many_helpers,
			silent_places_are_remembered, it_has_no_descriptors_and_ignores_signals);
	return suite;
}
