/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Talking to a target through a socket in its own file system, as its own user. The target is not trusted: no link of
 * it is followed out of its root, nothing is waited for without an end, and the rings are drained meanwhile.
 */
#ifndef CAPTURE_TARGET_SOCKET_H
#define CAPTURE_TARGET_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "capture/recorder.h"

/* O_PATH descriptor of a directory, as the process sees its path; -1: none. */
int target_directory_open(pid_t pid, const char *path);

/* Open `name` with `flags` and mode 0600 in the directory, as the process's user; -1 and errno. */
int target_file_create(pid_t pid, int directory, const char *name, int flags);

/* Whether there is a socket of the process's user. */
bool target_socket_exists(pid_t pid, int directory, const char *name);

/* Connected, non-blocking; -1 and errno. */
int target_socket_connect(pid_t pid, int directory, const char *name);

/* What a wait came to. An error of the recorder itself ends the recording. */
struct exchange {
	struct recorder *recorder;
	int fd;
	uint64_t until_ns;
};

/* All of it, or false. */
struct mmt_error *target_socket_send(const struct exchange *exchange, const void *data, size_t size,
				     bool *sent_ret) MMT_MUST_CHECK;

/* Until `size` bytes are there, the peer ends, or the time is over. */
struct mmt_error *target_socket_receive(const struct exchange *exchange, void *data, size_t size,
					size_t *received_ret) MMT_MUST_CHECK;

/* Look after the rings for a moment; false: the time is over. */
struct mmt_error *target_wait(struct recorder *recorder, uint64_t until_ns, bool *more_ret) MMT_MUST_CHECK;

#endif
