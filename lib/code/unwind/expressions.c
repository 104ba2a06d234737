// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libunwind reads CFI itself, from the process that it unwinds. Here it gets a synthetic process with one function: a
 * table with one entry, and a CIE and an FDE with the row's rules, placed at an address near the code. All other memory
 * that libunwind reads is the recorded stack.
 */
#include "code/unwind/expressions.h"

#include <dwarf.h>
#include <elf.h>
#include <libunwind.h>
#include <string.h>

#include "base/bytes.h"
#include "base/limits.h"

/* Expressions may use only the registers below. */
#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#define HOST_REGISTERS 17
#define HOST_PROGRAM_COUNTER 16
#define HOST_LOOKS_AT_CODE false
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#define HOST_REGISTERS 32
#define HOST_PROGRAM_COUNTER 32 /* libunwind's UNW_REG_IP is the link register here */
/* If libunwind cannot read the instructions, it steps to the link register and ignores the rows. */
#define HOST_LOOKS_AT_CODE true
#else
#define HOST_MACHINE EM_NONE
#define HOST_REGISTERS 0
#define HOST_PROGRAM_COUNTER 0
#define HOST_LOOKS_AT_CODE false
#endif

/* Exported, but not declared in a header. */
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int search_unwind_table(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *info, unw_proc_info_t *procedure,
			int need_unwind_info, void *context);

#define IMAGE_MAX 4096
#define IMAGE_DISTANCE 0x10000 /* distance from the code */
#define TABLE_WORDS 2	       /* one entry: the offsets of the function and of its FDE, 4 bytes each */

struct step {
	uint8_t image[IMAGE_MAX];
	size_t image_size;
	bool image_full;
	uint64_t image_address, code_address;
	const struct expressions_registers *registers;
	expressions_read *read;
	void *context;
	unsigned accesses;
	bool refused; /* libunwind requested missing data: its result would be a guess */
};

/* ---- accepted expressions ---- */

/* Bytes of operands: 0 to 8, or one of these. */
#define LEB 9
#define JUMP 10
#define REFUSED 11

static unsigned operands_of(uint8_t operation)
{
	if (operation >= DW_OP_lit0 && operation <= DW_OP_lit31)
		return 0;
	if (operation >= DW_OP_breg0 && operation - DW_OP_breg0 < HOST_REGISTERS)
		return LEB;
	switch (operation) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_pick:
	case DW_OP_deref_size:
		return 1;
	case DW_OP_const2u:
	case DW_OP_const2s:
		return 2;
	case DW_OP_const4u:
	case DW_OP_const4s:
		return 4;
	case DW_OP_const8u:
	case DW_OP_const8s:
		return 8;
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_plus_uconst:
		return LEB;
	case DW_OP_bra:
	case DW_OP_skip:
		return JUMP;
	case DW_OP_deref:
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_swap:
	case DW_OP_rot:
	case DW_OP_abs:
	case DW_OP_and:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_neg:
	case DW_OP_not:
	case DW_OP_or:
	case DW_OP_plus:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_xor:
	case DW_OP_eq:
	case DW_OP_ge:
	case DW_OP_gt:
	case DW_OP_le:
	case DW_OP_lt:
	case DW_OP_ne:
	case DW_OP_nop:
		return 0;
	}
	return REFUSED; /* mainly division, which can trap */
}

/* No loops, no division, and no operations that need a debugger. */
static bool is_safe(const struct cfi_expression *expression)
{
	struct bytes bytes = bytes_over(expression->bytes, expression->size);

	if (!expression->size || expression->size > LIMIT_EXPRESSION_BYTES)
		return false;
	while (bytes_left(&bytes)) {
		unsigned operands = operands_of(bytes_u8(&bytes));
		int16_t distance;

		if (operands == REFUSED)
			return false;
		if (operands == LEB) {
			(void)bytes_uleb128(&bytes);
		} else if (operands == JUMP) {
			distance = (int16_t)bytes_u16(&bytes);
			if (distance < 0 || (size_t)distance > bytes_left(&bytes))
				return false;
		} else {
			bytes_skip(&bytes, operands);
		}
	}
	return bytes_ok(&bytes);
}

static bool all_safe(const struct cfi_row *row)
{
	if (row->cfa_kind == CFI_CFA_EXPRESSION && !is_safe(&row->expressions[row->cfa_offset]))
		return false;
	for (unsigned i = 0; i < row->rule_count; i++) {
		const struct cfi_rule *rule = &row->rules[i];

		if ((rule->kind == CFI_RULE_EXPRESSION || rule->kind == CFI_RULE_VALUE_EXPRESSION) &&
		    !is_safe(&row->expressions[rule->offset]))
			return false;
	}
	return true;
}

/* ---- the synthetic image ---- */

static void put(struct step *step, const void *bytes, size_t size)
{
	if (step->image_full || size > IMAGE_MAX - step->image_size) {
		step->image_full = true;
		return;
	}
	memcpy(step->image + step->image_size, bytes, size);
	step->image_size += size;
}

static void put_u8(struct step *step, uint8_t value)
{
	put(step, &value, 1);
}

static void put_u32(struct step *step, uint32_t value)
{
	put(step, &value, sizeof(value));
}

static void put_u64(struct step *step, uint64_t value)
{
	put(step, &value, sizeof(value));
}

static void put_uleb(struct step *step, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_u8(step, (uint8_t)(value | 0x80));
	put_u8(step, (uint8_t)value);
}

/* At most ten bytes; the last one has the sign. */
static void put_sleb(struct step *step, int64_t value)
{
	while (value < -0x40 || value >= 0x40) {
		put_u8(step, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	put_u8(step, (uint8_t)(value & 0x7f));
}

static void put_expression(struct step *step, const struct cfi_expression *expression)
{
	put_uleb(step, expression->size);
	put(step, expression->bytes, expression->size);
}

/* "register plus offset" as an expression, followed by the operation `more` (0: none). */
static void put_register_offset(struct step *step, uint8_t number, int32_t offset, uint8_t more)
{
	struct step text = {0};

	put_u8(&text, (uint8_t)(DW_OP_breg0 + number));
	put_sleb(&text, offset);
	if (more)
		put_u8(&text, more);
	put_expression(step, &(struct cfi_expression){.bytes = text.image, .size = text.image_size});
}

static void put_cfa(struct step *step, const struct cfi_row *row, uint64_t address)
{
	int32_t offset = row->cfa_offset;

	if (row->cfa_kind == CFI_CFA_EXPRESSION) {
		put_u8(step, DW_CFA_def_cfa_expression);
		put_expression(step, &row->expressions[offset]);
	} else if (row->cfa_kind == CFI_CFA_LOAD) {
		put_u8(step, DW_CFA_def_cfa_expression);
		put_register_offset(step, row->cfa_register, offset, DW_OP_deref);
	} else {
		if (row->cfa_kind == CFI_CFA_PLT && (address & 15) >= row->plt_threshold)
			offset += 8;
		put_u8(step, DW_CFA_def_cfa_sf);
		put_uleb(step, row->cfa_register);
		put_sleb(step, offset);
	}
}

static void put_rule(struct step *step, const struct cfi_row *row, const struct cfi_rule *rule)
{
	static const uint8_t instructions[] = {
	    [CFI_RULE_SAME] = DW_CFA_same_value,	   [CFI_RULE_UNDEFINED] = DW_CFA_undefined,
	    [CFI_RULE_OFFSET] = DW_CFA_offset_extended_sf, [CFI_RULE_VALUE] = DW_CFA_val_offset_sf,
	    [CFI_RULE_REGISTER] = DW_CFA_register,	   [CFI_RULE_AT_REGISTER] = DW_CFA_expression,
	    [CFI_RULE_EXPRESSION] = DW_CFA_expression,	   [CFI_RULE_VALUE_EXPRESSION] = DW_CFA_val_expression,
	};

	put_u8(step, instructions[rule->kind]);
	put_uleb(step, rule->number);
	if (rule->kind == CFI_RULE_OFFSET || rule->kind == CFI_RULE_VALUE)
		put_sleb(step, rule->offset);
	else if (rule->kind == CFI_RULE_REGISTER)
		put_uleb(step, rule->reg);
	else if (rule->kind == CFI_RULE_AT_REGISTER)
		put_register_offset(step, rule->reg, rule->offset, 0);
	else if (rule->kind == CFI_RULE_EXPRESSION || rule->kind == CFI_RULE_VALUE_EXPRESSION)
		put_expression(step, &row->expressions[rule->offset]);
}

/* Insert the length before the bytes appended since `start`. */
static void end_entry(struct step *step, size_t start)
{
	uint32_t length = (uint32_t)(step->image_size - start - sizeof(length));

	memcpy(step->image + start, &length, sizeof(length));
}

static void make_image(struct step *step, const struct cfi_row *row, uint64_t address)
{
	size_t cie = TABLE_WORDS * sizeof(uint32_t), fde;

	put_u32(step, (uint32_t)(address - step->image_address));
	put_u32(step, 0);
	put_u32(step, 0); /* length of the CIE */
	put_u32(step, 0);
	put(step, "\1zR", 4); /* version and augmentation */
	put_uleb(step, 1);    /* code alignment factor */
	put_sleb(step, 1);    /* data alignment factor */
	put_u8(step, row->return_column);
	put_uleb(step, 1);
	put_u8(step, DW_EH_PE_absptr);
	end_entry(step, cie);
	fde = step->image_size;
	put_u32(step, 0);
	put_u32(step, (uint32_t)(step->image_size - cie));
	put_u64(step, address);
	put_u64(step, 1);
	put_uleb(step, 0);
	put_cfa(step, row, address);
	for (unsigned i = 0; i < row->rule_count; i++)
		put_rule(step, row, &row->rules[i]);
	end_entry(step, fde);
	memcpy(step->image + sizeof(uint32_t), &(uint32_t){(uint32_t)fde}, sizeof(uint32_t));
}

/* ---- the synthetic process ---- */

static int find_procedure(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *procedure, int need_unwind_info,
			  void *context)
{
	struct step *step = context;
	unw_dyn_info_t info = {
	    .format = UNW_INFO_FORMAT_REMOTE_TABLE, .start_ip = step->code_address, .end_ip = step->code_address + 1};

	if (ip != step->code_address) {
		step->refused = true;
		return -UNW_ENOINFO;
	}
	info.u.rti.segbase = info.u.rti.table_data = step->image_address;
	info.u.rti.table_len = TABLE_WORDS * sizeof(uint32_t) / sizeof(unw_word_t);
	return search_unwind_table(space, ip, &info, procedure, need_unwind_info, context);
}

static void put_procedure(unw_addr_space_t space, unw_proc_info_t *procedure, void *context)
{
	(void)space;
	(void)procedure;
	(void)context;
}

static int no_dynamic_list(unw_addr_space_t space, unw_word_t *address_ret, void *context)
{
	(void)space;
	(void)address_ret;
	(void)context;
	return -UNW_ENOINFO;
}

static int access_memory(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write, void *context)
{
	struct step *step = context;
	uint64_t word = 0, offset = address - step->image_address;

	(void)space;
	if (write || ++step->accesses > LIMIT_EXPRESSION_READS)
		return -UNW_EINVAL;
	if (offset < IMAGE_MAX) {
		/* Bytes after the end read as zero: no-ops. */
		memcpy(&word, step->image + offset,
		       IMAGE_MAX - offset < sizeof(word) ? IMAGE_MAX - offset : sizeof(word));
	} else if (HOST_LOOKS_AT_CODE && address - (step->code_address & ~7ULL) < 2 * sizeof(word)) {
		word = 0; /* not a signal trampoline */
	} else if (!step->read(step->context, address, &word)) {
		step->refused = true;
		return -UNW_EINVAL;
	}
	*value = word;
	return 0;
}

static int access_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write, void *context)
{
	struct step *step = context;

	(void)space;
	if (write || number < 0 || number >= CFI_REGISTERS)
		return -UNW_EBADREG;
	if (number == HOST_PROGRAM_COUNTER) {
		*value = step->code_address;
	} else if (step->registers->known >> number & 1) {
		*value = step->registers->values[number];
	} else {
		step->refused = true;
		return -UNW_EBADREG;
	}
	return 0;
}

static int access_float(unw_addr_space_t space, unw_regnum_t number, unw_fpreg_t *value, int write, void *context)
{
	(void)space;
	(void)number;
	(void)value;
	(void)write;
	(void)context;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t space, unw_cursor_t *cursor, void *context)
{
	(void)space;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int find_name(unw_addr_space_t space, unw_word_t address, char *name, size_t size, unw_word_t *offset_ret,
		     void *context)
{
	(void)space;
	(void)address;
	(void)name;
	(void)size;
	(void)offset_ret;
	(void)context;
	return -UNW_ENOINFO;
}

static bool run(unw_addr_space_t space, struct step *step, struct expressions_registers *caller_ret)
{
	unw_cursor_t cursor;
	unw_word_t value;

	if (unw_init_remote(&cursor, space, step) || unw_step(&cursor) <= 0 || step->refused ||
	    unw_get_reg(&cursor, UNW_REG_IP, &value))
		return false;
	*caller_ret = (struct expressions_registers){0};
	for (int i = 0; i < CFI_REGISTERS; i++) {
		if (unw_get_reg(&cursor, i, &value))
			continue;
		caller_ret->values[i] = value;
		caller_ret->known |= 1ULL << i;
	}
	return true;
}

bool expressions_step(uint16_t elf_machine, const struct cfi_row *row, uint64_t address, expressions_read *read,
		      void *context, const struct expressions_registers *registers,
		      struct expressions_registers *caller_ret)
{
	static const unw_accessors_t accessors = {
	    .find_proc_info = find_procedure,
	    .put_unwind_info = put_procedure,
	    .get_dyn_info_list_addr = no_dynamic_list,
	    .access_mem = access_memory,
	    .access_reg = access_register,
	    .access_fpreg = access_float,
	    .resume = resume,
	    .get_proc_name = find_name,
	};
	struct step step = {.registers = registers,
			    .read = read,
			    .context = context,
			    .code_address = address,
			    .image_address = (address & ~7ULL) - IMAGE_DISTANCE};
	unw_accessors_t copy = accessors;
	unw_addr_space_t space;
	bool done;

	if (elf_machine != HOST_MACHINE || !all_safe(row))
		return false;
	make_image(&step, row, address);
	space = step.image_full ? NULL : unw_create_addr_space(&copy, 0);
	if (!space)
		return false;
	unw_set_caching_policy(space, UNW_CACHE_NONE);
	done = run(space, &step, caller_ret);
	unw_destroy_addr_space(space);
	return done;
}

unsigned expressions_library_version(void)
{
	return UNW_VERSION_MAJOR << 8 | UNW_VERSION_MINOR;
}
