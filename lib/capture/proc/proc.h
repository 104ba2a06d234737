/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What /proc reports about a process and its threads. */
#ifndef CAPTURE_PROC_PROC_H
#define CAPTURE_PROC_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errors.h"
#include "base/vector.h"

#define PROC_NAME_BYTES 64

typedef VECTOR(pid_t) proc_pids;

/* NULL when `pid` is a process that can be recorded; else what is wrong with it. */
struct mmt_error *proc_check_target(pid_t pid) MMT_MUST_CHECK;

/* The process that a thread belongs to; 0: gone. */
pid_t proc_process_of(pid_t tid);

/* Name of a thread; false: it is gone. */
bool proc_name(pid_t pid, pid_t tid, char name[PROC_NAME_BYTES]);

/* Has this thread (or process) ended, but not gone yet? */
bool proc_is_zombie(pid_t tid);

/* Is every thread of it on its way out, if not gone? Their EXIT records come or have come. */
bool proc_is_ending(pid_t pid);

/* Has the whole process ended? A main thread may end before the others. Where it cannot be told: no. */
bool proc_has_ended(pid_t pid);

/* The number under which /proc shows the memory, files and program of a process: its own, or that of a thread which
 * outlives the main one. */
pid_t proc_living_thread(pid_t pid);

/*
 * Append the threads of a process; false: it is gone. Out of memory looks the same. `complete_ret`, unless NULL:
 * whoever lived from begin to end is among them. The kernel ends a list early when the thread it stands at ends.
 */
bool proc_list_threads(pid_t pid, proc_pids *threads, bool *complete_ret);

struct proc_thread {
	uint64_t start_ticks; /* since boot: no two threads of one number have it in common */
	bool exiting;	      /* it makes no calls any more */
	char state;	      /* R, S, D ...: see proc(5) */
};

/* Has it no memory of its own, as a thread of the kernel? No of one that is gone. */
bool proc_is_kernel_thread(pid_t pid);

/* The process that started it, or has adopted it; 0: none, or it is gone. */
pid_t proc_parent_of(pid_t pid);

/* Every process there is: their numbers. False: cannot be listed, or out of memory. */
bool proc_list_processes(proc_pids *pids);

/* Is it inside a call that starts a thread or a process, as far as can be told? */
bool proc_may_be_in_clone(pid_t tid);

/* Is it inside a call that changes what is mapped, as far as can be told? Of one that runs, or waits for a processor,
 * it cannot. No of one that is gone, or makes no calls any more. */
bool proc_may_be_in_memory_call(pid_t pid, pid_t tid);

/* False: gone. */
bool proc_read_thread(pid_t pid, pid_t tid, struct proc_thread *thread_ret);

/* Its number in the innermost PID namespace; `pid` itself when that cannot be told. */
pid_t proc_namespace_pid(pid_t pid);

/* Peak resident size of this process since exec; 0: not known. getrusage(2) would include programs before the exec. */
uint64_t proc_own_peak_bytes(void);

/* The owner (effective user); false: gone. */
bool proc_owner(pid_t pid, uid_t *owner_ret);

/* Its effective group; false: gone. */
bool proc_group(pid_t pid, gid_t *group_ret);

/* Whether it has a handler for the signal. */
bool proc_catches_signal(pid_t pid, int number);

/* A variable of the environment that its program was started with, owned by the caller; NULL: none in the first
 * megabyte. The process says where it is, and may say wrong. */
char *proc_environment(pid_t pid, const char *name);

/* When it started, in nanoseconds since boot (a hundredth of a second exact); 0: not known. */
uint64_t proc_start_boot_ns(pid_t pid);

/* When it started, in nanoseconds of CLOCK_REALTIME (a hundredth of a second exact); 0: not known. */
uint64_t proc_start_realtime_ns(pid_t pid);

/* Does it run such a program? No where that cannot be told. */
bool proc_runs_32_bit_program(pid_t pid);

/* By its file's class: 32-bit system calls do not pass the tracepoints of a 64-bit kernel. */
bool proc_is_32_bit_program(int fd);

/*
 * Finds the arguments and the environment of a program, which the kernel puts at the upper end of the main thread's stack.
 * A dump that begins in the outermost frames contains them, and environment variables contain passwords and tokens. No
 * frames are there, so unwinding does not need them.
 *
 * From lower addresses to higher ones: argc, the pointers of argv, a null, those of the environment, a null, the
 * auxiliary vector, and then all strings. The vector is found by its contents and not with /proc: the process may have
 * ended, or executed another program, before its sample is read.
 */

/* Offset of the strings in a copy of `size` bytes of a stack at `address`; everything above is strings too. `size`: none.
 */
size_t program_strings_find(const uint8_t *stack, size_t size, uint64_t address);

#endif
