// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls are moved to the time of their mmap_lock: the output, its order and its timestamps. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/replay/effect-order.h"
#include "support/suite.h"

#define SPACE_A 0xffff888000001000ULL
#define SPACE_B 0xffff888000002000ULL
#define SPACE_C 0xffff888000003000ULL

static struct effect_order *order;
static char out[8192]; /* "name@time ..." of all output; a number names an event */
static size_t out_length;
static uint64_t returned_ns; /* of the last call in the output */

static void create(void)
{
	ck_assert_ptr_null(effect_order_create(&order));
	out[0] = '\0';
	out_length = 0;
}

static void destroy(void)
{
	effect_order_destroy(order);
}

static const char *name(const struct event *event)
{
	static const char *const names[] = {
	    [EVENT_CALL] = "call",    [EVENT_CALL_ENTER] = "enter",   [EVENT_STACK_DUMP] = "dump",
	    [EVENT_NEW_TASK] = "new", [EVENT_MAPPING] = "map",	      [EVENT_COMM] = "comm",
	    [EVENT_FORK] = "fork",    [EVENT_EXIT] = "exit",	      [EVENT_LOCK] = "lock",
	    [EVENT_LOST] = "lost",    [EVENT_SNAPSHOT_LINE] = "line",
	};

	return names[event->kind];
}

static void take(void)
{
	struct event event;

	while (effect_order_next(order, &event)) {
		ck_assert_uint_lt(out_length, sizeof(out) - 64);
		returned_ns = event.kind == EVENT_CALL ? event.call.returned_ns : 0;
		out_length +=
		    (size_t)snprintf(out + out_length, sizeof(out) - out_length, "%s%s%d@%llu", out_length ? " " : "",
				     name(&event), (int)event.file_offset, (unsigned long long)event.time_ns);
	}
}

static void push(const struct event *event)
{
	ck_assert_ptr_null(effect_order_push(order, event));
	take();
}

static void expect(const char *text)
{
	ck_assert_str_eq(out, text);
	out[0] = '\0';
	out_length = 0;
}

static void end(const char *text)
{
	effect_order_end(order);
	take();
	expect(text);
}

/* Threads of process 1 have TIDs from 10, those of process N from 10 N. */
static struct event make(enum event_kind kind, int number, uint64_t time_ns, int32_t tid)
{
	return (struct event){
	    .kind = kind, .time_ns = time_ns, .pid = tid / 10, .tid = tid, .file_offset = (uint64_t)number};
}

static void lock(uint64_t time_ns, int32_t tid, uint64_t space)
{
	struct event event = make(EVENT_LOCK, 0, time_ns, tid);

	event.lock.space = space;
	push(&event);
}

static void result(enum call call, int number, uint64_t time_ns, int32_t tid, int64_t value)
{
	struct event event = make(EVENT_CALL, number, time_ns, tid);

	event.call.call = call;
	event.call.at_entry = call_describe(call)->at_entry;
	event.call.has_arguments = true;
	event.call.result = value;
	push(&event);
}

static void call(int number, uint64_t time_ns, int32_t tid)
{
	result(CALL_MUNMAP, number, time_ns, tid, 0);
}

static void part(enum event_kind kind, int number, uint64_t time_ns, int32_t tid)
{
	struct event event = make(kind, number, time_ns, tid);

	if (kind == EVENT_MAPPING)
		event.mapping.path = "//anon";
	else if (kind == EVENT_STACK_DUMP)
		event.call.call = CALL_MMAP;
	push(&event);
}

static void fork_process(int number, uint64_t time_ns, int32_t tid, int32_t child)
{
	struct event event = make(EVENT_FORK, number, time_ns, tid);

	event.task.pid = child / 10;
	event.task.tid = child;
	event.task.parent_pid = tid / 10;
	event.task.parent_tid = tid;
	push(&event);
}

static void new_task(int number, uint64_t time_ns, int32_t tid, int32_t child, uint64_t flags)
{
	struct event event = make(EVENT_NEW_TASK, number, time_ns, tid);

	event.new_task.tid = child;
	event.new_task.clone_flags = flags;
	push(&event);
}

static void comm(int number, uint64_t time_ns, int32_t tid, bool exec)
{
	struct event event = make(EVENT_COMM, number, time_ns, tid);

	event.comm.name = "program";
	event.comm.exec = exec;
	push(&event);
}

static void exit_thread(int number, uint64_t time_ns, int32_t tid)
{
	struct event event = make(EVENT_EXIT, number, time_ns, tid);

	event.task.pid = tid / 10;
	event.task.tid = tid;
	push(&event);
}

START_TEST(a_call_takes_effect_at_its_lock)
{
	lock(100, 10, SPACE_A);
	expect("");
	call(1, 120, 10);
	expect("call1@100");
	ck_assert_uint_eq(returned_ns, 120);
	call(2, 130, 10); /* took none, or before the recording began */
	ck_assert_uint_eq(returned_ns, 0);
	expect("call2@130");
	end("");
}
END_TEST

/* A munmap waits for the lock and returns long after an mmap that took it first. */
START_TEST(order_is_that_of_locks_not_of_exits)
{
	lock(100, 10, SPACE_A);
	lock(110, 11, SPACE_A);
	call(1, 120, 11);
	expect("");
	call(2, 130, 10);
	expect("call2@100 call1@110");
	end("");
}
END_TEST

/* brk shrinks, another thread maps the freed range and returns first; a third thread unmaps that and returns last. */
START_TEST(interleaved_brk_and_munmap)
{
	lock(100, 10, SPACE_A);
	lock(105, 11, SPACE_A);
	lock(110, 12, SPACE_A);
	result(CALL_MMAP, 2, 120, 11, 0x555500000000);
	result(CALL_BRK, 1, 125, 10, 0x555500000000);
	expect("call1@100 call2@105");
	lock(127, 10, SPACE_A);
	result(CALL_BRK, 4, 128, 10, 0x555500001000);
	expect("");
	result(CALL_MUNMAP, 3, 130, 12, 0);
	expect("call3@110 call4@127");
	end("");
}
END_TEST

START_TEST(attachments_of_a_call_move_with_it)
{
	lock(100, 10, SPACE_A);
	part(EVENT_MAPPING, 1, 105, 10);
	lock(106, 11, SPACE_A);
	part(EVENT_MAPPING, 2, 107, 11);
	part(EVENT_STACK_DUMP, 3, 110, 11);
	call(4, 111, 11);
	part(EVENT_STACK_DUMP, 5, 112, 10);
	expect("");
	call(6, 113, 10);
	expect("map1@100 dump5@100 call6@100 map2@106 dump3@106 call4@106");
	part(EVENT_STACK_DUMP, 7, 114, 10); /* behind its call: where it stands */
	expect("dump7@114");
	end("");
}
END_TEST

/* mlock, MADV_HUGEPAGE, stack growth: the first lock belongs to no recorded call. */
START_TEST(a_second_lock_supersedes_the_first)
{
	lock(100, 10, SPACE_A);
	part(EVENT_MAPPING, 1, 101, 10);
	lock(102, 11, SPACE_A);
	call(2, 103, 11);
	expect("");
	lock(110, 10, SPACE_A);
	expect("map1@101 call2@102");
	part(EVENT_MAPPING, 3, 111, 10);
	call(4, 112, 10);
	expect("map3@110 call4@110");
	end("");
}
END_TEST

/* dup_mmap locks the old address space, then the new one; others change the old one before the FORK. */
START_TEST(a_fork_copies_at_its_first_lock)
{
	lock(100, 10, SPACE_A);
	lock(101, 10, SPACE_B);
	lock(105, 11, SPACE_A);
	call(1, 106, 11);
	expect("");
	fork_process(2, 110, 10, 20);
	expect("");
	new_task(3, 111, 10, 20, 0x1200011);
	expect("fork2@100 new3@100 call1@105");
	lock(120, 20, SPACE_B);
	call(4, 121, 20);
	expect("call4@120");
	end("");
}
END_TEST

/* The lock before the fork was superseded by the fork's own. */
START_TEST(a_fork_takes_its_own_lock)
{
	lock(90, 10, SPACE_A);
	part(EVENT_MAPPING, 1, 91, 10);
	lock(100, 10, SPACE_A);
	lock(101, 10, SPACE_B);
	fork_process(2, 110, 10, 20);
	new_task(3, 111, 10, 20, 0);
	expect("map1@91 fork2@100 new3@100");
	end("");
}
END_TEST

/* A debugger locked another process long ago. */
START_TEST(a_lock_by_another_process_is_ignored)
{
	lock(80, 10, SPACE_C);
	lock(90, 10, SPACE_A);
	call(1, 95, 10);
	expect("call1@90");
	lock(97, 10, SPACE_C);
	lock(100, 10, SPACE_A);
	lock(101, 10, SPACE_B);
	fork_process(2, 110, 10, 20);
	new_task(3, 111, 10, 20, 0);
	expect("fork2@100 new3@100");
	end("");
}
END_TEST

START_TEST(a_fork_without_flags_copies)
{
	lock(100, 10, SPACE_A);
	lock(101, 10, SPACE_B);
	lock(105, 11, SPACE_A);
	call(1, 106, 11);
	fork_process(2, 110, 10, 20);
	lock(120, 10, SPACE_A);
	expect("fork2@100 call1@105");
	call(3, 121, 10);
	expect("call3@120");
	end("");
}
END_TEST

/* vfork and new threads copy nothing: the lock belongs to an earlier call. */
START_TEST(a_clone_that_shares_the_space_took_no_lock)
{
	lock(100, 10, SPACE_A);
	fork_process(1, 110, 10, 20);
	expect("");
	new_task(2, 111, 10, 20, CLONE_VM | CLONE_VFORK);
	expect("fork1@110 new2@111");
	lock(120, 10, SPACE_A);
	fork_process(3, 130, 10, 11);
	expect("fork3@130");
	new_task(4, 131, 10, 11, CLONE_VM | CLONE_THREAD);
	expect("new4@131");
	end("");
}
END_TEST

START_TEST(the_end_of_a_thread_ends_its_lock)
{
	lock(100, 10, SPACE_A);
	lock(101, 11, SPACE_A);
	call(1, 102, 11);
	expect("");
	exit_thread(2, 110, 10); /* it gave its memory back */
	expect("call1@101 exit2@110");
	call(3, 120, 10); /* another thread of that number */
	expect("call3@120");
	end("");
}
END_TEST

/* The new address space is locked often before the program runs, by a thread whose TID may change; the old one when
 * it ends. */
START_TEST(exec_ends_its_locks)
{
	lock(100, 12, SPACE_B);
	lock(101, 12, SPACE_B);
	lock(105, 21, SPACE_C);
	call(1, 106, 21);
	lock(107, 10, SPACE_A);
	expect("");
	comm(2, 110, 10, true);
	expect("call1@105 comm2@110");
	lock(120, 10, SPACE_B);
	part(EVENT_MAPPING, 3, 121, 10);
	comm(4, 122, 10, false); /* a name has no meaning here */
	expect("");
	call(5, 123, 10);
	expect("map3@120 call5@120 comm4@122");
	end("");
}
END_TEST

START_TEST(an_entry_ends_a_lock)
{
	struct event event = make(EVENT_CALL_ENTER, 1, 110, 10);

	lock(100, 10, SPACE_A);
	push(&event);
	expect("enter1@110");
	call(2, 120, 10);
	expect("call2@120");
	end("");
}
END_TEST

/* madvise(MADV_DONTFORK) takes effect under the lock that it takes next; a fork in between copies without it. */
START_TEST(a_call_recorded_at_entry_takes_effect_at_its_lock)
{
	result(CALL_MADVISE, 1, 100, 10, 0);
	lock(101, 11, SPACE_A);
	lock(102, 11, SPACE_B);
	fork_process(2, 103, 11, 20);
	new_task(3, 104, 11, 20, 0);
	expect("");
	lock(110, 10, SPACE_A);
	expect("fork2@101 new3@101 call1@110");
	lock(115, 11, SPACE_A);
	call(4, 116, 11);
	lock(120, 10, SPACE_A);
	expect("call4@115");
	call(5, 121, 10);
	expect("call5@120");
	end("");
}
END_TEST

/* Recorded with --madvise: MADV_DONTNEED takes no write lock. */
START_TEST(a_madvise_that_returned_waits_for_no_lock)
{
	struct event event = make(EVENT_CALL, 1, 100, 10);

	event.call.call = CALL_MADVISE;
	event.call.has_arguments = true;
	push(&event);
	expect("call1@100");
	lock(110, 10, SPACE_A);
	call(2, 120, 10);
	expect("call2@110");
	end("");
}
END_TEST

START_TEST(a_call_recorded_at_entry_may_fail_before_its_lock)
{
	result(CALL_MADVISE, 1, 100, 10, 0);
	lock(101, 11, SPACE_A);
	call(2, 102, 11);
	expect("");
	call(3, 110, 10);
	expect("call1@100 call2@101 call3@110");
	result(CALL_MADVISE, 4, 120, 10, 0);
	end("call4@120");
}
END_TEST

/* A failed call may have changed something while it held its lock: mprotect up to a hole. */
START_TEST(a_failed_call_takes_effect_at_its_lock)
{
	lock(100, 10, SPACE_A);
	part(EVENT_MAPPING, 1, 101, 10);
	lock(102, 11, SPACE_A);
	call(2, 103, 11);
	result(CALL_MPROTECT, 3, 110, 10, -ENOMEM);
	expect("map1@100 call3@100 call2@102");
	end("");
}
END_TEST

/* mlock took the lock; the next call fails before it takes any. */
START_TEST(a_failed_call_does_not_take_a_stale_lock)
{
	lock(100, 10, SPACE_A);
	lock(101, 11, SPACE_A);
	call(1, 102, 11);
	result(CALL_MMAP, 2, 110, 10, -EBADF);
	expect("call1@101 call2@110");
	lock(200, 10, SPACE_A);
	part(EVENT_MAPPING, 3, 201, 10);
	result(CALL_MPROTECT, 4, 2000000000, 10, -EINVAL);
	expect("map3@201 call4@2000000000");
	end("");
}
END_TEST

/* The first call spends seconds filling its pages, which is allowed. */
START_TEST(a_call_may_last_for_seconds)
{
	lock(100, 10, SPACE_A);
	lock(200, 11, SPACE_A);
	call(1, 300, 11);
	result(CALL_MMAP, 2, EFFECT_ORDER_WAIT_NS + 100, 10, 0x7f0000000000);
	expect("call2@100 call1@200");
	ck_assert_uint_eq(effect_order_given_up(order), 0);
	end("");
}
END_TEST

START_TEST(waiting_is_bounded_in_time)
{
	uint64_t late_ns = EFFECT_ORDER_WAIT_NS + 101;

	lock(100, 10, SPACE_A);
	part(EVENT_MAPPING, 1, 101, 10);
	lock(200, 11, SPACE_A);
	call(2, 300, 11);
	expect("");
	call(3, late_ns, 12);
	expect("map1@101 call2@200 call3@5000000101");
	/* It is not reported missing until its call has returned. */
	ck_assert_uint_eq(effect_order_given_up(order), 0);
	call(4, late_ns + 10, 10);
	expect("call4@5000000111");
	ck_assert_uint_eq(effect_order_given_up(order), 1);
	call(5, late_ns + 20, 10);
	expect("call5@5000000121");
	ck_assert_uint_eq(effect_order_given_up(order), 1);
	end("");
}
END_TEST

/* A lock of no recorded call is not reported missing. */
START_TEST(a_stale_lock_given_up_does_not_count)
{
	lock(100, 10, SPACE_A);
	call(1, EFFECT_ORDER_WAIT_NS + 101, 11);
	expect("call1@5000000101");
	lock(6000000000, 10, SPACE_A);
	call(2, 6000000001, 10);
	expect("call2@6000000000");
	ck_assert_uint_eq(effect_order_given_up(order), 0);
	end("");
}
END_TEST

START_TEST(waiting_is_bounded_in_memory)
{
	static uint8_t bytes[60000];
	struct event dump = make(EVENT_STACK_DUMP, 1, 200, 11);
	size_t waiting = 0;

	dump.call.stack.bytes = bytes;
	dump.call.stack.byte_count = sizeof(bytes);
	lock(100, 10, SPACE_A);
	while (!out_length) {
		waiting += sizeof(bytes);
		ck_assert_uint_le(waiting, EFFECT_ORDER_WAITING_BYTES + sizeof(bytes));
		ck_assert_ptr_null(effect_order_push(order, &dump));
		if (waiting >= EFFECT_ORDER_WAITING_BYTES - EFFECT_ORDER_WAITING_BYTES / 8) {
			struct event event;

			for (; effect_order_next(order, &event); out_length++)
				ck_assert_int_eq(event.kind, EVENT_STACK_DUMP);
		}
	}
	ck_assert_uint_ge(out_length * sizeof(bytes), EFFECT_ORDER_WAITING_BYTES - EFFECT_ORDER_WAITING_BYTES / 8);
	out_length = 0;
	call(2, 300, 10);
	expect("call2@300");
	ck_assert_uint_eq(effect_order_given_up(order), 1);
	end("");
}
END_TEST

/* After a loss, a lock may belong to a lost call. */
START_TEST(a_loss_ends_all_locks)
{
	struct event event = make(EVENT_LOST, 1, 120, -1);

	lock(100, 10, SPACE_A);
	lock(110, 11, SPACE_A);
	call(2, 115, 11);
	push(&event);
	expect("call2@110 lost1@120");
	call(3, 130, 10);
	expect("call3@130");
	ck_assert_uint_eq(effect_order_given_up(order), 0);
	end("");
}
END_TEST

/* On a CPU without losses every lock has its call; a thread may have lost its own on the CPU to which it moved. */
START_TEST(a_loss_ends_the_locks_of_its_cpu)
{
	struct event here = make(EVENT_LOCK, 0, 100, 10), there = make(EVENT_LOCK, 0, 110, 11);
	struct event moved = make(EVENT_LOCK, 0, 115, 12), lost = make(EVENT_LOST, 1, 120, -1);
	struct event returns = make(EVENT_CALL, 5, 150, 12);

	here.lock.space = there.lock.space = moved.lock.space = SPACE_A;
	there.cpu = lost.cpu = returns.cpu = 1;
	moved.cpu = 2;
	here.sequence = 1;
	there.sequence = 2;
	moved.sequence = 3;
	lost.sequence = 4;
	push(&here);
	push(&there);
	push(&moved);
	push(&lost);
	call(2, 130, 10);
	expect("call2@100");
	call(3, 140, 11);
	push(&returns);
	expect("lost1@120 call3@140 call5@150");
	end("");
}
END_TEST

START_TEST(calls_in_flight_at_the_end_are_not_returned)
{
	lock(100, 10, SPACE_A);
	part(EVENT_MAPPING, 1, 101, 10);
	lock(110, 11, SPACE_A);
	call(2, 115, 11);
	lock(120, 12, SPACE_A);
	lock(121, 12, SPACE_B);
	fork_process(3, 130, 12, 20);
	expect("");
	end("map1@101 call2@110 fork3@120");
}
END_TEST

/* Waiting events are copies: the caller's buffers are reused. */
START_TEST(waiting_events_are_copied)
{
	uint64_t chain[] = {0x11, 0x22, 0x33};
	uint8_t bytes[] = {1, 2, 3, 4, 5};
	char path[] = "/tmp/a file", text[] = "a name";
	struct event mapping = make(EVENT_MAPPING, 1, 110, 11), mmap = make(EVENT_CALL, 2, 120, 11);
	struct event named = make(EVENT_COMM, 3, 130, 11), event;

	lock(100, 10, SPACE_A);
	lock(105, 11, SPACE_A);
	mapping.mapping.path = path;
	push(&mapping);
	mmap.call.result = 0x7f0000000000;
	mmap.call.stack.callchain = chain;
	mmap.call.stack.callchain_count = 3;
	mmap.call.stack.bytes = bytes;
	mmap.call.stack.byte_count = sizeof(bytes);
	mmap.call.stack.registers.values[7] = 0x8000;
	push(&mmap);
	named.comm.name = text;
	push(&named);
	memset(chain, 0, sizeof(chain));
	memset(bytes, 0, sizeof(bytes));
	memset(path, 0, sizeof(path));
	memset(text, 0, sizeof(text));
	event = make(EVENT_CALL, 4, 140, 10);
	ck_assert_ptr_null(effect_order_push(order, &event));
	ck_assert(effect_order_next(order, &event));
	ck_assert_uint_eq(event.time_ns, 100);
	ck_assert(effect_order_next(order, &event));
	ck_assert_str_eq(event.mapping.path, "/tmp/a file");
	ck_assert(effect_order_next(order, &event));
	ck_assert_uint_eq(event.call.stack.callchain_count, 3);
	ck_assert_uint_eq(event.call.stack.callchain[2], 0x33);
	ck_assert_uint_eq(event.call.stack.bytes[4], 5);
	ck_assert_uint_eq(event.call.stack.registers.values[7], 0x8000);
	ck_assert(effect_order_next(order, &event));
	ck_assert_str_eq(event.comm.name, "a name");
	ck_assert(!effect_order_next(order, &event));
}
END_TEST

/* With one thread only the attachments of its calls are copied: the call's pointers are the caller's. */
START_TEST(a_single_thread_is_not_copied)
{
	uint64_t chain[] = {0x11};
	struct event event = make(EVENT_CALL, 1, 120, 10);

	lock(100, 10, SPACE_A);
	part(EVENT_MAPPING, 2, 110, 10);
	event.call.stack.callchain = chain;
	event.call.stack.callchain_count = 1;
	ck_assert_ptr_null(effect_order_push(order, &event));
	ck_assert(effect_order_next(order, &event));
	ck_assert_int_eq(event.kind, EVENT_MAPPING);
	ck_assert(effect_order_next(order, &event));
	ck_assert_uint_eq(event.time_ns, 100);
	ck_assert_ptr_eq(event.call.stack.callchain, chain);
	ck_assert(!effect_order_next(order, &event));
}
END_TEST

/* Lines of a snapshot have the TID of the main thread, but it did not cause them. */
START_TEST(snapshots_keep_their_place)
{
	struct event line = make(EVENT_SNAPSHOT_LINE, 1, 110, 10);

	line.mapping.path = "//anon";
	lock(100, 10, SPACE_A);
	push(&line);
	expect("");
	call(2, 120, 10);
	expect("call2@100 line1@110");
	lock(130, 11, SPACE_A);
	line.file_offset = 3;
	line.time_ns = 131;
	push(&line);
	call(4, 140, 11);
	expect("call4@130 line3@131");
	end("");
}
END_TEST

START_TEST(equal_times_keep_their_order)
{
	lock(100, 10, SPACE_A);
	lock(100, 11, SPACE_A);
	call(1, 100, 11);
	call(2, 100, 12);
	call(3, 100, 10);
	expect("call3@100 call1@100 call2@100");
	end("");
}
END_TEST

/* Any input: the output is in time order, and nothing but locks is missing. */
START_TEST(random_events_come_out_in_order)
{
	unsigned number = (unsigned)_i + 1;
	uint64_t last_ns = 0;
	int pushed = 0, popped = 0;
	char path[] = "/x";

	for (uint64_t time_ns = 1; time_ns <= 20001; time_ns++) {
		struct event event;

		number = number * 1664525 + 1013904223;
		event = make(EVENT_LOCK, 1, time_ns * 1000000, 10 + (int)(number >> 9) % 30);
		switch (number >> 27) {
		case 0:
			event.kind = EVENT_MAPPING;
			event.mapping.path = path;
			break;
		case 1:
			event.kind = EVENT_FORK;
			event.task.parent_pid = event.pid;
			event.task.pid = event.pid + (int)(number >> 5 & 1);
			break;
		case 2:
			event.kind = EVENT_NEW_TASK;
			event.new_task.clone_flags = number & CLONE_VM;
			break;
		case 3:
			event.kind = EVENT_EXIT;
			event.task.tid = event.tid;
			break;
		case 4:
			event.kind = EVENT_COMM;
			event.comm.name = path;
			event.comm.exec = number & 1;
			break;
		case 5:
			event.kind = EVENT_CALL;
			event.call.call = CALL_MADVISE;
			event.call.at_entry = number & 32;
			break;
		case 6 ... 16:
			event.kind = EVENT_CALL;
			event.call.result = number & 64 ? -EINVAL : 0;
			break;
		default:
			event.lock.space = SPACE_A + (number >> 3 & 7);
			break;
		}
		pushed += event.kind != EVENT_LOCK;
		ck_assert_ptr_null(effect_order_push(order, &event));
		if (time_ns == 20001)
			effect_order_end(order);
		while (effect_order_next(order, &event)) {
			ck_assert_int_ne(event.kind, EVENT_LOCK);
			ck_assert_uint_ge(event.time_ns, last_ns);
			last_ns = event.time_ns;
			popped++;
		}
	}
	ck_assert_int_eq(pushed, popped);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("effect-order");
	TCase *tests = add_tcase(suite, "effect-order");

	tcase_add_checked_fixture(tests, create, destroy);
	tcase_add_tests(tests, a_call_takes_effect_at_its_lock, order_is_that_of_locks_not_of_exits,
			interleaved_brk_and_munmap, attachments_of_a_call_move_with_it,
			a_second_lock_supersedes_the_first, a_fork_copies_at_its_first_lock, a_fork_takes_its_own_lock,
			a_lock_by_another_process_is_ignored, a_fork_without_flags_copies,
			a_clone_that_shares_the_space_took_no_lock, the_end_of_a_thread_ends_its_lock,
			exec_ends_its_locks, an_entry_ends_a_lock, a_call_recorded_at_entry_takes_effect_at_its_lock,
			a_madvise_that_returned_waits_for_no_lock, a_call_recorded_at_entry_may_fail_before_its_lock,
			a_failed_call_takes_effect_at_its_lock, a_failed_call_does_not_take_a_stale_lock,
			a_call_may_last_for_seconds, waiting_is_bounded_in_time, a_stale_lock_given_up_does_not_count,
			waiting_is_bounded_in_memory, a_loss_ends_all_locks, a_loss_ends_the_locks_of_its_cpu,
			calls_in_flight_at_the_end_are_not_returned, waiting_events_are_copied,
			a_single_thread_is_not_copied, snapshots_keep_their_place, equal_times_keep_their_order);
	tcase_add_loop_test(tests, random_events_come_out_in_order, 0, 20);
	return suite;
}
