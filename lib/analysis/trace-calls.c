// SPDX-License-Identifier: LGPL-2.1-or-later
/* Replays a recording, and describes each call: what it did to which memory, and what had mapped that. */
#include <errno.h>
#include <mmtrace/trace.h>

#include "analysis/replay/memory-classes.h"
#include "analysis/replay/replay.h"
#include "analysis/report/rows.h"

/* Memory of one stack. */
struct held {
	uint32_t stack, kind, account;
	uint64_t bytes, oldest_ns;
	bool known, inherited, selected, moves; /* moves: not freed by the call, which moves it */
};

struct trace {
	const struct mmt_trace_options *options;
	struct mmt_report_options report; /* with what a trace needs */
	struct replay replay;
	struct rows rows;
	struct arena arena;	     /* of one call */
	struct mmt_traced_call call; /* as far as it is known */
	bool selected;
	struct held mapped;
	VECTOR(struct held) found;
	struct map places; /* in `found`: there may be as many as the call unmaps */
};

static struct held describe_held(const struct replay *replay, const struct space_interval *interval, uint64_t bytes)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
	const struct thread *thread = replay->threads.items[replay->applying_thread];
	const struct process *process =
	    processes_space_owner(replay->processes, replay->processes->all.items[thread->process]);
	bool inherited =
	    interval->allocation == ALLOCATION_BEFORE && process->started_ns && process->forked_from != process->index;

	if (!allocation || allocation->found)
		return (struct held){.stack = replay->no_stack,
				     .kind = replay_calls_kind(replay, interval),
				     .account = LEDGER_NO_ACCOUNT,
				     .bytes = bytes,
				     .oldest_ns = inherited ? process->started_ns : replay->first_ns,
				     .inherited = inherited};
	return (struct held){.stack = allocation->stack,
			     .kind = allocation->kind,
			     .account = allocation->account,
			     .bytes = bytes,
			     .oldest_ns = allocation->time_ns,
			     .known = true};
}

static void add_found(struct trace *trace, const struct space_interval *interval, uint64_t bytes, bool moves)
{
	struct held held = describe_held(&trace->replay, interval, bytes);
	const uint64_t *place;
	uint64_t key;

	held.moves = moves;
	key = (uint64_t)held.stack << 3 | (uint64_t)(held.known << 2 | held.inherited << 1 | moves);
	place = map_get(&trace->places, key);
	if (place) {
		struct held *other = &trace->found.items[*place];

		other->bytes += bytes;
		other->oldest_ns = smaller_of(held.oldest_ns, other->oldest_ns);
	} else if (!map_put(&trace->places, key, trace->found.count) || !vector_push(&trace->found, held)) {
		trace->replay.ledger.out_of_memory = true;
	}
}

static void forget_found(struct trace *trace)
{
	trace->call.bytes[MMT_EFFECT_FREED] = trace->found.count = 0;
	map_deinit(&trace->places);
}

static void on_change(void *context, const struct replay *replay, enum replay_change change,
		      const struct space_interval *interval, uint64_t bytes)
{
	const struct allocation *allocation = ledger_allocation(&replay->ledger, interval->allocation);
	bool accessible = interval->attributes.protection, maps = change == REPLAY_MAPPED;
	struct trace *trace = context;

	/* An MMAP2 record may also describe what was mapped next to it before. */
	if (maps && (!allocation || !allocation->open))
		return;
	if (maps)
		trace->mapped = describe_held(replay, interval, bytes);
	else
		add_found(trace, interval, bytes, false);
	trace->call.bytes[maps			      ? accessible ? MMT_EFFECT_MAPPED : MMT_EFFECT_RESERVED
			  : change == REPLAY_RELEASED ? MMT_EFFECT_FREED
			  : accessible		      ? MMT_EFFECT_COMMITTED
						      : MMT_EFFECT_PROTECTED] += bytes;
}

/* What changes no interval. Its size is that of what is known to be mapped, or else of the range. */
static void add_unchanged(struct trace *trace, const struct space *space, enum mmt_effect effect, uint64_t start,
			  uint64_t size)
{
	uint64_t *bytes = &trace->call.bytes[effect], end = start + size;
	const struct space_interval *interval;

	for (uint64_t at = start; (interval = space_next(space, at)) && interval->start < end; at = interval->end) {
		uint64_t part = smaller_of(interval->end, end) - larger_of(interval->start, at);

		add_found(trace, interval, part, effect == MMT_EFFECT_MOVED);
		*bytes += part;
	}
	if (!*bytes && !trace->call.error)
		*bytes = size;
}

static void find_unchanged(struct trace *trace, const struct space *space, const struct event *event)
{
	const struct call_description *description = call_describe(event->call.call);
	const uint64_t *arguments = event->call.arguments;

	/* With ENOMEM, madvise() met a hole, around which it took the advice. */
	if (trace->call.error && !(description->advice && trace->call.error == ENOMEM))
		return;
	/* The kernel chose a free address: the record of a neighbour has described it, too. */
	if (!call_reads_first_argument(event->call.call, arguments))
		forget_found(trace);
	/* With MREMAP_DONTUNMAP, the target is new. */
	if (event->call.call == CALL_MREMAP && (uint64_t)event->call.result != arguments[0])
		add_unchanged(trace, space, MMT_EFFECT_MOVED,
			      arguments[3] & MREMAP_DONTUNMAP ? arguments[0] : (uint64_t)event->call.result,
			      arguments[1] < arguments[2] ? arguments[1] : arguments[2]);
	else if (description->advice && space_advice_gives_back((uint32_t)arguments[description->advice - 1]))
		add_unchanged(trace, space, MMT_EFFECT_GIVEN_BACK, arguments[0],
			      call_bytes_asked(event->call.call, arguments, event->call.result));
}

/* All but its stack. */
static struct mmt_row describe_memory(const struct trace *trace, const struct held *held)
{
	const struct ledger *ledger = &trace->replay.ledger;
	struct mmt_row row = {.memory_class = classes_kind_class(held->kind), .unfreed_bytes = held->bytes};

	if (held->bytes && held->account != LEDGER_NO_ACCOUNT) {
		row.pattern = (enum mmt_pattern)ledger->accounts.items[held->account].pattern;
		row.memory_class = (enum mmt_class)ledger->accounts.items[held->account].memory_class;
	}
	if (row.memory_class == MMT_CLASS_FILE && classes_kind_path(held->kind))
		row.file = resolver_path_name(trace->replay.code, classes_kind_path(held->kind));
	return row;
}

static struct mmt_error *describe_row(struct trace *trace, const struct held *held, uint32_t stack, struct mmt_row *row)
{
	struct mmt_error *error;

	*row = describe_memory(trace, held);
	error = rows_name_stack(&trace->rows, stack, row);
	row->origin = error ? 0 : origin_of_stack(row->frames, row->frame_count);
	return error;
}

/* Whether the options select the call for this memory, which another stack may have mapped. */
static struct mmt_error *select_held(struct trace *trace, struct held *held)
{
	const struct mmt_report_options *options = &trace->options->report;
	const struct mmt_traced_call *call = &trace->call;
	const struct replay *replay = &trace->replay;
	const struct mmt_row row = describe_memory(trace, held);
	const struct filter_subject subject = {
	    .memory_class = row.memory_class, .file = row.file, .thread = call->thread.name, .tid = call->thread.tid};
	bool protects = call->bytes[MMT_EFFECT_COMMITTED] || call->bytes[MMT_EFFECT_PROTECTED];
	bool own = held == &trace->mapped;
	bool others = !own && (!protects || replay->applying_stack == replay->no_stack);
	unsigned of_call, of_memory = 0;
	struct mmt_error *error = rows_match_stack(&trace->rows, replay->applying_stack, &of_call);

	if (!error && others)
		error = rows_match_stack(&trace->rows, held->stack, &of_memory);
	of_memory |= of_call | filters_matches(&trace->rows.filters, &subject);
	/* Of a call that failed, or met nothing, no memory is known. */
	held->selected = (own ? 0 : call->time_ns - held->oldest_ns) >= options->min_age_ns &&
			 (!options->classes || ((!own || held->bytes) && options->classes >> row.memory_class & 1)) &&
			 of_memory == trace->rows.filters.focus_keys;
	trace->selected |= held->selected;
	return error;
}

static bool is_selected(const struct trace *trace)
{
	const struct mmt_trace_options *options = trace->options;
	const struct mmt_traced_call *call = &trace->call;
	uint64_t bytes = call->error ? trace->replay.failure.asked_bytes : 0;
	bool named = !options->call_count ||
		     array_find(name, options->calls, options->call_count, filters_match(*name, call->name));

	for (unsigned i = 0; i < MMT_EFFECT_KINDS; i++)
		bytes = bytes < call->bytes[i] ? call->bytes[i] : bytes;
	return trace->selected && named && bytes >= options->min_bytes && (!options->failed_only || call->error);
}

/* Describe the call and print it, if it is selected. Only then are stacks named. */
static struct mmt_error *describe(struct trace *trace, const struct process *process, const struct event *event)
{
	const struct replay *replay = &trace->replay;
	const struct recording_info *info = &replay->metadata->info;
	const struct thread *thread = replay->threads.items[replay->applying_thread];
	struct mmt_traced_call *call = &trace->call;
	const struct held *most[2] = {NULL, NULL}; /* what the call is about, and what else it frees */
	struct mmt_error *error = NULL;

	call->time_ns = event->time_ns;
	if (replay->metadata->ours && info->start_realtime_ns)
		call->realtime_ns = info->start_realtime_ns + (event->time_ns - info->start_ns);
	call->thread =
	    (struct mmt_thread){process->pid, thread->tid, intern_get(&replay->processes->names, thread->name, NULL)};
	call->name = call_describe(event->call.call)->name;
	call->arguments = event->call.arguments;
	while (call_arguments_used(event->call.call, call->arguments) >> call->argument_count)
		call->argument_count++;
	call->result = event->call.result;
	if (call_has_failed(event->call.call, event->call.arguments, event->call.result)) {
		call->error = replay->failure.error;
		call->limit = refused_calls_limit(replay, &replay->failure, 0);
	}
	find_unchanged(trace, process->space, event);
	if (trace->mapped.bytes || !trace->found.count)
		error = select_held(trace, &trace->mapped);
	array_each(held, trace->found.items, trace->found.count) {
		const struct held **larger = &most[call->bytes[MMT_EFFECT_MOVED] && !held->moves];

		error = error ?: select_held(trace, held);
		if (!*larger ||
		    (order_of(held->selected, (*larger)->selected) ?: order_of(held->bytes, (*larger)->bytes)) > 0)
			*larger = held;
	}
	if (error || !is_selected(trace))
		return error;
	error = describe_row(trace, &trace->mapped, replay->applying_stack, &call->stack);
	for (unsigned i = 0; !error && i < 2; i++) {
		struct mmt_traced_memory *memory = i ? &call->freed : &call->owner;

		if (!most[i])
			continue;
		*memory = (struct mmt_traced_memory){.known = most[i]->known,
						     .inherited = most[i]->inherited,
						     .age_ns = event->time_ns - most[i]->oldest_ns};
		error = describe_row(trace, most[i], most[i]->stack, &memory->row);
	}
	if (!error)
		trace->options->call(trace->options->context, call);
	return error;
}

static struct mmt_error *on_call(void *context, struct replay *replay, const struct process *process,
				 const struct event *event)
{
	struct trace *trace = context;
	bool wanted = event->time_ns >= replay->window.from_ns && rows_selects_pid(&trace->rows, process->pid);
	struct mmt_error *error = wanted ? describe(trace, process, event) : NULL;

	trace->call = (struct mmt_traced_call){0};
	trace->mapped = (struct held){0};
	trace->selected = false;
	forget_found(trace);
	arena_deinit(&trace->arena);
	return error;
}

struct mmt_error *mmt_trace(const struct mmt_trace_options *options, struct mmt_trace_summary *summary_ret)
{
	const struct mmt_report_options *report = &options->report;
	struct trace trace = {.options = options, .report = *report};
	const struct replay_options passes = {.report = &trace.report, .find_row = rows_find, .context = &trace.rows};
	struct replay *replay = &trace.replay;
	struct mmt_error *error;

	for (size_t i = 0; i < options->call_count; i++) {
		unsigned kind = 0;

		while (kind < CALL_KINDS && !filters_match(options->calls[i], call_describe(kind)->name))
			kind++;
		if (kind == CALL_KINDS)
			return error_create(MMT_ERROR_INVALID, "'%s' is the name of no recorded call",
					    options->calls[i]);
	}
	trace.report.by = trace.report.then_by = MMT_BY_STACK;
	trace.report.min_age_ns = trace.report.lifetime_steps = 0;
	error = rows_init(&trace.rows, &trace.report, &trace.arena) ?: replay_init(replay, &passes);
	if (!error) {
		trace.rows.replay = replay;
		replay->watch = (struct replay_watch){.call = on_call, .change = on_change, .context = &trace};
		error =
		    report->follow ? replay_follow(replay, report->follow, report->follow_context) : replay_run(replay);
		*summary_ret = (struct mmt_trace_summary){replay->lost_events, replay->metadata->incomplete,
							  !replay->has_survivors};
		if (!error && report->pids && !rows_next(&trace.rows, NULL))
			error = error_create(MMT_ERROR_INVALID, "%s: contains none of these processes", report->input);
		if (!error && reader_damage(replay->reader))
			error = error_create(MMT_ERROR_FORMAT, "%s: %s", report->input, reader_damage(replay->reader));
		replay_deinit(replay);
	}
	rows_deinit(&trace.rows);
	arena_deinit(&trace.arena);
	vector_deinit(&trace.found);
	map_deinit(&trace.places);
	return error;
}
