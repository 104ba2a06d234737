// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/target-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/clock.h"
#include "capture/drain.h"
#include "capture/proc.h"

#define STEP_MILLISECONDS 10
#define KEEP_ID ((uid_t)-1)

/* Of this thread alone: the C library would change all of the process, which is not ours. */
struct own_user {
	bool changed;
	uid_t user;
	gid_t group;
	int dumpable;
};

/* A peer tells who asks from these, and files get them as their owner. */
static struct own_user become_owner_of(pid_t pid)
{
	struct own_user own = {.user = geteuid(), .group = getegid(), .dumpable = prctl(PR_GET_DUMPABLE)};
	uid_t user;
	gid_t group;

	if (!proc_owner(pid, &user) || !proc_group(pid, &group) || (user == own.user && group == own.group))
		return own;
	own.changed = true;
	if (syscall(SYS_setresgid, KEEP_ID, group, KEEP_ID) == 0 && syscall(SYS_setresuid, KEEP_ID, user, KEEP_ID) != 0)
		(void)syscall(SYS_setresgid, KEEP_ID, own.group, KEEP_ID);
	return own;
}

static void become_self(const struct own_user *own)
{
	int number = errno;

	if (own->changed) {
		(void)syscall(SYS_setresuid, KEEP_ID, own->user, KEEP_ID);
		(void)syscall(SYS_setresgid, KEEP_ID, own->group, KEEP_ID);
		/* The kernel took it away with the identity. */
		if (own->dumpable == 1)
			(void)prctl(PR_SET_DUMPABLE, 1);
	}
	errno = number;
}

int target_directory_open(pid_t pid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	CLEANUP(close) int root = -1;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/root", proc_living_thread(pid));
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

int target_file_create(pid_t pid, int directory, const char *name, int flags)
{
	struct own_user own = become_owner_of(pid);
	int fd = openat(directory, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	become_self(&own);
	return fd;
}

/* O_PATH, so that what was looked at is what is connected to. */
static int open_socket(pid_t pid, int directory, const char *name)
{
	int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;
	uid_t owner;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) && proc_owner(pid, &owner) && status.st_uid == owner)
		return fd;
	close(fd);
	errno = ENOTSOCK;
	return -1;
}

bool target_socket_exists(pid_t pid, int directory, const char *name)
{
	CLEANUP(close) int fd = open_socket(pid, directory, name);

	return fd >= 0;
}

/* Another process of the same user could have made the socket under this name. */
static bool is_peer(int fd, pid_t pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) && peer.pid == pid;
}

int target_socket_connect(pid_t pid, int directory, const char *name)
{
	CLEANUP(close) int place = open_socket(pid, directory, name);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct own_user own;
	int fd, result;

	if (place < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	own = become_owner_of(pid);
	result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	become_self(&own);
	if (result == 0 && is_peer(fd, pid))
		return fd;
	if (result == 0)
		errno = ECONNREFUSED;
	result = errno;
	close(fd);
	errno = result;
	return -1;
}

struct mmt_error *target_wait(struct recorder *recorder, uint64_t until_ns, bool *more_ret)
{
	*more_ret = clock_now_ns() < until_ns;
	if (*more_ret)
		(void)poll(NULL, 0, STEP_MILLISECONDS);
	return drain_filling_rings(recorder);
}

/* Until the socket is ready. */
static struct mmt_error *wait_for(const struct exchange *exchange, short events, bool *ready_ret)
{
	struct mmt_error *error = NULL;

	*ready_ret = false;
	while (!error && !*ready_ret && clock_now_ns() < exchange->until_ns) {
		struct pollfd poll_fd = {.fd = exchange->fd, .events = events};

		*ready_ret = poll(&poll_fd, 1, STEP_MILLISECONDS) > 0;
		error = drain_filling_rings(exchange->recorder);
	}
	return error;
}

struct mmt_error *target_socket_send(const struct exchange *exchange, const void *data, size_t size, bool *sent_ret)
{
	size_t sent = 0;

	*sent_ret = false;
	while (sent < size) {
		ssize_t count =
		    send(exchange->fd, (const uint8_t *)data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		struct mmt_error *error;
		bool ready;

		if (count > 0) {
			sent += (size_t)count;
			continue;
		}
		if (count < 0 && errno != EAGAIN && errno != EINTR)
			return NULL;
		error = wait_for(exchange, POLLOUT, &ready);
		if (error || !ready)
			return error;
	}
	*sent_ret = true;
	return NULL;
}

struct mmt_error *target_socket_receive(const struct exchange *exchange, void *data, size_t size, size_t *received_ret)
{
	*received_ret = 0;
	while (*received_ret < size) {
		ssize_t count;
		struct mmt_error *error;
		bool ready;

		error = wait_for(exchange, POLLIN, &ready);
		if (error || !ready)
			return error;
		count = recv(exchange->fd, (uint8_t *)data + *received_ret, size - *received_ret, MSG_DONTWAIT);
		if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
			return NULL;
		*received_ret += count > 0 ? (size_t)count : 0;
	}
	return NULL;
}
