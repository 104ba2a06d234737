// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/process/exit-watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/api.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "capture/perf/clock.h"
#include "capture/proc/proc.h"

#define OPTIONS (PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

struct exit_watch {
	pid_t pid;
	pthread_t thread;
	int ended[2];	   /* pipe: IDs of processes that are held */
	int let_go[2];	   /* pipe: a byte for each process that may continue */
	int started[2];	   /* pipe: errno of starting to trace, or 0 */
	struct map ending; /* threads that were stopped at their exit and continued */
};

/* `tid` is a thread, or a process, which is its main thread. */
static void go_on(enum __ptrace_request request, pid_t tid, int number)
{
	(void)ptrace(request, tid, NULL, (void *)(intptr_t)number);
}

/* Whether all other threads of the process have reached their exit, so that its memory is freed with this one. */
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

/* Waits until the recorder has read the maps, or has stopped reading them. */
static void hold(const struct exit_watch *watch, pid_t pid)
{
	char byte;

	if (write(watch->ended[1], &pid, sizeof(pid)) == sizeof(pid))
		while (read(watch->let_go[0], &byte, 1) < 0 && errno == EINTR)
			;
}

static void end_thread(struct exit_watch *watch, pid_t tid)
{
	pid_t pid = proc_process_of(tid);

	if (pid > 0 && is_last(watch, pid, tid))
		hold(watch, pid);
	/* If the thread cannot be added, its process appears to have a live thread and is not checked. */
	(void)map_put(&watch->ending, (uint32_t)tid, 1);
	go_on(PTRACE_DETACH, tid, 0);
}

static bool stops_group(int number)
{
	return number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

/* `status`: a signal number, and the ptrace event in the bits above. */
static void handle_stop(struct exit_watch *watch, pid_t tid, int status)
{
	int number = status & 0xff;

	switch (status >> 8) {
	case PTRACE_EVENT_EXIT:
		end_thread(watch, tid);
		break;
	case PTRACE_EVENT_STOP:
		/* The first stop of a new thread, whose ID may be reused, or a group stop of its process. */
		(void)map_remove(&watch->ending, (uint32_t)tid);
		go_on(stops_group(number) ? PTRACE_LISTEN : PTRACE_CONT, tid, 0);
		break;
	case 0:
		go_on(PTRACE_CONT, tid, number); /* deliver the signal */
		break;
	default:
		go_on(PTRACE_CONT, tid, 0);
		break;
	}
}

/* When this thread ends, the kernel detaches everything that it traces. */
static void *watch_exits(void *context)
{
	struct exit_watch *watch = context;
	int failure, cancel_state;
	siginfo_t stop = {0};

	/* Processes are held at their exit until this thread lets them go. */
	priority_take_nice();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	failure = ptrace(PTRACE_SEIZE, watch->pid, NULL, (void *)(intptr_t)OPTIONS) < 0 ? errno : 0;
	if (write(watch->started[1], &failure, sizeof(failure)) != sizeof(failure) || failure)
		return NULL;
	for (;;) {
		int result;

		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
		/* Wait only for stops of this thread's tracees, and not for their exits, for which other threads wait.
		   WNOWAIT: if the thread is cancelled here, the kernel still delivers the signal that the stop
		   announces. */
		result = waitid(P_ALL, 0, &stop, WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
		if (result == 0)
			result = waitid(P_PID, (id_t)stop.si_pid, &stop, WSTOPPED | WNOHANG | __WALL | __WNOTHREAD);
		if (result == 0 && !stop.si_pid)
			continue; /* killed meanwhile */
		if (result == 0)
			handle_stop(watch, stop.si_pid, stop.si_status);
		else if (errno != EINTR)
			return NULL; /* nothing is left to trace */
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
	close_pipe(watch->let_go);
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
	*watch = (struct exit_watch){.pid = pid, .ended = {-1, -1}, .let_go = {-1, -1}, .started = {-1, -1}};
	if (pipe2(watch->ended, O_CLOEXEC) < 0 || pipe2(watch->let_go, O_CLOEXEC) < 0 ||
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
	/* The thread may be holding a process: closing the pipe makes it release the process and end. */
	close(watch->let_go[1]);
	watch->let_go[1] = -1;
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
	while (write(watch->let_go[1], "", 1) < 0 && errno == EINTR)
		;
}
