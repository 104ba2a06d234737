// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/ledger.h"

#include <mmtrace/report.h>

#include "base/limits.h"

struct account_key {
	uint32_t stack, process, kind, thread;
};

void ledger_init(struct ledger *ledger, const struct ledger_options *options)
{
	*ledger = (struct ledger){.options = *options, .now_ns = options->from_ns};
	lifetimes_init(&ledger->lifetimes, options->lifetime_steps, options->from_ns);
	trends_init(&ledger->trends, LEDGER_BUCKETS, options->from_ns);
	trends_init(&ledger->commit_trends, LEDGER_COMMIT_BUCKETS, options->from_ns);
}

void ledger_begin(struct ledger *ledger, uint64_t from_ns)
{
	ledger->options.from_ns = ledger->lifetimes.from_ns = from_ns;
	ledger->trends.from_ns = ledger->commit_trends.from_ns = from_ns;
}

void ledger_deinit(struct ledger *ledger)
{
	vector_deinit(&ledger->allocations);
	vector_deinit(&ledger->free_allocations);
	vector_deinit(&ledger->accounts);
	intern_deinit(&ledger->account_keys);
	vector_deinit(&ledger->rows);
	vector_deinit(&ledger->trends.changes);
	vector_deinit(&ledger->freed_lifetimes);
	intern_deinit(&ledger->lifetime_keys);
	steps_of_rows_deinit(&ledger->steps);
	steps_of_rows_deinit(&ledger->reserved_steps);
	lifetimes_deinit(&ledger->lifetimes);
	vector_deinit(&ledger->commit_trends.changes);
	vector_deinit(&ledger->failures);
	intern_deinit(&ledger->failure_keys);
	vector_deinit(&ledger->stalls);
	intern_deinit(&ledger->stall_keys);
	intern_deinit(&ledger->found_keys);
	vector_deinit(&ledger->found);
	vector_deinit(&ledger->threads);
	map_deinit(&ledger->releases);
}

static enum ledger_side ledger_side(const struct ledger *ledger, uint64_t time_ns)
{
	if (time_ns < ledger->options.from_ns)
		return LEDGER_BEFORE;
	return time_ns < ledger->options.allocations_to_ns ? LEDGER_INSIDE : LEDGER_YOUNGER;
}

#define ONLY_ROW 1

/* Find the account; create it and look up its row if it is new. */
static struct mmt_error *ledger_account(struct ledger *ledger, const struct account_key *key, uint32_t *number_ret)
{
	const struct ledger_options *options = &ledger->options;
	struct account account = {
	    .stack = key->stack, .process = key->process, .kind = key->kind, .thread = key->thread, .row = ONLY_ROW};
	struct mmt_error *error = NULL;

	*number_ret = intern_find(&ledger->account_keys, key, sizeof(*key));
	if (*number_ret != INTERN_NONE)
		return NULL;
	if (options->find_row)
		error = options->find_row(options->context, &account);
	if (error)
		return error;
	while (account.row != LEDGER_NO_ROW && ledger->rows.count <= account.row) {
		if (!trends_open(&ledger->trends) || !vector_append(&ledger->rows))
			return &error_no_memory;
	}
	*number_ret = intern_put(&ledger->account_keys, key, sizeof(*key));
	return *number_ret != INTERN_NONE && vector_push(&ledger->accounts, account) ? NULL : &error_no_memory;
}

/* The allocation's account is known. `count` is 1 when its last bytes are released. */
static COLD void add_lifetime(struct ledger *ledger, const struct allocation *allocation, uint64_t released_ns,
			      uint64_t bytes, uint64_t count)
{
	if (ledger->accounts.items[allocation->account].row != LEDGER_NO_ROW &&
	    !lifetimes_add(&ledger->lifetimes, allocation->account, allocation->thread, allocation->time_ns,
			   released_ns, bytes, count))
		ledger->out_of_memory = true;
}

/* NULL: out of memory. */
static inline struct thread_account *thread_of(struct ledger *ledger, uint32_t thread)
{
	if (!vector_extend(&ledger->threads, (size_t)thread + 1)) {
		ledger->out_of_memory = true;
		return NULL;
	}
	return &ledger->threads.items[thread];
}

/* `bytes` modulo 2^64: a decrease is a large number. Sums stop at MMT_BYTES_MAX. */
static inline void add_bytes(uint64_t *sum, uint64_t bytes)
{
	if (bytes >> 63)
		*sum -= -bytes < *sum ? -bytes : *sum;
	else
		*sum = saturating_add(*sum, bytes, MMT_BYTES_MAX);
}

static void credit_release(struct ledger *ledger, uint32_t owner, uint32_t releaser, uint64_t bytes)
{
	uint64_t key = (uint64_t)owner << 32 | releaser, *sum;
	struct thread_account *account;

	if (!bytes || owner == LEDGER_NO_THREAD)
		return;
	account = thread_of(ledger, owner);
	if (account)
		add_bytes(owner == releaser ? &account->freed_by_itself_bytes : &account->freed_by_others_bytes, bytes);
	if (releaser == LEDGER_NO_THREAD)
		return;
	account = thread_of(ledger, releaser);
	if (account)
		add_bytes(&account->released_bytes, bytes);
	sum = map_get(&ledger->releases, key);
	if (sum)
		*sum = saturating_add(*sum, bytes, MMT_BYTES_MAX);
	else
		ledger->out_of_memory |= !map_put(&ledger->releases, key, bytes);
}

struct allocation *ledger_allocation(const struct ledger *ledger, uint32_t number)
{
	struct allocation *allocation;

	if (number < ALLOCATION_FIRST || number - ALLOCATION_FIRST >= ledger->allocations.count)
		return NULL;
	allocation = &ledger->allocations.items[number - ALLOCATION_FIRST];
	return allocation->in_use ? allocation : NULL;
}

/* Drop an allocation without bytes. A found one stays: bytes found later are added to it. */
static void forget_empty(struct ledger *ledger, struct allocation *allocation)
{
	struct allocation *part, *whole;

	if (allocation->live_bytes || allocation->found || allocation->open)
		return;
	part = ledger_allocation(ledger, allocation->part);
	whole = ledger_allocation(ledger, allocation->whole);
	if (part)
		part->whole = ALLOCATION_BEFORE;
	if (whole)
		whole->part = ALLOCATION_BEFORE;
	allocation->in_use = false;
	if (!vector_push(&ledger->free_allocations, (uint32_t)(allocation - ledger->allocations.items)))
		ledger->out_of_memory = true;
}

static struct mmt_error *add_allocation(struct ledger *ledger, const struct allocation *allocation,
					uint32_t *number_ret)
{
	uint32_t index = (uint32_t)ledger->allocations.count;
	const size_t max = ledger->options.allocations_max;

	if (ledger->free_allocations.count)
		index = ledger->free_allocations.items[--ledger->free_allocations.count];
	else if (max && index >= max)
		return error_create(MMT_ERROR_FORMAT, "more than %zu mappings: too many for a recording of this size",
				    max);
	else if (!vector_append(&ledger->allocations))
		return &error_no_memory;
	ledger->allocations.items[index] = *allocation;
	*number_ret = index + ALLOCATION_FIRST;
	return NULL;
}

struct mmt_error *ledger_open(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t stack,
			      uint32_t *allocation_ret)
{
	const struct allocation allocation = {.account = LEDGER_NO_ACCOUNT,
					      .stack = stack,
					      .process = process,
					      .thread = thread,
					      .reserver = LEDGER_NO_ACCOUNT,
					      .side = ledger_side(ledger, ledger->now_ns),
					      .time_ns = ledger->now_ns,
					      .open = true,
					      .in_use = true};

	return add_allocation(ledger, &allocation, allocation_ret);
}

bool ledger_close(struct ledger *ledger, uint32_t number)
{
	struct allocation *allocation = ledger_allocation(ledger, number);
	bool created = allocation && allocation->original_bytes && allocation->side == LEDGER_INSIDE;

	if (allocation) {
		allocation->open = false;
		forget_empty(ledger, allocation);
	}
	return created;
}

/* Find the histogram of the row, stack and pattern, which accounts of many processes share. False: out of memory. */
static COLD bool find_lifetimes(struct ledger *ledger, struct account *account)
{
	const uint32_t key[] = {account->row, account->stack, account->pattern};
	uint32_t place = intern_put(&ledger->lifetime_keys, key, sizeof(key));

	if (place == INTERN_NONE ||
	    (place == ledger->freed_lifetimes.count && !vector_append(&ledger->freed_lifetimes)))
		return false;
	account->lifetimes = place + 1;
	return true;
}

/* The allocation was completely freed at `time_ns`. */
static inline void note_lifetime(struct ledger *ledger, const struct allocation *allocation, struct account *account,
				 uint64_t time_ns)
{
	if (account->row == LEDGER_NO_ROW || allocation->found)
		return;
	if (!account->lifetimes && !find_lifetimes(ledger, account))
		ledger->out_of_memory = true;
	else
		lifetime_histogram_add(&ledger->freed_lifetimes.items[account->lifetimes - 1],
				       time_ns > allocation->time_ns ? time_ns - allocation->time_ns : 0);
}

void ledger_released(struct ledger *ledger, uint32_t number, uint64_t bytes, uint32_t releaser)
{
	struct allocation *allocation = ledger_allocation(ledger, number);
	struct account *account;

	if (!allocation)
		return;
	allocation->live_bytes -= bytes;
	if (allocation->account != LEDGER_NO_ACCOUNT) {
		account = &ledger->accounts.items[allocation->account];
		add_bytes(&account->freed_bytes, bytes);
		account->freed_count += !allocation->live_bytes && !allocation->found;
		if (!allocation->live_bytes)
			note_lifetime(ledger, allocation, account, ledger->now_ns);
		ledger_rows_change(ledger, account->row, ledger->now_ns, -bytes);
		if (ledger->lifetimes.steps_max)
			add_lifetime(ledger, allocation, ledger->now_ns, bytes,
				     !allocation->live_bytes && !allocation->found);
		if (account->row != LEDGER_NO_ROW) {
			credit_release(ledger, allocation->thread, releaser, bytes);
			if (allocation->thread < ledger->threads.count)
				ledger->threads.items[allocation->thread].freed_count += !allocation->live_bytes;
		}
	}
	forget_empty(ledger, allocation);
}

static void add_to_trend(struct ledger *ledger, uint32_t account, uint64_t time_ns, uint64_t bytes)
{
	uint32_t *number = &ledger->accounts.items[account].trend;

	if (!*number)
		*number = trends_open(&ledger->commit_trends);
	if (*number)
		trends_add(&ledger->commit_trends, *number, time_ns, bytes);
	else
		ledger->out_of_memory = true;
}

void ledger_uncommitted(struct ledger *ledger, uint32_t number, uint64_t bytes, bool since_call)
{
	struct allocation *allocation = ledger_allocation(ledger, number);

	if (!allocation)
		return;
	allocation->uncommitted_bytes += bytes;
	if (allocation->account != LEDGER_NO_ACCOUNT)
		add_to_trend(ledger, allocation->account,
			     since_call && !allocation->found ? allocation->time_ns : ledger->now_ns, -bytes);
}

void ledger_replaces(struct ledger *ledger, uint32_t number, uint32_t reserved)
{
	const struct allocation *reserver = ledger_allocation(ledger, reserved);
	struct allocation *allocation = ledger_allocation(ledger, number);

	if (allocation && reserver && reserver->account != LEDGER_NO_ACCOUNT)
		allocation->reserver = reserver->account;
}

static struct account_key key_of(const struct ledger *ledger, const struct allocation *allocation)
{
	return (struct account_key){allocation->stack, allocation->process, allocation->kind,
				    ledger->options.by_thread ? allocation->thread : LEDGER_NO_THREAD};
}

/* Resize an allocation as if its call had mapped more or (modulo 2^64) fewer bytes. */
static void resize_allocation(struct ledger *ledger, struct allocation *allocation, uint64_t bytes)
{
	bool was_born = allocation->original_bytes, is_freed;
	struct thread_account *thread = NULL;
	struct account *account;
	uint64_t born;

	allocation->original_bytes += bytes;
	allocation->live_bytes += bytes;
	if (allocation->account == LEDGER_NO_ACCOUNT)
		return;
	account = &ledger->accounts.items[allocation->account];
	add_bytes(&account->allocated_bytes, bytes);
	ledger_rows_change(ledger, account->row, allocation->found ? ledger->now_ns : allocation->time_ns, bytes);
	if (allocation->found)
		return;
	born = (uint64_t)!was_born - (uint64_t)!allocation->original_bytes;
	is_freed = allocation->original_bytes && !allocation->live_bytes;
	account->allocated_count += born;
	account->freed_count += is_freed;
	if (account->row != LEDGER_NO_ROW)
		thread = thread_of(ledger, allocation->thread);
	if (ledger->lifetimes.steps_max && is_freed)
		add_lifetime(ledger, allocation, ledger->now_ns, 0, 1);
	if (!thread)
		return;
	add_bytes(&thread->allocated_bytes, bytes);
	thread->allocated_count += born;
	thread->freed_count += is_freed;
}

struct mmt_error *ledger_born(struct ledger *ledger, uint32_t number, uint32_t kind, uint64_t bytes)
{
	struct allocation *allocation = ledger_allocation(ledger, number);
	struct mmt_error *error = NULL;
	struct account_key key;

	if (!allocation)
		return NULL;
	/* The first bytes decide the kind. */
	if (!allocation->original_bytes) {
		allocation->kind = kind;
		key = key_of(ledger, allocation);
		if (allocation->side == LEDGER_INSIDE)
			error = ledger_account(ledger, &key, &allocation->account);
	}
	if (!error)
		resize_allocation(ledger, allocation, bytes);
	return error;
}

struct mmt_error *ledger_split(struct ledger *ledger, uint32_t number, uint32_t kind, uint64_t bytes,
			       uint32_t *part_ret)
{
	struct allocation *allocation = ledger_allocation(ledger, number), part;
	struct mmt_error *error = NULL;
	struct account_key key;

	*part_ret = number;
	if (!allocation || allocation->kind == kind || bytes > allocation->live_bytes)
		return NULL;
	if (!allocation->part) {
		/* Both belong to the same call. */
		part = *allocation;
		part.kind = kind;
		part.whole = number;
		part.original_bytes = part.live_bytes = part.uncommitted_bytes = 0;
		part.open = false;
		if (part.account != LEDGER_NO_ACCOUNT) {
			key = key_of(ledger, &part);
			error = ledger_account(ledger, &key, &part.account);
		}
		error = error ?: add_allocation(ledger, &part, part_ret);
		if (error)
			return error;
		allocation = ledger_allocation(ledger, number);
		allocation->part = *part_ret;
	}
	*part_ret = allocation->part;
	resize_allocation(ledger, allocation, -bytes);
	resize_allocation(ledger, ledger_allocation(ledger, allocation->part), bytes);
	forget_empty(ledger, allocation);
	return NULL;
}

struct mmt_error *ledger_found(struct ledger *ledger, uint32_t process, uint32_t kind, uint32_t stack,
			       uint32_t *allocation_ret)
{
	struct allocation allocation = {.account = LEDGER_NO_ACCOUNT,
					.stack = stack,
					.process = process,
					.thread = LEDGER_NO_THREAD,
					.kind = kind,
					.reserver = LEDGER_NO_ACCOUNT,
					.side = ledger_side(ledger, ledger->now_ns),
					.time_ns = ledger->now_ns,
					.found = true,
					.in_use = true};
	const uint32_t key[] = {process, kind, allocation.side};
	const struct account_key account_key = key_of(ledger, &allocation);
	uint32_t place = intern_put(&ledger->found_keys, key, sizeof(key));
	struct mmt_error *error = NULL;

	if (place == INTERN_NONE)
		return &error_no_memory;
	if (place == ledger->found.count) {
		if (allocation.side == LEDGER_INSIDE)
			error = ledger_account(ledger, &account_key, &allocation.account);
		error = error ?: add_allocation(ledger, &allocation, allocation_ret);
		return error || vector_push(&ledger->found, *allocation_ret) ? error : &error_no_memory;
	}
	*allocation_ret = ledger->found.items[place];
	return NULL;
}

const struct account *ledger_counted(const struct ledger *ledger, uint32_t number)
{
	const struct account *account;

	if (number >= ledger->accounts.count)
		return NULL;
	account = &ledger->accounts.items[number];
	return account->row == LEDGER_NO_ROW ? NULL : account;
}

struct mmt_error *ledger_fail(struct ledger *ledger, const struct failure *failure)
{
	const uint32_t key[] = {failure->stack, failure->process, failure->call, (uint32_t)failure->error};
	struct failure *sum;
	uint32_t number;

	if (ledger_side(ledger, failure->first_ns) != LEDGER_INSIDE)
		return NULL;
	number = intern_put(&ledger->failure_keys, key, sizeof(key));
	if (number == INTERN_NONE)
		return &error_no_memory;
	if (number == ledger->failures.count)
		return vector_push(&ledger->failures, *failure) ? NULL : &error_no_memory;
	sum = &ledger->failures.items[number];
	sum->count += failure->count;
	/* Failed calls can ask for nearly 2^64 bytes each. */
	sum->asked_bytes = saturating_add(sum->asked_bytes, failure->asked_bytes, UINT64_MAX);
	sum->last_ns = failure->last_ns;
	return NULL;
}

struct mmt_error *ledger_stall(struct ledger *ledger, const struct stall *stall, uint32_t rest)
{
	uint32_t key[] = {stall->stack, stall->process};
	struct stall *sum;
	uint32_t number;

	if (ledger_side(ledger, ledger->now_ns) != LEDGER_INSIDE)
		return NULL;
	if (ledger->stalls.count >= LIMIT_STALLS && intern_find(&ledger->stall_keys, key, sizeof(key)) == INTERN_NONE)
		key[0] = rest;
	number = intern_put(&ledger->stall_keys, key, sizeof(key));
	if (number == INTERN_NONE || (number == ledger->stalls.count && !vector_append(&ledger->stalls)))
		return &error_no_memory;
	sum = &ledger->stalls.items[number];
	sum->stack = key[0];
	sum->process = stall->process;
	sum->count += stall->count;
	sum->total_ns = saturating_add(sum->total_ns, stall->total_ns, INT64_MAX);
	sum->longest_ns = larger_of(sum->longest_ns, stall->longest_ns);
	return NULL;
}

struct mmt_error *ledger_commit(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t kind, uint32_t stack,
				uint32_t *commit_ret)
{
	const struct account_key key = {stack, process, kind, ledger->options.by_thread ? thread : LEDGER_NO_THREAD};
	struct mmt_error *error;
	uint32_t account;

	*commit_ret = LEDGER_OUTSIDE_COMMIT;
	if (ledger_side(ledger, ledger->now_ns) != LEDGER_INSIDE)
		return NULL;
	error = ledger_account(ledger, &key, &account);
	if (error)
		return error;
	ledger->accounts.items[account].committed_count++;
	*commit_ret = LEDGER_OUTSIDE_COMMIT + 1 + account;
	return NULL;
}

uint32_t ledger_commit_account(const struct ledger *ledger, uint32_t commit)
{
	uint32_t account = commit - LEDGER_OUTSIDE_COMMIT - 1;

	return commit > LEDGER_OUTSIDE_COMMIT && account < ledger->accounts.count ? account : LEDGER_NO_ACCOUNT;
}

void ledger_committed(struct ledger *ledger, uint32_t commit, uint64_t bytes)
{
	uint32_t account = ledger_commit_account(ledger, commit);

	if (account != LEDGER_NO_ACCOUNT)
		add_to_trend(ledger, account, ledger->now_ns, bytes);
}

struct mmt_error *ledger_end_lifetimes(struct ledger *ledger)
{
	array_while(allocation, ledger->allocations.items, ledger->allocations.count, ledger->lifetimes.steps_max) {
		if (allocation->in_use && allocation->account != LEDGER_NO_ACCOUNT && allocation->live_bytes)
			add_lifetime(ledger, allocation, LIFETIME_NEVER_NS, allocation->live_bytes, !allocation->found);
	}
	return ledger->out_of_memory ? &error_no_memory : NULL;
}
