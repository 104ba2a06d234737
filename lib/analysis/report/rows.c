// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/report/rows.h"

#include <inttypes.h>

#include "analysis/replay/replay.h"
#include "analysis/report/classes.h"

struct mmt_error *rows_init(struct rows *rows, const struct mmt_report_options *options, struct arena *arena)
{
	*rows = (struct rows){.options = options, .arena = arena};
	rows->identities.by_line = !options->merge_lines;
	if (options->by == MMT_BY_TOUCH &&
	    (intern_put_string(&rows->keys, "") == INTERN_NONE || !vector_append(&rows->items)))
		return &error_no_memory;
	return filters_parse(options, &rows->filters);
}

void rows_deinit(struct rows *rows)
{
	vector_deinit(&rows->filters.items);
	map_deinit(&rows->matches);
	identities_deinit(&rows->identities);
	build_id_paths_deinit(&rows->build_ids);
	intern_deinit(&rows->keys);
	vector_deinit(&rows->items);
	vector_deinit(&rows->touches);
	vector_deinit(&rows->frames);
}

bool rows_selects_pid(const struct rows *rows, int32_t pid)
{
	return notes_count(&rows->replay->notes, pid);
}

struct process *rows_next(const struct rows *rows, const struct process *process)
{
	struct process *next = processes_next(rows->replay->processes, process);

	while (next && !rows_selects_pid(rows, next->pid))
		next = processes_next(rows->replay->processes, next);
	return next;
}

static bool is_pair(const struct rows *rows)
{
	return rows->options->then_by != MMT_BY_STACK;
}

static bool are_stacks(const struct rows *rows)
{
	enum mmt_row_key by = rows->options->by;

	return !is_pair(rows) && (by == MMT_BY_STACK || by == MMT_BY_THREAD || by == MMT_BY_TOUCH);
}

/* One of the keys, or the only one. */
static bool is_by(const struct rows *rows, enum mmt_row_key by)
{
	return rows->options->by == by || (is_pair(rows) && rows->options->then_by == by);
}

bool rows_need_threads(const struct rows *rows)
{
	return rows->filters.by_threads || (is_pair(rows) && is_by(rows, MMT_BY_THREAD));
}

struct mmt_error *rows_name_stack(struct rows *rows, uint32_t stack, struct mmt_row *row_ret)
{
	const struct mmt_frame **frames;
	struct mmt_error *error = resolver_named_stack(rows->replay->code, stack, &rows->frames, &row_ret->stack_end);

	if (error)
		return error;
	row_ret->frames = frames = arena_alloc(rows->arena, rows->frames.count, sizeof(*frames));
	if (!frames)
		return &error_no_memory;
	row_ret->frame_count = rows->frames.count;
	if (row_ret->frame_count)
		memcpy(frames, rows->frames.items, row_ret->frame_count * sizeof(*frames));
	return NULL;
}

/* The number of the stack whose frames are in the scratch vector; IDENTITY_NONE: out of memory. */
static uint32_t identify(struct rows *rows, uint32_t stack)
{
	return identity_of_stack(&rows->identities, NULL, rows->frames.items, rows->frames.count,
				 stack == rows->replay->lost_stack);
}

struct mmt_error *rows_identify_stack(struct rows *rows, uint32_t stack, uint32_t *identity_ret)
{
	enum mmt_stack_end end;
	struct mmt_error *error = resolver_named_stack(rows->replay->code, stack, &rows->frames, &end);

	if (error)
		return error;
	*identity_ret = identify(rows, stack);
	return *identity_ret != IDENTITY_NONE ? NULL : &error_no_memory;
}

struct mmt_error *rows_match_stack(struct rows *rows, uint32_t stack, unsigned *matches_ret)
{
	const uint64_t *known = map_get(&rows->matches, stack);
	struct filter_subject subject = {.frames_only = true};
	enum mmt_stack_end end;
	struct mmt_error *error;

	*matches_ret = known ? (unsigned)*known : 0;
	if (known || !rows->filters.by_frames)
		return NULL;
	error = resolver_named_stack(rows->replay->code, stack, &rows->frames, &end);
	subject.frames = rows->frames.items;
	subject.frame_count = rows->frames.count;
	*matches_ret = error ? 0 : filters_matches(&rows->filters, &subject);
	return error || map_put(&rows->matches, stack, *matches_ret) ? error : &error_no_memory;
}

/* "name (123)", by the last name of processes and threads, or the name in the row's key; the caller frees it. */
static char *name_by(const struct rows *rows, const struct row_description *row, enum mmt_row_key by,
		     const char *in_key)
{
	const struct process *process = rows->replay->processes->all.items[row->process];
	const char *name = intern_get(&rows->replay->processes->names, process->name, NULL), *kind = "process";
	int32_t id = process->pid;
	char *text;

	if (by != MMT_BY_PROCESS && by != MMT_BY_THREAD)
		return strdup(in_key);
	if (by == MMT_BY_THREAD && row->thread == LEDGER_NO_THREAD)
		return strdup("[unknown thread]");
	if (by == MMT_BY_THREAD) {
		const struct thread *thread = rows->replay->threads.items[row->thread];

		name = intern_get(&rows->replay->processes->names, thread->name, NULL);
		kind = "thread";
		id = thread->tid;
	}
	return asprintf(&text, "%s (%" PRId32 ")", *name ? name : kind, id) < 0 ? NULL : text;
}

#define KEY_NUMBERS 16 /* characters */

struct mmt_error *rows_describe(struct rows *rows, size_t place, struct mmt_row *row_ret)
{
	const struct row_description *row = &rows->items.items[place];
	CLEANUP(free) char *first = NULL, *second = NULL, *pair = NULL;
	const char *names;

	*row_ret = (struct mmt_row){.pattern = row->pattern, .lines_differ = row->lines_differ};
	if (are_stacks(rows)) {
		row_ret->lost = row->stack == rows->replay->lost_stack;
		return rows_name_stack(rows, row->stack, row_ret);
	}
	names = (const char *)intern_get(&rows->keys, (uint32_t)place, NULL) + KEY_NUMBERS;
	/* By the names at the end: "worker (123)", and as pairs "malloc / worker (123)". */
	first = name_by(rows, row, rows->options->by, names);
	second = is_pair(rows) ? name_by(rows, row, rows->options->then_by, names + strlen(names) + 1) : NULL;
	if (first && second && asprintf(&pair, "%s / %s", first, second) < 0)
		pair = NULL;
	row_ret->name = first && (pair || !is_pair(rows)) ? arena_string(rows->arena, pair ? pair : first) : NULL;
	return row_ret->name ? NULL : &error_no_memory;
}

/* "function (module)", "module+0x1234", "[no stack]" */
char *rows_function_name(const struct mmt_frame *frame)
{
	char *name = NULL;
	int length;

	if (!frame)
		length = asprintf(&name, "[no function]");
	else if (frame->function && frame->module)
		length = asprintf(&name, "%s (%s)", frame->function, frame->module);
	else if (frame->function || !frame->module)
		length = asprintf(&name, "%s", frame->function ? frame->function : "[unknown]");
	else if (frame->kind == MMT_FRAME_NATIVE)
		length = asprintf(&name, "%s+0x%" PRIx64, frame->module, frame->module_offset);
	else
		length = asprintf(&name, "%s", frame->module);
	return length < 0 ? NULL : name;
}

/* The name of the account's row by a key, "" if it has none; the stack's frames are in the scratch vector. */
static char *row_name(const struct rows *rows, const struct account *account, enum mmt_row_key by)
{
	size_t count = rows->frames.count;
	uint32_t path = classes_kind_path(account->kind);
	size_t place =
	    by == MMT_BY_FUNCTION ? origin_of_stack(rows->frames.items, count) : origin_find(rows->frames.items, count);
	const struct mmt_frame *frame = place < count ? rows->frames.items[place] : NULL;
	char *name;

	switch (by) {
	case MMT_BY_FUNCTION:
		return rows_function_name(frame);
	case MMT_BY_MODULE:
		return strdup(!frame ? "[no module]" : frame->module ? frame->module : "[unknown]");
	case MMT_BY_FILE:
		if (account->memory_class == MMT_CLASS_FILE && path)
			return strdup(resolver_path_name(rows->replay->code, path));
		return asprintf(&name, "[%s]", mmt_class_name(account->memory_class)) < 0 ? NULL : name;
	case MMT_BY_CLASS:
		return strdup(mmt_class_name(account->memory_class));
	default:
		return strdup("");
	}
}

/* The row of one or two keys. */
static struct mmt_error *find_named_row(struct rows *rows, const struct account *account, uint32_t *row_ret)
{
	CLEANUP(free) char *first = row_name(rows, account, rows->options->by);
	CLEANUP(free) char *second = row_name(rows, account, rows->options->then_by);
	CLEANUP(free) char *key = NULL;
	const struct row_description row = {.process = account->process, .thread = account->thread};
	int length = -1;

	if (first && second)
		length = asprintf(&key, "%08" PRIx32 "%08" PRIx32 "%s%c%s",
				  is_by(rows, MMT_BY_PROCESS) ? account->process : 0,
				  is_by(rows, MMT_BY_THREAD) ? account->thread : 0, first, '\0', second);
	if (length < 0) {
		key = NULL;
		return &error_no_memory;
	}
	*row_ret = intern_put(&rows->keys, key, (size_t)length + 1);
	return *row_ret == INTERN_NONE || (*row_ret == rows->items.count && !vector_push(&rows->items, row))
		   ? &error_no_memory
		   : NULL;
}

/* The row of the account's stack, whose frames are in the scratch vector. */
static struct mmt_error *find_stack_row(struct rows *rows, const struct account *account, uint32_t *row_ret)
{
	struct row_description row = {.stack = account->stack, .pattern = (enum mmt_pattern)account->pattern};
	uint32_t identity = identify(rows, account->stack), key[] = {identity, account->pattern};

	if (rows->options->merge_lines)
		row.lines = identity_lines(rows->frames.items, rows->frames.count);
	*row_ret = identity == IDENTITY_NONE
		       ? INTERN_NONE
		       : intern_put(&rows->keys, key, rows->touching ? sizeof(key) : sizeof(*key));
	if (*row_ret == INTERN_NONE)
		return &error_no_memory;
	if (*row_ret == rows->items.count)
		return vector_push(&rows->items, row) ? NULL : &error_no_memory;
	rows->items.items[*row_ret].lines_differ |= rows->items.items[*row_ret].lines != row.lines;
	return NULL;
}

/* The scratch vector contains the stack's frames. */
static bool is_wanted(const struct rows *rows, const struct account *account)
{
	uint32_t path = account->memory_class == MMT_CLASS_FILE ? classes_kind_path(account->kind) : 0;
	struct filter_subject subject = {.frames = rows->frames.items,
					 .frame_count = rows->frames.count,
					 .memory_class = account->memory_class,
					 .file = path ? resolver_path_name(rows->replay->code, path) : NULL};

	if (!rows_selects_pid(rows, rows->replay->processes->all.items[account->process]->pid))
		return false;
	if (rows->options->classes && !(rows->options->classes >> account->memory_class & 1))
		return false;
	if (rows->filters.by_threads && account->thread != LEDGER_NO_THREAD) {
		const struct thread *thread = rows->replay->threads.items[account->thread];

		subject.thread = intern_get(&rows->replay->processes->names, thread->name, NULL);
		subject.tid = thread->tid;
	}
	return filters_select(&rows->filters, &subject);
}

struct mmt_error *rows_find(void *context, struct account *account)
{
	struct rows *rows = context;
	enum mmt_class memory_class = classes_kind_class(account->kind);
	enum mmt_stack_end end;
	struct mmt_error *error = resolver_named_stack(rows->replay->code, account->stack, &rows->frames, &end);
	const struct mmt_frame *const *frames = rows->frames.items;
	size_t count = rows->frames.count;
	uint32_t path = classes_kind_path(account->kind);
	enum mmt_pattern pattern;

	if (error)
		return error;
	/* Some runtimes map the range of their heap without MAP_NORESERVE. */
	if (classes_kind_is_range(account->kind) &&
	    patterns_find(frames, count, MMT_CLASS_GC_RESERVE) == MMT_PATTERN_GC_HEAP)
		memory_class = MMT_CLASS_GC_RESERVE;
	pattern = patterns_find(frames, count, memory_class);
	if (!pattern)
		pattern = patterns_of_shared(memory_class, path ? resolver_path_name(rows->replay->code, path) : "");
	account->pattern = rows->touching ? account->pattern : pattern;
	account->memory_class = (uint8_t)classes_with_pattern(memory_class, pattern);
	account->stack_end = (uint8_t)end;
	account->doubtful = resolver_stack_is_doubtful(rows->replay->code, account->stack);
	account->row = LEDGER_NO_ROW;
	if (!is_wanted(rows, account))
		return NULL;
	if (rows->options->by == MMT_BY_TOUCH && !rows->touching)
		account->row = 0;
	else
		error = are_stacks(rows) ? find_stack_row(rows, account, &account->row)
					 : find_named_row(rows, account, &account->row);
	if (!error)
		account->row++;
	return error;
}

const struct account *rows_holder(const struct rows *rows, const struct space_interval *interval,
				  const struct allocation *allocation, const struct account *owner)
{
	const struct ledger *ledger = &rows->replay->ledger;
	bool by_kind = rows->options->by == MMT_BY_CLASS || rows->options->by == MMT_BY_FILE;
	const struct account *committer = ledger_counted(ledger, ledger_commit_account(ledger, interval->commit));

	if (owner)
		return committer && !by_kind ? committer : owner;
	return committer && interval->attributes.protection && rows_exclude_mapping(rows, interval, allocation)
		   ? committer
		   : NULL;
}

bool rows_exclude_mapping(const struct rows *rows, const struct space_interval *interval,
			  const struct allocation *allocation)
{
	if (interval->allocation < ALLOCATION_FIRST || (allocation && allocation->side == LEDGER_BEFORE))
		return true;
	if (allocation && allocation->account != LEDGER_NO_ACCOUNT &&
	    (rows->options->classes || rows->filters.items.count))
		return true;
	return allocation && !rows_selects_pid(rows, rows->replay->processes->all.items[allocation->process]->pid);
}
