// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/ledger.h"

#include <string.h>

#include <mmtrace/report.h>

#include "analysis/ledger-accounts.h"
#include "analysis/ledger-rows.h"
#include "model/space.h"

struct found_key {
	uint32_t process, kind, side;
};

void ledger_init(struct ledger *ledger, const struct ledger_options *options)
{
	*ledger = (struct ledger){.options = *options,
				  .now_ns = options->from_ns,
				  .bucket_ns = LEDGER_FIRST_BUCKET_NS,
				  .sweep_at = LEDGER_SWEEP_COMMITS};
}

void ledger_deinit(struct ledger *ledger)
{
	vector_deinit(&ledger->births);
	vector_deinit(&ledger->free_births);
	vector_deinit(&ledger->early_releases);
	vector_deinit(&ledger->accounts);
	vector_deinit(&ledger->accounts_of_stacks);
	intern_deinit(&ledger->account_keys);
	vector_deinit(&ledger->rows);
	vector_deinit(&ledger->trends);
	steps_of_rows_deinit(&ledger->steps);
	steps_of_rows_deinit(&ledger->reserved_steps);
	row_changes_deinit(&ledger->changes);
	vector_deinit(&ledger->commits);
	vector_deinit(&ledger->free_commits);
	vector_deinit(&ledger->failures);
	intern_deinit(&ledger->failure_keys);
	intern_deinit(&ledger->found_keys);
	vector_deinit(&ledger->found);
	vector_deinit(&ledger->threads);
	map_deinit(&ledger->releases);
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
	struct recent_release *recent = &ledger->recent_releases[(owner * 31 + releaser) % LEDGER_RECENT_RELEASES];
	uint64_t *sum;

	if (recent->sum && recent->key == key) {
		*recent->sum = saturating_add(*recent->sum, bytes, MMT_BYTES_MAX);
		return;
	}
	sum = map_get(&ledger->releases, key);
	if (sum) {
		*sum = saturating_add(*sum, bytes, MMT_BYTES_MAX);
		*recent = (struct recent_release){.key = key, .sum = sum};
		return;
	}
	/* The sums move. */
	memset(ledger->recent_releases, 0, sizeof(ledger->recent_releases));
	if (!map_put(&ledger->releases, key, bytes))
		ledger->out_of_memory = true;
}

static void credit_release(struct ledger *ledger, uint32_t owner, uint32_t releaser, uint64_t bytes)
{
	struct thread_account *account;

	if (!bytes || owner == LEDGER_NO_THREAD)
		return;
	account = thread_of(ledger, owner);
	if (account && owner == releaser)
		wide_sum_add(&account->freed_by_itself_bytes, bytes);
	else if (account)
		wide_sum_add(&account->freed_by_others_bytes, bytes);
	if (releaser == LEDGER_NO_THREAD)
		return;
	account = thread_of(ledger, releaser);
	if (account)
		wide_sum_add(&account->released_bytes, bytes);
	add_release(ledger, owner, releaser, bytes);
}

static struct birth *find_birth(const struct ledger *ledger, uint32_t number)
{
	struct birth *birth;

	if (number < BIRTH_FIRST || number - BIRTH_FIRST >= ledger->births.count)
		return NULL;
	birth = &ledger->births.items[number - BIRTH_FIRST];
	return birth->in_use ? birth : NULL;
}

/* Take the latest of the early releases from a birth that has any. */
static struct early_release take_early(struct ledger *ledger, struct birth *birth)
{
	struct early_release *place = &ledger->early_releases.items[birth->early - 1], release = *place;

	place->next = ledger->free_early;
	ledger->free_early = birth->early;
	birth->early = release.next;
	return release;
}

static void forget_birth(struct ledger *ledger, struct birth *birth)
{
	struct birth *part = find_birth(ledger, birth->part), *whole = find_birth(ledger, birth->whole);

	if (part)
		part->whole = BIRTH_BEFORE;
	if (whole)
		whole->part = BIRTH_BEFORE;
	birth->in_use = false;
	while (birth->early)
		(void)take_early(ledger, birth);
	if (!vector_push(&ledger->free_births, (uint32_t)(birth - ledger->births.items)))
		ledger->out_of_memory = true;
}

/* What is found later belongs to the same birth. */
static void forget_empty(struct ledger *ledger, struct birth *birth)
{
	if (!birth->live_bytes && !birth->found)
		forget_birth(ledger, birth);
}

static struct mmt_error *add_birth(struct ledger *ledger, const struct birth *birth, uint32_t *number_ret)
{
	uint32_t index = (uint32_t)ledger->births.count;

	if (ledger->free_births.count)
		index = ledger->free_births.items[--ledger->free_births.count];
	else if (!vector_append(&ledger->births))
		return &error_no_memory;
	ledger->births.items[index] = *birth;
	*number_ret = index + BIRTH_FIRST;
	return NULL;
}

struct mmt_error *ledger_open(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t *birth_ret)
{
	const struct birth birth = {.account = LEDGER_NO_ACCOUNT,
				    .process = process,
				    .thread = thread,
				    .reserver = LEDGER_NO_ACCOUNT,
				    .side = ledger_side(ledger, ledger->now_ns),
				    .time_ns = ledger->now_ns,
				    .in_use = true};

	return add_birth(ledger, &birth, birth_ret);
}

/* `bytes` of a birth whose stack is not told. */
static void release_early(struct ledger *ledger, struct birth *birth, uint64_t bytes, uint32_t releaser)
{
	struct early_release release = {.bytes = bytes, .releaser = releaser, .next = birth->early};
	uint32_t place = ledger->free_early;

	if (birth->early && ledger->early_releases.items[birth->early - 1].releaser == releaser) {
		ledger->early_releases.items[birth->early - 1].bytes += bytes;
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
	birth->early = place;
}

void ledger_released(struct ledger *ledger, uint32_t number, uint64_t bytes, uint32_t releaser)
{
	struct birth *birth = find_birth(ledger, number);
	struct account *account;

	if (!birth)
		return;
	birth->live_bytes -= bytes;
	if (!birth->settled) {
		release_early(ledger, birth, bytes, releaser);
		ledger_rows_change_waiting(ledger, birth, ledger->now_ns, -bytes);
		return;
	}
	if (birth->account != LEDGER_NO_ACCOUNT) {
		account = &ledger->accounts.items[birth->account];
		wide_sum_add(&account->freed_bytes, bytes);
		account->freed_count += !birth->live_bytes && !birth->found;
		ledger_rows_change(ledger, account->row, ledger->now_ns, -bytes);
		if (account->row != LEDGER_NO_ROW) {
			credit_release(ledger, birth->thread, releaser, bytes);
			if (birth->thread < ledger->threads.count)
				ledger->threads.items[birth->thread].freed_count += !birth->live_bytes;
		}
	}
	forget_empty(ledger, birth);
}

void ledger_reserved(struct ledger *ledger, uint32_t number, uint64_t bytes)
{
	struct birth *birth = ledger->options.every_ns ? find_birth(ledger, number) : NULL;

	if (!birth)
		return;
	birth->reserved_bytes += bytes;
	if (!birth->settled)
		ledger_rows_reserve_waiting(ledger, birth, bytes);
	else if (birth->account != LEDGER_NO_ACCOUNT)
		ledger_rows_reserve(ledger, ledger->accounts.items[birth->account].row, ledger->now_ns, bytes);
}

void ledger_replaces(struct ledger *ledger, uint32_t number, uint32_t reserved)
{
	const struct birth *reserver = find_birth(ledger, reserved);
	struct birth *birth = find_birth(ledger, number);

	if (birth && reserver && reserver->account != LEDGER_NO_ACCOUNT)
		birth->reserver = reserver->account;
}

void ledger_drop(struct ledger *ledger, uint32_t number)
{
	struct birth *birth = find_birth(ledger, number);

	if (birth)
		forget_birth(ledger, birth);
}

static void enter_account(struct ledger *ledger, struct birth *birth, uint32_t number)
{
	struct account *account = &ledger->accounts.items[number];

	birth->account = number;
	wide_sum_add(&account->allocated_bytes, birth->born_bytes);
	account->allocated_count++;
	wide_sum_add(&account->freed_bytes, birth->born_bytes - birth->live_bytes);
	account->freed_count += !birth->live_bytes;
	ledger_rows_tell(ledger, birth, account->row);
	if (birth->unordered)
		ledger_rows_enter(ledger, account->row, birth);
}

static void enter_thread(struct ledger *ledger, struct birth *birth)
{
	struct thread_account *owner = thread_of(ledger, birth->thread);

	if (!owner)
		return;
	wide_sum_add(&owner->allocated_bytes, birth->born_bytes);
	owner->allocated_count++;
	owner->freed_count += !birth->live_bytes;
	while (birth->early) {
		struct early_release release = take_early(ledger, birth);

		credit_release(ledger, birth->thread, release.releaser, release.bytes);
	}
}

struct mmt_error *ledger_settle(struct ledger *ledger, uint32_t number, uint32_t stack)
{
	struct birth *birth = find_birth(ledger, number);
	struct mmt_error *error;
	uint32_t account, part;

	if (!birth || birth->settled)
		return NULL;
	part = birth->part;
	birth->settled = true;
	/* Nothing was born, but bytes were here until all of them went to its part. */
	if (!birth->born_bytes && birth->last_change) {
		error = ledger_account(ledger, stack, birth->process, birth->kind, &account);
		if (error)
			return error;
		ledger_rows_tell(ledger, birth, ledger->accounts.items[account].row);
	}
	if (birth->side == LEDGER_INSIDE && birth->born_bytes) {
		error = ledger_account(ledger, stack, birth->process, birth->kind, &account);
		if (error)
			return error;
		enter_account(ledger, birth, account);
		if (ledger->accounts.items[account].row != LEDGER_NO_ROW)
			enter_thread(ledger, birth);
	}
	if (!birth->live_bytes)
		forget_birth(ledger, birth);
	return ledger_settle(ledger, part, stack);
}

/* An empty birth beside another, of the same call. */
static struct mmt_error *open_part(struct ledger *ledger, uint32_t whole, uint32_t kind)
{
	struct birth *birth = find_birth(ledger, whole);
	uint32_t stack, number;
	struct mmt_error *error;
	struct birth part = {.account = birth->account,
			     .process = birth->process,
			     .thread = birth->thread,
			     .kind = kind,
			     .whole = whole,
			     .reserver = birth->reserver,
			     .side = birth->side,
			     .time_ns = birth->time_ns,
			     .settled = birth->settled,
			     .found = birth->found,
			     .in_use = true};

	if (part.account != LEDGER_NO_ACCOUNT) {
		stack = ledger->accounts.items[part.account].stack;
		error = ledger_account(ledger, stack, part.process, kind, &part.account);
		if (error)
			return error;
	}
	error = add_birth(ledger, &part, &number);
	if (!error)
		ledger->births.items[whole - BIRTH_FIRST].part = number;
	return error;
}

static void count_births(struct ledger *ledger, const struct birth *birth, uint64_t bytes, bool was_born)
{
	struct account *account = &ledger->accounts.items[birth->account];
	struct thread_account *thread = account->row == LEDGER_NO_ROW ? NULL : thread_of(ledger, birth->thread);

	account->allocated_count += (uint64_t)!was_born - (uint64_t)!birth->born_bytes;
	account->freed_count += birth->born_bytes && !birth->live_bytes;
	if (!thread)
		return;
	wide_sum_add(&thread->allocated_bytes, bytes);
	thread->allocated_count += (uint64_t)!was_born - (uint64_t)!birth->born_bytes;
	thread->freed_count += birth->born_bytes && !birth->live_bytes;
}

/* Bytes come to a birth or, modulo 2^64, go from it, as if its call had mapped so many more or fewer. */
static void resize_birth(struct ledger *ledger, struct birth *birth, uint64_t bytes)
{
	uint64_t trend_ns = birth->found ? ledger->now_ns : birth->time_ns;
	bool was_born = birth->born_bytes;
	struct account *account;

	birth->born_bytes += bytes;
	birth->live_bytes += bytes;
	ledger_rows_change_waiting(ledger, birth, trend_ns, bytes);
	if (birth->account == LEDGER_NO_ACCOUNT)
		return;
	account = &ledger->accounts.items[birth->account];
	wide_sum_add(&account->allocated_bytes, bytes);
	ledger_rows_change(ledger, account->row, trend_ns, bytes);
	if (!birth->found)
		count_births(ledger, birth, bytes, was_born);
}

void ledger_born(struct ledger *ledger, uint32_t number, uint32_t kind, uint64_t bytes)
{
	struct birth *birth = find_birth(ledger, number);

	if (!birth)
		return;
	if (!birth->born_bytes)
		birth->kind = kind;
	resize_birth(ledger, birth, bytes);
}

struct mmt_error *ledger_split(struct ledger *ledger, uint32_t number, uint32_t kind, uint64_t bytes,
			       uint32_t *part_ret)
{
	struct birth *birth = find_birth(ledger, number);

	*part_ret = number;
	if (!birth || birth->kind == kind || bytes > birth->live_bytes)
		return NULL;
	if (!birth->part) {
		struct mmt_error *error = open_part(ledger, number, kind);

		if (error)
			return error;
		birth = find_birth(ledger, number);
	}
	*part_ret = birth->part;
	resize_birth(ledger, birth, -bytes);
	resize_birth(ledger, find_birth(ledger, birth->part), bytes);
	if (birth->settled)
		forget_empty(ledger, birth);
	return NULL;
}

struct mmt_error *ledger_found(struct ledger *ledger, uint32_t process, uint32_t kind, uint32_t stack,
			       uint32_t *birth_ret)
{
	struct birth birth = {.account = LEDGER_NO_ACCOUNT,
			      .process = process,
			      .thread = LEDGER_NO_THREAD,
			      .kind = kind,
			      .reserver = LEDGER_NO_ACCOUNT,
			      .side = ledger_side(ledger, ledger->now_ns),
			      .time_ns = ledger->now_ns,
			      .settled = true,
			      .found = true,
			      .in_use = true};
	const struct found_key key = {process, kind, birth.side};
	uint32_t place = intern_put(&ledger->found_keys, &key, sizeof(key));
	struct mmt_error *error = NULL;

	if (place == INTERN_NONE)
		return &error_no_memory;
	if (place == ledger->found.count) {
		if (birth.side == LEDGER_INSIDE)
			error = ledger_account(ledger, stack, process, kind, &birth.account);
		if (!error)
			error = add_birth(ledger, &birth, birth_ret);
		return error || vector_push(&ledger->found, *birth_ret) ? error : &error_no_memory;
	}
	*birth_ret = ledger->found.items[place];
	return NULL;
}

void ledger_fetch(const struct ledger *ledger, uint32_t birth)
{
	if (birth >= BIRTH_FIRST && birth - BIRTH_FIRST < ledger->births.count)
		__builtin_prefetch(&ledger->births.items[birth - BIRTH_FIRST]);
}

const struct birth *ledger_birth(const struct ledger *ledger, uint32_t birth)
{
	return find_birth(ledger, birth);
}
