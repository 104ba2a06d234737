// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/ledger-accounts.h"

#include "base/seldom.h"

#define ONLY_ROW 1

struct account_key {
	uint32_t stack, process, kind;
};

struct failure_key {
	uint32_t stack, process, call;
	int32_t error;
};

enum ledger_side ledger_side(const struct ledger *ledger, uint64_t time_ns)
{
	if (time_ns < ledger->options.from_ns)
		return LEDGER_BEFORE;
	return time_ns < ledger->options.births_to_ns ? LEDGER_INSIDE : LEDGER_YOUNGER;
}

static struct mmt_error *make_row(struct ledger *ledger, struct account *account)
{
	const struct ledger_options *options = &ledger->options;
	struct mmt_error *error = NULL;

	account->row = ONLY_ROW;
	if (options->find_row)
		error = options->find_row(options->context, account, &account->row);
	while (!error && account->row != LEDGER_NO_ROW && ledger->rows.count <= account->row) {
		if (!vector_append(&ledger->trends) || !vector_append(&ledger->rows))
			return &error_no_memory;
	}
	return error;
}

const struct account *ledger_counted(const struct ledger *ledger, uint32_t number)
{
	const struct account *account;

	if (number >= ledger->accounts.count)
		return NULL;
	account = &ledger->accounts.items[number];
	return account->row == LEDGER_NO_ROW ? NULL : account;
}

static struct mmt_error *make_account(struct ledger *ledger, uint32_t stack, uint32_t process, uint32_t kind,
				      uint32_t *number_ret)
{
	const struct account_key key = {stack, process, kind};
	struct account account = {.stack = stack, .process = process, .kind = kind};
	struct mmt_error *error;

	*number_ret = intern_find(&ledger->account_keys, &key, sizeof(key));
	if (*number_ret != INTERN_NONE)
		return NULL;
	error = make_row(ledger, &account);
	if (error)
		return error;
	*number_ret = intern_put(&ledger->account_keys, &key, sizeof(key));
	return *number_ret != INTERN_NONE && vector_push(&ledger->accounts, account) ? NULL : &error_no_memory;
}

/* Not the latest of its stack. */
static SELDOM struct mmt_error *find_account(struct ledger *ledger, uint32_t stack, uint32_t process, uint32_t kind,
					     uint32_t *number_ret)
{
	struct recent_account *recent =
	    &ledger->recent_accounts[(stack + process * 31 + kind * 257) % LEDGER_RECENT_ACCOUNTS];
	struct mmt_error *error;

	*number_ret = recent->number - 1;
	if (!recent->number || recent->stack != stack || recent->process != process || recent->kind != kind) {
		error = make_account(ledger, stack, process, kind, number_ret);
		if (error)
			return error;
		*recent = (struct recent_account){stack, process, kind, *number_ret + 1};
	}
	while (ledger->accounts_of_stacks.count <= stack) {
		if (!vector_append(&ledger->accounts_of_stacks))
			return &error_no_memory;
	}
	ledger->accounts_of_stacks.items[stack] = *number_ret + 1;
	return NULL;
}

struct mmt_error *ledger_account(struct ledger *ledger, uint32_t stack, uint32_t process, uint32_t kind,
				 uint32_t *number_ret)
{
	uint32_t latest = stack < ledger->accounts_of_stacks.count ? ledger->accounts_of_stacks.items[stack] : 0;
	const struct account *account = latest ? &ledger->accounts.items[latest - 1] : NULL;

	if (!account || account->process != process || account->kind != kind)
		return find_account(ledger, stack, process, kind, number_ret);
	*number_ret = latest - 1;
	return NULL;
}

struct mmt_error *ledger_fail(struct ledger *ledger, const struct failure *failure)
{
	const struct failure_key key = {failure->stack, failure->process, failure->call, failure->error};
	struct failure *sum;
	uint32_t number;

	if (ledger_side(ledger, failure->first_ns) != LEDGER_INSIDE)
		return NULL;
	number = intern_put(&ledger->failure_keys, &key, sizeof(key));
	if (number == INTERN_NONE)
		return &error_no_memory;
	if (number == ledger->failures.count)
		return vector_push(&ledger->failures, *failure) ? NULL : &error_no_memory;
	sum = &ledger->failures.items[number];
	sum->count += failure->count;
	/* Who asks for nearly all that a number can say may do so twice. */
	if (__builtin_add_overflow(sum->asked_bytes, failure->asked_bytes, &sum->asked_bytes))
		sum->asked_bytes = UINT64_MAX;
	sum->last_ns = failure->last_ns;
	return NULL;
}
