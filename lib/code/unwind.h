/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From registers, the copied part of a stack and the kernel's frame-pointer callchain to return addresses. The unwinder
 * knows neither processes nor files: it asks through callbacks. Rules (by architecture, see unwind-x86-64.c):
 *   1. where CFI describes the address, follow it;
 *   2. at a signal return trampoline, take the registers from the signal frame;
 *   3. elsewhere (JIT code): frame pointer; in the first frame without CFI whose frame pointer is not yet its own: the
 * return address at the stack pointer
 *   4. when the copied stack ends, continue with the kernel's callchain after the last return address both have.
 */
#ifndef CODE_UNWIND_H
#define CODE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "code/cfi-row.h"

#define UNWIND_REGISTERS CFI_REGISTERS

/* DWARF numbers of the architecture; as trace/event.h has them. */
struct unwind_registers {
	uint64_t values[UNWIND_REGISTERS];
	uint64_t known;
};

enum code_kind {
	CODE_NONE,   /* nothing executable there */
	CODE_NATIVE, /* in a readable program file */
	CODE_OTHER,  /* executable, but no program file: JIT */
};

struct unwind_callbacks {
	/*
	 * What is at `address` of the process. For CODE_NATIVE with CFI: the row (valid during the call) and what to
	 * subtract from an address to come to the row's numbering; row NULL: no CFI there.
	 */
	enum code_kind (*find)(void *context, uint64_t address, const struct cfi_row **row_ret, uint64_t *bias_ret);
	/* Whether the instruction before this return address is a call: 1 yes, 0 no, -1 cannot tell. May be NULL. */
	int (*follows_call)(void *context, uint64_t return_address);
	void *context;
};

enum unwind_end {
	UNWIND_END_ENTRY,
	UNWIND_END_DUMP_EXHAUSTED,
	UNWIND_END_DEPTH_LIMIT,
	UNWIND_END_NO_UNWIND_DATA,
	UNWIND_END_CALLCHAIN,
	UNWIND_END_INVALID,
	UNWIND_END_NOT_RECORDED,
};

enum unwind_origin {
	UNWIND_BY_REGISTERS, /* the first frame */
	UNWIND_BY_CFI,
	UNWIND_BY_FRAME_POINTER,
	UNWIND_BY_STACK_POINTER, /* word at the stack pointer of a frameless first frame */
	UNWIND_BY_SIGNAL_FRAME,
	UNWIND_BY_CALLCHAIN,
};

struct unwind_frame {
	uint64_t address; /* instruction pointer of frame 0 (and of a frame interrupted by a signal), else a return
			     address */
	bool is_return_address; /* look up address - 1 */
	bool doubtful;		/* guessed, and what precedes the address is no call */
	uint8_t origin;		/* enum unwind_origin */
};

struct unwind_input {
	const struct unwind_registers *registers; /* known == 0: none */
	const uint8_t *stack;			  /* copy of the memory from the stack pointer on; NULL: none */
	size_t stack_size;
	const uint64_t *callchain; /* NULL: none; [0] is the instruction pointer */
	size_t callchain_count;
	bool callchain_full;
};

/*
 * What a result depended on: every stack word and register that was read. A later stack of the same code with equal
 * words has the same frames.
 */
enum unwind_read_kind {
	UNWIND_READ_ADDRESS,  /* used as a code address: the value must be the same */
	UNWIND_READ_RELATIVE, /* points into the stack: the distance from the stack pointer must be the same */
	UNWIND_READ_OUTSIDE,  /* used as a pointer, but does not point into the stack: the value must be the same */
	UNWIND_READ_MISSING,  /* lies beyond the copy, or the register is unknown */
};

struct unwind_read {
	uint32_t offset; /* from the stack pointer, in bytes; UNWIND_READ_REGISTER + n: register n */
	uint8_t kind;	 /* enum unwind_read_kind */
	uint64_t value;	 /* of UNWIND_READ_RELATIVE: the distance */
};
/* A value this far above the stack pointer, or nearer, points into the stack. */
#define UNWIND_STACK_REACH (8u << 20)
#define UNWIND_READ_REGISTER 0x80000000u

#define UNWIND_FRAMES_MAX 1024
#define UNWIND_READS_MAX (4 * UNWIND_FRAMES_MAX)

struct unwind_rules; /* of one architecture */
extern const struct unwind_rules unwind_rules_x86_64;

struct unwind_result {
	const struct unwind_rules *rules; /* that made it */
	struct unwind_frame frames[UNWIND_FRAMES_MAX];
	size_t frame_count;
	enum unwind_end end;
	bool spliced; /* the callchain continued it */
	struct unwind_read reads[UNWIND_READS_MAX];
	size_t read_count;
	bool reads_overflow; /* not to be memoised */
};

/* By EM_*; NULL: no rules for that architecture, unwind() then gives the callchain alone. */
const struct unwind_rules *unwind_rules_find(uint16_t elf_machine);

/* Always gives a result; never fails, reads outside the copy, or runs on without end. */
void unwind(const struct unwind_rules *rules, const struct unwind_input *input,
	    const struct unwind_callbacks *callbacks, struct unwind_result *result);

/*
 * Memory of stacks already unwound. The key is what the result depends on: the caller's generation (which code is
 * mapped where), the callchain and every word read. Bounded: at `limit` stacks it forgets all and begins anew.
 */
struct unwind_memo;
struct mmt_error *unwind_memo_create(size_t limit, struct unwind_memo **memo_ret) MMT_MUST_CHECK;
void unwind_memo_destroy(struct unwind_memo *memo);
/* True: seen before, *value_ret is what unwind_memo_put() was given. */
bool unwind_memo_get(struct unwind_memo *memo, uint64_t generation, const struct unwind_input *input,
		     uint32_t *value_ret);
/* Remember; out of memory is no error, only slower. */
void unwind_memo_put(struct unwind_memo *memo, uint64_t generation, const struct unwind_input *input,
		     const struct unwind_result *result, uint32_t value);

#endif
