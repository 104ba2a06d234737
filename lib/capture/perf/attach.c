// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/attach.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/helper-process.h"
#include "capture/procfs/clock.h"
#include "capture/procfs/permissions.h"
#include "capture/procfs/proc.h"
#include "capture/procfs/scheduling-priority.h"

#define ANY (-1)
#define COVERAGE_EVENT UINT32_MAX /* no event of the set */
#define DISABLED_AT_ONCE 64
#define SPARE_DESCRIPTORS 64	      /* for other files, pipes, ring buffers and /proc */
#define DESCRIPTORS_FOR_THREADS 32768 /* opening so many takes about a second, closing them some seconds */
#define NUMBER_REUSE_NS 10000000ULL   /* the kernel does not reuse a TID sooner than this */

void attach_deinit(struct attachment *attachment)
{
	attach_end_switch(attachment);
	vector_deinit(&attachment->switching.fds);
	vector_deinit_each(&attachment->events, event, close(event->fd));
	vector_deinit_each(&attachment->kept_tracepoints, fd, close(*fd));
	vector_deinit(&attachment->cpus.away);
	vector_deinit(&attachment->cpus.missed);
	vector_deinit(&attachment->first_ids);
	vector_deinit(&attachment->lost_earlier);
	vector_deinit(&attachment->roots);
	vector_deinit(&attachment->notes);
	map_deinit(&attachment->oom_ids);
	map_deinit(&attachment->root_of_coverage_event);
	map_deinit(&attachment->root_of_thread);
	map_deinit(&attachment->event_of_id);
	map_deinit(&attachment->samples_of_id);
	map_deinit(&attachment->id_in_file);
	thread_coverage_deinit(&attachment->coverage);
}

static struct mmt_error *refuse_descriptors(const struct attachment *attachment)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return error_create(MMT_ERROR_SYSTEM,
			    "recording needs %llu file descriptors and %llu are allowed: raise the limit with "
			    "`ulimit -n`",
			    (unsigned long long)attachment->descriptors_wanted, (unsigned long long)limit.rlim_max);
}

static size_t descriptors_per_thread(const struct attachment *attachment, bool large_dumps)
{
	size_t left_out = large_dumps ? 0 : events_count_large_dumps(attachment->set);

	return attachment->rings->cpus.count * (events_count_of_threads(attachment->set) - left_out + 1);
}

size_t attach_threads_max(const struct attachment *attachment, bool large_dumps)
{
	size_t used = attachment->kept_tracepoints.count + attachment->rings->items.count + SPARE_DESCRIPTORS;
	struct rlimit limit;
	rlim_t room;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	room = limit.rlim_max < DESCRIPTORS_FOR_THREADS ? limit.rlim_max : DESCRIPTORS_FOR_THREADS;
	return room > used ? (size_t)(room - used) / descriptors_per_thread(attachment, large_dumps) : 0;
}

struct mmt_error *attach_reserve(struct attachment *attachment, size_t thread_count)
{
	size_t per_thread = descriptors_per_thread(attachment, true);
	struct rlimit limit;

	attachment->descriptors_wanted = attachment->events.count + thread_count * per_thread +
					 attachment->kept_tracepoints.count + attachment->rings->items.count +
					 SPARE_DESCRIPTORS;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return error_system(errno, "cannot read the limit of open files");
	return attachment->descriptors_wanted > limit.rlim_cur ? refuse_descriptors(attachment) : NULL;
}

/* `tid`, `cgroup`: as in struct attached_root. */
static struct mmt_error *explain_open_failure(const struct attachment *attachment, int errno_value, const char *name,
					      pid_t tid, int cgroup)
{
	char whose[64] = "on every CPU";

	if (tid > 0)
		snprintf(whose, sizeof(whose), "of thread %d", tid);
	else if (cgroup >= 0)
		snprintf(whose, sizeof(whose), "in the control group");
	if (errno_value == EMFILE || errno_value == ENFILE)
		return refuse_descriptors(attachment);
	if (permission_was_refused(errno_value))
		return error_refused(permission_explain(tid > 0 ? PERMISSION_EVENTS : PERMISSION_CPU_EVENTS),
				     "cannot record %s %s: permission denied", name, whose);
	return error_system(errno_value, "cannot record %s %s", name, whose);
}

struct mmt_error *attach_keep_tracepoints(struct attachment *attachment)
{
	array_each(event, attachment->set->items.items, attachment->set->items.count) {
		struct perf_event_attr attribute = event->attribute;
		int fd;

		if (attribute.type != PERF_TYPE_TRACEPOINT || role_is_dump(event->role))
			continue;
		attribute.disabled = 1;
		attribute.inherit = 0;
		fd = (int)syscall(SYS_perf_event_open, &attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			return explain_open_failure(attachment, errno, event->name, getpid(), -1);
		if (!vector_push(&attachment->kept_tracepoints, fd)) {
			close(fd);
			return &error_no_memory;
		}
	}
	return NULL;
}

struct mmt_error *attach_watch_oom(struct attachment *attachment, const struct tracepoint_source *source)
{
	const struct rings *rings = attachment->rings;
	struct perf_event_attr attribute;
	struct mmt_error *error;
	bool found = proc_has_machine_pids();

	if (found && (error = events_describe_oom_kill(source, &attribute, &found))) {
		mmt_error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; found && i < rings->cpus.count; i++) {
		const struct ring *ring = rings_find(rings, i, RING_SYSCALL);
		CLEANUP(close)
		int fd = (int)syscall(SYS_perf_event_open, &attribute, -1, ring->cpu, -1, PERF_FLAG_FD_CLOEXEC);
		uint64_t id;

		if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0 ||
		    ioctl(fd, PERF_EVENT_IOC_ID, &id) < 0)
			continue;
		if (!map_put(&attachment->oom_ids, id, 1) || !vector_push(&attachment->kept_tracepoints, fd))
			return &error_no_memory;
		fd = -1;
	}
	return NULL;
}

/* Open one event, redirect its output into the CPU's ring after its filter is set, and add it to the open events.
 * The kernel lets the caller wait while the thread is in an exec: ask the helper about the thread before. `gone_ret`:
 * the thread has exited or, for a per-CPU event, the CPU is offline. */
static struct mmt_error *open_event(struct attachment *attachment, const struct event_description *event,
				    const struct attached_root *owner, size_t cpu_index, struct attached_event added,
				    bool *gone_ret)
{
	const struct ring *ring = rings_find(attachment->rings, cpu_index, event->ring);
	pid_t tid = owner->tid;
	int fd = (int)syscall(SYS_perf_event_open, &event->attribute, tid > 0 ? tid : owner->cgroup, ring->cpu, -1,
			      PERF_FLAG_FD_CLOEXEC | (owner->cgroup >= 0 ? PERF_FLAG_PID_CGROUP : 0));
	struct mmt_error *error = NULL;

	if (fd < 0 && errno == (tid > 0 ? ESRCH : ENODEV)) {
		*gone_ret = true;
		return NULL;
	}
	if (fd < 0 || (event->filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, event->filter) < 0) ||
	    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)
		error = explain_open_failure(attachment, errno, event->name, tid, owner->cgroup);
	added.fd = fd;
	if (!error && !vector_push(&attachment->events, added))
		error = &error_no_memory;
	if (error && fd >= 0)
		close(fd);
	return error;
}

/* Open this event of the set, or the coverage event. */
static struct mmt_error *open_on_cpu(struct attachment *attachment, uint32_t index, uint32_t root, size_t cpu,
				     bool *gone_ret)
{
	const struct attached_root *owner = &attachment->roots.items[root];
	struct attached_event *added;
	struct event_description event;
	struct mmt_error *error;
	bool ok;

	if (index == COVERAGE_EVENT) {
		events_describe_coverage_event(&event);
	} else {
		event = attachment->set->items.items[index];
		event.attribute.disabled = event.attribute.enable_on_exec = attachment->on_exec;
		event.attribute.disabled |= (attachment->large_dumps_off && event.role == ROLE_LARGE_DUMP) ||
					    (event.in_turn && event.has_dump == attachment->fault_dumps_off);
	}
	error =
	    open_event(attachment, &event, owner, cpu, (struct attached_event){.root = root, .event = index}, gone_ret);
	if (error || *gone_ret)
		return error;
	added = &attachment->events.items[attachment->events.count - 1];
	if (ioctl(added->fd, PERF_EVENT_IOC_ID, &added->id) < 0)
		return error_system(errno, "cannot read the identifier of a perf event");
	ok = index == COVERAGE_EVENT ? map_put(&attachment->root_of_coverage_event, added->id, root)
				     : map_put(&attachment->event_of_id, added->id, index);
	return ok ? NULL : &error_no_memory;
}

/* Open the set, and the coverage event of a thread, on some of the CPUs, one event after the other. */
static struct mmt_error *open_set(struct attachment *attachment, uint32_t root, size_t first_cpu, size_t cpu_count,
				  bool coverage, bool *gone_ret)
{
	size_t count = attachment->set->items.count + coverage;
	struct mmt_error *error = NULL;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = i < attachment->set->items.count ? i : COVERAGE_EVENT;
		bool on_cpus = index != COVERAGE_EVENT && attachment->set->items.items[index].on_cpus;

		if (on_cpus != attachment->roots.items[root].faults_only)
			continue;
		for (size_t cpu = first_cpu; !error && !*gone_ret && cpu < first_cpu + cpu_count; cpu++)
			error = open_on_cpu(attachment, index, root, cpu, gone_ret);
	}
	return error;
}

/* Read how many samples were lost, or the number of all samples if the kernel does not count lost ones: then
 * attach_add_lost() subtracts those that were read. */
static uint64_t read_lost(const struct attachment *attachment, const struct attached_event *event)
{
	const struct event_description *set = attachment->set->items.items;
	uint64_t period = event->event == COVERAGE_EVENT ? 1 : set[event->event].attribute.sample_period;
	struct {
		uint64_t value, id, lost;
	} counts;
	ssize_t size = read(event->fd, &counts, sizeof(counts));

	return size == sizeof(counts)			    ? counts.lost
	       : size == offsetof(__typeof__(counts), lost) ? counts.value / (period ?: 1)
							    : 0;
}

/* Close the events of this root, and with this index in the set; ANY: of all. */
static void close_events(struct attachment *attachment, int64_t root, int64_t index)
{
	size_t kept = 0;

	attach_end_switch(attachment);
	for (size_t i = 0; i < attachment->events.count; i++) {
		const struct attached_event event = attachment->events.items[i];

		if ((root != ANY && event.root != root) || (index != ANY && event.event != index)) {
			attachment->events.items[kept++] = event;
			continue;
		}
		/* Per-CPU events stay known, because their records may still be in a ring. */
		if (event.event == COVERAGE_EVENT)
			(void)map_remove(&attachment->root_of_coverage_event, event.id);
		else if (attachment->roots.items[event.root].tid > 0)
			(void)(map_remove(&attachment->event_of_id, event.id) &&
			       map_remove(&attachment->samples_of_id, event.id));
		else
			attachment->lost_earlier.items[event.event] += read_lost(attachment, &event);
		close(event.fd);
	}
	attachment->events.count = kept;
}

static void close_root(struct attachment *attachment, uint32_t root)
{
	close_events(attachment, root, ANY);
	attachment->roots.items[root].complete_ns = 0;
}

struct mmt_error *attach_thread(struct attachment *attachment, pid_t pid, pid_t tid, bool *gone_ret)
{
	uint64_t start_ticks, later_ticks;
	uint32_t root = (uint32_t)attachment->roots.count;
	struct attached_root added = {.pid = pid, .tid = tid, .cgroup = -1};
	struct mmt_error *error;
	uint64_t complete_ns;

	*gone_ret = !proc_read_start(attachment->calls, pid, tid, &start_ticks, NULL);
	if (*gone_ret)
		return NULL;
	added.thread_start_ns = clock_from_ticks(start_ticks);
	added.begin_ns = clock_now_ns();
	if (!vector_push(&attachment->roots, added))
		return &error_no_memory;
	error = open_set(attachment, root, 0, attachment->rings->cpus.count, true, gone_ret);
	complete_ns = clock_now_ns();
	/* Meanwhile the TID may have been reused for a thread that has only some of the events. */
	if (!error && !*gone_ret && complete_ns - added.begin_ns >= NUMBER_REUSE_NS)
		*gone_ret =
		    !proc_read_start(attachment->calls, pid, tid, &later_ticks, NULL) || later_ticks != start_ticks;
	if (!error && !*gone_ret &&
	    (!thread_coverage_put(&attachment->coverage, tid, complete_ns) ||
	     !map_put(&attachment->root_of_thread, (uint32_t)tid, root)))
		error = &error_no_memory;
	attachment->roots.items[root].complete_ns = complete_ns;
	if (error || *gone_ret)
		close_root(attachment, root);
	return error;
}

struct mmt_error *attach_command(struct attachment *attachment, pid_t pid, bool *gone_ret)
{
	struct attached_root root = {.pid = pid, .tid = pid, .cgroup = -1, .begin_ns = clock_now_ns()};
	struct mmt_error *error;

	*gone_ret = false;
	attachment->on_exec = true;
	if (!vector_push(&attachment->roots, root))
		return &error_no_memory;
	error = open_set(attachment, (uint32_t)attachment->roots.count - 1, 0, attachment->rings->cpus.count, false,
			 gone_ret);
	if (!error && !thread_coverage_put(&attachment->coverage, pid, clock_now_ns()))
		error = &error_no_memory;
	thread_coverage_set_complete(&attachment->coverage, clock_now_ns());
	return error;
}

/* Note the first identifier of each event. The head of the file contains these. */
static struct mmt_error *note_first_ids(struct attachment *attachment)
{
	for (uint32_t event = 0; event < attachment->set->items.count; event++) {
		const struct attached_event *first =
		    array_find(item, attachment->events.items, attachment->events.count, item->event == event);

		if (!first)
			return error_create(MMT_ERROR_SYSTEM,
					    "cannot open events on any CPU: every CPU went offline in the meantime");
		if (!vector_push(&attachment->first_ids, first->id) ||
		    !vector_push(&attachment->lost_earlier, (uint64_t)0))
			return &error_no_memory;
	}
	return NULL;
}

struct mmt_error *attach_cpus(struct attachment *attachment, int cgroup)
{
	size_t first = attachment->events.count;
	bool later = attachment->first_ids.count;
	const cpu_list *cpus = &attachment->rings->cpus;
	uint32_t root = (uint32_t)attachment->roots.count;
	struct attached_root added = {.pid = -1, .tid = -1, .cgroup = cgroup, .begin_ns = clock_now_ns()};
	struct mmt_error *error = NULL, *noted = NULL;

	if (!vector_push(&attachment->roots, added))
		return &error_no_memory;
	for (size_t i = 0; !error && i < cpus->count; i++) {
		bool gone = false; /* the CPU is offline */

		error = open_set(attachment, root, i, 1, false, &gone);
		if (gone && !error && !vector_push(&attachment->cpus.away, cpus->items[i]))
			error = &error_no_memory;
	}
	/* Do this even if some events could not be opened: the rings may already contain records of the others. */
	if (!later && !error)
		noted = note_first_ids(attachment);
	/* Which identifiers the file has for the events of later CPUs or groups. */
	for (size_t i = first; later && !noted && i < attachment->events.count; i++) {
		const struct attached_event *event = &attachment->events.items[i];

		if (!map_put(&attachment->id_in_file, event->id, attachment->first_ids.items[event->event]))
			noted = &error_no_memory;
	}
	thread_coverage_set_complete(&attachment->coverage, clock_now_ns());
	return error ?: noted;
}

struct mmt_error *attach_faults(struct attachment *attachment)
{
	const struct attached_root root = {
	    .pid = -1, .tid = -1, .cgroup = -1, .begin_ns = clock_now_ns(), .faults_only = true};
	struct mmt_error *error = vector_push(&attachment->roots, root) ? NULL : &error_no_memory;

	for (size_t i = 0; !error && i < attachment->rings->cpus.count; i++) {
		bool gone = false; /* the CPU is offline */

		error = open_set(attachment, (uint32_t)attachment->roots.count - 1, i, 1, false, &gone);
	}
	return error;
}

void attach_switch_faults(struct attachment *attachment, bool dumps)
{
	attachment->fault_dumps_off = !dumps;
	array_each(event, attachment->events.items, attachment->events.count) {
		const struct event_description *it = attachment->set->items.items + event->event;

		if (event->event != COVERAGE_EVENT && it->in_turn)
			ioctl(event->fd, it->has_dump == dumps ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
	}
}

void attach_close_cpus(struct attachment *attachment)
{
	close_events(attachment, ANY, ANY);
	attachment->roots.count = 0;
}

struct mmt_error *attach_sample_user_space(struct attachment *attachment, pid_t pid, pid_t tid, bool *gone_ret)
{
	const struct attached_root owner = {.pid = pid, .tid = tid, .cgroup = -1};
	struct event_description event;
	struct mmt_error *error = NULL;
	uint64_t start_ticks;

	*gone_ret = !proc_read_start(attachment->calls, pid, tid, &start_ticks, NULL);
	events_describe_coverage_event(&event);
	event.attribute.inherit = event.attribute.context_switch = 0;
	for (size_t cpu = 0; !error && !*gone_ret && cpu < attachment->rings->cpus.count; cpu++)
		error = open_event(attachment, &event, &owner, cpu, (struct attached_event){.event = COVERAGE_EVENT},
				   gone_ret);
	return error;
}

void attach_close_coverage_events(struct attachment *attachment)
{
	close_events(attachment, ANY, COVERAGE_EVENT);
}

bool attach_disable_some(struct attachment *attachment, size_t *next)
{
	size_t end = *next + DISABLED_AT_ONCE;

	for (; *next < end && *next < attachment->events.count; ++*next)
		ioctl(attachment->events.items[*next].fd, PERF_EVENT_IOC_DISABLE, 0);
	return *next < attachment->events.count;
}

bool attach_counts_lost(const struct attachment *attachment)
{
	return attachment->set->items.items[0].attribute.read_format & PERF_FORMAT_LOST;
}

bool attach_note_sample(struct attachment *attachment, uint64_t id)
{
	return attach_counts_lost(attachment) || !map_get(&attachment->event_of_id, id) ||
	       map_add(&attachment->samples_of_id, id, 1);
}

void attach_add_lost(const struct attachment *attachment, uint64_t *lost)
{
	for (size_t event = 0; event < attachment->lost_earlier.count; event++)
		lost[event] += attachment->lost_earlier.items[event];
	for (size_t i = 0; i < attachment->events.count; i++)
		lost[attachment->events.items[i].event] += read_lost(attachment, &attachment->events.items[i]);
	/* A count that could not be read is smaller than that of the samples. */
	map_each(samples, &attachment->samples_of_id, true) {
		const uint64_t *event = map_get(&attachment->event_of_id, samples->key);

		if (event)
			lost[*event] -= smaller_of(samples->value, lost[*event]);
	}
}

uint64_t attach_lost_of(const struct attachment *attachment, size_t event)
{
	uint64_t lost = event < attachment->lost_earlier.count ? attachment->lost_earlier.items[event] : 0;

	for (size_t i = 0; i < attachment->events.count; i++) {
		if (attachment->events.items[i].event == event)
			lost += read_lost(attachment, &attachment->events.items[i]);
	}
	return lost;
}

/* Records about the threads that have an event set: see attach.h. */

struct mmt_error *attach_note(struct attachment *attachment, pid_t tid, uint64_t time_ns, uint64_t coverage_event_id)
{
	const struct thread_note note = {tid, time_ns, coverage_event_id};

	return vector_push(&attachment->notes, note) ? NULL : &error_no_memory;
}

/* Return NULL if no event is open for this thread. */
static struct attached_root *find_root(struct attachment *attachment, pid_t tid)
{
	const uint64_t *index = map_get(&attachment->root_of_thread, (uint32_t)tid);

	return index && attachment->roots.items[*index].complete_ns ? &attachment->roots.items[*index] : NULL;
}

struct mmt_error *attach_note_outside(struct attachment *attachment, pid_t tid, uint64_t time_ns,
				      uint64_t coverage_event_id)
{
	struct attached_root *root;

	if (!map_get(&attachment->root_of_coverage_event, coverage_event_id))
		return NULL;
	root = find_root(attachment, tid);
	if (root && time_ns > root->complete_ns)
		root->seen_outside = true;
	return attach_note(attachment, tid, time_ns, coverage_event_id);
}

bool attach_note_clone(struct attachment *attachment, pid_t parent_tid, uint64_t time_ns)
{
	struct attached_root *root = find_root(attachment, parent_tid);
	bool unseen = root && !root->seen_outside && time_ns > root->complete_ns;

	if (unseen)
		root->seen_outside = true;
	return unseen;
}

void attach_check_outside(struct attachment *attachment)
{
	attachment->unseen_roots = 0;
	attachment->unseen_since_ns = 0;
	array_each(root, attachment->roots.items, attachment->roots.count) {
		struct proc_thread state;

		if (!root->complete_ns || root->seen_outside)
			continue;
		/* Inside of clone(), a thread is neither stopped nor in an interruptible sleep. */
		root->seen_outside =
		    !proc_read_thread(root->pid, root->tid, &state) || state.exiting || strchr("STt", state.state) ||
		    (state.state == 'D' && !proc_may_be_in_clone(attachment->calls, root->pid, root->tid));
		if (root->seen_outside)
			continue;
		attachment->unseen_roots++;
		attachment->unseen_since_ns = larger_of(attachment->unseen_since_ns, root->complete_ns);
	}
}

static struct mmt_error *resolve_switch(struct attachment *attachment, const struct thread_note *note)
{
	/* A closed coverage event proves nothing: it may have been closed because the event set was incomplete, or
	 * because the thread has a second set. */
	const uint64_t *inherited = map_get(&attachment->root_of_coverage_event, note->coverage_event_id);
	const uint64_t *own = map_get(&attachment->root_of_thread, (uint32_t)note->tid);
	const struct attached_root *root = own ? &attachment->roots.items[*own] : NULL;

	if (!inherited)
		return NULL;
	/* Its own set may have been opened for an earlier thread with this TID. */
	if (root && *own != *inherited && note->time_ns >= root->thread_start_ns &&
	    thread_coverage_is_same(&attachment->coverage, note->tid, note->time_ns, root->begin_ns)) {
		close_root(attachment, (uint32_t)*own);
		map_remove(&attachment->root_of_thread, (uint32_t)note->tid);
	}
	return thread_coverage_put(&attachment->coverage, note->tid, note->time_ns) ? NULL : &error_no_memory;
}

struct mmt_error *attach_resolve(struct attachment *attachment, size_t count)
{
	struct mmt_error *error = NULL;

	array_while(note, attachment->notes.items, count, !error) {
		if (note->coverage_event_id)
			error = resolve_switch(attachment, note);
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

void thread_coverage_deinit(struct thread_coverage *coverage)
{
	map_deinit(&coverage->times);
	map_deinit(&coverage->forks);
	map_deinit(&coverage->ends);
}

/* Keep the later one of the stored time and `time_ns`. False: out of memory. */
static bool put_latest(struct map *map, pid_t tid, uint64_t time_ns)
{
	const uint64_t *known_ns = map_get(map, (uint32_t)tid);

	return (known_ns && *known_ns >= time_ns) || map_put(map, (uint32_t)tid, time_ns);
}

bool thread_coverage_put(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns)
{
	return put_latest(&coverage->times, tid, time_ns);
}

bool thread_coverage_has(const struct thread_coverage *coverage, pid_t tid, uint64_t start_ns)
{
	const uint64_t *time_ns = map_get(&coverage->times, (uint32_t)tid);

	return time_ns && start_ns <= *time_ns;
}

bool thread_coverage_note_fork(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns, bool *new_ret)
{
	bool complete = coverage->complete_ns && time_ns > coverage->complete_ns;

	*new_ret = complete && !map_get(&coverage->times, (uint32_t)tid);
	if (complete)
		return thread_coverage_put(coverage, tid, time_ns);
	return coverage->complete_ns || put_latest(&coverage->forks, tid, time_ns);
}

bool thread_coverage_note_end(struct thread_coverage *coverage, pid_t tid, uint64_t time_ns)
{
	const uint64_t *known_ns = map_get(&coverage->times, (uint32_t)tid);

	if (!known_ns || *known_ns > time_ns)
		return true;
	(void)map_remove(&coverage->times, (uint32_t)tid);
	return coverage->complete_ns || put_latest(&coverage->ends, tid, time_ns);
}

bool thread_coverage_lasted_until(const struct thread_coverage *coverage, pid_t tid, uint64_t time_ns)
{
	const uint64_t *end_ns = map_get(&coverage->ends, (uint32_t)tid);

	return end_ns && *end_ns >= time_ns;
}

bool thread_coverage_is_same(const struct thread_coverage *coverage, pid_t tid, uint64_t a_ns, uint64_t b_ns)
{
	const uint64_t *fork_ns = map_get(&coverage->forks, (uint32_t)tid);

	return !coverage->forks_missing && (!fork_ns || (*fork_ns <= a_ns && *fork_ns <= b_ns));
}

void thread_coverage_set_complete(struct thread_coverage *coverage, uint64_t time_ns)
{
	coverage->complete_ns = time_ns;
	map_deinit(&coverage->forks);
	map_deinit(&coverage->ends);
}

/* Runs in the thread that switches events. The descriptors stay open until this thread has ended. */
static void *switch_events(void *context)
{
	struct event_switch *switching = context;
	unsigned long request = switching->on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	size_t done = 0;

	/* The recorder waits for this thread before it closes events. During that wait the rings fill. */
	priority_raise_nice();
	while (done < switching->fds.count && !__atomic_load_n(&switching->must_end, __ATOMIC_ACQUIRE))
		ioctl(switching->fds.items[done++], request, 0);
	__atomic_store_n(&switching->state, done == switching->fds.count ? SWITCH_COMPLETE : SWITCH_CUT_SHORT,
			 __ATOMIC_RELEASE);
	return NULL;
}

struct mmt_error *attach_begin_switch(struct attachment *attachment, bool on)
{
	struct event_switch *switching = &attachment->switching;

	attach_end_switch(attachment);
	switching->fds.count = 0;
	array_each(event, attachment->events.items, attachment->events.count) {
		if (event->event != COVERAGE_EVENT &&
		    attachment->set->items.items[event->event].role == ROLE_LARGE_DUMP &&
		    !vector_push(&switching->fds, event->fd))
			return &error_no_memory;
	}
	switching->on = on;
	switching->must_end = false;
	switching->state = SWITCH_AT_WORK;
	switching->has_thread = thread_start(&switching->thread, switch_events, switching) == 0;
	/* If no thread can be created, switch in this one. */
	if (!switching->has_thread)
		switch_events(switching);
	return NULL;
}

enum switch_state attach_switch_state(const struct attachment *attachment)
{
	return __atomic_load_n(&attachment->switching.state, __ATOMIC_ACQUIRE);
}

bool attach_stop_switch(struct attachment *attachment)
{
	__atomic_store_n(&attachment->switching.must_end, true, __ATOMIC_RELEASE);
	return !attachment->switching.has_thread || attach_switch_state(attachment) != SWITCH_AT_WORK;
}

void attach_end_switch(struct attachment *attachment)
{
	struct event_switch *switching = &attachment->switching;

	if (!switching->has_thread)
		return;
	__atomic_store_n(&switching->must_end, true, __ATOMIC_RELEASE);
	pthread_join(switching->thread, NULL);
	switching->has_thread = false;
}
