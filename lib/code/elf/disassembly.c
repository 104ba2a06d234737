// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/elf/disassembly.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

struct disassembly {
	uint16_t machine;
	csh handle; /* 0: not of x86-64 */
	cs_insn *instruction;
};

#define SHORTEST_CALL 2 /* bytes, on x86-64 */
#define LONGEST_CALL 9

/* Capstone crashes if it cannot allocate what it needs: some KB when it is opened, 32 for its first instruction. Not so
 * many that malloc would map them. */
#define CAPSTONE_BYTES (100u << 10)

struct disassembly *disassembly_create(uint16_t elf_machine)
{
	struct disassembly *disassembly = calloc(1, sizeof(*disassembly));
	void *volatile room = malloc(CAPSTONE_BYTES); /* which compilers would leave out */
	bool has_room = room;
	const uint8_t bytes[] = {0x90}, *nop = bytes;
	uint64_t address = 0;
	size_t size = sizeof(bytes);
	cs_err result = CS_ERR_ARCH;

	free(room);
	if (!disassembly || !has_room) {
		free(disassembly);
		return NULL;
	}
	disassembly->machine = elf_machine;
	if (elf_machine == EM_X86_64)
		result = cs_open(CS_ARCH_X86, CS_MODE_64, &disassembly->handle);
	if (result != CS_ERR_OK)
		disassembly->handle = 0;
	if (disassembly->handle) {
		(void)cs_option(disassembly->handle, CS_OPT_DETAIL, CS_OPT_ON);
		disassembly->instruction = cs_malloc(disassembly->handle);
	}
	if (result == CS_ERR_MEM || (disassembly->handle && !disassembly->instruction)) {
		disassembly_destroy(disassembly);
		return NULL;
	}
	if (disassembly->handle)
		(void)cs_disasm_iter(disassembly->handle, &nop, &size, &address, disassembly->instruction);
	return disassembly;
}

void disassembly_destroy(struct disassembly *disassembly)
{
	if (!disassembly)
		return;
	if (disassembly->instruction)
		cs_free(disassembly->instruction, 1);
	if (disassembly->handle)
		cs_close(&disassembly->handle);
	free(disassembly);
}

int disassembly_ends_with_call(struct disassembly *disassembly, const uint8_t *code, size_t size)
{
	if (disassembly->machine == EM_AARCH64) {
		uint32_t last;

		if (size < sizeof(last))
			return -1;
		memcpy(&last, code + size - sizeof(last), sizeof(last));
		last = le32toh(last);
		/* bl; blr; blraa, blrab, blraaz, blrabz, which check the signature of the function's address. */
		return (last & 0xfc000000) == 0x94000000 || (last & 0xfffffc1f) == 0xd63f0000 ||
		       (last & 0xfefff800) == 0xd63f0800;
	}
	if (!disassembly->handle || size < SHORTEST_CALL)
		return -1;
	for (size_t length = SHORTEST_CALL; length <= LONGEST_CALL && length <= size; length++) {
		const uint8_t *start = code + size - length;
		size_t left = length;
		uint64_t address = 0;

		if (cs_disasm_iter(disassembly->handle, &start, &left, &address, disassembly->instruction) && !left &&
		    cs_insn_group(disassembly->handle, disassembly->instruction, CS_GRP_CALL))
			return 1;
	}
	return 0;
}

/* DWARF number of a 64-bit general register or a part of it. */
static uint8_t number_of(unsigned reg)
{
	/* In the order of these numbers. */
	static const uint16_t registers[][5] = {
	    {X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH},
	    {X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH},
	    {X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH},
	    {X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH},
	    {X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL},
	    {X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL},
	    {X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL},
	    {X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL},
	    {X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B},
	    {X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B},
	    {X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B},
	    {X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B},
	    {X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B},
	    {X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B},
	    {X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B},
	    {X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B},
	};

	for (uint8_t number = 0; reg && number < sizeof(registers) / sizeof(registers[0]); number++) {
		for (size_t part = 0; part < 5; part++) {
			if (registers[number][part] == reg)
				return number;
		}
	}
	return INSTRUCTION_NO_REGISTER;
}

enum { FRAME_POINTER = 6, STACK_POINTER = 7 };

/* Whether operand `index` is this register. */
static bool is_register(const cs_x86 *x86, unsigned index, uint8_t number)
{
	return x86->op_count > index && x86->operands[index].type == X86_OP_REG &&
	       number_of(x86->operands[index].reg) == number;
}

/* Whether operand 1 is memory at this register plus *offset_ret. */
static bool is_memory_at(const cs_x86 *x86, unsigned reg, int32_t *offset_ret)
{
	const cs_x86_op *operand = &x86->operands[1];

	if (x86->op_count != 2 || operand->type != X86_OP_MEM || operand->mem.base != reg || operand->mem.index ||
	    operand->mem.segment || operand->mem.disp != (int32_t)operand->mem.disp)
		return false;
	*offset_ret = (int32_t)operand->mem.disp;
	return true;
}

/* Instructions that set the stack pointer, or read it into a register. */
static enum instruction_kind stack_kind(const cs_insn *instruction, struct instruction *decoded)
{
	const cs_x86 *x86 = &instruction->detail->x86;
	bool to_stack_pointer = is_register(x86, 0, STACK_POINTER);
	const cs_x86_op *source = &x86->operands[1];
	int64_t immediate = x86->op_count == 2 && source->type == X86_OP_IMM ? source->imm : INT64_MAX;

	if (to_stack_pointer && (instruction->id == X86_INS_ADD || instruction->id == X86_INS_SUB) &&
	    immediate > -INT32_MAX && immediate < INT32_MAX) {
		decoded->amount = (int32_t)(instruction->id == X86_INS_ADD ? immediate : -immediate);
		return INSTRUCTION_ADD;
	}
	if (to_stack_pointer && instruction->id == X86_INS_LEA && is_memory_at(x86, X86_REG_RSP, &decoded->amount))
		return INSTRUCTION_ADD;
	if (to_stack_pointer && ((instruction->id == X86_INS_LEA && is_memory_at(x86, X86_REG_RBP, &decoded->amount)) ||
				 (instruction->id == X86_INS_MOV && is_register(x86, 1, FRAME_POINTER))))
		return INSTRUCTION_FRAME;
	if (instruction->id == X86_INS_MOV && x86->op_count == 2 && x86->operands[0].type == X86_OP_REG &&
	    x86->operands[0].size == 8 && is_memory_at(x86, X86_REG_RSP, &decoded->amount)) {
		decoded->reg = number_of(x86->operands[0].reg);
		return INSTRUCTION_LOAD;
	}
	/* From memory that neither the stack pointer nor the frame pointer addresses. */
	if (to_stack_pointer && instruction->id == X86_INS_MOV && x86->op_count == 2 && source->type == X86_OP_MEM &&
	    source->mem.base != X86_REG_RSP && source->mem.base != X86_REG_RBP && !source->mem.index)
		return INSTRUCTION_SWITCH;
	return decoded->written >> STACK_POINTER & 1 ? INSTRUCTION_END : INSTRUCTION_OTHER;
}

/* Also sets the flow, where it does not go on. */
static enum instruction_kind kind_of(struct disassembly *disassembly, struct instruction *decoded)
{
	const cs_insn *instruction = disassembly->instruction;
	const cs_x86 *x86 = &instruction->detail->x86;
	const cs_x86_op *target = &x86->operands[0];
	bool direct = x86->op_count == 1 && target->type == X86_OP_IMM;

	switch (instruction->id) {
	case X86_INS_PUSH:
	case X86_INS_POP:
		if (x86->operands[0].size != 8)
			return INSTRUCTION_END;
		if (x86->operands[0].type == X86_OP_REG)
			decoded->reg = number_of(x86->operands[0].reg);
		if (decoded->reg == STACK_POINTER)
			return INSTRUCTION_END;
		return instruction->id == X86_INS_PUSH ? INSTRUCTION_PUSH : INSTRUCTION_POP;
	case X86_INS_LEAVE:
		return INSTRUCTION_LEAVE;
	case X86_INS_NOP:
		return INSTRUCTION_PADDING;
	case X86_INS_HLT:
	case X86_INS_UD2:
	case X86_INS_INT3:
		decoded->flow = FLOW_ENDS;
		return INSTRUCTION_END;
	default:
		break;
	}
	if (cs_insn_group(disassembly->handle, instruction, CS_GRP_CALL))
		return INSTRUCTION_CALL;
	if (cs_insn_group(disassembly->handle, instruction, CS_GRP_RET)) {
		decoded->flow = FLOW_ENDS;
		return x86->op_count ? INSTRUCTION_END : INSTRUCTION_RETURN;
	}
	if (!cs_insn_group(disassembly->handle, instruction, CS_GRP_JUMP))
		return stack_kind(instruction, decoded);
	decoded->target = direct ? (uint64_t)target->imm : 0;
	if (instruction->id != X86_INS_JMP)
		return direct ? INSTRUCTION_BRANCH : INSTRUCTION_END;
	decoded->flow = FLOW_ENDS;
	if (direct)
		return INSTRUCTION_JUMP;
	/* A jump through a fixed pointer is a tail call: its callee returns to our caller. Jump tables have an index.
	 */
	if (target->type == X86_OP_MEM && target->mem.base == X86_REG_RIP && target->mem.index == X86_REG_INVALID)
		return INSTRUCTION_RETURN;
	decoded->flow = FLOW_UNKNOWN;
	return INSTRUCTION_LEAP;
}

void disassembly_decode(struct disassembly *disassembly, const uint8_t *code, size_t size, uint64_t address,
			struct instruction *instruction_ret)
{
	uint8_t read_count = 0, written_count = 0;
	cs_regs read, written;
	bool known;

	*instruction_ret =
	    (struct instruction){.kind = INSTRUCTION_END, .flow = FLOW_UNKNOWN, .reg = INSTRUCTION_NO_REGISTER};
	if (!disassembly->handle ||
	    !cs_disasm_iter(disassembly->handle, &code, &size, &address, disassembly->instruction))
		return;
	instruction_ret->size = (uint8_t)disassembly->instruction->size;
	known =
	    !cs_regs_access(disassembly->handle, disassembly->instruction, read, &read_count, written, &written_count);
	instruction_ret->written = known ? 0 : UINT32_MAX;
	for (size_t i = 0; known && i < written_count; i++) {
		uint8_t number = number_of(written[i]);

		if (number != INSTRUCTION_NO_REGISTER)
			instruction_ret->written |= 1u << number;
	}
	instruction_ret->flow = FLOW_ON;
	instruction_ret->kind = (uint8_t)kind_of(disassembly, instruction_ret);
}

unsigned disassembly_library_version(void)
{
	return cs_version(NULL, NULL);
}
