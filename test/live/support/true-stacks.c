/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * true-stacks FILE COMMAND...: becomes the command, which another process (its tracer) single-steps. Every return
 * address that an instruction pushes is remembered until the stack pointer has passed it: for each mmap after SIGUSR1
 * to the tracer, the stack is written to FILE without unwinding. One line for each call: thread, result, addresses from
 * the innermost to the outermost, separated by tabs; all but the first are return addresses. SIGTERM to the tracer lets
 * the command continue without it. x86-64 only; signal handlers are not followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/map.h"
#include "base/vector.h"

#define INSTRUCTION_BYTES_MAX 15

struct pushed {
	uint64_t place, address; /* where it lies on the stack, and what it is */
};

struct thread {
	pid_t id;
	uint64_t instruction, stack; /* before the last step; 0: not known */
	VECTOR(struct pushed) calls; /* outermost first */
};

static VECTOR(struct thread) threads;
static struct map numbers; /* thread -> place in `threads` */
static volatile sig_atomic_t noting, leaving;

static void need(long result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "true-stacks: %s: ", what);
	perror(NULL);
	exit(2);
}

static void handle_signal(int number)
{
	if (number == SIGUSR1)
		noting = 1;
	else
		leaving = 1;
}

static struct thread *find_thread(pid_t id)
{
	const uint64_t *place = map_get(&numbers, (uint64_t)id);
	const struct thread fresh = {.id = id};

	if (place)
		return &threads.items[*place];
	if (!map_put(&numbers, (uint64_t)id, threads.count) || !vector_push(&threads, fresh))
		exit(2);
	return &threads.items[threads.count - 1];
}

/* The word at the stack pointer is the address after the instruction just executed: that was a call. */
static void note_call(struct thread *thread, const struct user_regs_struct *registers)
{
	struct pushed pushed = {.place = registers->rsp};

	if (registers->rsp != thread->stack - sizeof(uint64_t))
		return;
	pushed.address = (uint64_t)ptrace(PTRACE_PEEKDATA, thread->id, registers->rsp, NULL);
	if (pushed.address > thread->instruction && pushed.address - thread->instruction <= INSTRUCTION_BYTES_MAX &&
	    !vector_push(&thread->calls, pushed))
		exit(2);
}

static void write_stack(FILE *output, const struct thread *thread, const struct user_regs_struct *registers)
{
	fprintf(output, "%d\t%#llx\t%#llx", thread->id, registers->rax, registers->rip);
	for (size_t i = thread->calls.count; i-- > 0;)
		fprintf(output, "\t%#llx", (unsigned long long)thread->calls.items[i].address);
	fputc('\n', output);
}

static void note_step(FILE *output, struct thread *thread)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread->id, NULL, &registers))
		return; /* killed */
	while (thread->calls.count && thread->calls.items[thread->calls.count - 1].place < registers.rsp)
		thread->calls.count--;
	note_call(thread, &registers);
	thread->instruction = registers.rip;
	thread->stack = registers.rsp;
	/* There is a number only after a system call. */
	if (noting && registers.orig_rax == SYS_mmap)
		write_stack(output, thread, &registers);
}

static void interrupt_all(void)
{
	for (size_t i = 0; i < threads.count; i++)
		(void)ptrace(PTRACE_INTERRUPT, threads.items[i].id, NULL, NULL);
}

static void go_on(FILE *output, pid_t id, int status)
{
	struct thread *thread = find_thread(id);
	int event = status >> 16, number = WSTOPSIG(status);
	bool stepped = number == SIGTRAP && !event;

	if (event == PTRACE_EVENT_EXEC)
		thread->calls.count = 0;
	if (stepped)
		note_step(output, thread);
	if (number == SIGTRAP || event == PTRACE_EVENT_STOP)
		number = 0;
	/* Only there: the trap of an interrupted step is still pending, and would kill an untraced process. */
	(void)ptrace(leaving && stepped ? PTRACE_DETACH : PTRACE_SINGLESTEP, id, NULL, number);
}

static void trace(FILE *output)
{
	pid_t id;
	int status;

	for (;;) {
		id = waitpid(-1, &status, __WALL);
		if (id < 0 && errno != EINTR)
			break;
		if (id > 0 && WIFSTOPPED(status))
			go_on(output, id, status);
		else if (id < 0 && leaving)
			interrupt_all();
	}
	need(fclose(output), "writing");
	vector_deinit(&threads);
	map_deinit(&numbers);
}

/* In a grandchild: the command must not wait for it. */
static void start_tracer(const char *path, pid_t target, int ready)
{
	struct sigaction action = {.sa_handler = handle_signal};
	FILE *output = fopen(path, "we");
	int nothing = open("/dev/null", O_RDWR);

	need(output && nothing >= 0 ? 0 : -1, path);
	need(dup2(nothing, STDIN_FILENO), "dup2");
	need(dup2(nothing, STDOUT_FILENO), "dup2");
	need(sigaction(SIGUSR1, &action, NULL), "sigaction");
	need(sigaction(SIGTERM, &action, NULL), "sigaction");
	need(ptrace(PTRACE_SEIZE, target, NULL, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC), "ptrace");
	need(write(ready, "", 1), "write");
	close(ready);
	trace(output);
	exit(0);
}

int main(int argc, char **argv)
{
	pid_t target = getpid(), child;
	int ready[2];
	char byte;

	if (argc < 3) {
		fprintf(stderr, "usage: true-stacks FILE COMMAND...\n");
		return 2;
	}
	need(pipe2(ready, O_CLOEXEC), "pipe2");
	child = fork();
	need(child, "fork");
	if (!child) {
		child = fork();
		need(child, "fork");
		if (!child)
			start_tracer(argv[1], target, ready[1]);
		_exit(0);
	}
	need(waitpid(child, NULL, 0), "waitpid");
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 2;
	execv(argv[2], argv + 2);
	need(-1, argv[2]);
}
