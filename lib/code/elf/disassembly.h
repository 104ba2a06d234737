/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Machine instructions of one architecture. */
#ifndef CODE_ELF_DISASSEMBLY_H
#define CODE_ELF_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errors.h"
#include "base/vector.h"

struct disassembly;

/* For ELF machine `elf_machine`; one that is not known can tell nothing, which is no error. */
struct mmt_error *disassembly_create(uint16_t elf_machine, struct disassembly **disassembly_ret) MMT_MUST_CHECK;

void disassembly_destroy(struct disassembly *disassembly);

#define DISASSEMBLY_INSTRUCTION_MAX 15

/*
 * 1: an instruction that ends with the last of these bytes can be a call; 0: none can; -1: unknown. `size` bytes,
 * DISASSEMBLY_INSTRUCTION_MAX when there are that many.
 */
int disassembly_ends_with_call(struct disassembly *disassembly, const uint8_t *code, size_t size);

#define DISASSEMBLY_TEXT 200

/* The instruction that begins with the first of these bytes, as text (NULL: none is wanted): its length; 0: nothing is
 * known of this architecture, or there are no bytes. Bytes that are no instruction are one, or the architecture's step,
 * "(bad)". */
size_t disassembly_text(struct disassembly *disassembly, const uint8_t *code, size_t size, uint64_t address,
			char text[DISASSEMBLY_TEXT]);

/* What an instruction means for the stack and for what runs next. */
enum instruction_kind {
	INSTRUCTION_OTHER,
	INSTRUCTION_CALL,
	INSTRUCTION_RETURN,  /* or a last call: a jump through a pointer to another function */
	INSTRUCTION_JUMP,    /* to `target` */
	INSTRUCTION_BRANCH,  /* to `target` or on */
	INSTRUCTION_PUSH,    /* `reg` */
	INSTRUCTION_POP,     /* `reg` */
	INSTRUCTION_LOAD,    /* `reg` from the stack pointer + `amount` */
	INSTRUCTION_ADD,     /* `amount` to the stack pointer */
	INSTRUCTION_LEAVE,   /* the stack pointer becomes the frame pointer, which is then popped */
	INSTRUCTION_FRAME,   /* the stack pointer becomes the frame pointer + `amount` */
	INSTRUCTION_PADDING, /* does nothing */
	INSTRUCTION_LEAP,    /* jumps to a place that it takes from a register or from memory */
	INSTRUCTION_SWITCH,  /* the stack pointer becomes what was kept elsewhere than on the stack */
	INSTRUCTION_END,     /* nothing is known to follow, or of the stack pointer */
};

/* Whether the instruction behind it can run next. */
enum instruction_flow {
	FLOW_ON,
	FLOW_ENDS,    /* it cannot: a return, a jump to one place, a trap */
	FLOW_UNKNOWN, /* a jump to one of several places, or no instruction */
};

#define INSTRUCTION_NO_REGISTER 0xff

struct instruction {
	uint8_t kind;	  /* enum instruction_kind */
	uint8_t flow;	  /* enum instruction_flow */
	uint8_t size;	  /* bytes */
	uint8_t reg;	  /* DWARF number; INSTRUCTION_NO_REGISTER: none that matters */
	uint32_t written; /* general registers that change, by DWARF number */
	int32_t amount;
	uint64_t target;
};

/* The first instruction of these bytes, which are at `address`. INSTRUCTION_END and FLOW_UNKNOWN when it cannot be
 * told. */
void disassembly_decode(struct disassembly *disassembly, const uint8_t *code, size_t size, uint64_t address,
			struct instruction *instruction_ret);

/* Major version times 256 plus minor version. */
unsigned disassembly_library_version(void);

/* Instructions around one of them, as text. */

/* What is disassembled: bytes, and the address of the first, where an instruction should begin. */
struct listed_code {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
	uint64_t site; /* the instruction, or with `is_return_address` the one behind the call */
	bool is_return_address;
};

struct listed_instruction {
	uint64_t address;
	uint8_t size; /* bytes */
	bool here;    /* the call, or the instruction itself */
	char text[DISASSEMBLY_TEXT];
};

struct listing {
	VECTOR(struct listed_instruction) items;
	size_t decoded; /* how many instructions were, to find them */
};

/*
 * At most `around` instructions before the one meant, and as many behind. Empty when the architecture is not known, or
 * no instruction begins or ends at the site. What is listed is listed again from its own bytes alone, for up to eight
 * around.
 */
struct mmt_error *listing_create(struct disassembly *disassembly, const struct listed_code *code, size_t around,
				 struct listing *listing_ret) MMT_MUST_CHECK;

void listing_deinit(struct listing *listing);

#endif
