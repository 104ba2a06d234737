// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "model/processes.h"
#include "support/suite.h"

#define PAGE 4096ULL

static struct processes *processes;
static uint64_t allocated[64]; /* bytes by index of the process */

static void on_allocated(void *context, const struct space_interval *interval)
{
	*(uint64_t *)context += interval->end - interval->start;
}

static bool observe(void *context, struct process *process, struct space_observer *observer_ret)
{
	ck_assert_ptr_eq(context, allocated);
	*observer_ret = (struct space_observer){.allocated = on_allocated, .context = &allocated[process->index]};
	return true;
}

#define NOW_NS 1000

static struct thread *thread_of(int32_t pid, int32_t tid)
{
	struct thread *thread = NULL;

	ck_assert_ptr_null(processes_thread(processes, pid, tid, NOW_NS, &thread));
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
	const struct space_call call = {.kind = CALL_MMAP,
					.arguments = {0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
					.result = (int64_t)(page * PAGE),
					.time_ns = time_ns,
					.thread = pid,
					.allocation = ALLOCATION_FIRST};

	ck_assert_ptr_null(space_apply(processes_find(processes, pid)->space, &call));
}

static void setup(void)
{
	const struct processes_options options = {.page_bytes = PAGE, .observe = observe, .context = allocated};

	ck_assert_ptr_null(processes_create(&options, &processes));
	thread_of(100, 100);
	processes_find(processes, 100)->recorded = true;
	ck_assert_ptr_null(processes_comm(processes, thread_of(100, 100), "main", false, 1));
}

static void teardown(void)
{
	processes_destroy(processes);
}

static unsigned count_live(const struct process *process)
{
	unsigned count = 0;

	for (const struct thread *thread = process->threads; thread; thread = thread->next)
		count++;
	return count;
}

/* Only a damaged file has such a FORK record. */
START_TEST(fork_of_no_process_changes_nothing)
{
	size_t count = processes->all.count;

	ck_assert_ptr_null(processes_fork(processes, -1, 999, -1, 999, 10));
	ck_assert_ptr_null(processes_fork(processes, -1, 999, 100, 100, 10));
	ck_assert_ptr_null(processes_fork(processes, 200, 200, -1, 999, 10));
	ck_assert_uint_eq(processes->all.count, count);
}
END_TEST

START_TEST(threads_share_the_space_and_the_last_ends_the_process)
{
	const struct process *process = processes_find(processes, 100);
	struct thread *first = thread_of(100, 100), *second;

	fork_task(100, 101, 100, 100, CLONE_VM | CLONE_THREAD, 10);
	second = thread_of(-1, 101);
	ck_assert_ptr_nonnull(second);
	ck_assert_uint_eq(second->process, first->process);
	ck_assert_str_eq(intern_get(&processes->names, second->name, NULL), "main");
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
	ck_assert_str_eq(intern_get(&processes->names, process->name, NULL), "main");
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
	ck_assert_uint_eq(allocated[child->index], 0);
	map(200, 20, 11);
	ck_assert_ptr_null(space_find(processes_find(processes, 100)->space, 20 * PAGE));
	ck_assert_str_eq(intern_get(&processes->names, child->name, NULL), "main");
}
END_TEST

START_TEST(vfork_borrows_the_space_until_exec)
{
	struct process *child, *parent = processes_find(processes, 100);

	fork_task(200, 200, 100, 100, CLONE_VM | CLONE_VFORK, 10);
	child = processes_find(processes, 200);
	ck_assert(child->borrows_space);
	ck_assert_ptr_eq(child->space, parent->space);
	ck_assert_uint_eq(processes_holder(processes, child), parent->index);
	map(200, 20, 11);
	exec_task(200, 200, 12);
	ck_assert_uint_eq(processes_holder(processes, child), child->index);
	ck_assert(!child->borrows_space);
	ck_assert_ptr_ne(child->space, parent->space);
	ck_assert_ptr_null(space_next(child->space, 0));
	ck_assert_ptr_nonnull(space_find(parent->space, 20 * PAGE));
	ck_assert_str_eq(intern_get(&processes->names, child->name, NULL), "new");
}
END_TEST

/* A vfork of a process with very many mappings must cost nothing. */
START_TEST(vfork_copies_no_mappings)
{
	const struct process *child;

	map(100, 10, 5);
	ck_assert_ptr_null(processes_fork(processes, 200, 200, 100, 100, 10));
	child = processes_find(processes, 200);
	ck_assert_ptr_eq(child->space, processes_find(processes, 100)->space);
	ck_assert_ptr_null(processes_new_task(processes, 200, CLONE_VM | CLONE_VFORK));
	ck_assert_uint_eq(allocated[child->index], 0);
	ck_assert_ptr_eq(child->space, processes_find(processes, 100)->space);
	exec_task(200, 200, 12);
	exit_task(200, 200, 13);
	ck_assert_ptr_nonnull(space_find(processes_find(processes, 100)->space, 10 * PAGE));
}
END_TEST

/* Files of plain perf have no clone flags, and other threads' events may precede them. */
START_TEST(fork_is_a_copy_as_soon_as_anything_else_happens)
{
	const struct process *child, *other;

	map(100, 10, 5);
	ck_assert_ptr_null(processes_fork(processes, 200, 200, 100, 100, 10));
	thread_of(100, 100);
	child = processes_find(processes, 200);
	ck_assert_ptr_ne(child->space, processes_find(processes, 100)->space);
	ck_assert_uint_eq(space_counts(child->space).before_bytes, PAGE);
	/* Late flags. */
	ck_assert_ptr_null(processes_new_task(processes, 200, CLONE_VM | CLONE_VFORK));
	ck_assert_ptr_eq(child->space, processes_find(processes, 100)->space);
	/* Another fork, and an exit. */
	ck_assert_ptr_null(processes_fork(processes, 300, 300, 100, 100, 20));
	ck_assert_ptr_null(processes_fork(processes, 400, 400, 100, 100, 21));
	other = processes_find(processes, 300);
	ck_assert(!other->borrows_space);
	exit_task(300, 300, 22);
	ck_assert(!processes_find(processes, 400)->borrows_space);
	ck_assert_uint_eq(space_counts(processes_find(processes, 400)->space).before_bytes, PAGE);
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
	/* 101 calls exec: 102 and the leader exit, 101 continues as 100. */
	exit_task(100, 102, 13);
	exit_task(100, 100, 14);
	exec_task(100, 100, 15);
	ck_assert(caller->ended);
	ck_assert(!process->ended);
	ck_assert_uint_eq(count_live(process), 1);
	ck_assert_uint_eq(processes->all.count, 1);
	ck_assert_ptr_null(space_next(process->space, 0));
	exit_task(100, 100, 20);
	ck_assert(process->ended);
}
END_TEST

START_TEST(reused_pid_is_another_process)
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
	/* The same if the end of the first one was lost. */
	fork_task(200, 200, 100, 100, 0, 40);
	ck_assert_ptr_ne(processes_find(processes, 200), second);
	ck_assert(second->ended);
	ck_assert_uint_eq(second->ended_ns, 40);
	ck_assert_uint_eq(count_live(processes_find(processes, 200)), 1);
}
END_TEST

START_TEST(unknown_thread_brings_its_process_back)
{
	const struct process *process = processes_find(processes, 100);

	exit_task(100, 100, 10);
	ck_assert(process->ended);
	thread_of(100, 105);
	ck_assert(!process->ended);
	ck_assert_uint_eq(processes->all.count, 1);
}
END_TEST

START_TEST(forgotten_process_leaves_no_space)
{
	struct process *first, *second;
	uint64_t generation;

	fork_task(200, 200, 100, 100, 0, 10);
	fork_task(201, 201, 100, 100, 0, 10);
	map(200, 10, 11);
	exit_task(200, 200, 12);
	exit_task(201, 201, 12);
	first = processes_find(processes, 200);
	second = processes_find(processes, 201);
	ck_assert_ptr_ne(first->space, second->space);
	space_exec(first->space);
	generation = space_code_generation(first->space);
	processes_release_space(processes, first);
	processes_release_space(processes, second);
	ck_assert_ptr_eq(first->space, second->space);
	ck_assert_ptr_null(space_next(first->space, 0));
	/* A process that returns has its own address space, of which as much is known as of the other one. */
	thread_of(200, 205);
	ck_assert(!first->ended);
	ck_assert_ptr_ne(first->space, second->space);
	ck_assert(space_is_described(first->space));
	ck_assert_uint_ge(space_code_generation(first->space), generation);
	map(200, 30, 13);
	ck_assert_uint_eq(space_counts(first->space).mapped_bytes, PAGE);
	ck_assert_ptr_null(space_next(second->space, 0));
	thread_of(201, 206);
	ck_assert(!space_is_described(second->space));
}
END_TEST

START_TEST(shared_space_is_not_released)
{
	struct process *child, *parent = processes_find(processes, 100);

	/* Alive. */
	processes_release_space(processes, parent);
	thread_of(100, 100);
	map(100, 10, 5);
	/* The child owns it when the parent ends, and the parent still refers to it. */
	fork_task(200, 200, 100, 100, CLONE_VM, 10);
	child = processes_find(processes, 200);
	exit_task(100, 100, 12);
	processes_release_space(processes, parent);
	ck_assert_ptr_eq(child->space, parent->space);
	ck_assert_ptr_nonnull(space_find(child->space, 10 * PAGE));
	exit_task(200, 200, 13);
	processes_release_space(processes, child);
	ck_assert_ptr_eq(child->space, parent->space);
	ck_assert_ptr_nonnull(space_find(parent->space, 10 * PAGE));
	/* Either of them may reappear. */
	thread_of(100, 105);
	ck_assert_ptr_eq(child->space, parent->space);
	map(100, 30, 14);
	ck_assert_ptr_nonnull(space_find(child->space, 30 * PAGE));
}
END_TEST

START_TEST(posix_spawn_maps_in_the_parent_until_the_child_execs)
{
	struct process *child, *parent = processes_find(processes, 100);

	map(100, 10, 5);
	fork_task(200, 200, 100, 100, CLONE_VM | CLONE_VFORK, 10);
	child = processes_find(processes, 200);
	/* The child unmaps nothing; its exec does not empty the parent, and its later calls are its own. */
	exec_task(200, 200, 12);
	map(200, 30, 13);
	ck_assert_ptr_nonnull(space_find(parent->space, 10 * PAGE));
	ck_assert_ptr_null(space_find(parent->space, 30 * PAGE));
	ck_assert_uint_eq(space_counts(child->space).mapped_bytes, PAGE);
	exit_task(200, 200, 20);
	ck_assert(child->ended);
	ck_assert(!child->borrows_space);
	ck_assert_uint_eq(space_counts(child->space).mapped_bytes, PAGE);
	ck_assert_uint_eq(space_counts(parent->space).mapped_bytes, PAGE);
}
END_TEST

START_TEST(vfork_that_only_exits_leaves_the_space_alone)
{
	struct process *parent = processes_find(processes, 100);

	map(100, 10, 5);
	for (int32_t pid = 200; pid < 220; pid++) {
		fork_task(pid, pid, 100, 100, CLONE_VM | CLONE_VFORK, 10);
		map(pid, (uint64_t)pid, 11);
		exit_task(pid, pid, 12);
		ck_assert(processes_find(processes, pid)->borrows_space);
	}
	ck_assert_ptr_eq(parent->next_sharer, parent);
	ck_assert(!parent->borrows_space);
	ck_assert_uint_eq(space_counts(parent->space).mapped_bytes, 21 * PAGE);
	exec_task(100, 100, 30);
	ck_assert_ptr_null(space_next(parent->space, 0));
}
END_TEST

START_TEST(clone_vm_shares_in_both_directions)
{
	struct process *child, *parent = processes_find(processes, 100);

	fork_task(200, 200, 100, 100, CLONE_VM, 10);
	child = processes_find(processes, 200);
	map(100, 10, 11);
	map(200, 20, 12);
	ck_assert_ptr_nonnull(space_find(child->space, 10 * PAGE));
	ck_assert_ptr_nonnull(space_find(parent->space, 20 * PAGE));
	ck_assert_uint_eq(child->thread_count, 1);
	ck_assert_uint_eq(parent->thread_count, 1);
	ck_assert_uint_eq(allocated[child->index], 0);
}
END_TEST

START_TEST(clone_without_clone_vm_copies)
{
	struct process *child, *parent = processes_find(processes, 100);

	map(100, 10, 5);
	fork_task(200, 200, 100, 100, CLONE_FS | CLONE_FILES, 10);
	child = processes_find(processes, 200);
	ck_assert(!child->borrows_space);
	ck_assert_ptr_ne(child->space, parent->space);
	map(200, 20, 12);
	ck_assert_uint_eq(space_counts(child->space).before_bytes, PAGE);
	ck_assert_uint_eq(space_counts(child->space).mapped_bytes, PAGE);
	ck_assert_ptr_null(space_find(parent->space, 20 * PAGE));
}
END_TEST

START_TEST(end_of_the_owner_leaves_the_space_to_the_borrower)
{
	struct process *child, *parent = processes_find(processes, 100);

	map(100, 10, 5);
	fork_task(200, 200, 100, 100, CLONE_VM, 10);
	child = processes_find(processes, 200);
	exit_task(100, 100, 20);
	ck_assert(parent->ended);
	ck_assert(parent->borrows_space);
	ck_assert(!child->borrows_space);
	ck_assert_ptr_nonnull(space_find(child->space, 10 * PAGE));
	exec_task(200, 200, 30);
	ck_assert_ptr_null(space_next(child->space, 0));
}
END_TEST

START_TEST(exec_of_a_borrower_leaves_the_others_sharing)
{
	struct process *parent = processes_find(processes, 100), *first, *second;

	map(100, 10, 5);
	fork_task(200, 200, 100, 100, CLONE_VM, 10);
	first = processes_find(processes, 200);
	fork_task(300, 300, 200, 200, CLONE_VM, 11);
	second = processes_find(processes, 300);
	ck_assert_ptr_eq(second->space, parent->space);
	exec_task(200, 200, 12);
	ck_assert_ptr_ne(first->space, parent->space);
	ck_assert_ptr_eq(second->space, parent->space);
	/* The owner exits too: the last process owns it. */
	exec_task(100, 100, 13);
	ck_assert(!second->borrows_space);
	ck_assert_ptr_nonnull(space_find(second->space, 10 * PAGE));
	ck_assert_ptr_null(space_next(parent->space, 0));
	ck_assert_ptr_null(space_next(first->space, 0));
}
END_TEST

START_TEST(fork_of_a_borrower_copies_what_it_borrows)
{
	fork_task(200, 200, 100, 100, CLONE_VM | CLONE_VFORK, 10);
	map(200, 20, 11);
	fork_task(300, 300, 200, 200, 0, 12);
	ck_assert(!processes_find(processes, 300)->borrows_space);
	ck_assert_uint_eq(space_counts(processes_find(processes, 300)->space).before_bytes, PAGE);
}
END_TEST

START_TEST(fork_of_a_thread_copies_the_space_of_its_process)
{
	const struct process *child;

	fork_task(100, 101, 100, 100, CLONE_VM | CLONE_THREAD, 10);
	map(100, 10, 11);
	fork_task(200, 200, 100, 101, 0, 12);
	child = processes_find(processes, 200);
	ck_assert_int_eq(child->parent_pid, 100);
	ck_assert_uint_eq(count_live(child), 1);
	ck_assert_uint_eq(space_counts(child->space).before_bytes, PAGE);
}
END_TEST

START_TEST(group_exit_in_any_order_ends_the_process_with_its_last_thread)
{
	const struct process *process = processes_find(processes, 100);

	for (int32_t tid = 101; tid < 105; tid++)
		fork_task(100, tid, 100, 100, CLONE_VM | CLONE_THREAD, 10);
	map(100, 10, 11);
	exit_task(100, 103, 20);
	exit_task(100, 100, 21);
	exit_task(100, 101, 22);
	exit_task(100, 104, 23);
	ck_assert(!process->ended);
	ck_assert_uint_eq(count_live(process), 1);
	exit_task(100, 102, 24);
	ck_assert(process->ended);
	ck_assert_uint_eq(process->ended_ns, 24);
	ck_assert_uint_eq(space_counts(process->space).mapped_bytes, PAGE);
	ck_assert_uint_eq(process->thread_count, 5);
}
END_TEST

START_TEST(process_whose_fork_was_lost_is_not_described)
{
	struct thread *thread = thread_of(500, 501);
	const struct process *process = processes_find(processes, 500);

	ck_assert_ptr_nonnull(thread);
	ck_assert_ptr_nonnull(process);
	ck_assert_int_eq(process->parent_pid, 0);
	ck_assert_uint_eq(count_live(process), 1);
	ck_assert(!space_is_described(process->space));
	map(500, 10, 11);
	ck_assert_uint_eq(space_counts(process->space).mapped_bytes, PAGE);
	/* Its other threads follow it, with records or without. */
	thread_of(500, 502);
	fork_task(500, 503, 500, 501, CLONE_VM | CLONE_THREAD, 12);
	ck_assert_uint_eq(count_live(process), 3);
	exit_task(500, 501, 13);
	exit_task(500, 502, 14);
	ck_assert(!process->ended);
	exit_task(500, 503, 15);
	ck_assert(process->ended);
}
END_TEST

START_TEST(reused_tid_ends_the_thread_whose_exit_was_lost)
{
	struct thread *first, *second;

	fork_task(100, 101, 100, 100, CLONE_VM | CLONE_THREAD, 10);
	first = thread_of(100, 101);
	fork_task(200, 200, 100, 100, 0, 11);
	fork_task(200, 101, 200, 200, CLONE_VM | CLONE_THREAD, 12);
	second = thread_of(-1, 101);
	ck_assert_ptr_ne(first, second);
	ck_assert(first->ended);
	ck_assert_uint_eq(count_live(processes_find(processes, 100)), 1);
	ck_assert_uint_eq(count_live(processes_find(processes, 200)), 2);
	ck_assert_ptr_eq(processes->all.items[second->process], processes_find(processes, 200));
}
END_TEST

/* Memory of such a process is released when that was noticed, not at the start of the recording. */
START_TEST(lost_exit_has_the_time_when_it_was_noticed)
{
	const struct process *told, *seen;

	fork_task(300, 300, 100, 100, 0, 10);
	fork_task(400, 400, 100, 100, 0, 11);
	told = processes_find(processes, 300);
	seen = processes_find(processes, 400);
	fork_task(100, 300, 100, 100, CLONE_VM | CLONE_THREAD, 12);
	ck_assert(told->ended);
	ck_assert_uint_eq(told->ended_ns, 12);
	thread_of(100, 400);
	ck_assert(seen->ended);
	ck_assert_uint_eq(seen->ended_ns, NOW_NS);
}
END_TEST

/* A thread group that shares its address space cannot be new, but a file may claim it. */
START_TEST(late_flags_keep_a_shared_space)
{
	struct space *space;

	thread_of(1, 1);
	fork_task(2, 2, 1, 1, 0, 10);
	space = processes_find(processes, 2)->space;
	fork_task(3, 3, 2, 2, CLONE_VM, 20);
	map(2, 5, 30);
	ck_assert_ptr_null(processes_new_task(processes, 2, CLONE_VM));
	ck_assert_ptr_eq(processes_find(processes, 2)->space, space);
	ck_assert_ptr_eq(processes_find(processes, 3)->space, space);
	ck_assert_uint_eq(space_counts(processes_find(processes, 3)->space).mapped_bytes, PAGE);
}
END_TEST

START_TEST(late_flags_leave_no_process_without_a_space)
{
	thread_of(1, 1);
	/* The heir of the address space: its new owner is reported. */
	fork_task(2, 2, 1, 1, CLONE_VM, 10);
	exit_task(1, 1, 20);
	map(2, 5, 30);
	ck_assert_ptr_null(processes_new_task(processes, 2, CLONE_VM));
	ck_assert_uint_eq(space_counts(processes_find(processes, 2)->space).mapped_bytes, PAGE);
	/* A process that has ended and reappears. */
	fork_task(3, 3, 2, 2, 0, 40);
	fork_task(4, 4, 3, 3, CLONE_VM, 50);
	exit_task(4, 4, 60);
	ck_assert_ptr_null(processes_new_task(processes, 3, CLONE_VM));
	ck_assert_ptr_eq(processes_find(processes, 3)->space, processes_find(processes, 2)->space);
	thread_of(4, 4);
	map(4, 9, 70);
	ck_assert_uint_eq(space_counts(processes_find(processes, 4)->space).mapped_bytes, PAGE);
}
END_TEST

START_TEST(repeated_fork_record_makes_no_second_process)
{
	/* Records that perf synthesizes at its start for existing tasks have the time 0. */
	fork_task(200, 200, 100, 100, 0, 10);
	fork_task(200, 200, 100, 100, 0, 10);
	fork_task(200, 200, 100, 100, 0, 0);
	ck_assert_uint_eq(processes->all.count, 2);
	ck_assert_uint_eq(count_live(processes_find(processes, 200)), 1);
}
END_TEST

/* More than a recording of a certain size can have. */
START_TEST(too_many_processes_are_an_error)
{
	const struct processes_options options = {.page_bytes = PAGE, .processes_max = 3};
	struct processes *few = NULL;
	struct thread *thread = NULL;
	struct mmt_error *error;

	ck_assert_ptr_null(processes_create(&options, &few));
	for (int32_t pid = 1; pid <= 3; pid++)
		ck_assert_ptr_null(processes_thread(few, pid, pid, NOW_NS, &thread));
	ck_assert_ptr_null(processes_thread(few, 3, 4, NOW_NS, &thread));
	error = processes_thread(few, 5, 5, NOW_NS, &thread);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
	mmt_error_destroy(error);
	error = processes_fork(few, 6, 6, 1, 1, NOW_NS);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
	/* Those that were released count less. */
	ck_assert_ptr_null(processes_exit(few, 2, 2, NOW_NS));
	processes_release_space(few, processes_find(few, 2));
	ck_assert_ptr_null(processes_thread(few, 5, 5, NOW_NS, &thread));
	error = processes_thread(few, 7, 7, NOW_NS, &thread);
	ck_assert_ptr_nonnull(error);
	mmt_error_destroy(error);
	processes_destroy(few);
}
END_TEST

/* It takes as many steps as the process has threads, however many others have. */
START_TEST(exec_ends_only_the_threads_of_its_process)
{
	struct thread *first = thread_of(1, 1), *second = thread_of(1, 2), *third = thread_of(1, 3);
	struct thread *other = thread_of(9, 9);

	ck_assert_uint_eq(count_live(processes_find(processes, 1)), 3);
	exit_task(1, 2, NOW_NS);
	ck_assert(second->ended);
	exec_task(1, 3, NOW_NS);
	ck_assert(first->ended);
	ck_assert(!third->ended);
	ck_assert(!other->ended);
	ck_assert_ptr_eq(processes_find(processes, 1)->threads, third);
	ck_assert_ptr_null(third->next);
	ck_assert_ptr_null(third->previous);
	exit_task(1, 3, NOW_NS);
	ck_assert_ptr_null(processes_find(processes, 1)->threads);
	ck_assert(processes_find(processes, 1)->ended);
}
END_TEST

/* A fork takes few bytes in a recording, and its copy much memory and time. */
START_TEST(too_many_inherited_mappings_are_left_out)
{
	struct processes_options options = {.page_bytes = PAGE,
					    .intervals_max = _i ? 1000 : 215,
					    .copies_max = _i ? 200 : 1000,
					    .observe = observe,
					    .context = allocated};

	processes_destroy(processes);
	ck_assert_ptr_null(processes_create(&options, &processes));
	thread_of(100, 100);
	exec_task(100, 100, 1);
	for (uint64_t page = 10; page < 50; page++)
		map(100, 2 * page, 5);
	/* Two copies of 40 mappings are made; each counts 32 more for the space itself. */
	for (int32_t pid = 200; pid < 203; pid++) {
		bool copied = pid < 202;

		fork_task(pid, pid, 100, 100, 0, 10);
		ck_assert_int_eq(space_is_described(processes_find(processes, pid)->space), copied);
		ck_assert_uint_eq(space_counts(processes_find(processes, pid)->space).intervals, copied ? 40 : 0);
	}
	ck_assert_uint_eq(processes->not_copied, 1);
	/* What an exec releases can be copied again. */
	for (int32_t pid = 200; pid < 203; pid++)
		exec_task(pid, pid, 20);
	fork_task(300, 300, 100, 100, 0, 30);
	ck_assert_int_eq(space_is_described(processes_find(processes, 300)->space), !_i);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("processes");
	TCase *life = add_tcase(suite, "life");

	tcase_add_checked_fixture(life, setup, teardown);
	tcase_add_tests(
	    life, fork_of_no_process_changes_nothing, threads_share_the_space_and_the_last_ends_the_process,
	    fork_copies_the_space, vfork_borrows_the_space_until_exec, vfork_copies_no_mappings,
	    fork_is_a_copy_as_soon_as_anything_else_happens, exec_of_the_owner_leaves_the_space_to_the_borrower,
	    exec_from_a_thread_ends_the_others, reused_pid_is_another_process, unknown_thread_brings_its_process_back,
	    forgotten_process_leaves_no_space, shared_space_is_not_released,
	    posix_spawn_maps_in_the_parent_until_the_child_execs, vfork_that_only_exits_leaves_the_space_alone,
	    clone_vm_shares_in_both_directions, clone_without_clone_vm_copies,
	    end_of_the_owner_leaves_the_space_to_the_borrower, exec_of_a_borrower_leaves_the_others_sharing,
	    fork_of_a_borrower_copies_what_it_borrows, fork_of_a_thread_copies_the_space_of_its_process,
	    group_exit_in_any_order_ends_the_process_with_its_last_thread, process_whose_fork_was_lost_is_not_described,
	    lost_exit_has_the_time_when_it_was_noticed, reused_tid_ends_the_thread_whose_exit_was_lost,
	    late_flags_keep_a_shared_space, late_flags_leave_no_process_without_a_space,
	    repeated_fork_record_makes_no_second_process, too_many_processes_are_an_error,
	    exec_ends_only_the_threads_of_its_process);
	tcase_add_loop_test(life, too_many_inherited_mappings_are_left_out, 0, 2);
	return suite;
}
