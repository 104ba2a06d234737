/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program of the golden recordings. It needs no library, so that its report is the same on every machine. Its
 * operands are ignored, but each adds one leak. It exits at the end of standard input.
 */
#include <linux/mman.h>
#include <stddef.h>
#include <sys/syscall.h>

enum { PAGE = 4096, PROT_NO_ACCESS = 0, PROT_READ_WRITE = 3, LEAKS = 4 };

#define VISIBLE static __attribute__((noipa))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

void program(const long *stack) __attribute__((noreturn, used));

#ifdef __aarch64__
__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n"
	"	mov x29, #0\n"
	"	mov x30, #0\n"
	"	mov x0, sp\n"
	"	bl program\n"
	"	brk #0\n"
	"	.cfi_endproc\n"
	".size _start, . - _start\n");

VISIBLE long system_call(long number, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = -1;
	register long x5 __asm__("x5") = 0;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
#else
__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call program\n"
	"	hlt\n"
	"	.cfi_endproc\n"
	".size _start, . - _start\n");

VISIBLE long system_call(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = -1;
	register long r9 __asm__("r9") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}
#endif

VISIBLE char *mmap_block(size_t length, int protection)
{
	long address = system_call(SYS_mmap, 0, (long)length, protection, MAP_PRIVATE | MAP_ANONYMOUS);

	KEEP_FRAME();
	return (char *)address;
}

VISIBLE void leak(void)
{
	volatile char *block = mmap_block(16 * PAGE, PROT_READ_WRITE);

	block[0] = 1;
}

VISIBLE void map_and_unmap(void)
{
	system_call(SYS_munmap, (long)mmap_block(8 * PAGE, PROT_READ_WRITE), 8 * PAGE, 0, 0);
	KEEP_FRAME();
}

VISIBLE void reserve(void)
{
	char *area = mmap_block(256 * PAGE, PROT_NO_ACCESS);

	system_call(SYS_mprotect, (long)area, 2 * PAGE, PROT_READ_WRITE, 0);
	KEEP_FRAME();
}

VISIBLE void grow(void)
{
	system_call(SYS_mremap, (long)mmap_block(4 * PAGE, PROT_READ_WRITE), 4 * PAGE, 12 * PAGE, MREMAP_MAYMOVE);
	KEEP_FRAME();
}

void program(const long *stack)
{
	long operands = stack[0] - 1;
	char byte;

	for (long i = 0; i < LEAKS + operands; i++)
		leak();
	map_and_unmap();
	reserve();
	if (operands == 0)
		grow();
	system_call(SYS_read, 0, (long)&byte, 1, 0);
	system_call(SYS_exit_group, 0, 0, 0, 0);
	__builtin_unreachable();
}
