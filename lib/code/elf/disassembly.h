/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Machine instructions of one architecture. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* For ELF machine `elf_machine`; all answers for an unknown machine are "unknown". NULL: out of memory. */
struct disassembly *disassembly_create(uint16_t elf_machine);

void disassembly_destroy(struct disassembly *disassembly);

#define DISASSEMBLY_INSTRUCTION_MAX 15

/* 1: an instruction that ends with the last of these bytes can be a call; 0: none can; -1: unknown. Pass
 * DISASSEMBLY_INSTRUCTION_MAX bytes if available. */
int disassembly_ends_with_call(struct disassembly *disassembly, const uint8_t *code, size_t size);

/* The effect of an instruction on the stack and on the control flow. */
enum instruction_kind {
	INSTRUCTION_OTHER,
	INSTRUCTION_CALL,
	INSTRUCTION_RETURN,  /* or a tail call: a jump through a pointer to another function */
	INSTRUCTION_JUMP,    /* to `target` */
	INSTRUCTION_BRANCH,  /* to `target` or to the next instruction */
	INSTRUCTION_PUSH,    /* `reg` */
	INSTRUCTION_POP,     /* `reg` */
	INSTRUCTION_LOAD,    /* `reg` from the stack pointer + `amount` */
	INSTRUCTION_ADD,     /* `amount` to the stack pointer */
	INSTRUCTION_LEAVE,   /* sets the stack pointer to the frame pointer, then pops the frame pointer */
	INSTRUCTION_FRAME,   /* sets the stack pointer to the frame pointer + `amount` */
	INSTRUCTION_PADDING, /* does nothing */
	INSTRUCTION_LEAP,    /* jumps to an address from a register or from memory */
	INSTRUCTION_SWITCH,  /* loads the stack pointer from elsewhere than the stack */
	INSTRUCTION_END,     /* the next instruction or the stack pointer is unknown */
};

/* Whether the next instruction in memory can run next. */
enum instruction_flow {
	FLOW_ON,
	FLOW_ENDS,    /* no: a return, a jump to one target, a trap */
	FLOW_UNKNOWN, /* a jump to one of several targets, or not an instruction */
};

#define INSTRUCTION_NO_REGISTER 0xff

struct instruction {
	uint8_t kind;	  /* enum instruction_kind */
	uint8_t flow;	  /* enum instruction_flow */
	uint8_t size;	  /* bytes */
	uint8_t reg;	  /* DWARF number; INSTRUCTION_NO_REGISTER: none that matters */
	uint32_t written; /* modified general registers, by DWARF number */
	int32_t amount;
	uint64_t target;
};

/* Decode the first instruction of these bytes, which are at `address`. INSTRUCTION_END and FLOW_UNKNOWN if it cannot be
 * decoded. */
void disassembly_decode(struct disassembly *disassembly, const uint8_t *code, size_t size, uint64_t address,
			struct instruction *instruction_ret);

/* Major version times 256 plus minor version. */
unsigned disassembly_library_version(void);
