// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/process/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/api.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "capture/procfs/proc.h"
#include "capture/scheduling-priority.h"

#define STOP_TIMEOUT_MS 1000
#define STATUS_CANNOT_RUN 127

void command_init(struct traced_command *command)
{
	*command = (struct traced_command){.pidfd = -1, .go_pipe = {-1, -1}, .error_pipe = -1, .status = -1};
}

static void close_descriptor(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

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

/* Restores signals for the command. The recorder may catch or ignore signals that its caller did not, and block signals
 * that it reads from a descriptor; the command must not inherit this. Its exec resets caught signals to their default
 * action. */
static void set_signals(const struct traced_command *command)
{
	sigset_t blocked;

	signal(SIGPIPE, SIG_DFL);
	for (const int *number = command->ignores; number && *number; number++)
		signal(*number, SIG_IGN);
	sigemptyset(&blocked);
	for (const int *number = command->blocks; number && *number; number++)
		sigaddset(&blocked, *number);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/* In the child: waits for the release, then executes the command. */
_Noreturn static void run_child(const struct traced_command *command, char *const *arguments, int go_pipe,
				int error_pipe)
{
	struct rlimit limit;
	char word;
	int errno_value;

	set_signals(command);
	if (command->descriptor_limit && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = command->descriptor_limit;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (command->output_to_stderr && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(STATUS_CANNOT_RUN);
	if (read(go_pipe, &word, 1) == 1) {
		execvp(arguments[0], arguments);
		errno_value = errno;
		if (write(error_pipe, &errno_value, sizeof(errno_value)) < 0)
			_exit(STATUS_CANNOT_RUN);
	}
	_exit(STATUS_CANNOT_RUN);
}

/* Opens the file that execvp() will execute. Negative: there is none. */
static int open_program(const char *name)
{
	const char *directories = getenv("PATH");

	if (strchr(name, '/'))
		return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	while (directories && *directories) {
		size_t length = strcspn(directories, ":");
		CLEANUP(free) char *path = NULL;
		int fd = -1;

		if (asprintf(&path, "%.*s/%s", length ? (int)length : 1, length ? directories : ".", name) < 0) {
			path = NULL;
			return -1;
		}
		if (access(path, X_OK) == 0)
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd >= 0)
			return fd;
		directories += length + (directories[length] == ':');
	}
	return -1;
}

static struct mmt_error *check_program(const char *name)
{
	CLEANUP(close) int fd = open_program(name);

	if (fd >= 0 && proc_is_32_bit_program(fd))
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "%s is a 32-bit program: its system calls cannot be recorded on a 64-bit kernel",
				    name);
	return NULL;
}

struct mmt_error *command_start(struct traced_command *command, char *const *arguments)
{
	struct mmt_error *error = check_program(arguments[0]);
	int go_pipe[2], error_pipe[2];
	int errno_value;

	if (error)
		return error;
	if (pipe2(go_pipe, O_CLOEXEC) < 0)
		return error_system(errno, "cannot create a pipe");
	if (pipe2(error_pipe, O_CLOEXEC) < 0) {
		errno_value = errno;
		close(go_pipe[0]);
		close(go_pipe[1]);
		return error_system(errno_value, "cannot create a pipe");
	}
	command->name = arguments[0];
	command->pid = fork();
	errno_value = errno;
	if (command->pid == 0) {
		close(go_pipe[1]);
		run_child(command, arguments, go_pipe[0], error_pipe[1]);
	}
	close(error_pipe[1]);
	memcpy(command->go_pipe, go_pipe, sizeof(go_pipe));
	command->error_pipe = error_pipe[0];
	if (command->pid < 0) {
		command->pid = 0;
		return error_system(errno_value, "cannot start %s", command->name);
	}
	command->pidfd = (int)syscall(SYS_pidfd_open, command->pid, 0);
	return NULL;
}

struct mmt_error *command_release(struct traced_command *command)
{
	int errno_value = 0;
	ssize_t count;

	if (write(command->go_pipe[1], "g", 1) != 1)
		return error_system(errno, "cannot start %s after recording has begun", command->name);
	do
		count = read(command->error_pipe, &errno_value, sizeof(errno_value));
	while (count < 0 && errno == EINTR);
	if (count == sizeof(errno_value))
		return error_set_code(error_system(errno_value, "cannot run %s", command->name), MMT_ERROR_COMMAND);
	close_descriptor(&command->go_pipe[0]);
	close_descriptor(&command->go_pipe[1]);
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

static void reap(struct traced_command *command)
{
	int status;

	/* A thread that traces the command may still be exiting. Until then, waitpid() also returns stops of the
	 * command. */
	if (command->pid > 0 && waitpid(command->pid, &status, WNOHANG) == command->pid && !WIFSTOPPED(status)) {
		command->status = status;
		command->pid = 0;
	}
}

bool command_stop(struct traced_command *command)
{
	struct pollfd ended = {.fd = command->pidfd, .events = POLLIN};

	/* Closing the pipe makes a command that was not released exit. */
	close_descriptor(&command->go_pipe[1]);
	reap(command);
	if (command->pid <= 0)
		return true;
	kill(command->pid, SIGTERM);
	while (ended.fd >= 0 && poll(&ended, 1, STOP_TIMEOUT_MS) < 0 && errno == EINTR)
		;
	/* Leave the status unknown: the command was terminated and has no result of its own. */
	if (waitpid(command->pid, NULL, WNOHANG) == command->pid)
		command->pid = 0;
	return command->pid == 0;
}

#define OPTIONS (PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

struct exit_watch {
	pid_t pid;
	pthread_t thread;
	int ended[2];	     /* pipe: the PIDs of processes that are held at their exit */
	int release_pipe[2]; /* pipe: one byte for each process that may continue */
	int started[2];	     /* pipe: the errno value of starting to trace, or 0 */
	struct map ending;   /* threads that were stopped at their exit and continued */
};

/* Continues a stopped thread. `tid` may be a PID: the main thread. */
static void continue_tracee(enum __ptrace_request request, pid_t tid, int number)
{
	(void)ptrace(request, tid, NULL, (void *)(intptr_t)number);
}

/* Have all other threads of the process reached their exit, so that the exit of this one frees the memory? */
static bool is_last(const struct exit_watch *watch, pid_t pid, pid_t tid)
{
	proc_pids threads = {0};
	bool last = proc_list_threads(pid, &threads, NULL);

	for (size_t i = 0; last && i < threads.count; i++)
		last = threads.items[i] == tid || map_get(&watch->ending, (uint32_t)threads.items[i]) ||
		       proc_is_zombie(threads.items[i]);
	vector_deinit(&threads);
	return last;
}

/* Holds the process until the recorder has read its maps, or has stopped reading maps. */
static void hold(const struct exit_watch *watch, pid_t pid)
{
	char byte;

	if (write(watch->ended[1], &pid, sizeof(pid)) == sizeof(pid))
		while (read(watch->release_pipe[0], &byte, 1) < 0 && errno == EINTR)
			;
}

static void end_thread(struct exit_watch *watch, pid_t tid)
{
	pid_t pid = proc_process_of(tid);

	if (pid > 0 && is_last(watch, pid, tid))
		hold(watch, pid);
	/* Without memory for this entry, the thread seems to be alive, so its process is not checked at its exit. */
	(void)map_put(&watch->ending, (uint32_t)tid, 1);
	continue_tracee(PTRACE_DETACH, tid, 0);
}

static bool stops_group(int number)
{
	return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* `status`: the signal number, with the ptrace event in the bits above. */
static void handle_stop(struct exit_watch *watch, pid_t tid, int status)
{
	int number = status & 0xff;

	switch (status >> 8) {
	case PTRACE_EVENT_EXIT:
		end_thread(watch, tid);
		break;
	case PTRACE_EVENT_STOP:
		/* A new thread, which may reuse the TID of an ended one, or a group stop of its process. */
		(void)map_remove(&watch->ending, (uint32_t)tid);
		continue_tracee(stops_group(number) ? PTRACE_LISTEN : PTRACE_CONT, tid, 0);
		break;
	case 0:
		continue_tracee(PTRACE_CONT, tid, number); /* deliver the signal */
		break;
	default:
		continue_tracee(PTRACE_CONT, tid, 0);
		break;
	}
}

/* The thread that traces. When it ends, the kernel detaches it from every process that it traces. */
static void *watch_exits(void *context)
{
	struct exit_watch *watch = context;
	int failure, cancel_state;
	siginfo_t stop = {0};

	/* Traced processes are held at their exit until this thread runs. */
	priority_raise_nice();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	failure = ptrace(PTRACE_SEIZE, watch->pid, NULL, (void *)(intptr_t)OPTIONS) < 0 ? errno : 0;
	if (write(watch->started[1], &failure, sizeof(failure)) != sizeof(failure) || failure)
		return NULL;
	for (;;) {
		int result;

		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
		/* Wait only for stops of this thread's tracees. Other threads wait for their exits. WNOWAIT: if this
		 * thread is cancelled here, the kernel still delivers the signal that the stop announced. */
		result = waitid(P_ALL, 0, &stop, WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
		if (result == 0)
			result = waitid(P_PID, (id_t)stop.si_pid, &stop, WSTOPPED | WNOHANG | __WALL | __WNOTHREAD);
		if (result == 0 && !stop.si_pid)
			continue; /* the tracee was killed in the meantime */
		if (result == 0)
			handle_stop(watch, stop.si_pid, stop.si_status);
		else if (errno != EINTR)
			return NULL; /* no tracee is left */
	}
}

static void close_pipe(int pipe[2])
{
	for (int i = 0; i < 2; i++) {
		if (pipe[i] >= 0)
			close(pipe[i]);
		pipe[i] = -1;
	}
}

static void destroy(struct exit_watch *watch)
{
	close_pipe(watch->ended);
	close_pipe(watch->release_pipe);
	close_pipe(watch->started);
	map_deinit(&watch->ending);
	free(watch);
}

struct mmt_error *exit_watch_start(pid_t pid, struct exit_watch **watch_ret)
{
	struct exit_watch *watch = calloc(1, sizeof(*watch));
	int failure = 0;

	if (!watch)
		return &error_no_memory;
	*watch = (struct exit_watch){.pid = pid, .ended = {-1, -1}, .release_pipe = {-1, -1}, .started = {-1, -1}};
	if (pipe2(watch->ended, O_CLOEXEC) < 0 || pipe2(watch->release_pipe, O_CLOEXEC) < 0 ||
	    pipe2(watch->started, O_CLOEXEC) < 0)
		failure = errno;
	if (!failure)
		failure = thread_start(&watch->thread, watch_exits, watch);
	if (failure) {
		destroy(watch);
		return error_create(MMT_ERROR_SYSTEM, "cannot prepare for checks at exit: %s", strerror(failure));
	}
	if (read(watch->started[0], &failure, sizeof(failure)) != sizeof(failure))
		failure = EIO;
	if (failure) {
		pthread_join(watch->thread, NULL);
		destroy(watch);
		return error_create(MMT_ERROR_SYSTEM, "cannot trace the command, which --check-exit requires: %s",
				    strerror(failure));
	}
	*watch_ret = watch;
	return NULL;
}

void exit_watch_stop(struct exit_watch *watch)
{
	if (!watch)
		return;
	pthread_cancel(watch->thread);
	/* The thread may be holding a process. Closing the pipe makes it release the process and end. */
	close(watch->release_pipe[1]);
	watch->release_pipe[1] = -1;
	pthread_join(watch->thread, NULL);
	destroy(watch);
}

int exit_watch_descriptor(const struct exit_watch *watch)
{
	return watch ? watch->ended[0] : -1;
}

pid_t exit_watch_next(struct exit_watch *watch)
{
	struct pollfd ended = {.fd = exit_watch_descriptor(watch), .events = POLLIN};
	pid_t pid;

	if (ended.fd < 0 || poll(&ended, 1, 0) <= 0 || read(ended.fd, &pid, sizeof(pid)) != sizeof(pid))
		return 0;
	return pid;
}

void exit_watch_release(struct exit_watch *watch)
{
	while (write(watch->release_pipe[1], "", 1) < 0 && errno == EINTR)
		;
}
