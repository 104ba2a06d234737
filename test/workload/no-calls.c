/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Makes no memory call, and no loader does: it waits for ever. Linked without libraries. */
#include <asm/unistd.h>

void _start(void);

void _start(void)
{
	for (;;)
#ifdef __aarch64__
	{
		register long number __asm__("x8") = __NR_ppoll, events __asm__("x0") = 0, count __asm__("x1") = 0;
		register long timeout __asm__("x2") = 0, signals __asm__("x3") = 0;

		__asm__ volatile("svc 0"
				 : "+r"(events)
				 : "r"(number), "r"(count), "r"(timeout), "r"(signals)
				 : "memory");
	}
#else
	{
		long result;

		__asm__ volatile("syscall" : "=a"(result) : "a"(__NR_pause) : "rcx", "r11", "memory");
	}
#endif
}
