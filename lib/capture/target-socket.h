/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Talking to a target through a socket in its own file system, as its own user, in a process made for it (see
 * question.h). The target is not trusted: no link of it is followed out of its root, nothing is waited for without an
 * end.
 */
#ifndef CAPTURE_TARGET_SOCKET_H
#define CAPTURE_TARGET_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* O_PATH descriptor of a directory, as the process sees its path; -1: none. */
int target_directory_open(pid_t pid, const char *path);

/*
 * For good: this process becomes the target's user and group, by which a peer tells who asks, and of whom files are;
 * with no capability that such a user has not. *owner_ret: the user. NULL, or why that is refused.
 */
const char *target_become_user(pid_t pid, uid_t *owner_ret);

/* To a socket of the user, at which the very process listens; non-blocking. -1 and errno. */
int target_socket_connect(pid_t pid, uid_t owner, int directory, const char *name);

/* All of it by then, or false. */
bool target_socket_send(int fd, const void *data, size_t size, uint64_t until_ns);

/* Until `size` bytes are there, the peer ends, or the time is over: how many came. */
size_t target_socket_receive(int fd, void *data, size_t size, uint64_t until_ns);

#endif
