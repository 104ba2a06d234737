// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "model/processes.h"

#define PAGE 4096ULL

static struct processes *processes;
static uint64_t born[64]; /* bytes by index of the process */

static void on_born(void *context, const struct space_interval *interval)
{
	*(uint64_t *)context += interval->end - interval->start;
}

static bool observe(void *context, struct process *process, struct space_observer *observer_ret)
{
	ck_assert_ptr_eq(context, born);
	*observer_ret = (struct space_observer){.born = on_born, .context = &born[process->index]};
	return true;
}

static struct thread *thread_of(int32_t pid, int32_t tid)
{
	struct thread *thread = NULL;

	ck_assert_ptr_null(processes_thread(processes, pid, tid, &thread));
	return thread;
}

static void fork_task(int32_t pid, int32_t tid, int32_t parent_pid, int32_t parent_tid, uint64_t flags,
		      uint64_t time_ns)
{
	ck_assert_ptr_null(processes_fork(processes, pid, tid, parent_pid, parent_tid, time_ns));
	ck_assert_ptr_null(processes_new_task(processes, tid, flags));
}

static void exit_task(int32_t pid, int32_t tid, uint64_t time_ns)
{
	ck_assert_ptr_null(processes_exit(processes, pid, tid, time_ns));
}

static void exec_task(int32_t pid, int32_t tid, uint64_t time_ns)
{
	ck_assert_ptr_null(processes_comm(processes, thread_of(pid, tid), "new", true, time_ns));
}

static void map(int32_t pid, uint64_t page, uint64_t time_ns)
{
	const struct space_call call = {.kind = SPACE_MMAP,
					.arguments = {0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
					.result = (int64_t)(page * PAGE),
					.time_ns = time_ns,
					.thread = pid,
					.birth = BIRTH_FIRST};

	ck_assert_ptr_null(space_apply(processes_find(processes, pid)->space, &call));
}

static void setup(void)
{
	const struct processes_options options = {.page_bytes = PAGE, .observe = observe, .context = born};

	ck_assert_ptr_null(processes_create(&options, &processes));
	thread_of(100, 100);
	processes_find(processes, 100)->recorded = true;
	ck_assert_ptr_null(processes_comm(processes, thread_of(100, 100), "main", false, 1));
}

static void teardown(void)
{
	processes_destroy(processes);
}

START_TEST(threads_share_and_the_last_one_ends_the_process)
{
	const struct process *process = processes_find(processes, 100);
	struct thread *first = thread_of(100, 100), *second;

	fork_task(100, 101, 100, 100, CLONE_VM | CLONE_THREAD, 10);
	second = thread_of(-1, 101);
	ck_assert_ptr_nonnull(second);
	ck_assert_uint_eq(second->process, first->process);
	ck_assert_str_eq(processes_name(processes, second->name), "main");
	ck_assert_uint_eq(process->thread_count, 2);
	exit_task(100, 100, 20);
	ck_assert(first->ended);
	ck_assert(!process->ended);
	map(100, 10, 25);
	exit_task(100, 101, 30);
	ck_assert(process->ended);
	ck_assert_uint_eq(process->ended_ns, 30);
	ck_assert_uint_eq(space_counts(process->space).mapped_bytes, PAGE);
	ck_assert_ptr_null(thread_of(-1, 101));
	ck_assert_ptr_eq(processes_find(processes, 100), process);
	ck_assert_str_eq(process_name(processes, process), "main");
}
END_TEST

START_TEST(fork_copies_the_space)
{
	const struct process *child;

	map(100, 10, 5);
	fork_task(200, 200, 100, 100, 0, 10);
	child = processes_find(processes, 200);
	ck_assert_int_eq(child->parent_pid, 100);
	ck_assert(child->recorded);
	ck_assert(!child->borrows_space);
	ck_assert_uint_eq(child->started_ns, 10);
	ck_assert_uint_eq(space_counts(child->space).before_bytes, PAGE);
	ck_assert_uint_eq(born[child->index], PAGE);
	map(200, 20, 11);
	ck_assert_ptr_null(space_find(processes_find(processes, 100)->space, 20 * PAGE));
	ck_assert_str_eq(process_name(processes, child), "main");
}
END_TEST

START_TEST(vfork_borrows_the_space_until_exec)
{
	struct process *child, *parent = processes_find(processes, 100);

	fork_task(200, 200, 100, 100, CLONE_VM | CLONE_VFORK, 10);
	child = processes_find(processes, 200);
	ck_assert(child->borrows_space);
	ck_assert_ptr_eq(child->space, parent->space);
	map(200, 20, 11);
	exec_task(200, 200, 12);
	ck_assert(!child->borrows_space);
	ck_assert_ptr_ne(child->space, parent->space);
	ck_assert_ptr_null(space_next(child->space, 0));
	ck_assert_ptr_nonnull(space_find(parent->space, 20 * PAGE));
	ck_assert_str_eq(process_name(processes, child), "new");
}
END_TEST

START_TEST(exec_of_the_owner_leaves_the_space_to_the_borrower)
{
	struct process *child, *parent = processes_find(processes, 100);

	map(100, 10, 5);
	fork_task(200, 200, 100, 100, CLONE_VM, 10);
	exec_task(100, 100, 12);
	child = processes_find(processes, 200);
	ck_assert(!child->borrows_space);
	ck_assert_ptr_nonnull(space_find(child->space, 10 * PAGE));
	ck_assert_ptr_null(space_next(parent->space, 0));
}
END_TEST

START_TEST(exec_from_a_thread_ends_the_others)
{
	struct process *process = processes_find(processes, 100);
	struct thread *caller;

	fork_task(100, 101, 100, 100, CLONE_VM | CLONE_THREAD, 10);
	fork_task(100, 102, 100, 100, CLONE_VM | CLONE_THREAD, 11);
	caller = thread_of(100, 101);
	map(100, 10, 12);
	/* 101 calls exec: 102 and the leader exit, 101 goes on as 100. */
	exit_task(100, 102, 13);
	exit_task(100, 100, 14);
	exec_task(100, 100, 15);
	ck_assert(caller->ended);
	ck_assert(!process->ended);
	ck_assert_uint_eq(process->live_threads, 1);
	ck_assert_uint_eq(processes_count(processes), 1);
	ck_assert_ptr_null(space_next(process->space, 0));
	exit_task(100, 100, 20);
	ck_assert(process->ended);
}
END_TEST

START_TEST(pid_used_again_is_another_process)
{
	const struct process *first, *second;

	fork_task(200, 200, 100, 100, 0, 10);
	first = processes_find(processes, 200);
	exit_task(200, 200, 20);
	fork_task(200, 200, 100, 100, 0, 30);
	second = processes_find(processes, 200);
	ck_assert_ptr_ne(first, second);
	ck_assert(first->ended);
	ck_assert(!second->ended);
	/* The same when the first one's end was lost. */
	fork_task(200, 200, 100, 100, 0, 40);
	ck_assert_ptr_ne(processes_find(processes, 200), second);
	ck_assert(second->ended);
	ck_assert_uint_eq(second->ended_ns, 40);
	ck_assert_uint_eq(processes_find(processes, 200)->live_threads, 1);
}
END_TEST

START_TEST(thread_nothing_told_of_brings_its_process_back)
{
	const struct process *process = processes_find(processes, 100);

	exit_task(100, 100, 10);
	ck_assert(process->ended);
	thread_of(100, 105);
	ck_assert(!process->ended);
	ck_assert_uint_eq(processes_count(processes), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("processes");
	TCase *life = tcase_create("life");
	SRunner *runner = srunner_create(suite);
	int failures;

	tcase_add_checked_fixture(life, setup, teardown);
	tcase_add_test(life, threads_share_and_the_last_one_ends_the_process);
	tcase_add_test(life, fork_copies_the_space);
	tcase_add_test(life, vfork_borrows_the_space_until_exec);
	tcase_add_test(life, exec_of_the_owner_leaves_the_space_to_the_borrower);
	tcase_add_test(life, exec_from_a_thread_ends_the_others);
	tcase_add_test(life, pid_used_again_is_another_process);
	tcase_add_test(life, thread_nothing_told_of_brings_its_process_back);
	suite_add_tcase(suite, life);
	srunner_run_all(runner, CK_NORMAL);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
