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

/* Returns NULL if `pid` is a process that can be recorded; else why it cannot. */
struct mmt_error *proc_check_target(pid_t pid) MMT_MUST_CHECK;

/* The process of a thread; 0: the thread is gone. */
pid_t proc_process_of(pid_t tid);

/* Reads the name of a thread; false: it is gone. */
bool proc_name(pid_t pid, pid_t tid, char name[PROC_NAME_BYTES]);

/* Is this thread (or process) a zombie or gone? */
bool proc_is_zombie(pid_t tid);

/* Are all of its threads exiting or gone? Their EXIT records come or have come. */
bool proc_is_ending(pid_t pid);

/* Has the complete process ended? A main thread may end before the others. If unknown: no. */
bool proc_has_ended(pid_t pid);

/* The ID under which /proc shows the memory, files and program of a process: its PID, or the TID of a thread that
 * outlives the main thread. */
pid_t proc_living_thread(pid_t pid);

/*
 * Appends the threads of a process; false: the process is gone, or out of memory. `complete_ret`, unless NULL: all
 * threads that were alive during the complete listing are in it. The kernel ends a list early if the thread at its
 * current position exits.
 */
bool proc_list_threads(pid_t pid, proc_pids *threads, bool *complete_ret);

struct proc_thread {
	uint64_t start_ticks; /* since boot: no two threads with the same TID have equal ones */
	bool exiting;	      /* it makes no more system calls */
	char state;	      /* R, S, D ...: see proc(5) */
};

/* Does it have no address space of its own, like a kernel thread? False if it is gone. */
bool proc_is_kernel_thread(pid_t pid);

/* The process that created or adopted it; 0: none, or it is gone. */
pid_t proc_parent_of(pid_t pid);

/* The PIDs of all processes. False: cannot be listed, or out of memory. */
bool proc_list_processes(proc_pids *pids);

/* Might it be inside a call that creates a thread or a process? */
bool proc_may_be_in_clone(pid_t tid);

/* Might it be inside a call that changes mappings? Always true for a thread that is running or waiting for a CPU,
 * because its call is not known. False if it is gone or makes no more calls. */
bool proc_may_be_in_memory_call(pid_t pid, pid_t tid);

/* False: gone. */
bool proc_read_thread(pid_t pid, pid_t tid, struct proc_thread *thread_ret);

/* Its PID in the innermost PID namespace; `pid` itself if that is unknown. */
pid_t proc_namespace_pid(pid_t pid);

/* Peak RSS of this process since exec; 0: not known. getrusage(2) would include programs before the exec. */
uint64_t proc_own_peak_bytes(void);

/* The effective user ID; false: gone. */
bool proc_owner(pid_t pid, uid_t *owner_ret);

/* The effective group ID; false: gone. */
bool proc_group(pid_t pid, gid_t *group_ret);

/* Whether the process handles the signal. */
bool proc_catches_signal(pid_t pid, int number);

/* A variable of the process's initial environment, owned by the caller; NULL: not within the first megabyte. The
 * process can change where its environment is, so do not trust the value. */
char *proc_environment(pid_t pid, const char *name);

/* Start time in nanoseconds since boot, to a hundredth of a second; 0: not known. */
uint64_t proc_start_boot_ns(pid_t pid);

/* Start time in nanoseconds of CLOCK_REALTIME, to a hundredth of a second; 0: not known. */
uint64_t proc_start_realtime_ns(pid_t pid);

/* Does it run a 32-bit program? False if unknown. */
bool proc_runs_32_bit_program(pid_t pid);

/* Determined by the ELF class: 32-bit system calls do not pass the tracepoints of a 64-bit kernel. */
bool proc_is_32_bit_program(int fd);

/*
 * Finds the arguments and the environment of a program, which the kernel puts at the upper end of the main thread's
 * stack. A dump that begins in the outermost frames contains them, and environment variables may contain passwords and
 * tokens. No frames are there, so unwinding does not need them.
 *
 * From lower addresses to higher ones: argc, the pointers of argv, a null, those of the environment, a null, the
 * auxiliary vector, and then all strings. The vector is recognised by its content instead of with /proc, because the
 * process may have exited or called exec before its sample is read.
 */

/* Returns the offset of the strings in a copy of `size` bytes of a stack at `address`; everything above is strings,
 * too. `size`: there are none. */
size_t program_strings_find(const uint8_t *stack, size_t size, uint64_t address);

#endif
