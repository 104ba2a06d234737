/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* System calls that may never return: on a file system that does not answer (FUSE, NFS), or on a process that holds its
 * mmap_lock while it waits for one, or whose exec does (see proc.h). No signal ends such a call, or only one that
 * kills, and no process exits while one of its threads makes one. So an expendable helper process makes these calls,
 * with a deadline. A helper that does not answer is left alone until its call returns, and the recorder does without
 * the result. */
#pragma once

#include <sys/stat.h>

#include <linux/openat2.h>

#include "base/helper-process.h"
#include "base/errors.h"
#include "base/vector.h"

struct blocking_calls;

/* What the calls need of the recorder. */
struct blocking_host {
	void *context;
	int stop_fd;
	bool raise_nice; /* of helpers */
	/* Lets the rings be read while a helper makes a call. */
	void (*begin_wait)(void *context), (*end_wait)(void *context);
	void (*warn)(void *context, const char *text);
};

#define BLOCKING_ARGUMENT_BYTES 8192
#define BLOCKING_RESULT_BYTES (64u << 10)

/* What a call may wait for: the memory of a process, a file system (its device number), or a path looked up in the
 * mount namespace of a process. While a helper is stuck there, further calls fail at once, so that each place costs one
 * helper. */
uint64_t place_of_process(pid_t pid);
uint64_t place_of_device(uint64_t device_major, uint64_t device_minor);
uint64_t place_of_paths(struct blocking_calls *calls, pid_t pid); /* that of the process if it is stuck */

struct blocked_place {
	uint64_t place;
	pid_t child; /* still inside the call, after which it exits */
};

/* Zeroed: the calling process makes the calls itself. */
struct blocking_calls {
	struct blocking_host host;
	struct helper process;
	uint64_t began_ns; /* when the helper began the latest call that it answered: later than it was asked */
	uint64_t spent_ns; /* processor time of the helpers */
	uint64_t lost_ns;  /* time spent on calls without an answer since the user stopped the recording */
	VECTOR(struct blocked_place) blocked;
	bool reported_memory, reported_files, reported_helper;
};

struct blocking_call;

/* Runs in the helper. Gets the argument and `given`, which stays open. Writes the result, and sets its size if that is
 * not all of its room. `opened`, which is -1 before: a descriptor for the caller. Only descriptors whose close() cannot
 * block may be opened for it: O_PATH and /proc. */
typedef void blocking_function(struct blocking_call *call);

struct blocking_call {
	uint64_t place;
	blocking_function *run;
	const void *argument;
	size_t argument_bytes; /* at most BLOCKING_ARGUMENT_BYTES */
	int given;	       /* -1: none */
	void *result;	       /* unchanged if there is no answer */
	size_t result_bytes;   /* its room, at most BLOCKING_RESULT_BYTES; then the size of the result */
	int opened;	       /* set by the call; -1: nothing was opened */
	uint64_t waited_ns;    /* set by the call: elapsed time minus processor time */
};

/* A call with `*argument` for which the caller has room for `*result`. */
#define BLOCKING_CALL(place_, run_, argument_, given_, result_)                                                        \
	{                                                                                                              \
		.place = (place_), .run = (run_), .argument = (argument_), .argument_bytes = sizeof(*(argument_)),     \
		.given = (given_), .result = (result_), .result_bytes = sizeof(*(result_))                             \
	}

/* Start the helper, which stays until blocking_calls_end(). Call this after the scheduling priority was raised. */
struct mmt_error *blocking_calls_start(struct blocking_calls *calls, const struct blocking_host *host) MMT_MUST_CHECK;
void blocking_calls_end(struct blocking_calls *calls);

/* Make the call, and let the ring reader work meanwhile. `calls` may be NULL. False: no answer; errno: ETIMEDOUT. */
bool blocking_call(struct blocking_calls *calls, struct blocking_call *call);

/* Is a helper stuck there? Then a call would fail at once. */
bool blocking_calls_are_stuck(struct blocking_calls *calls, uint64_t place);
/* ... or because too many helpers are stuck elsewhere? What fails then says nothing about the place. */
bool blocking_calls_would_fail(struct blocking_calls *calls, uint64_t place);

/* Return the processor time of this thread and of the helpers. */
uint64_t blocking_calls_clock_ns(const struct blocking_calls *calls);

/* Calls on the files of a target, of which the recorder itself has only O_PATH descriptors: close() of others may
 * block. */

/* How a path may be resolved: the bits of openat2(2). */
#define TARGET_IN_ROOT (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)		/* links stay below the directory */
#define TARGET_BESIDE (RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH) /* a file of the directory itself */
#define TARGET_ANYWHERE 0							/* follows the last component, too */

/* Find a file (O_PATH). Return -1 and errno on failure. `directory`: O_PATH or AT_FDCWD. `status_ret`: may be NULL,
 * and the file system is not asked then. */
int target_file_find(struct blocking_calls *calls, uint64_t place, int directory, const char *path, uint64_t resolve,
		     struct stat *status_ret);

/* Find the directory in the root directory of the process (O_PATH). *place_ret: the place of the files in it. */
int target_directory_find(struct blocking_calls *calls, pid_t pid, const char *path, uint64_t *place_ret);

/* Return a new descriptor of the regular file to which this O_PATH descriptor belongs, or -1. Only for functions that
 * the helper runs. */
int target_file_reopen(int given);

/* Open the root directory of the process (O_PATH); -1: it cannot be opened. */
int process_root_open(struct blocking_calls *calls, pid_t pid);

/* Open a directory by its path there (O_PATH), as only helpers may. */
int target_directory_open(pid_t pid, const char *path);

bool target_file_stat(struct blocking_calls *calls, uint64_t place, int fd, struct stat *status_ret);

/* Read a regular file up to `size` or its end. Return the number of bytes, or -1. */
ssize_t target_file_read(struct blocking_calls *calls, uint64_t place, int fd, void *data, size_t size,
			 uint64_t offset);

/* Remove a regular file that this user owns from a directory (-1: none) that others may write to. False: the file
 * still exists, perhaps with another owner. */
bool target_file_remove(struct blocking_calls *calls, uint64_t place, int directory, const char *name, uid_t owner);

/* Open a file of /proc/PID for reading. Return -1 and errno on failure. */
int process_file_open(struct blocking_calls *calls, pid_t pid, const char *name);

/* As pread(2), of at most BLOCKING_RESULT_BYTES; the offset -1 stands for the position of the file, as in read(2). */
ssize_t process_file_read(struct blocking_calls *calls, pid_t pid, int fd, void *data, size_t size, int64_t offset);

/* Read a file of /proc/PID of at most `room` bytes; a zero byte follows. Return whether it is complete. */
bool process_text_read(struct blocking_calls *calls, pid_t pid, const char *name, size_t room, char *text,
		       size_t *size_ret);
