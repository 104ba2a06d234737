/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions with every kind of name: inlined, static, exported, C++, Rust, and with an operand in a signal handler.
 * test/live/names.sh compiles this file in many ways and counts on the lines below.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 100 * 4096 };

#define INLINED static inline __attribute__((always_inline))
#define FRAME __attribute__((noinline))

static volatile int calls;

INLINED void innermost(void)
{
	mmap(NULL, BLOCK_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* innermost */
	calls++;
}

INLINED void between(void)
{
	innermost(); /* between */
	calls++;
}

static FRAME void hidden(void)
{
	between(); /* hidden */
	calls++;
}

FRAME void visible(void)
{
	hidden(); /* visible */
	calls++;
}

FRAME void cplusplus(void) __asm__("_ZN5space6memberISsEEvm");
FRAME void cplusplus(void)
{
	visible();
	calls++;
}

FRAME void rust_legacy(void) __asm__("_ZN5crate6module8function17h0123456789abcdefE");
FRAME void rust_legacy(void)
{
	cplusplus();
	calls++;
}

FRAME void rust_v0(void) __asm__("_RNvNtCs1234_7mycrate3foo3bar");
FRAME void rust_v0(void)
{
	rust_legacy();
	calls++;
}

static void in_signal(int number)
{
	(void)number;
	hidden();
	calls++;
}

int main(int argument_count, char **arguments)
{
	(void)arguments;
	if (argument_count > 1) {
		signal(SIGUSR1, in_signal);
		raise(SIGUSR1);
	} else {
		rust_v0();
	}
	return calls == 0;
}
