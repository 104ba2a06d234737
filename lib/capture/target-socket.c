// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/target-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/clock.h"
#include "capture/proc.h"

int target_directory_open(pid_t pid, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP(close) int root = -1;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/root", proc_living_thread(pid));
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* They survive a change from one user to another where neither is root. */
static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capset, &header, none) == 0;
}

const char *target_become_user(pid_t pid, uid_t *owner_ret)
{
	pid_t recorder = getppid();
	gid_t group;

	if (!proc_owner(pid, owner_ret) || !proc_group(pid, &group))
		return "it is gone";
	if (*owner_ret == geteuid() && group == getegid())
		return *owner_ret == 0 || drop_capabilities() ? NULL : "its user's rights cannot be taken on";
	if (setgroups(0, NULL) < 0 || setresgid(group, group, group) < 0 ||
	    setresuid(*owner_ret, *owner_ret, *owner_ret) < 0 || (*owner_ret != 0 && !drop_capabilities()))
		return "it has to be asked as its own user: run as root, or with CAP_SETUID and CAP_SETGID";
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == recorder ? NULL : "the recorder is gone";
}

/* O_PATH, so that what was looked at is what is connected to. */
static int open_socket(uid_t owner, int directory, const char *name)
{
	int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode) && status.st_uid == owner)
		return fd;
	close(fd);
	errno = ENOTSOCK;
	return -1;
}

/* Another process of the same user could have made the socket under this name. */
static bool is_peer(int fd, pid_t pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof(peer) && peer.pid == pid;
}

int target_socket_connect(pid_t pid, uid_t owner, int directory, const char *name)
{
	CLEANUP(close) int place = open_socket(owner, directory, name);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, result;

	if (place < 0)
		return -1;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
	if (result == 0 && is_peer(fd, pid))
		return fd;
	if (result == 0)
		errno = ECONNREFUSED;
	result = errno;
	close(fd);
	errno = result;
	return -1;
}

static bool wait_for(int fd, short events, uint64_t until_ns)
{
	for (uint64_t now_ns = clock_now_ns(); now_ns < until_ns; now_ns = clock_now_ns()) {
		struct pollfd poll_fd = {.fd = fd, .events = events};

		if (poll(&poll_fd, 1, (int)((until_ns - now_ns) / 1000000) + 1) > 0)
			return true;
	}
	return false;
}

bool target_socket_send(int fd, const void *data, size_t size, uint64_t until_ns)
{
	size_t sent = 0;

	while (sent < size) {
		ssize_t count = send(fd, (const uint8_t *)data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (count > 0)
			sent += (size_t)count;
		else if ((count < 0 && errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLOUT, until_ns))
			return false;
	}
	return true;
}

size_t target_socket_receive(int fd, void *data, size_t size, uint64_t until_ns)
{
	size_t received = 0;

	while (received < size && wait_for(fd, POLLIN, until_ns)) {
		ssize_t count = recv(fd, (uint8_t *)data + received, size - received, MSG_DONTWAIT);

		if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
			break;
		received += count > 0 ? (size_t)count : 0;
	}
	return received;
}
