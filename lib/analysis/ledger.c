// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/ledger.h"

#include <string.h>

#include "model/space.h"

#define FIRST_BUCKET_NS 1000000

void ledger_init(struct ledger *ledger, uint64_t start_ns)
{
	*ledger = (struct ledger){.start_ns = start_ns, .now_ns = start_ns, .bucket_ns = FIRST_BUCKET_NS};
}

void ledger_deinit(struct ledger *ledger)
{
	vector_deinit(&ledger->births);
	vector_deinit(&ledger->free_births);
	vector_deinit(&ledger->accounts);
	map_deinit(&ledger->account_numbers);
}

static void double_buckets(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		uint64_t *change = ledger->accounts.items[i].change;

		for (unsigned bucket = 0; bucket < LEDGER_BUCKETS / 2; bucket++)
			change[bucket] = change[2 * bucket] + change[2 * bucket + 1];
		memset(change + LEDGER_BUCKETS / 2, 0, LEDGER_BUCKETS / 2 * sizeof(*change));
	}
	ledger->bucket_ns *= 2;
}

static void add_change(struct ledger *ledger, struct account *account, uint64_t time_ns, uint64_t bytes)
{
	uint64_t elapsed = time_ns > ledger->start_ns ? time_ns - ledger->start_ns : 0;

	while (elapsed / ledger->bucket_ns >= LEDGER_BUCKETS)
		double_buckets(ledger);
	account->change[elapsed / ledger->bucket_ns] += bytes;
}

static struct birth *find_birth(const struct ledger *ledger, uint32_t number)
{
	struct birth *birth;

	if (number < BIRTH_FIRST || number - BIRTH_FIRST >= ledger->births.count)
		return NULL;
	birth = &ledger->births.items[number - BIRTH_FIRST];
	return birth->in_use ? birth : NULL;
}

static void forget_birth(struct ledger *ledger, struct birth *birth)
{
	birth->in_use = false;
	if (!vector_push(&ledger->free_births, (uint32_t)(birth - ledger->births.items)))
		ledger->out_of_memory = true;
}

struct mmt_error *ledger_open(struct ledger *ledger, uint32_t process, uint32_t thread, uint32_t *birth_ret)
{
	uint32_t index = (uint32_t)ledger->births.count;

	if (ledger->free_births.count)
		index = ledger->free_births.items[--ledger->free_births.count];
	else if (!vector_append(&ledger->births))
		return &error_no_memory;
	ledger->births.items[index] = (struct birth){.account = LEDGER_NO_ACCOUNT,
						     .process = process,
						     .thread = thread,
						     .time_ns = ledger->now_ns,
						     .in_use = true};
	*birth_ret = index + BIRTH_FIRST;
	return NULL;
}

void ledger_born(struct ledger *ledger, uint32_t number, uint64_t bytes)
{
	struct birth *birth = find_birth(ledger, number);

	if (!birth)
		return;
	birth->born_bytes += bytes;
	birth->live_bytes += bytes;
}

void ledger_released(struct ledger *ledger, uint32_t number, uint64_t bytes)
{
	struct birth *birth = find_birth(ledger, number);
	struct account *account;

	if (!birth)
		return;
	birth->live_bytes -= bytes;
	if (birth->account == LEDGER_NO_ACCOUNT)
		return;
	account = &ledger->accounts.items[birth->account];
	account->freed_bytes += bytes;
	add_change(ledger, account, ledger->now_ns, -bytes);
	if (birth->live_bytes)
		return;
	account->freed_count++;
	forget_birth(ledger, birth);
}

void ledger_drop(struct ledger *ledger, uint32_t number)
{
	struct birth *birth = find_birth(ledger, number);

	if (birth)
		forget_birth(ledger, birth);
}

static struct mmt_error *find_account(struct ledger *ledger, uint32_t stack, uint32_t process, uint32_t *number_ret)
{
	uint64_t key = (uint64_t)process << 32 | stack;
	const uint64_t *number = map_get(&ledger->account_numbers, key);
	struct account *account;

	if (number) {
		*number_ret = (uint32_t)*number;
		return NULL;
	}
	if (!map_put(&ledger->account_numbers, key, ledger->accounts.count))
		return &error_no_memory;
	account = vector_append(&ledger->accounts);
	if (!account)
		return &error_no_memory;
	account->stack = stack;
	account->process = process;
	*number_ret = (uint32_t)(ledger->accounts.count - 1);
	return NULL;
}

struct mmt_error *ledger_settle(struct ledger *ledger, uint32_t number, uint32_t stack)
{
	struct birth *birth = find_birth(ledger, number);
	struct account *account;
	struct mmt_error *error;

	if (!birth)
		return NULL;
	error = find_account(ledger, stack, birth->process, &birth->account);
	if (error)
		return error;
	account = &ledger->accounts.items[birth->account];
	account->allocated_bytes += birth->born_bytes;
	account->allocated_count++;
	account->freed_bytes += birth->born_bytes - birth->live_bytes;
	add_change(ledger, account, birth->time_ns, birth->live_bytes);
	if (!birth->live_bytes) {
		account->freed_count++;
		forget_birth(ledger, birth);
	}
	return NULL;
}

const struct birth *ledger_birth(const struct ledger *ledger, uint32_t birth)
{
	return find_birth(ledger, birth);
}

void ledger_trend(const struct ledger *ledger, const struct account *account, uint64_t end_ns, uint64_t *points_ret,
		  unsigned points)
{
	uint64_t duration = end_ns > ledger->start_ns ? end_ns - ledger->start_ns : 0;
	unsigned bucket = 0;
	uint64_t unfreed = 0;

	for (unsigned point = 0; point < points; point++) {
		uint64_t until = point + 1 == points ? UINT64_MAX : duration / points * (point + 1);

		while (bucket < LEDGER_BUCKETS && bucket * ledger->bucket_ns < until)
			unfreed += account->change[bucket++];
		points_ret[point] = (int64_t)unfreed > 0 ? unfreed : 0;
	}
}
