// SPDX-License-Identifier: LGPL-2.1-or-later
/* What records tell about the threads that events were opened for, or that were born with them: see attach.h. */
#include "capture/attach.h"

#include <string.h>

#include "capture/proc.h"

static struct mmt_error *add_note(struct attachment *attachment, pid_t tid, uint64_t time_ns, uint64_t fence_id)
{
	struct thread_note note = {.tid = tid, .time_ns = time_ns, .fence_id = fence_id};

	return vector_push(&attachment->notes, note) ? NULL : &error_no_memory;
}

struct mmt_error *attach_note_run(struct attachment *attachment, pid_t tid, uint64_t time_ns, uint64_t fence_id)
{
	return add_note(attachment, tid, time_ns, fence_id);
}

struct mmt_error *attach_note_end(struct attachment *attachment, pid_t tid, uint64_t time_ns)
{
	return add_note(attachment, tid, time_ns, 0);
}

/* NULL: none that is open. */
static struct attached_root *find_root(struct attachment *attachment, pid_t tid)
{
	const uint64_t *index = map_get(&attachment->root_of_thread, (uint32_t)tid);

	return index && attachment->roots.items[*index].whole_ns ? &attachment->roots.items[*index] : NULL;
}

struct mmt_error *attach_note_outside(struct attachment *attachment, pid_t tid, uint64_t time_ns, uint64_t fence_id)
{
	struct attached_root *root;

	if (!map_get(&attachment->root_of_fence, fence_id))
		return NULL;
	root = find_root(attachment, tid);
	if (root && time_ns > root->whole_ns)
		root->seen_outside = true;
	return add_note(attachment, tid, time_ns, fence_id);
}

bool attach_note_start(struct attachment *attachment, pid_t parent_tid, uint64_t time_ns)
{
	struct attached_root *root = find_root(attachment, parent_tid);
	bool unseen = root && !root->seen_outside && time_ns > root->whole_ns;

	if (unseen)
		root->seen_outside = true;
	return unseen;
}

/* It does not stay inside clone() in such a state, nor is it there when it sleeps so that signals wake it. */
static bool is_outside(const struct attached_root *root)
{
	struct proc_thread state;

	if (!proc_read_thread(root->pid, root->tid, &state) || state.exiting)
		return true;
	return strchr("STt", state.state) || (state.state == 'D' && !proc_may_be_in_clone(root->tid));
}

void attach_look_outside(struct attachment *attachment)
{
	attachment->unseen_roots = 0;
	attachment->unseen_since_ns = 0;
	for (size_t i = 0; i < attachment->roots.count; i++) {
		struct attached_root *root = &attachment->roots.items[i];

		if (!root->whole_ns || root->seen_outside)
			continue;
		root->seen_outside = is_outside(root);
		if (root->seen_outside)
			continue;
		attachment->unseen_roots++;
		if (root->whole_ns > attachment->unseen_since_ns)
			attachment->unseen_since_ns = root->whole_ns;
	}
}

struct mmt_error *attach_note_birth(struct attachment *attachment, pid_t tid, uint64_t time_ns, bool *new_ret)
{
	return thread_coverage_note_birth(&attachment->coverage, tid, time_ns, new_ret) ? NULL : &error_no_memory;
}

/* Is the thread that ran the one for which this was opened? */
static bool is_thread_of_root(const struct attachment *attachment, const struct attached_root *root,
			      const struct thread_note *note)
{
	return note->time_ns >= root->thread_start_ns &&
	       thread_coverage_is_same(&attachment->coverage, note->tid, note->time_ns, root->begin_ns);
}

static struct mmt_error *settle_run(struct attachment *attachment, const struct thread_note *note)
{
	/* A fence that is closed by now says nothing: its set may have been closed as incomplete or twofold. */
	const uint64_t *inherited = map_get(&attachment->root_of_fence, note->fence_id);
	const uint64_t *own = map_get(&attachment->root_of_thread, (uint32_t)note->tid);

	if (!inherited)
		return NULL;
	if (own && *own != *inherited && is_thread_of_root(attachment, &attachment->roots.items[*own], note)) {
		attach_close_root(attachment, (uint32_t)*own);
		map_remove(&attachment->root_of_thread, (uint32_t)note->tid);
	}
	return thread_coverage_put(&attachment->coverage, note->tid, note->time_ns) ? NULL : &error_no_memory;
}

struct mmt_error *attach_settle(struct attachment *attachment, size_t count)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		const struct thread_note *note = &attachment->notes.items[i];

		if (note->fence_id)
			error = settle_run(attachment, note);
		else if (!thread_coverage_note_end(&attachment->coverage, note->tid, note->time_ns))
			error = &error_no_memory;
	}
	if (!count)
		return NULL;
	attachment->notes.count -= count;
	memmove(attachment->notes.items, attachment->notes.items + count,
		attachment->notes.count * sizeof(*attachment->notes.items));
	return error;
}
