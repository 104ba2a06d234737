// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/ledger.h"

#include <string.h>

#include <mmtrace/report.h>

#include "base/cold.h"
#include "model/space/space.h"

struct account_key {
	uint32_t stack, process, kind, thread;
};

struct found_key {
	uint32_t process, kind, side;
};

void ledger_init(struct ledger *ledger, const struct ledger_options *options)
{
	*ledger = (struct ledger){.options = *options, .now_ns = options->from_ns, .sweep_at = LEDGER_SWEEP_COMMITS};
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
	vector_deinit(&ledger->early_releases);
	vector_deinit(&ledger->accounts);
	intern_deinit(&ledger->account_keys);
	vector_deinit(&ledger->rows);
	trends_deinit(&ledger->trends);
	vector_deinit(&ledger->freed_lifetimes);
	intern_deinit(&ledger->lifetime_keys);
	steps_of_rows_deinit(&ledger->steps);
	steps_of_rows_deinit(&ledger->reserved_steps);
	lifetimes_deinit(&ledger->lifetimes);
	vector_deinit(&ledger->changes.items);
	trends_deinit(&ledger->commit_trends);
	vector_deinit(&ledger->commits);
	vector_deinit(&ledger->free_commits);
	vector_deinit(&ledger->failures);
	intern_deinit(&ledger->failure_keys);
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

static struct mmt_error *make_row(struct ledger *ledger, struct account *account)
{
	const struct ledger_options *options = &ledger->options;
	struct mmt_error *error = NULL;

	account->row = ONLY_ROW;
	if (options->find_row)
		error = options->find_row(options->context, account);
	while (!error && account->row != LEDGER_NO_ROW && ledger->rows.count <= account->row) {
		if (!trends_open(&ledger->trends) || !vector_append(&ledger->rows))
			return &error_no_memory;
	}
	return error;
}

/* Find the account; create it and look up its row if it is new. */
static struct mmt_error *ledger_account(struct ledger *ledger, const struct account_key *key, uint32_t *number_ret)
{
	struct account account = {
	    .stack = key->stack, .process = key->process, .kind = key->kind, .thread = key->thread};
	struct mmt_error *error;

	*number_ret = intern_find(&ledger->account_keys, key, sizeof(*key));
	if (*number_ret != INTERN_NONE)
		return NULL;
	error = make_row(ledger, &account);
	if (error)
		return error;
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
static struct thread_account *add_thread(struct ledger *ledger, uint32_t thread)
{
	while (ledger->threads.count <= thread) {
		if (!vector_append(&ledger->threads)) {
			ledger->out_of_memory = true;
			return NULL;
		}
	}
	return &ledger->threads.items[thread];
}

static inline struct thread_account *thread_of(struct ledger *ledger, uint32_t thread)
{
	return thread < ledger->threads.count ? &ledger->threads.items[thread] : add_thread(ledger, thread);
}

static void add_release(struct ledger *ledger, uint32_t owner, uint32_t releaser, uint64_t bytes)
{
	uint64_t key = (uint64_t)owner << 32 | releaser;
	uint64_t *sum = map_get(&ledger->releases, key);

	if (sum)
		*sum = saturating_add(*sum, bytes, MMT_BYTES_MAX);
	else
		ledger->out_of_memory |= !map_put(&ledger->releases, key, bytes);
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
	struct thread_account *account;

	if (!bytes || owner == LEDGER_NO_THREAD)
		return;
	account = thread_of(ledger, owner);
	if (account && owner == releaser)
		add_bytes(&account->freed_by_itself_bytes, bytes);
	else if (account)
		add_bytes(&account->freed_by_others_bytes, bytes);
	if (releaser == LEDGER_NO_THREAD)
		return;
	account = thread_of(ledger, releaser);
	if (account)
		add_bytes(&account->released_bytes, bytes);
	add_release(ledger, owner, releaser, bytes);
}

static struct allocation *find_allocation(const struct ledger *ledger, uint32_t number)
{
	struct allocation *allocation;

	if (number < ALLOCATION_FIRST || number - ALLOCATION_FIRST >= ledger->allocations.count)
		return NULL;
	allocation = &ledger->allocations.items[number - ALLOCATION_FIRST];
	return allocation->in_use ? allocation : NULL;
}

/* Remove the latest early release of an allocation. There must be one. */
static struct early_release take_early(struct ledger *ledger, struct allocation *allocation)
{
	struct early_release *place = &ledger->early_releases.items[allocation->early - 1], release = *place;

	place->next = ledger->free_early;
	ledger->free_early = allocation->early;
	allocation->early = release.next;
	return release;
}

static void forget_allocation(struct ledger *ledger, struct allocation *allocation)
{
	struct allocation *part = find_allocation(ledger, allocation->part),
			  *whole = find_allocation(ledger, allocation->whole);

	if (part)
		part->whole = ALLOCATION_BEFORE;
	if (whole)
		whole->part = ALLOCATION_BEFORE;
	allocation->in_use = false;
	while (allocation->early)
		(void)take_early(ledger, allocation);
	if (!vector_push(&ledger->free_allocations, (uint32_t)(allocation - ledger->allocations.items)))
		ledger->out_of_memory = true;
}

/* A found allocation stays: bytes found later are added to it. */
static void forget_empty(struct ledger *ledger, struct allocation *allocation)
{
	if (!allocation->live_bytes && !allocation->found)
		forget_allocation(ledger, allocation);
}

static struct mmt_error *add_allocation(struct ledger *ledger, const struct allocation *allocation,
					uint32_t *number_ret)
{
	uint32_t index = (uint32_t)ledger->allocations.count;

	if (ledger->free_allocations.count)
		index = ledger->free_allocations.items[--ledger->free_allocations.count];
	else if (!vector_append(&ledger->allocations))
		return &error_no_memory;
	ledger->allocations.items[index] = *allocation;
	*number_ret = index + ALLOCATION_FIRST;
	return NULL;
}

struct mmt_error *ledger_open(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t *allocation_ret)
{
	const struct allocation allocation = {.account = LEDGER_NO_ACCOUNT,
					      .process = process,
					      .thread = thread,
					      .reserver = LEDGER_NO_ACCOUNT,
					      .side = ledger_side(ledger, ledger->now_ns),
					      .time_ns = ledger->now_ns,
					      .in_use = true};

	return add_allocation(ledger, &allocation, allocation_ret);
}

/* Record a release from an allocation whose stack is not known yet. */
static void release_early(struct ledger *ledger, struct allocation *allocation, uint64_t bytes, uint32_t releaser)
{
	struct early_release release = {
	    .bytes = bytes, .time_ns = ledger->now_ns, .releaser = releaser, .next = allocation->early};
	uint32_t place = ledger->free_early;

	if (allocation->early && !ledger->lifetimes.steps_max &&
	    ledger->early_releases.items[allocation->early - 1].releaser == releaser) {
		ledger->early_releases.items[allocation->early - 1].bytes += bytes;
		ledger->early_releases.items[allocation->early - 1].time_ns = ledger->now_ns;
		return;
	}
	if (place) {
		ledger->free_early = ledger->early_releases.items[place - 1].next;
		ledger->early_releases.items[place - 1] = release;
	} else if (vector_push(&ledger->early_releases, release)) {
		place = (uint32_t)ledger->early_releases.count;
	} else {
		ledger->out_of_memory = true;
		return;
	}
	allocation->early = place;
}

/* Find the histogram of the account's row, stack and pattern: there may be an account of each of very many processes.
 * False: out of memory. */
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
	struct allocation *allocation = find_allocation(ledger, number);
	struct account *account;

	if (!allocation)
		return;
	allocation->live_bytes -= bytes;
	if (!allocation->resolved) {
		release_early(ledger, allocation, bytes, releaser);
		ledger_rows_wait(ledger, allocation, ledger->now_ns, -bytes, 0);
		return;
	}
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

void ledger_reserved(struct ledger *ledger, uint32_t number, uint64_t bytes)
{
	struct allocation *allocation = ledger->options.every_ns ? find_allocation(ledger, number) : NULL;

	if (!allocation)
		return;
	allocation->reserved_bytes += bytes;
	if (!allocation->resolved)
		ledger_rows_wait(ledger, allocation, 0, 0, bytes);
	else if (allocation->account != LEDGER_NO_ACCOUNT)
		ledger_rows_reserve(ledger, ledger->accounts.items[allocation->account].row, ledger->now_ns, bytes);
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
	struct allocation *allocation = find_allocation(ledger, number);

	if (!allocation)
		return;
	allocation->uncommitted_bytes += bytes;
	if (allocation->account != LEDGER_NO_ACCOUNT)
		add_to_trend(ledger, allocation->account,
			     since_call && !allocation->found ? allocation->time_ns : ledger->now_ns, -bytes);
}

void ledger_replaces(struct ledger *ledger, uint32_t number, uint32_t reserved)
{
	const struct allocation *reserver = find_allocation(ledger, reserved);
	struct allocation *allocation = find_allocation(ledger, number);

	if (allocation && reserver && reserver->account != LEDGER_NO_ACCOUNT)
		allocation->reserver = reserver->account;
}

void ledger_drop(struct ledger *ledger, uint32_t number)
{
	struct allocation *allocation = find_allocation(ledger, number);

	if (allocation)
		forget_allocation(ledger, allocation);
}

/* The releases recorded before the stack was known. */
static COLD void add_early_lifetimes(struct ledger *ledger, const struct allocation *allocation)
{
	uint64_t latest_ns = ledger->now_ns;

	for (uint32_t place = allocation->early; place; place = ledger->early_releases.items[place - 1].next) {
		const struct early_release *release = &ledger->early_releases.items[place - 1];

		if (place == allocation->early)
			latest_ns = release->time_ns;
		add_lifetime(ledger, allocation, release->time_ns, release->bytes, 0);
	}
	if (!allocation->live_bytes)
		add_lifetime(ledger, allocation, latest_ns, 0, 1);
}

static void enter_account(struct ledger *ledger, struct allocation *allocation, uint32_t number)
{
	struct account *account = &ledger->accounts.items[number];

	allocation->account = number;
	if (allocation->uncommitted_bytes)
		add_to_trend(ledger, number, allocation->time_ns, -allocation->uncommitted_bytes);
	add_bytes(&account->allocated_bytes, allocation->original_bytes);
	account->allocated_count++;
	add_bytes(&account->freed_bytes, allocation->original_bytes - allocation->live_bytes);
	account->freed_count += !allocation->live_bytes;
	if (!allocation->live_bytes && allocation->early)
		note_lifetime(ledger, allocation, account, ledger->early_releases.items[allocation->early - 1].time_ns);
	ledger_rows_resolve(ledger, allocation, account->row);
	if (ledger->lifetimes.steps_max)
		add_early_lifetimes(ledger, allocation);
	if (allocation->unordered)
		ledger_rows_enter(ledger, account->row, allocation);
}

static void enter_thread(struct ledger *ledger, struct allocation *allocation)
{
	struct thread_account *owner = thread_of(ledger, allocation->thread);

	if (!owner)
		return;
	add_bytes(&owner->allocated_bytes, allocation->original_bytes);
	owner->allocated_count++;
	owner->freed_count += !allocation->live_bytes;
	while (allocation->early) {
		struct early_release release = take_early(ledger, allocation);

		credit_release(ledger, allocation->thread, release.releaser, release.bytes);
	}
}

static struct account_key key_of(const struct ledger *ledger, const struct allocation *allocation, uint32_t stack)
{
	return (struct account_key){stack, allocation->process, allocation->kind,
				    ledger->options.by_thread ? allocation->thread : LEDGER_NO_THREAD};
}

struct mmt_error *ledger_resolve(struct ledger *ledger, uint32_t number, uint32_t stack)
{
	struct allocation *allocation = find_allocation(ledger, number);
	struct account_key key;
	struct mmt_error *error;
	uint32_t account, part;

	if (!allocation || allocation->resolved)
		return NULL;
	key = key_of(ledger, allocation, stack);
	part = allocation->part;
	allocation->resolved = true;
	/* The allocation is empty, but held bytes until all of them were split off. */
	if (!allocation->original_bytes && allocation->last_change) {
		error = ledger_account(ledger, &key, &account);
		if (error)
			return error;
		ledger_rows_resolve(ledger, allocation, ledger->accounts.items[account].row);
	}
	if (allocation->side == LEDGER_INSIDE && allocation->original_bytes) {
		error = ledger_account(ledger, &key, &account);
		if (error)
			return error;
		enter_account(ledger, allocation, account);
		if (ledger->accounts.items[account].row != LEDGER_NO_ROW)
			enter_thread(ledger, allocation);
	}
	if (!allocation->live_bytes)
		forget_allocation(ledger, allocation);
	return ledger_resolve(ledger, part, stack);
}

/* Create an empty allocation for a part of another one; both belong to the same call. */
static struct mmt_error *open_part(struct ledger *ledger, uint32_t whole, uint32_t kind)
{
	struct allocation *allocation = find_allocation(ledger, whole);
	struct account_key key;
	uint32_t number;
	struct mmt_error *error;
	struct allocation part = {.account = allocation->account,
				  .process = allocation->process,
				  .thread = allocation->thread,
				  .kind = kind,
				  .whole = whole,
				  .reserver = allocation->reserver,
				  .side = allocation->side,
				  .time_ns = allocation->time_ns,
				  .resolved = allocation->resolved,
				  .found = allocation->found,
				  .in_use = true};

	if (part.account != LEDGER_NO_ACCOUNT) {
		key = key_of(ledger, &part, ledger->accounts.items[part.account].stack);
		error = ledger_account(ledger, &key, &part.account);
		if (error)
			return error;
	}
	error = add_allocation(ledger, &part, &number);
	if (!error)
		ledger->allocations.items[whole - ALLOCATION_FIRST].part = number;
	return error;
}

static void count_allocations(struct ledger *ledger, const struct allocation *allocation, uint64_t bytes, bool was_born)
{
	struct account *account = &ledger->accounts.items[allocation->account];
	struct thread_account *thread = account->row == LEDGER_NO_ROW ? NULL : thread_of(ledger, allocation->thread);

	account->allocated_count += (uint64_t)!was_born - (uint64_t)!allocation->original_bytes;
	account->freed_count += allocation->original_bytes && !allocation->live_bytes;
	if (ledger->lifetimes.steps_max && allocation->original_bytes && !allocation->live_bytes)
		add_lifetime(ledger, allocation, ledger->now_ns, 0, 1);
	if (!thread)
		return;
	add_bytes(&thread->allocated_bytes, bytes);
	thread->allocated_count += (uint64_t)!was_born - (uint64_t)!allocation->original_bytes;
	thread->freed_count += allocation->original_bytes && !allocation->live_bytes;
}

/* Resize an allocation as if its call had mapped more or (modulo 2^64) fewer bytes. */
static void resize_allocation(struct ledger *ledger, struct allocation *allocation, uint64_t bytes)
{
	uint64_t trend_ns = allocation->found ? ledger->now_ns : allocation->time_ns;
	bool was_born = allocation->original_bytes;
	struct account *account;

	allocation->original_bytes += bytes;
	allocation->live_bytes += bytes;
	ledger_rows_wait(ledger, allocation, trend_ns, bytes, 0);
	if (allocation->account == LEDGER_NO_ACCOUNT)
		return;
	account = &ledger->accounts.items[allocation->account];
	add_bytes(&account->allocated_bytes, bytes);
	ledger_rows_change(ledger, account->row, trend_ns, bytes);
	if (!allocation->found)
		count_allocations(ledger, allocation, bytes, was_born);
}

void ledger_born(struct ledger *ledger, uint32_t number, uint32_t kind, uint64_t bytes)
{
	struct allocation *allocation = find_allocation(ledger, number);

	if (!allocation)
		return;
	if (!allocation->original_bytes)
		allocation->kind = kind;
	resize_allocation(ledger, allocation, bytes);
}

struct mmt_error *ledger_split(struct ledger *ledger, uint32_t number, uint32_t kind, uint64_t bytes,
			       uint32_t *part_ret)
{
	struct allocation *allocation = find_allocation(ledger, number);

	*part_ret = number;
	if (!allocation || allocation->kind == kind || bytes > allocation->live_bytes)
		return NULL;
	if (!allocation->part) {
		struct mmt_error *error = open_part(ledger, number, kind);

		if (error)
			return error;
		allocation = find_allocation(ledger, number);
	}
	*part_ret = allocation->part;
	resize_allocation(ledger, allocation, -bytes);
	resize_allocation(ledger, find_allocation(ledger, allocation->part), bytes);
	if (allocation->resolved)
		forget_empty(ledger, allocation);
	return NULL;
}

struct mmt_error *ledger_found(struct ledger *ledger, uint32_t process, uint32_t kind, uint32_t stack,
			       uint32_t *allocation_ret)
{
	struct allocation allocation = {.account = LEDGER_NO_ACCOUNT,
					.process = process,
					.thread = LEDGER_NO_THREAD,
					.kind = kind,
					.reserver = LEDGER_NO_ACCOUNT,
					.side = ledger_side(ledger, ledger->now_ns),
					.time_ns = ledger->now_ns,
					.resolved = true,
					.found = true,
					.in_use = true};
	const struct found_key key = {process, kind, allocation.side};
	const struct account_key account_key = key_of(ledger, &allocation, stack);
	uint32_t place = intern_put(&ledger->found_keys, &key, sizeof(key));
	struct mmt_error *error = NULL;

	if (place == INTERN_NONE)
		return &error_no_memory;
	if (place == ledger->found.count) {
		if (allocation.side == LEDGER_INSIDE)
			error = ledger_account(ledger, &account_key, &allocation.account);
		if (!error)
			error = add_allocation(ledger, &allocation, allocation_ret);
		return error || vector_push(&ledger->found, *allocation_ret) ? error : &error_no_memory;
	}
	*allocation_ret = ledger->found.items[place];
	return NULL;
}

const struct allocation *ledger_allocation(const struct ledger *ledger, uint32_t allocation)
{
	return find_allocation(ledger, allocation);
}

struct failure_key {
	uint32_t stack, process, call;
	int32_t error;
};

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
	/* Failed calls can ask for nearly 2^64 bytes each: saturate. */
	if (__builtin_add_overflow(sum->asked_bytes, failure->asked_bytes, &sum->asked_bytes))
		sum->asked_bytes = UINT64_MAX;
	sum->last_ns = failure->last_ns;
	return NULL;
}

static struct mmt_error *add_commit(struct ledger *ledger, uint32_t account, uint32_t *commit_ret)
{
	uint32_t place = (uint32_t)ledger->commits.count;

	if (ledger->free_commits.count)
		place = ledger->free_commits.items[--ledger->free_commits.count];
	else if (!vector_append(&ledger->commits))
		return &error_no_memory;
	ledger->commits.items[place] = (struct commit){.account = account};
	*commit_ret = place + COMMIT_FIRST;
	return NULL;
}

struct mmt_error *ledger_commit(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t kind, uint32_t stack,
				uint32_t *commit_ret)
{
	const struct account_key key = {stack, process, kind, ledger->options.by_thread ? thread : LEDGER_NO_THREAD};
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
	error = ledger_account(ledger, &key, &account);
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
		return ledger_commit(ledger, 0, 0, 0, 0, commit_ret);
	ledger->opened_commits++;
	return add_commit(ledger, LEDGER_NO_ACCOUNT, commit_ret);
}

struct mmt_error *ledger_resolve_commit(struct ledger *ledger, uint32_t commit, uint32_t process, uint32_t thread,
					uint32_t kind, uint32_t stack)
{
	const struct account_key key = {stack, process, kind, ledger->options.by_thread ? thread : LEDGER_NO_THREAD};
	struct mmt_error *error;
	struct commit *opened;
	uint32_t account;

	if (commit < COMMIT_FIRST || commit == ledger->outside_commit)
		return NULL;
	error = ledger_account(ledger, &key, &account);
	if (error)
		return error;
	ledger->accounts.items[account].committed_count++;
	opened = &ledger->commits.items[commit - COMMIT_FIRST];
	opened->account = account;
	if (!ledger->accounts.items[account].commit)
		ledger->accounts.items[account].commit = commit;
	if (opened->waiting_bytes)
		add_to_trend(ledger, account, opened->time_ns, opened->waiting_bytes);
	return NULL;
}

void ledger_committed(struct ledger *ledger, uint32_t commit, uint64_t bytes)
{
	struct commit *opened;

	if (commit < COMMIT_FIRST || commit == ledger->outside_commit)
		return;
	opened = &ledger->commits.items[commit - COMMIT_FIRST];
	if (opened->account < ledger->accounts.count) {
		add_to_trend(ledger, opened->account, ledger->now_ns, bytes);
		return;
	}
	if (!opened->waiting_bytes)
		opened->time_ns = ledger->now_ns;
	opened->waiting_bytes += bytes;
}

bool ledger_wants_sweep(const struct ledger *ledger)
{
	return ledger->opened_commits >= ledger->sweep_at;
}

uint32_t ledger_own_commit(const struct ledger *ledger, uint32_t commit)
{
	uint32_t account = ledger->commits.items[commit - COMMIT_FIRST].account;

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
		ledger->commits.items[place].account = LEDGER_FREE_COMMIT;
	}
	seen = ledger->commits.count - ledger->free_commits.count + holders;
	ledger->opened_commits = 0;
	ledger->sweep_at = seen > LEDGER_SWEEP_COMMITS ? seen : LEDGER_SWEEP_COMMITS;
	return NULL;
}

struct mmt_error *ledger_end_lifetimes(struct ledger *ledger)
{
	for (size_t i = 0; ledger->lifetimes.steps_max && i < ledger->allocations.count; i++) {
		const struct allocation *allocation = &ledger->allocations.items[i];

		if (allocation->in_use && allocation->account != LEDGER_NO_ACCOUNT && allocation->live_bytes)
			add_lifetime(ledger, allocation, LIFETIME_NEVER_NS, allocation->live_bytes, !allocation->found);
	}
	return ledger->out_of_memory ? &error_no_memory : NULL;
}
