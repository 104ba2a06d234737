/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What /proc reports about a process and its threads. */
#ifndef CAPTURE_PROCFS_PROC_H
#define CAPTURE_PROCFS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/errors.h"
#include "base/vector.h"
#include "trace/format/format.h"

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

/* Reads small text files of /proc, sysfs and tracefs, and opens files of a target that must be regular files. */

/* Small text files of the kernel (/proc, tracefs), read completely. */

#define TEXT_FILE_BYTES_MAX (1u << 20)

/* The content with a NUL behind it; the caller frees it. -ENOENT, -EACCES ... on failure, -EFBIG beyond the maximum. */
int text_file_read(int directory, const char *path, char **text_ret);

/* The number at the start of the file; `fallback` if it cannot be read. */
int64_t text_file_number(int directory, const char *path, int64_t fallback);

/* The text after "NAME:" and blanks at the start of a line, up to its end, cut to fit. False: no such line. */
bool text_file_field(const char *text, const char *name, char *value, size_t value_size);

/*
 * Files whose path the target chose. Opening a device has side effects and opening a FIFO may block: check what a path
 * refers to before opening it.
 */

/* Opens for reading; returns -1 and errno, EINVAL if it is not a regular file. Symbolic links are followed. */
int regular_file_open(const char *path);

/* The same for the file of an O_PATH descriptor (-1: none, errno is preserved). Closes the descriptor. */
int regular_file_open_found(int found);

/*
 * Whether the file is the mapped one. On some file systems, such as btrfs and overlayfs, fstat() returns another device
 * than the kernel's MMAP2 records, and one of the two is anonymous (major number 0): then only the inodes are compared.
 */
bool regular_file_is_mapped(const struct stat *status, uint32_t device_major, uint32_t device_minor, uint64_t inode);

/* Parsing /proc/PID/maps, and asking the kernel about single mappings (PROCMAP_QUERY, Linux 6.11). */

/* Lines of /proc/PID/maps. */

struct procmaps_line {
	uint64_t start, end;
	uint32_t protection; /* PROT_* */
	bool shared;
	uint64_t file_offset;
	uint32_t device_major, device_minor;
	uint64_t inode;
	char path[LIMIT_PATH_BYTES]; /* "//anon" for none; newlines unescaped; cut to fit */
};

/* Parses one line without its newline; false: not in the kernel's format. */
bool procmaps_parse(const char *line, size_t length, struct procmaps_line *line_ret);

/* What a process has mapped at an address, asked from the kernel without reading all of /proc/PID/maps. */

enum mapped_kind {
	MAPPED_NOTHING,
	MAPPED_DATA,  /* or the process has ended */
	MAPPED_CODE,  /* it is executable */
	MAPPED_UNTOLD /* Linux before 6.11 has no such query */
};

/* `maps`: an open /proc/PID/maps. The answer holds from `address` up to *end_ret, which is above `address`. */
enum mapped_kind mapping_query(int maps, uint64_t address, uint64_t *end_ret);

/* The equivalent of mapping_query() on kernels without that query: reads /proc/PID/maps line by line. */

struct mapping_scan {
	uint64_t begin_ns; /* mappings made later may be missing */
	char *text;	   /* read but not parsed yet; NULL: no scan in progress */
	size_t position, size;
	uint64_t start, end; /* of the last line; UINT64_MAX: no more lines */
	bool executable;
};

/* Starts at the first line of `maps`, which no other code may read during the scan. False: out of memory. */
bool mapping_scan_begin(struct mapping_scan *scan, int maps);

/*
 * Addresses must ascend from one query to the next. Reads at most *lines_left lines and subtracts them. If these are
 * not enough, the answer is MAPPED_UNTOLD; repeat the query to continue there.
 */
enum mapped_kind mapping_scan_query(struct mapping_scan *scan, int maps, uint64_t address, size_t *lines_left,
				    uint64_t *end_ret);

/* Accepts a zeroed value. */
void mapping_scan_end(struct mapping_scan *scan);

#endif
