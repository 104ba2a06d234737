// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/resolver-state.h"

#include "code/unwind/instruction-analysis.h"

/* Stack and receiver checks may precede it. */
#define PROLOGUE_BYTES 64
#define PROLOGUE_SUB_BYTES 4
#define PROLOGUE_FRAME_MAX (1 << 24)

/* DWARF numbers of x86-64. */
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_COLUMN = 16 };

const struct cfi_row jit_rows_interpreter = {
    .rules = (const struct cfi_rule[]){{FRAME_POINTER, CFI_RULE_AT_REGISTER, FRAME_POINTER, 0, 0},
				       {RETURN_COLUMN, CFI_RULE_AT_REGISTER, FRAME_POINTER, 0, 8}},
    .cfa_kind = CFI_CFA_LOAD,
    .cfa_register = FRAME_POINTER,
    .cfa_offset = -8,
    .rule_count = 2,
    .return_column = RETURN_COLUMN,
    .deduced = true};

struct jit_rows {
	const struct jit_code *code;
	const struct jit_code_program *program;
	struct modules *modules;
	const struct cfi_row *host;
	struct map row_of_address; /* struct deduced_row; NULL: the analysis found nothing */
};

struct jit_rows *jit_rows_create(const struct jit_code *code, const struct jit_code_program *program,
				 struct modules *modules)
{
	struct jit_rows *rows = calloc(1, sizeof(*rows));

	if (rows)
		*rows = (struct jit_rows){.code = code, .program = program, .modules = modules};
	return rows;
}

void jit_rows_destroy(struct jit_rows *rows)
{
	if (!rows)
		return;
	map_each(row, &rows->row_of_address, true)
		free(row->pointer);
	map_deinit(&rows->row_of_address);
	free(rows);
}

void jit_rows_use_host(struct jit_rows *rows, const struct cfi_row *host)
{
	if (rows && host)
		rows->host = host;
}

static size_t read_code(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	const struct jit_rows *rows = context;

	return jit_code_at(rows->code, rows->program, address, size, code_ret);
}

/* The first bytes of the function at `start`, before `address`. */
static size_t prologue_of(const struct jit_rows *rows, uint64_t start, uint64_t address, const uint8_t **code_ret)
{
	if (!rows || address < start)
		return 0;
	return jit_code_at(rows->code, rows->program, start,
			   address - start < PROLOGUE_BYTES ? (size_t)(address - start) : PROLOGUE_BYTES, code_ret);
}

/* The frame that a prologue makes: push %rbp, sub $SIZE, %rsp; or sub $SIZE, %rsp, mov %rbp, SIZE-8(%rsp). */
static bool read_prologue(struct bytes code, int32_t *size_ret)
{
	while (bytes_left(&code) >= PROLOGUE_SUB_BYTES) {
		const uint8_t *at = code.position;
		bool wide = at[1] == 0x81, pushed = at > code.start && at[-1] == 0x55;
		struct bytes rest = code;
		int32_t size, place;

		bytes_skip(&code, 1);
		if (at[0] != 0x48 || (at[1] != 0x83 && at[1] != 0x81) || at[2] != 0xec)
			continue;
		bytes_skip(&rest, 3);
		size = wide ? (int32_t)bytes_u32(&rest) : (int8_t)bytes_u8(&rest);
		if (size <= 0 || size > PROLOGUE_FRAME_MAX)
			return false;
		*size_ret = size + (pushed ? 8 : 0);
		if (pushed)
			return true;
		if (bytes_u8(&rest) != 0x48 || bytes_u8(&rest) != 0x89)
			return false;
		wide = bytes_u8(&rest) == 0xac;
		bytes_skip(&rest, 1);
		place = wide ? (int32_t)bytes_u32(&rest) : (int8_t)bytes_u8(&rest);
		return bytes_ok(&rest) && place == size - 8;
	}
	return false;
}

/* A method that is too large to follow its instructions to a return: compilers of methods give each a frame of one
 * size, which its prologue shows. */
static bool find_row_by_prologue(const struct jit_rows *rows, uint64_t start, uint64_t address,
				 struct deduced_row *deduced)
{
	const uint8_t *code;
	int32_t frame;
	size_t size = start ? prologue_of(rows, start, address, &code) : 0;

	if (!size || !read_prologue(bytes_over(code, size), &frame))
		return false;
	*deduced = (struct deduced_row){.row = {.cfa_kind = CFI_CFA_REGISTER,
						.cfa_register = STACK_POINTER,
						.cfa_offset = frame + 8,
						.rule_count = 2,
						.return_column = RETURN_COLUMN,
						.deduced = true},
					.rules = {{.number = FRAME_POINTER, .kind = CFI_RULE_OFFSET, .offset = -16},
						  {.number = RETURN_COLUMN, .kind = CFI_RULE_OFFSET, .offset = -8}}};
	return true;
}

const struct cfi_row *jit_rows_find(struct jit_rows *rows, uint64_t start, uint64_t address, bool is_return_address)
{
	const struct analyzed_code code = {.read = read_code, .context = rows, .host = rows ? rows->host : NULL};
	uint64_t key = address << 1 | is_return_address;
	struct deduced_row *row;

	if (!rows)
		return NULL;
	if (map_get(&rows->row_of_address, key)) {
		row = map_get_pointer(&rows->row_of_address, key);
		return row ? deduced_row_get(row) : NULL;
	}
	row = malloc(sizeof(*row));
	if (row &&
	    !deduced_row_find(modules_disassembly(rows->modules), &code, address, is_return_address, true, row) &&
	    !(is_return_address && find_row_by_prologue(rows, start, address, row))) {
		free(row);
		row = NULL;
	}
	if (row)
		row->row.unsure = true;
	if (!map_put_pointer(&rows->row_of_address, key, row)) {
		free(row);
		return NULL;
	}
	return row ? deduced_row_get(row) : NULL;
}

bool jit_rows_keep_frame_pointer(const struct jit_rows *rows, uint64_t start, uint64_t address)
{
	const uint8_t *code = NULL;
	size_t size = prologue_of(rows, start, address, &code);

	/* push %rbp; mov %rsp,%rbp, which has two encodings */
	return size && (memmem(code, size, "\x55\x48\x89\xe5", 4) || memmem(code, size, "\x55\x48\x8b\xec", 4));
}

int jit_rows_follow_call(const struct jit_rows *rows, uint64_t return_address)
{
	const uint8_t *code;
	size_t size =
	    rows ? jit_code_before(rows->code, rows->program, return_address, DISASSEMBLY_INSTRUCTION_MAX, &code) : 0;

	return size ? disassembly_ends_with_call(modules_disassembly(rows->modules), code, size) : -1;
}
