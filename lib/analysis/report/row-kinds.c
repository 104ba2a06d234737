// SPDX-License-Identifier: LGPL-2.1-or-later
/* What kind of memory each row has: class and file, and whose malloc arenas. */
#include "analysis/report/row-verdicts.h"

#include <stdlib.h>

#include "analysis/replay/memory-classes.h"
#include "base/cleanup.h"
#include "base/map.h"

static uint64_t account_key(const struct account *account)
{
	return (uint64_t)(account->row - 1) << 32 | account->kind;
}

struct mmt_error *row_kinds_add(const struct rows *rows, struct mmt_row *figures)
{
	const struct ledger *ledger = &rows->replay->ledger;
	CLEANUP(free) uint64_t *most = calloc(rows->items.count + 1, sizeof(*most)); /* plus 1; 0: none yet */
	struct map sums = {0};
	size_t position = 0;
	uint64_t key, bytes;
	bool ok = most;

	for (size_t i = 0; ok && i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];

		ok = account->row == LEDGER_NO_ROW || map_add(&sums, account_key(account),
							      account->allocated_bytes > account->freed_bytes
								  ? account->allocated_bytes - account->freed_bytes
								  : 0);
	}
	while (ok && map_next(&sums, &position, &key, &bytes))
		figures[key >> 32].file_count += bytes && classes_kind_path((uint32_t)key);
	for (size_t i = 0; ok && i < ledger->accounts.count; i++) {
		const struct account *account = &ledger->accounts.items[i];
		uint32_t path = classes_kind_path(account->kind);
		struct mmt_row *row;

		if (account->row == LEDGER_NO_ROW)
			continue;
		bytes = *map_get(&sums, account_key(account));
		if (bytes < most[account->row - 1])
			continue;
		most[account->row - 1] = bytes + 1;
		row = &figures[account->row - 1];
		row->memory_class = account->memory_class;
		row->file = path ? arena_string(rows->arena, resolver_path_name(rows->code, path)) : NULL;
		ok = !path || row->file;
	}
	map_deinit(&sums);
	return ok ? NULL : &error_no_memory;
}

#define ONE_ARENA_PERCENT 75
#define ARENAS_ADVISED 2

static bool measure_arenas(const struct replay *replay, const struct process *process, struct arena_bytes *bytes_ret)
{
	struct map threads = {0}; /* -> bytes */
	const struct space_interval *interval;
	uint64_t thread, bytes;
	size_t position = 0;
	bool ok = true;

	for (uint64_t address = 0; ok && (interval = space_next(process->space, address)); address = interval->end) {
		const struct account *owner = process_totals_owner(replay, interval);
		bool is_used = interval->attributes.noreserve && interval->attributes.protection;

		if (is_used && owner && owner->pattern == MMT_PATTERN_ARENA)
			ok = map_add(&threads, ledger_allocation(&replay->ledger, interval->allocation)->thread,
				     interval->end - interval->start);
	}
	while (map_next(&threads, &position, &thread, &bytes)) {
		bytes_ret->largest = bytes > bytes_ret->largest ? bytes : bytes_ret->largest;
		bytes_ret->all += bytes;
	}
	map_deinit(&threads);
	return ok;
}

struct arena_bytes *row_kinds_arenas(const struct replay *replay)
{
	struct arena_bytes *bytes = calloc(processes_count(replay->processes) + 1, sizeof(*bytes));

	for (const struct process *process = NULL; bytes && (process = processes_next(replay->processes, process));) {
		if (!process->borrows_space && !measure_arenas(replay, process, &bytes[process->index])) {
			free(bytes);
			bytes = NULL;
		}
	}
	return bytes;
}

bool row_kinds_limits_arenas(const struct replay *replay, const struct process *process)
{
	const uint64_t *limit = runtime_options_find(&replay->metadata->options, process->pid, process->program_ns,
						     OPTION_MALLOC_ARENA_MAX);

	return limit && *limit && *limit <= ARENAS_ADVISED;
}

enum arena_use row_kinds_arena_use(const struct replay *replay, const struct arena_bytes *bytes,
				   const struct mmt_row *row)
{
	uint64_t largest = 0, all = 0;
	bool limited = true;

	for (size_t i = 0; i < row->pid_count; i++) {
		const struct process *process = processes_find(replay->processes, row->pids[i]);

		if (!process)
			continue;
		largest += bytes[process->index].largest;
		all += bytes[process->index].all;
		limited &= row_kinds_limits_arenas(replay, process);
	}
	if (limited && row->pid_count)
		return ARENAS_LIMITED;
	return all && largest >= all / 100 * ONE_ARENA_PERCENT ? ARENAS_OF_ONE_THREAD : ARENAS_OF_SEVERAL_THREADS;
}
