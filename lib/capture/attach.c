// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/attach.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/text-file.h"

#define DISABLED_AT_ONCE 64
#define SPARE_DESCRIPTORS 64 /* for files, pipes, rings and /proc */

void attach_init(struct attachment *attachment, const struct event_set *set, const struct rings *rings)
{
	memset(attachment, 0, sizeof(*attachment));
	attachment->set = set;
	attachment->rings = rings;
}

void attach_deinit(struct attachment *attachment)
{
	attach_close_fences(attachment);
	for (size_t i = 0; i < attachment->events.count; i++)
		close(attachment->events.items[i].fd);
	vector_deinit(&attachment->events);
	vector_deinit(&attachment->fences);
	map_deinit(&attachment->fence_owner);
	map_deinit(&attachment->event_of_id);
	map_deinit(&attachment->covered);
}

static struct mmt_error *refuse_descriptors(const struct attachment *attachment)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return error_create(MMT_ERROR_SYSTEM,
			    "the target has too many threads: %llu descriptors are needed and %llu are allowed; raise "
			    "the limit with `ulimit -n`",
			    (unsigned long long)attachment->descriptors_wanted, (unsigned long long)limit.rlim_max);
}

struct mmt_error *attach_reserve(struct attachment *attachment, size_t thread_count)
{
	size_t per_thread = attachment->rings->cpus.count * (attachment->set->items.count + 1);
	struct rlimit limit;

	attachment->descriptors_wanted = thread_count * per_thread + attachment->rings->items.count + SPARE_DESCRIPTORS;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return error_system(errno, "cannot read the limit of open files");
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return attachment->descriptors_wanted > limit.rlim_cur ? refuse_descriptors(attachment) : NULL;
}

static struct mmt_error *explain_open_failure(const struct attachment *attachment, int errno_value, const char *name,
					      pid_t tid)
{
	switch (errno_value) {
	case EMFILE:
	case ENFILE:
		return refuse_descriptors(attachment);
	case EACCES:
	case EPERM:
		return error_create(MMT_ERROR_PERMISSION,
				    "cannot record %s of thread %d: permission denied (kernel.perf_event_paranoid is "
				    "%lld); run as root or with CAP_PERFMON",
				    name, tid,
				    (long long)text_file_number(-1, "/proc/sys/kernel/perf_event_paranoid", -1));
	default:
		return error_system(errno_value, "cannot record %s of thread %d", name, tid);
	}
}

/* One descriptor, its output redirected into the CPU's ring, once the filter (NULL: none) is in place. `gone_ret`: no
 * such thread. */
static struct mmt_error *open_event(struct attachment *attachment, struct perf_event_attr *attribute, const char *name,
				    const char *filter, pid_t tid, size_t cpu_index, enum ring_kind kind, int *fd_ret,
				    bool *gone_ret)
{
	const struct ring *ring = rings_find(attachment->rings, cpu_index, kind);
	int fd = (int)syscall(SYS_perf_event_open, attribute, tid, ring->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	int errno_value = errno;

	*fd_ret = -1;
	if (fd < 0 && errno_value == ESRCH) {
		*gone_ret = true;
		return NULL;
	}
	if (fd >= 0 && ((filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0) ||
			ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0)) {
		errno_value = errno;
		close(fd);
		fd = -1;
	}
	if (fd < 0)
		return explain_open_failure(attachment, errno_value, name, tid);
	*fd_ret = fd;
	return NULL;
}

static struct mmt_error *add_event(struct attachment *attachment, uint32_t event, pid_t tid, int fd)
{
	struct attached_event *added = vector_append(&attachment->events);

	if (!added) {
		close(fd);
		return &error_no_memory;
	}
	added->fd = fd;
	added->tid = tid;
	added->event = event;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &added->id) < 0)
		return error_system(errno, "cannot read the identifier of a perf event");
	return map_put(&attachment->event_of_id, added->id, event) ? NULL : &error_no_memory;
}

static struct mmt_error *open_set(struct attachment *attachment, pid_t tid, bool *gone_ret)
{
	for (size_t i = 0; i < attachment->set->items.count; i++) {
		const struct event_description *event = &attachment->set->items.items[i];
		struct perf_event_attr attribute = event->attribute;

		attribute.disabled = attribute.enable_on_exec = attachment->on_exec;
		for (size_t cpu = 0; cpu < attachment->rings->cpus.count; cpu++) {
			struct mmt_error *error;
			int fd;

			error = open_event(attachment, &attribute, event->name, event->filter, tid, cpu, event->ring,
					   &fd, gone_ret);
			if (!error && !*gone_ret)
				error = add_event(attachment, (uint32_t)i, tid, fd);
			if (error || *gone_ret)
				return error;
		}
	}
	return NULL;
}

static struct mmt_error *add_fence(struct attachment *attachment, pid_t tid, int fd)
{
	struct attached_fence *added = vector_append(&attachment->fences);

	if (!added) {
		close(fd);
		return &error_no_memory;
	}
	added->fd = fd;
	added->tid = tid;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &added->id) < 0)
		return error_system(errno, "cannot read the identifier of a perf event");
	return map_put(&attachment->fence_owner, added->id, (uint64_t)tid) ? NULL : &error_no_memory;
}

static struct mmt_error *open_fences(struct attachment *attachment, pid_t tid, bool *gone_ret)
{
	struct perf_event_attr attribute;

	events_describe_fence(&attribute);
	for (size_t cpu = 0; cpu < attachment->rings->cpus.count; cpu++) {
		struct mmt_error *error;
		int fd;

		error =
		    open_event(attachment, &attribute, "context switches", NULL, tid, cpu, RING_TRUTH, &fd, gone_ret);
		if (!error && !*gone_ret)
			error = add_fence(attachment, tid, fd);
		if (error || *gone_ret)
			return error;
	}
	return NULL;
}

/* Inherited events end with the one they come from. */
static void close_thread(struct attachment *attachment, pid_t tid)
{
	size_t kept = 0;

	for (size_t i = 0; i < attachment->events.count; i++) {
		const struct attached_event event = attachment->events.items[i];

		if (event.tid != tid) {
			attachment->events.items[kept++] = event;
			continue;
		}
		map_remove(&attachment->event_of_id, event.id);
		close(event.fd);
	}
	attachment->events.count = kept;
	kept = 0;
	for (size_t i = 0; i < attachment->fences.count; i++) {
		const struct attached_fence fence = attachment->fences.items[i];

		if (fence.tid != tid) {
			attachment->fences.items[kept++] = fence;
			continue;
		}
		map_remove(&attachment->fence_owner, fence.id);
		close(fence.fd);
	}
	attachment->fences.count = kept;
}

struct mmt_error *attach_thread(struct attachment *attachment, pid_t tid, bool fence, bool *gone_ret)
{
	struct mmt_error *error;

	*gone_ret = false;
	error = open_set(attachment, tid, gone_ret);
	if (!error && !*gone_ret && fence)
		error = open_fences(attachment, tid, gone_ret);
	if (!error && !*gone_ret)
		return map_put(&attachment->covered, (uint64_t)tid, 1) ? NULL : &error_no_memory;
	close_thread(attachment, tid);
	return error;
}

struct mmt_error *attach_note_fence(struct attachment *attachment, pid_t tid, uint64_t fence_id)
{
	const uint64_t *owner = map_get(&attachment->fence_owner, fence_id);

	/* A fence that is closed by now says nothing: its set may have been closed as incomplete or twofold. */
	if (!owner || *owner == (uint64_t)tid)
		return NULL;
	if (attach_is_covered(attachment, tid))
		close_thread(attachment, tid);
	return map_put(&attachment->covered, (uint64_t)tid, 1) ? NULL : &error_no_memory;
}

bool attach_skip_thread(struct attachment *attachment, pid_t tid)
{
	return map_put(&attachment->covered, (uint64_t)tid, 1);
}

bool attach_is_covered(const struct attachment *attachment, pid_t tid)
{
	return map_get(&attachment->covered, (uint64_t)tid);
}

void attach_close_fences(struct attachment *attachment)
{
	while (attachment->fences.count)
		close(attachment->fences.items[--attachment->fences.count].fd);
	map_deinit(&attachment->fence_owner);
}

bool attach_disable_some(struct attachment *attachment, size_t *next)
{
	size_t end = *next + DISABLED_AT_ONCE;

	for (; *next < end && *next < attachment->events.count; ++*next)
		ioctl(attachment->events.items[*next].fd, PERF_EVENT_IOC_DISABLE, 0);
	return *next < attachment->events.count;
}

void attach_add_lost(const struct attachment *attachment, uint64_t *lost)
{
	for (size_t i = 0; i < attachment->events.count; i++) {
		struct {
			uint64_t value, id, lost;
		} counts;

		if (read(attachment->events.items[i].fd, &counts, sizeof(counts)) == sizeof(counts))
			lost[attachment->events.items[i].event] += counts.lost;
	}
}
