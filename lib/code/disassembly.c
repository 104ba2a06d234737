// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/disassembly.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct disassembly {
	uint16_t machine;
	csh handle; /* 0: architecture not known */
	cs_insn *instruction;
	size_t shortest_call, longest_call, step; /* bytes */
};

struct mmt_error *disassembly_create(uint16_t elf_machine, struct disassembly **disassembly_ret)
{
	struct disassembly *disassembly = calloc(1, sizeof(*disassembly));
	cs_err result = CS_ERR_ARCH;

	if (!disassembly)
		return &error_no_memory;
	disassembly->machine = elf_machine;
	if (elf_machine == EM_X86_64) {
		result = cs_open(CS_ARCH_X86, CS_MODE_64, &disassembly->handle);
		disassembly->shortest_call = 2;
		disassembly->longest_call = 9;
		disassembly->step = 1;
	} else if (elf_machine == EM_AARCH64) {
		result = cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &disassembly->handle);
		disassembly->shortest_call = disassembly->longest_call = disassembly->step = 4;
	}
	if (result == CS_ERR_OK) {
		(void)cs_option(disassembly->handle, CS_OPT_DETAIL, CS_OPT_ON);
		disassembly->instruction = cs_malloc(disassembly->handle);
	} else {
		disassembly->handle = 0;
	}
	if (result == CS_ERR_MEM || (disassembly->handle && !disassembly->instruction)) {
		disassembly_destroy(disassembly);
		return &error_no_memory;
	}
	*disassembly_ret = disassembly;
	return NULL;
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

/* Not every version of the library counts branch-and-link among the calls. */
static bool is_call(const struct disassembly *disassembly)
{
	const cs_insn *instruction = disassembly->instruction;

	if (disassembly->machine == EM_AARCH64)
		return instruction->id == ARM64_INS_BL || instruction->id == ARM64_INS_BLR;
	return cs_insn_group(disassembly->handle, instruction, CS_GRP_CALL);
}

int disassembly_ends_with_call(struct disassembly *disassembly, const uint8_t *code, size_t size)
{
	if (!disassembly->handle || size < disassembly->shortest_call)
		return -1;
	for (size_t length = disassembly->shortest_call; length <= disassembly->longest_call && length <= size;
	     length += disassembly->step) {
		const uint8_t *start = code + size - length;
		size_t left = length;
		uint64_t address = 0;

		if (cs_disasm_iter(disassembly->handle, &start, &left, &address, disassembly->instruction) && !left &&
		    is_call(disassembly))
			return 1;
	}
	return 0;
}

size_t disassembly_text(struct disassembly *disassembly, const uint8_t *code, size_t size, uint64_t address,
			char text[DISASSEMBLY_TEXT])
{
	const cs_insn *instruction = disassembly->instruction;
	size_t left = size;

	if (!disassembly->handle || !size)
		return 0;
	if (!cs_disasm_iter(disassembly->handle, &code, &left, &address, disassembly->instruction)) {
		snprintf(text, DISASSEMBLY_TEXT, "(bad)");
		return disassembly->step < size ? disassembly->step : size;
	}
	snprintf(text, DISASSEMBLY_TEXT, "%s%s%s", instruction->mnemonic, instruction->op_str[0] ? " " : "",
		 instruction->op_str);
	return size - left;
}

unsigned disassembly_library_version(void)
{
	int major = 0, minor = 0;

	cs_version(&major, &minor);
	return (unsigned)major << 8 | (unsigned)minor;
}
