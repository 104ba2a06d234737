// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which limit made a memory call fail, and how near it was. */
#include "analysis/replay/replay.h"

#include <errno.h>

#define MEASURED_PER_CALL 1024
#define ADDRESS_BITS 47	  /* no process has more room, at least on x86-64 */
#define MAPPINGS_NEEDED 2 /* a call may need two mappings more than it makes */

/* What the call would have added to the space, by its arguments. */
static void describe_call(const struct space *space, const struct event *event, struct refused_call *refused)
{
	const struct call_description *call = call_describe(event->call.call);
	const uint64_t *arguments = event->call.arguments;
	const struct space_interval *at = space_find(space, arguments[0]);
	uint64_t bytes = call_bytes_asked(event->call.call, arguments, event->call.result);

	if (call->place == CALL_BELOW_RESULT) {
		refused->is_data = true;
	} else if (call->place == CALL_AT_RESULT) { /* without a length, shmat adds nothing that is known */
		refused->is_data = (arguments[2] & PROT_WRITE) && !(arguments[3] & (MAP_SHARED | MAP_GROWSDOWN));
		refused->is_huge = arguments[3] & MAP_HUGETLB;
		refused->noreserve = arguments[3] & MAP_NORESERVE;
	} else if (event->call.call == CALL_MREMAP) {
		bytes = bytes > arguments[1] ? bytes - arguments[1] : 0;
		refused->is_data = at && space_is_data(&at->attributes);
		refused->is_huge = at && (at->attributes.hugetlb || at->attributes.hugetlbfs);
	} else if (call->effect == CALL_PROTECTS) {
		refused->is_data =
		    at && !at->attributes.shared && (arguments[2] & PROT_WRITE) && !space_is_data(&at->attributes);
		bytes = refused->is_data ? bytes : 0;
	} else {
		bytes = 0;
	}
	refused->grows_bytes = bytes;
}

struct mmt_error *refused_calls_describe(struct replay *replay, const struct process *process,
					 const struct event *event, struct refused_call *refused_ret)
{
	uint32_t owner = processes_space_owner(replay->processes, process)->index;
	const uint64_t *place = map_get(&replay->refusal_places, owner);
	struct process_refusals *refusals = place ? &replay->refusals.items[*place] : NULL;
	const uint64_t mask = replay->notes.memory.page_bytes - 1;

	if (call_errno(event->call.call, event->call.result) != ENOMEM)
		return NULL;
	describe_call(process->space, event, refused_ret);
	refused_ret->grows_bytes =
	    refused_ret->grows_bytes >= UINT64_MAX - mask ? UINT64_MAX : (refused_ret->grows_bytes + mask) & ~mask;
	if (!refusals) {
		refusals = vector_append(&replay->refusals);
		if (!refusals || !map_put(&replay->refusal_places, owner, replay->refusals.count - 1))
			return &error_no_memory;
	}
	/* A program may try again a million times, and have thousands of mappings. */
	refusals->measurable += replay->measured_mappings < LIMIT_MEASURED_MAPPINGS ? MEASURED_PER_CALL : 1;
	if (refusals->measurable > refusals->size.mappings) {
		refusals->size = space_measure(process->space);
		refusals->measurable = 0;
		replay->measured_mappings += refusals->size.mappings;
	}
	refused_ret->size = refusals->size;
	return NULL;
}

/* A limit of the process, or that of the process that forked it: a short-lived child is not read. */
static const struct noted_limit *find_limit(const struct replay *replay, uint32_t index, enum note_kind kind)
{
	const struct process *process = replay->processes->all.items[index];
	const struct noted_limit *limit = notes_limit(&replay->notes, process->pid, kind);

	for (unsigned i = 0; !limit && i < LIMIT_ANCESTORS && process->forked_from != process->index; i++) {
		process = replay->processes->all.items[process->forked_from];
		limit = notes_limit(&replay->notes, process->pid, kind);
	}
	return limit;
}

/* Whether the kernel refuses to add so much. */
static bool is_exceeded(const struct noted_limit *limit, uint64_t used, uint64_t grows_bytes)
{
	return limit && grows_bytes && (used > limit->bytes || grows_bytes > limit->bytes - used);
}

static struct mmt_limit met(enum mmt_limit_kind kind, const struct noted_limit *limit, uint64_t used)
{
	return (struct mmt_limit){.kind = kind, .value = limit->bytes, .used = used};
}

struct mmt_limit refused_calls_limit(const struct replay *replay, const struct failure *failure,
				     uint64_t mappings_at_end)
{
	const uint64_t most = replay->metadata->info.mapping_limit;
	struct mmt_limit limit = {MMT_LIMIT_MAPPINGS, most, failure->refused.size.mappings};
	const struct refused_call *call = &failure->refused;
	const struct noted_limit *locked = find_limit(replay, failure->process, NOTE_LIMIT_LOCKED),
				 *space = find_limit(replay, failure->process, NOTE_LIMIT_ADDRESS_SPACE),
				 *data = find_limit(replay, failure->process, NOTE_LIMIT_DATA),
				 *commit = notes_limit(&replay->notes, 0, NOTE_LIMIT_COMMIT),
				 *memory = notes_limit(&replay->notes, 0, NOTE_LIMIT_MEMORY),
				 *pool = notes_limit(&replay->notes, 0, NOTE_LIMIT_HUGE_PAGES);

	if (failure->error != ENOMEM && failure->error != EAGAIN)
		return (struct mmt_limit){0};
	limit.used = larger_of(limit.used, mappings_at_end);
	if (failure->error == ENOMEM && most && limit.used + MAPPINGS_NEEDED >= most)
		return limit;
	if (failure->error == EAGAIN)
		return locked ? met(MMT_LIMIT_LOCKED, locked, locked->used) : (struct mmt_limit){0};
	if (call->grows_bytes >> ADDRESS_BITS)
		return (struct mmt_limit){0};
	if (call->is_data && !call->noreserve && is_exceeded(memory, 0, call->grows_bytes))
		return met(MMT_LIMIT_MEMORY, memory, 0);
	if (is_exceeded(space, call->size.bytes, call->grows_bytes))
		return met(MMT_LIMIT_ADDRESS_SPACE, space, call->size.bytes);
	if (call->is_data && is_exceeded(data, call->size.data_bytes, call->grows_bytes))
		return met(MMT_LIMIT_DATA, data, call->size.data_bytes);
	if (call->is_huge)
		return pool ? met(MMT_LIMIT_HUGE_PAGES, pool, pool->used) : (struct mmt_limit){0};
	/* How much was committed in the moment of the call is not known, but no other limit explains it. */
	return call->is_data && commit ? met(MMT_LIMIT_COMMIT, commit, commit->used) : (struct mmt_limit){0};
}
