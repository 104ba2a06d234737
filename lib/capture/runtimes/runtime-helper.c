// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/runtimes/runtime-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/perf/clock.h"
#include "capture/proc/proc.h"

#define END_MILLISECONDS 200 /* for a killed child; if the kernel holds it longer, it is reaped later */
#define FIRST_FREE 3	     /* first descriptor after standard input, output and error */

static int move_up(int fd)
{
	return fd < 0 || fd >= FIRST_FREE ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
}

static bool close_between(int first, int last)
{
	return first > last || close_range((unsigned)first, (unsigned)last, 0) == 0;
}

/* The child keeps only these two descriptors of the recorder. If the kernel holds the child longer than the recorder
 * lives, it must not keep a pipe of the recorder's output open, nor an event of a target. False: they cannot be
 * moved. */
static bool close_others(int *answer, int *pidfd)
{
	int nothing, lower, upper;

	*answer = move_up(*answer);
	*pidfd = move_up(*pidfd);
	lower = *answer < *pidfd ? *answer : *pidfd;
	upper = *answer < *pidfd ? *pidfd : *answer;
	if (lower < 0)
		lower = upper;
	if (!close_between(FIRST_FREE, lower - 1) || !close_between(lower + 1, upper - 1) ||
	    !close_between(upper + 1, INT_MAX))
		return false;
	/* Now a descriptor is free, however many the recorder has open. */
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; nothing >= 0 && fd < FIRST_FREE; fd++)
		(void)dup2(nothing, fd);
	if (nothing >= FIRST_FREE)
		close(nothing);
	return nothing >= 0;
}

/* The answer is one write(): a byte, and the reason for a refusal. */
_Noreturn static void run_child(struct helper_target target, helper_ask *ask, int answer, pid_t recorder)
{
	char text[1 + HELPER_REFUSAL_BYTES] = {HELPER_UNANSWERED};
	bool ready = close_others(&answer, &target.pidfd);

	/* End with the recorder. A change of user resets this, so target_become_user() repeats it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!ready)
		snprintf(text, sizeof(text), "%c%s", HELPER_REFUSED,
			 "the recorder's files cannot be kept from whoever asks it");
	else if (getppid() == recorder)
		text[0] = (char)ask(&target, text + 1);
	_exit(write(answer, text, 1 + strlen(text + 1)) < 0);
}

bool helper_put(struct helper *helper, const struct helper_target *target, helper_ask *ask)
{
	pid_t recorder = getpid();
	sigset_t all, before;
	int ends[2];

	helper_reap(helper);
	if (helper->dying)
		return false;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	/* Signals from the terminal are handled by the recorder. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	helper->child = fork();
	if (helper->child == 0)
		run_child(*target, ask, ends[1], recorder);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	helper->answer = ends[0];
	if (helper->child > 0)
		return true;
	close(ends[0]);
	*helper = (struct helper){0};
	return false;
}

enum helper_answer helper_take_answer(struct helper *helper, char refusal_ret[HELPER_REFUSAL_BYTES])
{
	char text[1 + HELPER_REFUSAL_BYTES] = {HELPER_UNANSWERED};
	ssize_t count = read(helper->answer, text, sizeof(text) - 1);

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return HELPER_WAITS;
	snprintf(refusal_ret, HELPER_REFUSAL_BYTES, "%s", count > 0 ? text + 1 : "asking it failed");
	helper_drop(helper);
	return (enum helper_answer)text[0];
}

void helper_drop(struct helper *helper)
{
	if (!helper->child)
		return;
	close(helper->answer);
	kill(helper->child, SIGKILL);
	*helper = (struct helper){.dying = helper->child};
	helper_reap(helper);
	for (unsigned i = 0; i < END_MILLISECONDS && helper->dying; i++) {
		usleep(1000);
		helper_reap(helper);
	}
}

void helper_reap(struct helper *helper)
{
	if (helper->dying && waitpid(helper->dying, NULL, WNOHANG) != 0)
		helper->dying = 0;
}

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

/* Capabilities survive a change between two users that are not root. */
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

/* O_PATH, so that the checked socket is the one that is connected to. */
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

/* Another process of the same user could have created the socket under this name. */
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
