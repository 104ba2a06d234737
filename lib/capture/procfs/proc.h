/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads what /proc reports about a process and its threads. */
#pragma once

#include <elf.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/errors.h"
#include "base/limits.h"
#include "base/vector.h"

struct blocking_calls;

#define PROC_NAME_BYTES 64

typedef VECTOR(pid_t) proc_pids;

/* Can this process be recorded? Returns NULL, or the reason why not. */
struct mmt_error *proc_check_target(struct blocking_calls *calls, pid_t pid) MMT_MUST_CHECK;

/*
 * Unless they say otherwise, these functions return false if the thread is gone or cannot be read.
 *
 * While a process is in an exec, the kernel lets everybody wait who reads what needs permission to trace it: stat,
 * syscall, exe, root, ns, fd, maps and others. A process whose exec closes a file may stay so for ever. The functions
 * without `calls` read only what never waits: status, statm, comm, cgroup, limits, mountinfo and the list of threads.
 */

struct proc_thread {
	char state; /* R, S, D ...: see proc(5) */
	pid_t parent;
	bool in_kernel; /* a kernel thread */
	bool exiting;	/* the thread has given up its memory; since Linux 6.16, after its EXIT record is written */
};

/* Whether PIDs here are those of the machine. Another PID namespace may have given these to other processes. */
bool proc_has_machine_pids(void);

bool proc_read_thread(pid_t pid, pid_t tid, struct proc_thread *thread_ret);

/* Read the start in clock ticks since boot; two threads with the same TID have different ones. False with errno
 * ETIMEDOUT: the process does not answer. `exiting_ret` may be NULL; set from the beginning of the exit, before the
 * EXIT record, and earlier than in struct proc_thread. */
bool proc_read_start(struct blocking_calls *calls, pid_t pid, pid_t tid, uint64_t *ticks_ret, bool *exiting_ret);
bool proc_name(pid_t pid, pid_t tid, char name[PROC_NAME_BYTES]);

/* Is `name` this command name, or its pattern? Of a longer name only the bytes that the kernel stores count. */
bool proc_name_matches(const char *command, const char *name);

/* Is the thread inside a call that opens or looks up a file? */
bool proc_waits_for_file(pid_t tid);

/* Might the thread be inside a call that creates a thread or a process? True if unknown. */
bool proc_may_be_in_clone(struct blocking_calls *calls, pid_t pid, pid_t tid);

/* Might the thread be inside a call that changes mappings? True if it is running or waiting for a CPU, because its call
 * is not known. */
bool proc_may_be_in_memory_call(struct blocking_calls *calls, pid_t pid, pid_t tid);

/* Does no thread of the process run or wait for a CPU? */
bool proc_sleeps(pid_t pid);

/* Are all threads of the process exiting or gone? Then their EXIT records are in the rings or will be soon. */
bool proc_is_ending(pid_t pid);

/* Is the process in an exec, and has the kernel not yet mapped the new program? */
bool proc_is_loading(pid_t pid);

/* Have all threads of the process ended? The main thread may end before the others. */
bool proc_has_ended(pid_t pid);

/* The wait status of an ended process; -1: not known. Before Linux 6.15 it is known only until the parent waits for the
 * process. */
int proc_end_status(pid_t pid, int pidfd);

/* Has the process no address space of its own, like a kernel thread? */
bool proc_is_kernel_thread(pid_t pid);

/* Does the process run a 32-bit program? If unknown, errno is set. */
bool proc_runs_32_bit_program(struct blocking_calls *calls, pid_t pid);

/* Is this an ELF file of the 32-bit class? System calls of 32-bit programs do not reach the tracepoints of a 64-bit
 * kernel. */
bool proc_is_32_bit_program(int fd);

/* Copy the program header with this number of a 64-bit ELF file that begins with these bytes. False: there is none,
 * or it is not among these bytes. */
bool elf_program_header(const void *data, size_t size, size_t number, Elf64_Phdr *header_ret);

bool proc_catches_signal(pid_t pid, int number);

/* Read the effective user or group ID: "Uid" or "Gid". */
bool proc_effective_id(pid_t pid, const char *name, unsigned *id_ret);

/* Return the ID under which /proc shows the memory, the files and the program of a process: its PID, or the TID of a
 * thread that outlives the main thread. */
pid_t proc_living_thread(pid_t pid);

/* Return the PID of the thread's process, or of the parent process; 0: there is none, or it is gone. */
pid_t proc_process_of(pid_t tid);
pid_t proc_parent_of(pid_t pid);

/* Return the PID of the process in its innermost PID namespace, or `pid` if that is unknown. */
pid_t proc_namespace_pid(pid_t pid);

/* Append the threads of a process. False: the process is gone, or out of memory. `complete_ret`, which may be NULL:
 * the list contains all threads that were alive during the call. The kernel ends a list early if the thread at its
 * current position exits. */
bool proc_list_threads(pid_t pid, proc_pids *threads, bool *complete_ret);

/* Append the PIDs of all processes. False: they cannot be listed, or out of memory. */
bool proc_list_processes(proc_pids *pids);

/* Return the peak RSS of this process since its exec; 0: not known. getrusage(2) would include programs before the
 * exec. */
uint64_t proc_own_peak_bytes(void);

/* Return a variable of the process's initial environment, owned by the caller. NULL: it is not in the first megabyte.
 * The process can change the address of its environment, so do not trust the value. */
char *proc_environment(pid_t pid, const char *name);

/* Return the start time in nanoseconds since boot or of CLOCK_REALTIME, to a hundredth of a second; 0: not known. */
uint64_t proc_start_boot_ns(struct blocking_calls *calls, pid_t pid);
uint64_t proc_start_realtime_ns(struct blocking_calls *calls, pid_t pid);

/*
 * Finds the arguments and the environment of a program in a stack dump. The kernel puts them at the upper end of the
 * main thread's stack, so a dump of the outermost frames contains them, and environment variables may contain passwords
 * and tokens. No frames are there, so unwinding does not need these bytes.
 *
 * From lower to higher addresses: argc, the pointers of argv, a null, the pointers of the environment, a null, the
 * auxiliary vector, then all strings. The vector is recognised by its content and not with /proc, because the process
 * may have exited or called exec before its sample is read.
 */

/* Return the offset of the strings in a copy of `size` bytes of the stack at `address`; everything above the offset is
 * strings, too. Return `size` if there are none. */
size_t program_strings_find(const uint8_t *stack, size_t size, uint64_t address);

/* Small text files of the kernel (/proc, sysfs, tracefs) are read completely. */

/* Read the file and append a NUL. The caller frees *text_ret. Return 0 or a negative errno value; -EFBIG:
 * the file is too long. */
int text_file_read(int directory, const char *path, char **text_ret);

/* Read a file of /proc/PID as text_file_read() does. The caller frees the text. NULL: it cannot be read. */
char *proc_text(pid_t pid, const char *name);

/* Find the path of the group in `text`, which is /proc/PID/cgroup, in the version 1 hierarchy of the controller; "":
 * version 2. NULL: none. Change the text. */
char *proc_group_find(char *text, const char *controller);

/* Return that path of the process's group, which the caller frees. NULL: there is none. */
char *proc_group_path(pid_t pid, const char *controller);

/* Return the number at the start of the file, or `fallback` if it cannot be read. */
int64_t text_file_number(int directory, const char *path, int64_t fallback);

/* Copy the text after "NAME:" or "NAME " and blanks, up to the end of that line, cut to fit. False: there is no such
 * line. */
bool text_file_field(const char *text, const char *name, char *value, size_t value_size);

/* Return the bytes in the line "NAME: NUMBER kB"; 0: there is no such line. */
uint64_t text_file_bytes(const char *text, const char *name);

/* Open a file whose path was chosen by the target for reading; return -1 and errno, EINVAL if it is not a regular
 * file: opening a device has side effects, and opening a FIFO may block. Symbolic links are followed. */
int regular_file_open(const char *path);

/* Is this the mapped file? On some file systems, such as btrfs and overlayfs, fstat() returns another device than the
 * kernel's MMAP2 records, and one of the two is anonymous (major number 0). Then only the inodes are compared. */
bool regular_file_is_mapped(const struct stat *status, uint32_t device_major, uint32_t device_minor, uint64_t inode);

/* A line of /proc/PID/maps. */
struct procmaps_line {
	uint64_t start, end;
	uint32_t protection; /* PROT_* */
	bool shared;
	uint64_t file_offset;
	uint32_t device_major, device_minor;
	uint64_t inode;
	char path[LIMIT_PATH_BYTES]; /* "//anon" if there is no path; newlines unescaped; cut to fit */
};

/* Parse one line, which ends with a newline or a zero byte. False: it does not have the kernel's format. */
bool procmaps_parse(const char *line, size_t length, struct procmaps_line *line_ret);

/* Reads /proc/PID/maps or smaps line by line. */
struct mapping_scan {
	struct blocking_calls *calls;
	pid_t pid;
	char *text; /* text that was read but not parsed yet; NULL: no scan in progress */
	size_t position, size;
	uint64_t line_ns; /* time before the read() that returned the beginning of the latest line */
	uint64_t read_ns; /* time before the latest read() */
	bool complete;	  /* there are no more lines */
	bool stuck;	  /* the kernel does not answer */
};

/* Start at the first line of `maps`, which is /proc/PID/maps. No other code may read `maps` during the scan. False:
 * out of memory. */
bool mapping_scan_begin(struct mapping_scan *scan, struct blocking_calls *calls, pid_t pid, int maps);

/* Read the next line, which ends with a zero byte. False: there is none, or the process does not answer. */
bool mapping_scan_line(struct mapping_scan *scan, int file, const char **line_ret, size_t *length_ret);

/* Read the next line of maps. False, as above, or if its format is not known. */
bool mapping_scan_next(struct mapping_scan *scan, int maps, struct procmaps_line *line_ret);

/* Accepts a zeroed value. */
void mapping_scan_end(struct mapping_scan *scan);

/* Return the break of a process, rounded up to a page: the end of its heap; 0: no heap in the first thousand lines of
 * its maps, or they cannot be read. */
uint64_t mapping_find_break(struct blocking_calls *calls, pid_t pid);
