// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Any bytes are call frame information: the first selects its kind (.eh_frame, .debug_frame, a whole ELF file), the
 * rest is a table, every row of which must be found and be valid and lead in bounded time to the end of a
 * stack.
 */
#include <libelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/unwind/cfi.h"
#include "code/unwind/unwind.h"

#define ADDRESS 0x400000
#define STACK 0x7ffe00000000
#define ROWS_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
	if (!condition)
		abort();
}

static enum code_kind find_row(void *context, uint64_t address, bool is_return_address, struct code_place *place_ret)
{
	(void)address;
	(void)is_return_address;
	place_ret->row = context;
	return CODE_NATIVE;
}

/* Every function has the row, and every word of the stack leads on. */
static void unwind_with(const struct cfi_row *row)
{
	struct unwind_callbacks callbacks = {.find = find_row, .context = (void *)(uintptr_t)row};
	struct register_values registers = {.known = (1ULL << 17) - 1};
	struct unwind_input input = {.registers = &registers};
	static struct unwind_result result;
	uint64_t words[64];

	for (size_t i = 0; i < 64; i++)
		words[i] = STACK + 8 * i + 64;
	for (size_t i = 0; i < 17; i++)
		registers.values[i] = STACK + i * 24;
	registers.values[7] = STACK;
	input.stack = (const uint8_t *)words;
	input.stack_size = sizeof(words);
	unwind(&unwind_rules_x86_64, &input, &callbacks, &result);
}

static void check_row(const struct cfi_row *row)
{
	require(row->rule_count <= CFI_REGISTERS && row->return_column < CFI_REGISTERS);
	require(row->cfa_kind <= CFI_CFA_UNKNOWN && row->cfa_register < CFI_REGISTERS);
	require((row->cfa_kind == CFI_CFA_PLT) == (row->plt_threshold > 0));
	require(!row->cfa_addend || row->cfa_kind == CFI_CFA_LOAD || row->cfa_kind == CFI_CFA_UNKNOWN);
	for (size_t i = 0; i < row->rule_count; i++) {
		const struct cfi_rule *rule = &row->rules[i];

		require(rule->number < CFI_REGISTERS && rule->reg < CFI_REGISTERS);
		require(!i || rule->number > row->rules[i - 1].number);
		require(rule->kind <= CFI_RULE_UNKNOWN);
	}
	unwind_with(row);
}

static void check_at(struct cfi_rows *rows, uint64_t address)
{
	const struct cfi_row *row = cfi_rows_find(rows, address);

	if (row)
		check_row(row);
	require(cfi_rows_find(rows, address) == row);
}

/* The first addresses and the last of each entry and each gap. */
static void check_table(struct cfi_rows *rows)
{
	uint64_t address = 0, end;

	for (size_t count = 0; count < ROWS_MAX && address != UINT64_MAX; count++, address = end) {
		(void)cfi_rows_function_range(rows, address, &end);
		require(end > address);
		for (uint64_t i = 0; i < 8 && address + i < end; i++)
			check_at(rows, address + i);
		check_at(rows, end - 1);
	}
	check_at(rows, UINT64_MAX);
}

static void compile_elf(const uint8_t *data, size_t size)
{
	char *image = malloc(size);
	Elf *elf = NULL;
	struct cfi *cfi;

	require(elf_version(EV_CURRENT) != EV_NONE && image);
	memcpy(image, data, size);
	elf = elf_memory(image, size);
	cfi = elf ? cfi_create(elf) : NULL;
	if (cfi) {
		for (uint64_t address = 0; address < 1u << 16; address += 256)
			(void)cfi_find(cfi, address);
	}
	cfi_destroy(cfi);
	elf_end(elf);
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_section section = {.bytes = data + 1, .size = size - 1, .address = ADDRESS};
	struct cfi_rows *rows = NULL;

	if (size < 2)
		return 0;
	if (*data == 'e') {
		compile_elf(section.bytes, section.size);
		return 0;
	}
	section.is_debug_frame = *data == 'd';
	section.ends_with_terminator = *data == 't';
	if (!cfi_rows_create(&section, &rows))
		check_table(rows);
	cfi_rows_destroy(rows);
	return 0;
}
