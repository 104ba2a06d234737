// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes are code: the first says for which place in the rest a row is requested, and whether the address is a
 * return address. The result must be a row that the unwinder can use, after a bounded number of instructions.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/unwind/instruction-analysis.h"

#define ADDRESS 0x400000
#define READS_MAX 1000 /* instructions that one search looks at */
#define FRAME_MAX (1 << 30)

enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_COLUMN = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

struct code {
	const uint8_t *bytes;
	size_t size;
	uint8_t *given; /* exactly as long as what was asked for: a read beyond it is found out */
	unsigned reads;
};

static size_t read_code(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	struct code *code = context;
	uint64_t offset = address - ADDRESS;
	size_t available;

	require(++code->reads <= READS_MAX);
	free(code->given);
	code->given = NULL;
	if (offset >= code->size)
		return 0;
	available = code->size - offset;
	size = size < available ? size : available;
	code->given = malloc(size);
	require(code->given != NULL);
	memcpy(code->given, code->bytes + offset, size);
	*code_ret = code->given;
	return size;
}

static int is_base(uint8_t number)
{
	return number == STACK_POINTER || number == FRAME_POINTER;
}

/* The row of a function after its prologue. */
#define HOST_FRAME 48
static const struct cfi_rule host_rules[] = {{.number = 3, .kind = CFI_RULE_OFFSET, .offset = -16},
					     {.number = RETURN_COLUMN, .kind = CFI_RULE_OFFSET, .offset = -8}};
static const struct cfi_row host = {.rules = host_rules,
				    .rule_count = 2,
				    .cfa_kind = CFI_CFA_REGISTER,
				    .cfa_register = STACK_POINTER,
				    .cfa_offset = HOST_FRAME,
				    .return_column = RETURN_COLUMN};

static void check_row(const struct cfi_row *row, bool has_host)
{
	const struct cfi_rule *last = &row->rules[row->rule_count - 1];

	require(row->deduced && !row->signal_frame);
	if (row->other_stack)
		return;
	require(row->cfa_kind == CFI_CFA_REGISTER && is_base(row->cfa_register));
	require(row->cfa_offset > -FRAME_MAX && row->cfa_offset < FRAME_MAX);
	require(row->cfa_register == FRAME_POINTER || row->cfa_offset > 0);
	require(row->rule_count > 0 && row->rule_count <= DEDUCED_REGISTERS + 1);
	require(row->return_column == RETURN_COLUMN);
	require(last->number == RETURN_COLUMN && last->kind == CFI_RULE_OFFSET && last->offset == -8);
	for (size_t i = 0; i + 1 < row->rule_count; i++) {
		const struct cfi_rule *rule = &row->rules[i];

		require(rule->number < DEDUCED_REGISTERS && rule->number < rule[1].number);
		require((has_host && rule->kind == CFI_RULE_OFFSET && row->cfa_offset >= HOST_FRAME) ||
			rule->kind == CFI_RULE_UNDEFINED || (rule->kind == CFI_RULE_AT_REGISTER && is_base(rule->reg)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct disassembly *disassembly;
	struct code code = {.bytes = data + 1, .size = size - 1};
	struct analyzed_code access = {.read = read_code, .context = &code};
	struct deduced_row deduced;

	if (size < 2)
		return 0;
	if (!disassembly)
		disassembly = disassembly_create(EM_X86_64);
	for (int way = 0; way < 4; way++) {
		code.reads = 0;
		access.host = way & 2 ? &host : NULL;
		if (deduced_row_find(disassembly, &access, ADDRESS + (data[0] >> 1), data[0] & 1, way & 1, &deduced))
			check_row(deduced_row_get(&deduced), access.host);
	}
	free(code.given);
	return 0;
}
