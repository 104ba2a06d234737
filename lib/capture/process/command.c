// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/process/process-table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "capture/procfs/clock.h"
#include "capture/procfs/proc.h"

#define STOP_TIMEOUT_MS 1000
#define STATUS_CANNOT_RUN 127
#define EXEC_TICK_MS 100
#define IS_32_BIT 0 /* sent instead of an errno */

void command_deinit(struct traced_command *command)
{
	bool held = command->go_pipe[0] >= 0; /* the command was never released */

	close_descriptor(&command->go_pipe[0]);
	close_descriptor(&command->go_pipe[1]);
	close_descriptor(&command->error_pipe);
	close_descriptor(&command->pidfd);
	if (held && command->pid > 0) {
		kill(command->pid, SIGKILL);
		waitpid(command->pid, NULL, 0);
		command->pid = 0;
	}
}

/* Open the file that execvp() will execute, whose file system may not answer. Negative: there is none. */
static int open_program(const char *name)
{
	const char *directories = getenv("PATH");
	char path[PATH_MAX];
	int fd = -1;

	if (strchr(name, '/'))
		return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	while (fd < 0 && directories && *directories) {
		size_t length = strcspn(directories, ":");

		snprintf(path, sizeof(path), "%.*s/%s", length ? (int)length : 1, length ? directories : ".", name);
		if (access(path, X_OK) == 0)
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		directories += length + (directories[length] == ':');
	}
	return fd;
}

/* In the child: waits for the release, then executes the command. */
_Noreturn static void run_child(const struct traced_command *command, char *const *arguments, int error_pipe)
{
	struct rlimit limit;
	sigset_t blocked;
	int errno_value, fd;
	char word;

	/* The recorder may catch or ignore signals that its caller did not, and block signals that it reads from a
	 * descriptor; the command must not inherit this. Its exec resets caught signals to their default action. */
	signal(SIGPIPE, SIG_DFL);
	for (const int *number = command->ignores; number && *number; number++)
		signal(*number, SIG_IGN);
	sigemptyset(&blocked);
	for (const int *number = command->blocks; number && *number; number++)
		sigaddset(&blocked, *number);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	if (command->descriptor_limit && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = command->descriptor_limit;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (command->output_to_stderr && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(STATUS_CANNOT_RUN);
	if (read(command->go_pipe[0], &word, 1) == 1) {
		fd = open_program(arguments[0]);
		errno_value = IS_32_BIT;
		if (fd < 0 || !proc_is_32_bit_program(fd)) {
			execvp(arguments[0], arguments);
			errno_value = errno;
		}
		if (write(error_pipe, &errno_value, sizeof(errno_value)) < 0)
			_exit(STATUS_CANNOT_RUN);
	}
	_exit(STATUS_CANNOT_RUN);
}

struct mmt_error *command_start(struct traced_command *command, char *const *arguments)
{
	int error_pipe[2], errno_value;

	if (pipe2(command->go_pipe, O_CLOEXEC) < 0 || pipe2(error_pipe, O_CLOEXEC) < 0)
		return error_system(errno, "cannot create a pipe");
	command->name = arguments[0];
	command->pid = fork();
	errno_value = errno;
	if (command->pid == 0) {
		close(command->go_pipe[1]);
		run_child(command, arguments, error_pipe[1]);
	}
	close(error_pipe[1]);
	command->error_pipe = error_pipe[0];
	if (command->pid < 0) {
		command->pid = 0;
		return error_system(errno_value, "cannot start %s", command->name);
	}
	command->pidfd = (int)syscall(SYS_pidfd_open, command->pid, 0);
	return NULL;
}

struct mmt_error *command_release(struct traced_command *command, int stop_fd, uint64_t until_ns)
{
	struct pollfd items[] = {{.fd = command->error_pipe, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
	uint64_t now_ns = clock_now_ns();
	struct mmt_error *error;
	int errno_value;
	bool failed;

	if (write(command->go_pipe[1], "g", 1) != 1)
		return error_system(errno, "cannot start %s after recording has begun", command->name);
	while (now_ns < until_ns && poll(items, 2, EXEC_TICK_MS) <= 0)
		now_ns = clock_now_ns();
	failed =
	    items[0].revents && read(command->error_pipe, &errno_value, sizeof(errno_value)) == sizeof(errno_value);
	if (failed && errno_value == IS_32_BIT)
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "%s is a 32-bit program: its system calls cannot be recorded on a 64-bit kernel",
				    command->name);
	if (failed) {
		error = error_system(errno_value, "cannot run %s", command->name);
		if (error != &error_no_memory)
			error->code = MMT_ERROR_COMMAND;
		return error;
	}
	close_descriptor(&command->go_pipe[0]);
	close_descriptor(&command->go_pipe[1]);
	if (items[0].revents)
		close_descriptor(&command->error_pipe);
	return NULL;
}

bool command_has_ended(const struct traced_command *command)
{
	struct pollfd ended = {.fd = command->pidfd, .events = POLLIN};

	if (command->pidfd >= 0)
		return poll(&ended, 1, 0) > 0;
	return command->pid > 0 && proc_has_ended(command->pid);
}

int command_status(const struct traced_command *command)
{
	siginfo_t info = {0};

	/* A reaped command gives its PID to others. */
	if (command->pid <= 0 || waitid(P_PID, (id_t)command->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    !info.si_pid)
		return -1;
	return info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : W_EXITCODE(0, info.si_status);
}

bool command_stop(struct traced_command *command)
{
	struct pollfd ended = {.fd = command->pidfd, .events = POLLIN};
	struct pollfd exec = {.fd = command->error_pipe, .events = POLLIN};
	/* Which may last for ever. */
	bool in_exec = command->go_pipe[0] < 0 && command->error_pipe >= 0 && poll(&exec, 1, 0) == 0;
	int status;

	/* Closing the pipe makes a command that was not released exit. */
	close_descriptor(&command->go_pipe[1]);
	if (command->pid > 0 && waitpid(command->pid, &status, WNOHANG) == command->pid) {
		command->status = status;
		command->pid = 0;
	}
	if (command->pid <= 0)
		return true;
	kill(command->pid, SIGTERM);
	while (ended.fd >= 0 && poll(&ended, 1, in_exec ? 0 : STOP_TIMEOUT_MS) < 0 && errno == EINTR)
		;
	/* Leave the status unknown: the command was terminated and has no result of its own. */
	if (waitpid(command->pid, NULL, WNOHANG) == command->pid)
		command->pid = 0;
	return command->pid == 0;
}
