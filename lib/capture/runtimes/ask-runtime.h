/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --ask-runtime: makes a runtime that runs without a perf map write one, and restores the previous state afterwards.
 * .NET is asked when it is first seen, and asked to stop when recording ends. The perf map of Java is a snapshot, so
 * Java is asked when recording ends. Only the end of the recording waits for answers. Failures are warnings. To add a
 * runtime, write a file ask-NAME.c with a struct askable_runtime, and see lib/analysis/resolver/known-runtimes.h.
 */
#pragma once

#include "base/helper-process.h"
#include "capture/runtimes/jit-files.h"
#include "trace/sections/runtime-options.h"

struct helper_target;
struct recorder;
struct traced_process;

/* The runtime helper: a child process of the recorder that sends one request to a runtime. The child can wait for the
 * answer and change to the target's user; the recorder does neither. */

#define HELPER_REFUSAL_BYTES 256

enum helper_answer {
	HELPER_WAITS,
	HELPER_AGREED,
	HELPER_REFUSED,	   /* the target will not do what was requested */
	HELPER_UNANSWERED, /* the target may have received the request and may still act on it */
};

/* Sends the request and waits for the answer, for some seconds at most. Runs in the child, which has no open files but
 * the target's pidfd. `refusal_ret`, initially "": why the target refused. */
typedef enum helper_answer helper_ask(const struct helper_target *target, char refusal_ret[HELPER_REFUSAL_BYTES]);

/* The process that receives the request. */
struct helper_target {
	pid_t pid, namespace_pid;
	int pidfd;
	helper_ask *ask;
	bool stop; /* ask it to stop writing its perf map, and not for one */
};

/* Starts a helper. False: no process or pipe can be created, or the previous child has not exited yet. */
bool helper_start(struct helper *helper, const struct helper_target *target);

/* Returns the answer, or HELPER_WAITS if there is none yet. After an answer the request is over. */
enum helper_answer helper_poll(struct helper *helper, char refusal_ret[HELPER_REFUSAL_BYTES]);

/*
 * Functions for the helper. It talks to a target through a socket in the target's file system, as the target's user. It
 * does not trust the target: it follows no link out of the target's root directory, and every wait has a time limit.
 */

/* Permanently changes this process to the target's user and group, without any capability that this user does not have.
 * The user determines the peer credentials and the owner of new files. Returns NULL, or why it failed. */
const char *target_become_user(pid_t pid, uid_t *owner_ret);

/* Connects, non-blocking, to a socket that the user owns and that the target itself listens on. Returns -1 and errno on
 * failure. */
int target_socket_connect(pid_t pid, uid_t owner, int directory, const char *name);

/* Sends a request and reads the answer until `room` bytes have arrived, the peer closes, or the time is over. Returns
 * the number of bytes. */
size_t target_socket_exchange(int fd, const void *request, size_t size, void *answer, size_t room, uint64_t wait_ns);

/* Processes without a perf map: their number, and the PID of the first one. */
struct unasked {
	uint64_t count;
	pid_t first;
};

/* The state of the jobs of this folder. */
struct runtime_jobs {
	struct jitdump_notes jitdumps;
	struct unasked unknown_runtimes, ended_runtimes; /* with --ask-runtime: processes whose runtime was not asked */
	struct unasked old_maps;		   /* processes that started after their perf map had been written */
	VECTOR(struct perf_map_copy) earlier_maps; /* perf maps of programs that ended with an exec */
	struct runtime_options options;		   /* of the programs of recorded processes */
	uint64_t perf_map_bytes;		   /* copied so far; at most LIMIT_RECORDED_PERF_MAPS_BYTES */
};

void unasked_count(struct unasked *unasked, pid_t pid);

/* Reads the options of the runtime for the program that the process runs now, unless it was read before. */
struct mmt_error *read_options(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;

/* Takes them from what the recorder executed if the command ended before they could be read. Call this at the end. */
struct mmt_error *read_command_options(struct recorder *recorder) MMT_MUST_CHECK;

/* Notes an executable mapping. The name of a file shows which runtime the process runs; anonymous executable memory
 * shows that it generates code. */
void ask_runtime_note_module(struct traced_process *process, const char *path);

/* Forgets the runtime of the previous program, because the process has called exec. */
void ask_runtime_forget(struct recorder *recorder, struct traced_process *process);

/* Sends the requests that are due. Call this often. Like the functions below, it does nothing without --ask-runtime. */
void ask_runtimes(struct recorder *recorder);

/* When recording ends: asks the runtimes whose map is a snapshot, asks the others to stop writing, and warns about
 * processes that were not asked. Call this before the maps are copied. */
void ask_runtimes_at_end(struct recorder *recorder);

/* Removes the map of a process, after it has been copied, if the runtime created it for mmtrace. `earlier`: the map of
 * the program before an exec, unless the current program has written to it. */
void ask_runtime_clean_up(struct recorder *recorder, struct traced_process *process, bool earlier);

/* Finishes the requests of a process that has ended and whose map has been copied. */
void ask_runtime_ended(struct recorder *recorder, struct traced_process *process);

/*
 * A runtime that can be asked for a perf map. Each is defined in a file of its own and listed in ask-runtime.c. No
 * other code distinguishes between them.
 */
struct askable_runtime {
	const char *name;   /* for messages */
	const char *module; /* file name of the module that every process of this runtime maps */
	const char *code;   /* prefix of the name of its JIT code, where the program contains the library; NULL: none */
	bool is_guess;	    /* for a process with JIT code and none of these modules; that it refuses is no news */
	bool at_end;	    /* its map is a snapshot, so it is asked when recording ends */
	bool keeps_writing; /* until it is asked to stop; otherwise it writes the map only once */
	helper_ask *ask;
	/* Called before the first request; NULL: nothing to prepare. */
	void (*prepare)(struct recorder *recorder, struct traced_process *process);
	void (*give_up)(struct recorder *recorder, const struct traced_process *process);
};

extern const struct askable_runtime runtime_dotnet, runtime_dotnet_bundled, runtime_java;
