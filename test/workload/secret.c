/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that leave a secret wherever a recording could pick it up: on the stack, in registers that the call does not
 * use, and where a frame-pointer walk takes it for a return address.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "support/stage.h"

enum { LEAKS = 10, BLOCK_PAGES = 3, SECRETS = 64 };

/* As long as a register. Stored where the compiler must read it: a constant would become part of the code. */
static const char *volatile text = "S3cr3t#!";

/* A frame that rbp could point to: not a caller's, with the secret as return address. */
static uint64_t false_frame[2];

/*
 * long call(long number, long first, long second, uint64_t secret, void *frame): mmap and munmap have 6 and 2
 * arguments; the other argument registers contain the secret.
 */
long call(long number, void *first, long second, uint64_t secret, void *frame);
#if defined(__aarch64__)
__asm__(".text\n"
	".globl call\n"
	".type call, @function\n"
	"call:\n"
	".cfi_startproc\n"
	"stp x29, x30, [sp, -32]!\n"
	".cfi_def_cfa_offset 32\n"
	".cfi_offset 29, -32\n"
	".cfi_offset 30, -24\n"
	"str x19, [sp, 16]\n"
	".cfi_offset 19, -16\n"
	"mov x29, x4\n"
	"mov x19, x3\n" /* the secret, in a register that is saved */
	"mov x8, x0\n"
	"mov x0, x1\n"
	"mov x1, x2\n"
	"mov x2, x19\n"
	"mov x4, x19\n"
	"mov x5, x19\n"
	"cmp x8, 222\n" /* mmap: PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS */
	"b.ne 1f\n"
	"mov x2, 1\n"
	"mov x3, 0x22\n"
	"mov x4, -1\n"
	"mov x5, 0\n"
	"1: svc 0\n"
	"ldr x19, [sp, 16]\n"
	"ldp x29, x30, [sp], 32\n"
	".cfi_def_cfa_offset 0\n"
	".cfi_restore 19\n"
	".cfi_restore 29\n"
	".cfi_restore 30\n"
	"ret\n"
	".cfi_endproc\n"
	".size call, .-call\n");
#else
__asm__(".text\n"
	".globl call\n"
	".type call, @function\n"
	"call:\n"
	".cfi_startproc\n"
	"push %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset rbp, 0\n"
	"push %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset rbx, 0\n"
	"mov %r8, %rbp\n"
	"mov %rcx, %rbx\n" /* the secret, in a register that is saved */
	"mov %rdi, %rax\n"
	"mov %rsi, %rdi\n"
	"mov %rdx, %rsi\n"
	"mov %rbx, %rdx\n"
	"mov %rbx, %r10\n"
	"mov %rbx, %r8\n"
	"mov %rbx, %r9\n"
	"cmp $9, %rax\n" /* mmap: PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS */
	"jne 1f\n"
	"mov $1, %edx\n"
	"mov $0x22, %r10d\n"
	"mov $-1, %r8\n"
	"xor %r9d, %r9d\n"
	"1: syscall\n"
	"pop %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	"pop %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size call, .-call\n");
#endif

VISIBLE void keep_secret(size_t bytes)
{
	volatile uint64_t secrets[SECRETS];
	uint64_t secret;
	void *kept, *given;

	memcpy(&secret, text, sizeof(secret));
	for (int i = 0; i < SECRETS; i++)
		secrets[i] = secret;
	false_frame[1] = secret;
	kept = (void *)call(SYS_mmap, NULL, (long)bytes, secrets[0], false_frame);
	given = (void *)call(SYS_mmap, NULL, (long)bytes, secrets[1], false_frame);
	stage_need(kept, "mmap");
	stage_need_call((int)call(SYS_munmap, given, (long)bytes, secrets[2], false_frame), "munmap");
	KEEP_FRAME();
}

int main(int argc, char **argv)
{
	struct stage stage = stage_open(argc, argv);
	size_t bytes = BLOCK_PAGES * stage_page_bytes();

	stage_begin(&stage);
	for (int i = 0; i < LEAKS; i++)
		keep_secret(bytes);
	stage_expect("bytes=%zu count=%d stack=call<keep_secret<main", LEAKS * bytes, LEAKS);
	stage_end(&stage);
	return 0;
}
