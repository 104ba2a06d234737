// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/copied-code.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vector.h"
#include "code/epilogue.h"

struct copied_code {
	const struct code_copies *copies;
	const struct process_code *process;
	struct programs *programs;
	const struct cfi_row *host;
	struct map
	    rows; /* address and whether it is a return address -> place in `epilogues`, whose items may be NULL */
	VECTOR(struct epilogue *) epilogues;
};

struct mmt_error *copied_code_create(const struct reader_metadata *metadata, struct programs *programs, int32_t pid,
				     struct copied_code **copied_ret)
{
	const struct process_code *process = code_copies_find(&metadata->code, pid);
	struct copied_code *copied;

	*copied_ret = NULL;
	if (!process)
		return NULL;
	copied = calloc(1, sizeof(*copied));
	if (!copied)
		return &error_no_memory;
	copied->copies = &metadata->code;
	copied->process = process;
	copied->programs = programs;
	*copied_ret = copied;
	return NULL;
}

void copied_code_destroy(struct copied_code *copied)
{
	if (!copied)
		return;
	for (size_t i = 0; i < copied->epilogues.count; i++)
		free(copied->epilogues.items[i]);
	vector_deinit(&copied->epilogues);
	map_deinit(&copied->rows);
	free(copied);
}

void copied_code_use_host(struct copied_code *copied, const struct cfi_row *host)
{
	if (copied)
		copied->host = host;
}

static size_t read_code(void *context, uint64_t address, size_t size, const uint8_t **code_ret)
{
	const struct copied_code *copied = context;

	return code_copies_at(copied->copies, copied->process, address, size, code_ret);
}

static struct epilogue *find_epilogue(struct copied_code *copied, uint64_t address, bool is_return_address)
{
	const struct epilogue_code code = {.read = read_code, .context = copied, .host = copied->host};
	struct epilogue *epilogue = malloc(sizeof(*epilogue));

	if (epilogue &&
	    epilogue_find(programs_disassembly(copied->programs), &code, address, is_return_address, true, epilogue)) {
		epilogue->row.unsure = true;
		return epilogue;
	}
	free(epilogue);
	return NULL;
}

const struct cfi_row *copied_code_row(struct copied_code *copied, uint64_t address, bool is_return_address)
{
	uint64_t key = address << 1 | is_return_address;
	struct epilogue *epilogue;
	const uint64_t *known;

	if (!copied)
		return NULL;
	known = map_get(&copied->rows, key);
	if (known) {
		epilogue = copied->epilogues.items[*known];
		return epilogue ? epilogue_row(epilogue) : NULL;
	}
	epilogue = find_epilogue(copied, address, is_return_address);
	if (!vector_push(&copied->epilogues, epilogue)) {
		free(epilogue);
		return NULL;
	}
	/* Out of memory: found anew each time. */
	(void)map_put(&copied->rows, key, copied->epilogues.count - 1);
	return epilogue ? epilogue_row(epilogue) : NULL;
}

size_t copied_code_around(struct copied_code *copied, uint64_t start, uint64_t end, uint64_t address,
			  bool is_return_address, uint64_t *start_ret, const uint8_t **code_ret)
{
	size_t before;

	if (!copied || address < start || address > end)
		return 0;
	if (is_return_address && copied_code_follows_call(copied, address) != 1)
		return 0;
	before = code_copies_before(copied->copies, copied->process, address, (size_t)(address - start), code_ret);
	*start_ret = address - before;
	return code_copies_at(copied->copies, copied->process, *start_ret, (size_t)(end - *start_ret), code_ret);
}

int copied_code_follows_call(struct copied_code *copied, uint64_t return_address)
{
	const uint8_t *code;
	size_t size;

	if (!copied)
		return -1;
	size = code_copies_before(copied->copies, copied->process, return_address, DISASSEMBLY_INSTRUCTION_MAX, &code);
	return size ? programs_ends_with_call(copied->programs, code, size) : -1;
}
