// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/group-details.h"

#include <stdlib.h>

#include "analysis/report/classes.h"
#include "analysis/report/survivors.h"
#include "base/cleanup.h"
#include "base/errors.h"
#include "base/map.h"

const char *mmt_lifetime_verdict_name(enum mmt_lifetime_verdict verdict)
{
	static const char *const names[MMT_LIFETIME_KINDS] = {
	    [MMT_LIFETIME_UNKNOWN] = "unknown", [MMT_LIFETIME_TOO_SHORT] = "too-short", [MMT_LIFETIME_LEAK] = "leak",
	    [MMT_LIFETIME_CACHE] = "cache",	[MMT_LIFETIME_TRAFFIC] = "traffic",
	};

	return verdict < MMT_LIFETIME_KINDS ? names[verdict] : "unknown";
}

bool continues_mapping(const struct space_interval *left, const struct space_interval *right)
{
	const struct space_attributes *a = &left->attributes, *b = &right->attributes;
	bool offset_follows = !b->inode || a->zero || b->file_offset == a->file_offset + (left->end - left->start);

	return left->end == right->start && a->protection == b->protection && a->shared == b->shared &&
	       a->hugetlb == b->hugetlb && a->growsdown == b->growsdown && a->noreserve == b->noreserve &&
	       a->heap == b->heap && a->stack == b->stack && a->ring == b->ring && a->dontfork == b->dontfork &&
	       a->sealed == b->sealed && a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->inode == b->inode && a->attachment == b->attachment && offset_follows;
}

static uint64_t account_key(const struct rows *rows, const struct account *account)
{
	return (uint64_t)(rows_shown(rows, account) - 1) << 32 | account->kind;
}

static uint64_t unfreed_bytes(const struct account *account)
{
	uint64_t allocated = wide_sum_get(&account->allocated_bytes, MMT_BYTES_MAX);
	uint64_t freed = wide_sum_get(&account->freed_bytes, MMT_BYTES_MAX);

	return allocated > freed ? allocated - freed : 0;
}

static struct mmt_error *describe_kind(const struct rows *rows, struct arena *arena, const struct account *account,
				       struct mmt_group *group)
{
	uint32_t path = classes_kind_path(account->kind);

	group->memory_class = rows_class(rows, account);
	group->file = path ? arena_string(arena, code_view_path_name(rows->code, path)) : NULL;
	return path && !group->file ? &error_no_memory : NULL;
}

/* The kind with most bytes of each row, and its files. */
static struct mmt_error *add_kinds(const struct ledger *ledger, const struct rows *rows, struct arena *arena,
				   struct mmt_group *groups, struct map *sums)
{
	size_t row_count = rows->items.count, position = 0;
	CLEANUP(free) uint64_t *most = calloc(row_count + 1, sizeof(*most)); /* plus 1; 0: none yet */
	uint64_t key, bytes;

	if (!most)
		return &error_no_memory;
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		const uint64_t *sum;

		if (account->row == LEDGER_NO_ROW)
			continue;
		sum = map_get(sums, account_key(rows, account));
		if (!map_put(sums, account_key(rows, account), (sum ? *sum : 0) + unfreed_bytes(account)))
			return &error_no_memory;
	}
	while (map_next(sums, &position, &key, &bytes))
		groups[key >> 32].file_count += bytes && classes_kind_path((uint32_t)key);
	for (size_t i = 0; i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		struct mmt_error *error;
		uint32_t row;

		if (account->row == LEDGER_NO_ROW)
			continue;
		bytes = *map_get(sums, account_key(rows, account));
		row = rows_shown(rows, account);
		if (bytes < most[row - 1])
			continue;
		most[row - 1] = bytes + 1;
		error = describe_kind(rows, arena, account, &groups[row - 1]);
		if (error)
			return error;
	}
	return NULL;
}

/* The row of an unfreed allocation with a known time; LEDGER_NO_ROW: none. */
static uint32_t row_of(const struct ledger *ledger, const struct rows *rows, const struct allocation *allocation)
{
	const struct account *account;

	if (!allocation->in_use || allocation->account == LEDGER_NO_ACCOUNT || !allocation->live_bytes ||
	    allocation->found)
		return LEDGER_NO_ROW;
	account = &ledger->accounts.items[allocation->account];
	return account->row == LEDGER_NO_ROW ? LEDGER_NO_ROW : rows_shown(rows, account);
}

static void add_to_trend(struct mmt_group *group, const struct mmt_report *report, const struct allocation *allocation)
{
	uint64_t since = allocation->time_ns > report->from_ns ? allocation->time_ns - report->from_ns : 0;
	uint64_t length = report->to_ns > report->from_ns ? report->to_ns - report->from_ns : 0;
	double point = length ? (double)since / (double)length * MMT_TREND_POINTS : 0;

	group->survivor_trend[point < MMT_TREND_POINTS - 1 ? (unsigned)point : MMT_TREND_POINTS - 1] +=
	    allocation->live_bytes;
}

static struct survivors_window window_of(const struct mmt_report *report)
{
	return (struct survivors_window){
	    .from_ns = report->from_ns, .to_ns = report->allocations_to_ns, .end_ns = report->to_ns};
}

/* By row number - 1. */
static const struct lifetime_histogram *freed_of(const struct ledger *ledger, size_t row)
{
	static const struct lifetime_histogram none;

	return row + 1 < ledger->trends.count ? &ledger->trends.items[row + 1].freed : &none;
}

static struct mmt_error *add_survivors(const struct ledger *ledger, const struct rows *rows,
				       const struct mmt_report *report, struct mmt_group *groups)
{
	const struct survivors_window window = window_of(report);
	size_t row_count = rows->items.count;
	CLEANUP(free) struct survivors *survivors = calloc(row_count + 1, sizeof(*survivors));

	if (!survivors)
		return &error_no_memory;
	for (size_t i = 0; i < row_count; i++)
		survivors_begin(&survivors[i], &window, freed_of(ledger, i), groups[i].unfreed_count);
	for (size_t i = 0; i < ledger->allocations.count; i++) {
		const struct allocation *allocation = &ledger->allocations.items[i];
		uint32_t row = row_of(ledger, rows, allocation);

		if (row == LEDGER_NO_ROW)
			continue;
		survivors_add(&survivors[row - 1], &window, allocation->time_ns);
		add_to_trend(&groups[row - 1], report, allocation);
	}
	for (size_t i = 0; i < row_count; i++) {
		groups[i].verdict = survivors_judge(&survivors[i], &window);
		if (groups[i].verdict == MMT_LIFETIME_TOO_SHORT)
			groups[i].advised_ns = survivors_advise(&survivors[i], &window);
		groups[i].outlived_count = survivors[i].old_count;
		groups[i].outlived_ns = survivors[i].outlived_ns;
		for (unsigned point = 1; point < MMT_TREND_POINTS; point++)
			groups[i].survivor_trend[point] += groups[i].survivor_trend[point - 1];
	}
	return NULL;
}

struct mmt_error *group_details_add(const struct replay *replay, const struct rows *rows, struct arena *arena,
				    const struct mmt_report *report, struct mmt_group *groups)
{
	struct map sums = {0};
	struct mmt_error *error = add_kinds(&replay->ledger, rows, arena, groups, &sums);

	map_deinit(&sums);
	return error ? error : add_survivors(&replay->ledger, rows, report, groups);
}

struct mmt_error *group_details_judge_sets(const struct ledger *ledger, const struct rows *rows,
					   const struct mmt_report *report, const uint32_t *sets, size_t set_count,
					   enum mmt_lifetime_verdict *verdicts_ret)
{
	const struct survivors_window window = window_of(report);
	CLEANUP(free) struct lifetime_histogram *freed = calloc(set_count + 1, sizeof(*freed));
	CLEANUP(free) struct survivors *survivors = calloc(set_count + 1, sizeof(*survivors));
	CLEANUP(free) uint64_t *counts = calloc(set_count + 1, sizeof(*counts));

	if (!freed || !survivors || !counts)
		return &error_no_memory;
	for (size_t i = 0; i < rows->items.count; i++) {
		if (sets[i] != GROUP_DETAILS_NO_SET)
			lifetime_histogram_join(&freed[sets[i]], freed_of(ledger, i));
	}
	/* Twice: how many there are decides which are old. */
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ledger->allocations.count; i++) {
			uint32_t row = row_of(ledger, rows, &ledger->allocations.items[i]);
			uint32_t set = row == LEDGER_NO_ROW ? GROUP_DETAILS_NO_SET : sets[row - 1];

			if (set == GROUP_DETAILS_NO_SET)
				continue;
			if (round)
				survivors_add(&survivors[set], &window, ledger->allocations.items[i].time_ns);
			else
				counts[set]++;
		}
		for (size_t i = 0; !round && i < set_count; i++)
			survivors_begin(&survivors[i], &window, &freed[i], counts[i]);
	}
	for (size_t i = 0; i < set_count; i++)
		verdicts_ret[i] = survivors_judge(&survivors[i], &window);
	return NULL;
}
