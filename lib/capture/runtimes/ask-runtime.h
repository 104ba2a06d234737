/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * --ask-runtime: makes a runtime that runs without a perf map write one, and restores the previous state afterwards.
 * .NET is asked when it is first seen, and asked to stop when recording ends. The perf map of Java is a snapshot, so
 * Java is asked when recording ends. Only the end of the recording waits for answers. Failures are warnings. To add a
 * runtime, write a file ask-NAME.c with a struct askable_runtime, and see lib/analysis/resolver/known-runtimes.h.
 */
#pragma once

#include "base/helper-process.h"
#include "capture/recorder/build-id-notes.h"

struct file_mark;
struct helper_target;
struct traced_process;

/* Copies the files that JIT compilers write for profilers: perf maps and jitdumps. To add a runtime, see
 * lib/analysis/resolver/known-runtimes.h. */

/* Perf maps (/tmp/perf-PID.map), copied while they are accessible. The file is below the root directory of the process,
 * has its innermost PID in its name, and is written by a program that is not trusted. */

/* Finds the perf map of a process (O_PATH). -1: there is none, or it is refused; then *refused_ret is the reason. */
int perf_maps_open(struct recorder *recorder, const struct traced_process *process, struct stat *status,
		   const char **refused_ret);

/* *length_ret: the length of the mark if the perf map still begins with the marked content; 0: the file was rewritten.
 * False: the file system does not answer, so nothing is known. */
bool file_mark_check(struct recorder *recorder, const struct traced_process *process, const struct file_mark *mark,
		     int fd, const struct stat *status, uint64_t *length_ret);
/* False: the file system does not answer, and the mark is unchanged. */
bool file_mark_set(struct recorder *recorder, const struct traced_process *process, struct file_mark *mark, int fd,
		   uint64_t inode, uint64_t length);

/* Opens the process's /tmp, so that it remains accessible after the process has ended, and notes the current length of
 * the map. Call this again after an exec, because the process may have another root directory. `began_ns`: when its
 * program began; the growth of the map then starts at this time with an empty map. 0: before the recording. */
void perf_maps_watch(struct recorder *recorder, struct traced_process *process, uint64_t began_ns, uint64_t now_ns);

/* Notes the length of the map if it has grown. If the file was rewritten, notes its growth since then. */
void perf_maps_note_growth(struct recorder *recorder, struct traced_process *process, uint64_t now_ns);

/* Copies the perf map of the process, if there is one, into its perf_map.text. A refused map is left out with a
 * warning. Lets the ring reader work in between. Errors: reading the rings failed. */
struct mmt_error *perf_maps_copy(struct recorder *recorder, struct traced_process *process) MMT_MUST_CHECK;

bool perf_maps_exists(struct recorder *recorder, const struct traced_process *process);

/* Removes the map. `earlier`: unless the current program has written to it. False: it could not be removed. */
bool perf_maps_remove(struct recorder *recorder, const struct traced_process *process, bool earlier);

/* Jitdumps (jit-PID.dump in any directory), found as perf finds them: the runtime maps the first page of the file
 * executable. The file is kept open and copied when recording ends. Each record in it has a timestamp. */

struct noted_jitdump {
	struct jitdump_copy copy;
	uint32_t device_major, device_minor;
	uint64_t inode;
	int fd;		    /* O_PATH; -1: the dump was refused */
	uint64_t place;	    /* see blocking-calls.h */
	uint64_t in_pieces; /* bytes already written as incremental metadata */
	uint64_t mapped_ns; /* when the file was last seen mapped */
	bool cut;	    /* the content was too long and was cut */
};

struct jitdump_notes {
	VECTOR(struct noted_jitdump) items;
	uint64_t kept_bytes; /* size of all copies; at most LIMIT_RECORDED_JITDUMPS_BYTES */
};

void jitdumps_deinit(struct jitdump_notes *notes);

/* Checks whether an executable mapping, present at this time, is a jitdump, and opens it. Accepts only the mapped file
 * itself, and only if the process's user owns it, its name contains the process's PID, and it is not older than the
 * process. Others are refused with a warning. */
struct mmt_error *jitdumps_note(struct recorder *recorder, const struct build_id_mapping *mapping,
				uint64_t time_ns) MMT_MUST_CHECK;

/* Notes that a program of the process began. Its mappings may have been noted before. */
void jitdumps_note_begin(struct recorder *recorder, pid_t pid, uint64_t time_ns);

/* Encodes the section, which is empty if no jitdump was noted. Content beyond LIMIT_RECORDED_JITDUMPS_BYTES in total is
 * left out with a warning. */
struct mmt_error *jitdumps_encode(struct recorder *recorder, struct buffer *buffer) MMT_MUST_CHECK;

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

/* Functions for the helper. It talks to a target through a socket in the target's file system, as the target's user. It
 * does not trust the target: it follows no link out of the target's root directory, and every wait has a time limit. */

/* Permanently changes this process to the target's user and group, without any capability that this user does not have.
 * The user determines the peer credentials and the owner of new files. Returns NULL, or why it failed. */
const char *target_become_user(pid_t pid, uid_t *owner_ret);

/* Connects, non-blocking, to a socket that the user owns and that the target itself listens on. Returns -1 and errno on
 * failure. */
int target_socket_connect(pid_t pid, uid_t owner, int directory, const char *name);

/* Sends a request and reads the answer until `room` bytes have arrived, the peer closes, or the time is over. Returns
 * the number of bytes. */
size_t target_socket_exchange(int fd, const void *request, size_t size, void *answer, size_t room, uint64_t wait_ns);

/* The state of the jobs of this folder. */
struct runtime_jobs {
	struct jitdump_notes jitdumps;
	struct runtime_options options; /* of the programs of recorded processes */
	uint64_t perf_map_bytes;	/* copied so far; at most LIMIT_RECORDED_PERF_MAPS_BYTES */
};

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

/* Removes the map of a process if the runtime created it for mmtrace. `earlier`: the map of the program before an exec,
 * unless the current program has written to it. */
void ask_runtime_clean_up(struct recorder *recorder, struct traced_process *process, bool earlier);

/* Finishes the requests of a process that has ended and whose map has been copied. */
void ask_runtime_ended(struct recorder *recorder, struct traced_process *process);

/* A runtime that can be asked for a perf map. Each is defined in a file of its own and listed in ask-runtime.c. No
 * other code distinguishes between them. */
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
