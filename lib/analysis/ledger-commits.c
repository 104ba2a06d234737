// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/ledger-accounts.h"
#include "model/space.h"

static struct mmt_error *add_commit(struct ledger *ledger, uint32_t account, uint32_t *commit_ret)
{
	uint32_t place = (uint32_t)ledger->commits.count;

	if (ledger->free_commits.count)
		place = ledger->free_commits.items[--ledger->free_commits.count];
	else if (!vector_append(&ledger->commits))
		return &error_no_memory;
	ledger->commits.items[place] = account;
	*commit_ret = place + COMMIT_FIRST;
	return NULL;
}

struct mmt_error *ledger_commit(struct ledger *ledger, uint32_t process, uint32_t kind, uint32_t stack,
				uint32_t *commit_ret)
{
	struct mmt_error *error;
	uint32_t account;

	if (ledger_side(ledger, ledger->now_ns) != LEDGER_INSIDE) {
		*commit_ret = ledger->outside_commit;
		if (*commit_ret)
			return NULL;
		error = add_commit(ledger, LEDGER_NO_ACCOUNT, commit_ret);
		ledger->outside_commit = *commit_ret;
		return error;
	}
	error = ledger_account(ledger, stack, process, kind, &account);
	if (error)
		return error;
	ledger->accounts.items[account].committed_count++;
	*commit_ret = ledger->accounts.items[account].commit;
	if (*commit_ret)
		return NULL;
	error = add_commit(ledger, account, commit_ret);
	ledger->accounts.items[account].commit = *commit_ret;
	return error;
}

struct mmt_error *ledger_open_commit(struct ledger *ledger, uint32_t *commit_ret)
{
	if (ledger_side(ledger, ledger->now_ns) != LEDGER_INSIDE)
		return ledger_commit(ledger, 0, 0, 0, commit_ret);
	ledger->opened_commits++;
	return add_commit(ledger, LEDGER_NO_ACCOUNT, commit_ret);
}

struct mmt_error *ledger_settle_commit(struct ledger *ledger, uint32_t commit, uint32_t process, uint32_t kind,
				       uint32_t stack)
{
	struct mmt_error *error;
	uint32_t account;

	if (commit < COMMIT_FIRST || commit == ledger->outside_commit)
		return NULL;
	error = ledger_account(ledger, stack, process, kind, &account);
	if (error)
		return error;
	ledger->accounts.items[account].committed_count++;
	ledger->commits.items[commit - COMMIT_FIRST] = account;
	if (!ledger->accounts.items[account].commit)
		ledger->accounts.items[account].commit = commit;
	return NULL;
}

bool ledger_wants_sweep(const struct ledger *ledger)
{
	return ledger->opened_commits >= ledger->sweep_at;
}

uint32_t ledger_own_commit(const struct ledger *ledger, uint32_t commit)
{
	uint32_t account = ledger->commits.items[commit - COMMIT_FIRST];

	return account < ledger->accounts.count ? ledger->accounts.items[account].commit : commit;
}

struct mmt_error *ledger_end_sweep(struct ledger *ledger, size_t holders)
{
	size_t seen;

	for (uint32_t place = 0; place < ledger->commits.count; place++) {
		if (ledger_own_commit(ledger, place + COMMIT_FIRST) == place + COMMIT_FIRST)
			continue;
		if (!vector_push(&ledger->free_commits, place))
			return &error_no_memory;
		ledger->commits.items[place] = LEDGER_FREE_COMMIT;
	}
	seen = ledger->commits.count - ledger->free_commits.count + holders;
	ledger->opened_commits = 0;
	ledger->sweep_at = seen > LEDGER_SWEEP_COMMITS ? seen : LEDGER_SWEEP_COMMITS;
	return NULL;
}
