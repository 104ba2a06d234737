// SPDX-License-Identifier: LGPL-2.1-or-later
/* The names of stack ends, and the functions that complete a stack or redirect unwinding. */
#include "code/unwind/unwind.h"

#include <elf.h>

#include "base/strings.h"

bool mmt_stack_end_is_complete(enum mmt_stack_end end)
{
	return end == MMT_STACK_END_ENTRY || end == MMT_STACK_END_COROUTINE;
}

/* Machine code; bits that are not in `mask`, which may be NULL, are ignored. */
struct code_text {
	const char *bytes, *mask;
	size_t size;
};

#define EXACTLY(text)                                                                                                  \
	{                                                                                                              \
		.bytes = (text), .size = sizeof(text) - 1                                                              \
	}
#define MASKED(text, bits)                                                                                             \
	{                                                                                                              \
		.bytes = (text), .mask = (bits), .size = sizeof(text) - 1                                              \
	}

static const struct pattern {
	uint16_t machine;
	enum code_special_function special_function;
	struct code_text code;
	struct code_text before; /* distinguishes ordinary instructions from a program's own code */
} patterns[] = {
    /* mov $15, %rax; syscall: musl, Go, glibc */
    {EM_X86_64, CODE_SPECIAL_FUNCTION_SIGNAL_RETURN, EXACTLY("\x48\xc7\xc0\x0f\0\0\0\x0f\x05"), {0}},
    /* mov $15, %eax; syscall */
    {EM_X86_64, CODE_SPECIAL_FUNCTION_SIGNAL_RETURN, EXACTLY("\xb8\x0f\0\0\0\x0f\x05"), {0}},
    /* glibc's __start_context: mov %rbx, %rsp; mov (%rsp), %rdi; test %rdi, %rdi */
    {EM_X86_64, CODE_SPECIAL_FUNCTION_COROUTINE, EXACTLY("\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff"), {0}},
    /* its older version: mov %rbx, %rsp; pop %rdi; test %rdi, %rdi */
    {EM_X86_64, CODE_SPECIAL_FUNCTION_COROUTINE, EXACTLY("\x48\x89\xdc\x5f\x48\x85\xff"), {0}},
    /* Boost's make_fcontext(): push %rbp; jmp *%rbx | xor %rdi, %rdi; call _exit */
    {EM_X86_64, CODE_SPECIAL_FUNCTION_COROUTINE, EXACTLY("\x48\x31\xff\xe8"), EXACTLY("\x55\xff\xe3")},
    /* musl's clone: mov %eax, %edi; xor %eax, %eax; mov $60, %al; syscall */
    {EM_X86_64, CODE_SPECIAL_FUNCTION_ENTRY, EXACTLY("\x89\xc7\x31\xc0\xb0\x3c\x0f\x05"), {0}},
    /* mov x8, #139; svc #0 */
    {EM_AARCH64, CODE_SPECIAL_FUNCTION_SIGNAL_RETURN, EXACTLY("\x68\x11\x80\xd2\x01\0\0\xd4"), {0}},
    /* musl's clone: ldp x1, x0, [sp], #16; blr x1 | mov x8, #93; svc #0 */
    {EM_AARCH64, CODE_SPECIAL_FUNCTION_ENTRY, EXACTLY("\xa8\x0b\x80\xd2\x01\0\0\xd4"),
     EXACTLY("\xe1\x03\xc1\xa8\x20\0\x3f\xd6")},
    /* glibc's __startcontext, after the nop that its unwind table begins with: nop | mov x0, x19; cbnz x0, setcontext;
     * b exit */
    {EM_AARCH64, CODE_SPECIAL_FUNCTION_COROUTINE,
     MASKED("\xe0\x03\x13\xaa\0\0\0\xb5\0\0\0\x14", "\xff\xff\xff\xff\x1f\0\0\xff\0\0\0\xfc"),
     EXACTLY("\x1f\x20\x03\xd5")},
    /* the same with branch target identification: nop | bti c; ... */
    {EM_AARCH64, CODE_SPECIAL_FUNCTION_COROUTINE,
     MASKED("\x5f\x24\x03\xd5\xe0\x03\x13\xaa\0\0\0\xb5\0\0\0\x14",
	    "\xff\xff\xff\xff\xff\xff\xff\xff\x1f\0\0\xff\0\0\0\xfc"),
     EXACTLY("\x1f\x20\x03\xd5")},
};

static bool is_code(const struct code_text *text, const uint8_t *code)
{
	for (size_t i = 0; i < text->size; i++) {
		uint8_t mask = text->mask ? (uint8_t)text->mask[i] : UINT8_MAX;

		if ((code[i] ^ (uint8_t)text->bytes[i]) & mask)
			return false;
	}
	return true;
}

enum code_special_function stack_end_by_code(uint16_t elf_machine, const uint8_t *code, size_t size,
					     const uint8_t *before, size_t before_size)
{
	array_each(pattern, patterns, sizeof(patterns) / sizeof(*patterns)) {
		if (pattern->machine == elf_machine && size >= pattern->code.size &&
		    before_size >= pattern->before.size && is_code(&pattern->code, code) &&
		    (!pattern->before.size || is_code(&pattern->before, before + before_size - pattern->before.size)))
			return pattern->special_function;
	}
	return CODE_SPECIAL_FUNCTION_NONE;
}

bool stack_end_has_system_call(uint16_t elf_machine, const uint8_t *code, size_t size)
{
	static const uint8_t syscall[] = {0x0f, 0x05}, svc[] = {0x01, 0, 0, 0xd4};

	if (elf_machine == EM_X86_64)
		return size && memmem(code, size, syscall, sizeof(syscall));
	for (size_t i = 0; elf_machine == EM_AARCH64 && i + sizeof(svc) <= size; i += sizeof(svc)) {
		if (!memcmp(code + i, svc, sizeof(svc)))
			return true;
	}
	return false;
}

bool stack_end_is_c_library(const char *path)
{
	static const char *const prefixes[] = {"libc.", "libc-", "libpthread", "ld-"};
	const char *name = path_file_name(path);

	return array_find(prefix, prefixes, sizeof(prefixes) / sizeof(*prefixes), starts_with(name, *prefix));
}

enum code_special_function stack_end_by_name(const char *function, bool in_c_library)
{
	static const struct {
		enum code_special_function special_function;
		bool of_c_library;
		const char *names[6];
	} kinds[] = {
	    {CODE_SPECIAL_FUNCTION_ENTRY, false, {"_start", "runtime.rt0_go", "runtime.goexit", "runtime.mstart"}},
	    {CODE_SPECIAL_FUNCTION_ENTRY,
	     true,
	     {"_dlstart", "_dl_start_user", "clone", "__clone", "clone3", "__clone3"}},
	    {CODE_SPECIAL_FUNCTION_THREAD_START,
	     true,
	     {"start_thread", "__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl"}},
	    {CODE_SPECIAL_FUNCTION_COROUTINE, true, {"__start_context"}},
	    {CODE_SPECIAL_FUNCTION_STACK_SWITCH,
	     false,
	     {"runtime.systemstack", "runtime.mcall", "runtime.morestack", "runtime.asmcgocall",
	      "runtime.cgocallback"}},
	};
	size_t length = function ? strcspn(function, "@") : 0;

	/* Go assembly has two calling conventions; the symbol name contains the convention. */
	if (length > 5 && !strncmp(function + length - 5, ".abi0", 5))
		length -= 5;
	array_each(kind, kinds, sizeof(kinds) / sizeof(*kinds)) {
		for (size_t i = 0; i < sizeof(kind->names) / sizeof(*kind->names) && kind->names[i]; i++) {
			if (strlen(kind->names[i]) == length && !strncmp(kind->names[i], function, length) &&
			    (in_c_library || !kind->of_c_library))
				return kind->special_function;
		}
	}
	return CODE_SPECIAL_FUNCTION_NONE;
}
