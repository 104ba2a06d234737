// SPDX-License-Identifier: LGPL-2.1-or-later
/* MMAP2 records wait for the call they belong to; what no call claims the kernel did by itself. */
#include "analysis/replay-witnesses.h"

#include <string.h>
#include <sys/mman.h>

struct mmt_error *replay_witnesses_describe(struct replay *replay, const struct event_mapping *mapping,
					    struct space_attributes *attributes_ret)
{
	uint32_t path;
	struct mmt_error *error = code_view_path(replay->code, mapping->path, &path);

	if (error)
		return error;
	*attributes_ret = (struct space_attributes){
	    .protection = mapping->protection & (PROT_READ | PROT_WRITE | PROT_EXEC),
	    .shared = mapping->flags & MAP_SHARED,
	    .heap = !strcmp(mapping->path, "[heap]"),
	    .stack = !strcmp(mapping->path, "[stack]"),
	    .shm = !strncmp(mapping->path, "/SYSV", 5),
	    .ring = !strncmp(mapping->path, "/[aio]", 6),
	    .zero = !(mapping->flags & MAP_SHARED) && !strcmp(mapping->path, "/dev/zero"),
	    .device_major = mapping->device_major,
	    .device_minor = mapping->device_minor,
	    .inode = mapping->inode,
	    .file_offset = mapping->file_offset,
	    .path = path,
	};
	return NULL;
}

static struct mmt_error *count_witness(struct replay *replay, const struct thread_state *state)
{
	uint32_t process = replay->threads.items[state->number].process;

	while (replay->witness_counts.count <= process) {
		if (!vector_push(&replay->witness_counts, 0))
			return &error_no_memory;
	}
	replay->witness_counts.items[process]++;
	return NULL;
}

void replay_witnesses_forget(struct replay *replay, struct thread_state *state)
{
	if (state->witnesses.count)
		replay->witness_counts.items[replay->threads.items[state->number].process] -=
		    (uint32_t)state->witnesses.count;
	state->witnesses.count = 0;
}

struct mmt_error *replay_witnesses_keep(struct replay *replay, struct thread_state *state,
					const struct event_mapping *mapping, uint64_t time_ns)
{
	struct space_witness witness = {.start = mapping->start, .end = mapping->start + mapping->length};
	struct mmt_error *error = replay_witnesses_describe(replay, mapping, &witness.attributes);

	if (error || witness.end <= witness.start)
		return error;
	if (witness.attributes.ring) {
		const struct replay_thread *thread = &replay->threads.items[state->number];
		bool made = false;

		error = space_witness_ring(processes_at(replay->processes, thread->process)->space, &witness,
					   thread->tid, time_ns, &made);
		if (error || made)
			return error;
	}
	return vector_push(&state->witnesses, witness) ? count_witness(replay, state) : &error_no_memory;
}

/* They still describe the call that may yet claim them. */
static struct mmt_error *tell(struct replay *replay, struct thread_state *state)
{
	const struct replay_thread *thread = &replay->threads.items[state->number];
	struct space *space = processes_at(replay->processes, thread->process)->space;

	for (size_t i = 0; i < state->witnesses.count; i++) {
		struct space_witness *witness = &state->witnesses.items[i];
		struct mmt_error *error = witness->told ? NULL : space_witness(space, witness);

		if (error)
			return error;
		witness->told = true;
	}
	return NULL;
}

struct mmt_error *replay_witnesses_flush(struct replay *replay, struct thread_state *state)
{
	struct mmt_error *error = tell(replay, state);

	if (!error)
		replay_witnesses_forget(replay, state);
	return error;
}

struct mmt_error *replay_witnesses_tell_process(struct replay *replay, uint32_t process)
{
	if (process >= replay->witness_counts.count || !replay->witness_counts.items[process])
		return NULL;
	for (size_t i = 0; i < replay->thread_states.count; i++) {
		struct thread_state *state = replay->thread_states.items[i];
		struct mmt_error *error;

		if (replay->threads.items[state->number].process != process)
			continue;
		error = tell(replay, state);
		if (error)
			return error;
	}
	return NULL;
}
