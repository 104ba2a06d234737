/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Blocks mapped on stacks that are not the thread's own: in a signal handler on an alternate stack, in one on the
 * ordinary stack, and in contexts made by makecontext and switched by swapcontext. contexts [--exit] [ROUNDS]
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "support/stage.h"

enum { BLOCK = 4096, STACK_BYTES = 64 << 10 };

static ucontext_t caller, coroutine;

VISIBLE void leak_mmap(void)
{
	stage_need(mmap(NULL, BLOCK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
	KEEP_FRAME();
}

static void handle_signal(int number)
{
	(void)number;
	leak_mmap();
	KEEP_FRAME();
}

VISIBLE void raise_signal(int number)
{
	if (raise(number))
		exit(1);
	KEEP_FRAME();
}

/* The handler interrupts an instruction, not a call: the lookup of its caller's frame must not subtract one. */
VISIBLE void fault(void)
{
#ifdef __x86_64__
	__asm__ volatile("ud2");
#else
	__asm__ volatile(".inst 0"); /* udf #0 */
#endif
}

static void step_over(int number, siginfo_t *information, void *context)
{
	ucontext_t *interrupted = context;

	(void)number;
	(void)information;
	leak_mmap();
#ifdef __x86_64__
	interrupted->uc_mcontext.gregs[REG_RIP] += 2;
#else
	interrupted->uc_mcontext.pc += 4;
#endif
}

VISIBLE void leak_in_context(void)
{
	leak_mmap();
	KEEP_FRAME();
}

static void run_coroutine(void)
{
	for (;;) {
		leak_in_context();
		stage_need_call(swapcontext(&coroutine, &caller), "swapcontext");
	}
}

VISIBLE void enter_context(void)
{
	stage_need_call(swapcontext(&caller, &coroutine), "swapcontext");
}

VISIBLE void one_round(void)
{
	raise_signal(SIGUSR1);
	raise_signal(SIGUSR2);
	fault();
	enter_context();
	leak_mmap();
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t rounds = stage_number(&stage, 0, 1);
	stack_t alternate = {.ss_sp = stage_need(malloc(STACK_BYTES), "malloc"), .ss_size = STACK_BYTES};
	struct sigaction action = {.sa_handler = handle_signal};

	stage_need_call(sigaltstack(&alternate, NULL), "sigaltstack");
	stage_need_call(sigaction(SIGUSR1, &action, NULL), "sigaction");
	action.sa_flags = SA_ONSTACK;
	stage_need_call(sigaction(SIGUSR2, &action, NULL), "sigaction");
	action = (struct sigaction){.sa_sigaction = step_over, .sa_flags = SA_SIGINFO};
	stage_need_call(sigaction(SIGILL, &action, NULL), "sigaction");

	stage_need_call(getcontext(&coroutine), "getcontext");
	coroutine.uc_stack = (stack_t){.ss_sp = stage_need(malloc(STACK_BYTES), "malloc"), .ss_size = STACK_BYTES};
	makecontext(&coroutine, run_coroutine, 0);

	stage_begin(&stage);
	for (size_t i = 0; i < rounds; i++)
		one_round();
	stage_end(&stage);
	return 0;
}
