// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/stack-numbers.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

struct mmt_error *stack_numbers_create(struct stack_numbers *numbers)
{
	numbers->file = tmpfile();
	return numbers->file ? NULL : error_system(errno, "cannot make a temporary file");
}

void stack_numbers_deinit(struct stack_numbers *numbers)
{
	if (numbers->file)
		fclose(numbers->file);
	numbers->file = NULL;
}

static struct mmt_error *put(struct stack_numbers *numbers, uint64_t sequence, size_t place, uint32_t number)
{
	off_t offset = (off_t)(sequence * sizeof(struct stack_number) + place);

	if (pwrite(fileno(numbers->file), &number, sizeof(number), offset) == sizeof(number))
		return NULL;
	return error_system(errno ? errno : ENOSPC, "cannot write a temporary file");
}

struct mmt_error *stack_numbers_put_stack(struct stack_numbers *numbers, uint64_t sequence, uint32_t stack)
{
	return put(numbers, sequence, offsetof(struct stack_number, stack), stack + 1);
}

struct mmt_error *stack_numbers_put_callchain(struct stack_numbers *numbers, uint64_t sequence, uint32_t callchain)
{
	return put(numbers, sequence, offsetof(struct stack_number, callchain), callchain + 1);
}

struct mmt_error *stack_numbers_get(const struct stack_numbers *numbers, uint64_t sequence,
				    struct stack_number *number_ret)
{
	off_t offset = (off_t)(sequence * sizeof(*number_ret));

	/* Events after the end of the file have no number. */
	*number_ret = (struct stack_number){0};
	if (pread(fileno(numbers->file), number_ret, sizeof(*number_ret), offset) < 0)
		return error_system(errno, "cannot read a temporary file");
	return NULL;
}
