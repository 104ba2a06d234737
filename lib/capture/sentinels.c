// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/sentinels.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/clock.h"
#include "capture/events.h"

#define STANDSTILL_NS 40000000ULL /* clocks of some machines go on by ticks, of 10 ms at most */

void sentinels_deinit(struct sentinels *sentinels)
{
	for (size_t i = 0; i < sentinels->items.count; i++) {
		if (sentinels->items.items[i].fd >= 0)
			close(sentinels->items.items[i].fd);
	}
	vector_deinit(&sentinels->items);
}

/* NULL: out of memory. */
static struct sentinel *find_or_add(struct sentinels *sentinels, int cpu)
{
	struct sentinel *added;

	for (size_t i = 0; i < sentinels->items.count; i++) {
		if (sentinels->items.items[i].cpu == cpu)
			return &sentinels->items.items[i];
	}
	added = vector_append(&sentinels->items);
	if (added)
		*added = (struct sentinel){.fd = -1, .cpu = cpu};
	return added;
}

int sentinels_open(struct sentinels *sentinels, int cpu)
{
	struct sentinel *sentinel = find_or_add(sentinels, cpu);
	struct perf_event_attr attribute;
	int errno_value;

	if (!sentinel)
		return ENOMEM;
	if (sentinel->fd >= 0)
		close(sentinel->fd);
	events_describe_sentinel(&attribute);
	sentinel->fd = (int)syscall(SYS_perf_event_open, &attribute, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	errno_value = sentinel->fd < 0 ? errno : 0;
	sentinel->enabled_ns = 0;
	sentinel->looked_ns = clock_now_ns();
	return errno_value;
}

/* What cannot be read has gone. */
static bool stands_still(struct sentinel *sentinel)
{
	struct {
		uint64_t value, enabled_ns;
	} counts;

	if (read(sentinel->fd, &counts, sizeof(counts)) != sizeof(counts) || counts.enabled_ns == sentinel->enabled_ns)
		return true;
	sentinel->enabled_ns = counts.enabled_ns;
	sentinel->looked_ns = clock_now_ns();
	return false;
}

/* Soon after the last look it may only seem so. */
static bool has_stopped(struct sentinel *sentinel)
{
	uint64_t since_ns = clock_now_ns() - sentinel->looked_ns;

	if (!stands_still(sentinel))
		return false;
	if (since_ns >= STANDSTILL_NS)
		return true;
	usleep((useconds_t)((STANDSTILL_NS - since_ns) / 1000));
	return stands_still(sentinel);
}

struct mmt_error *sentinels_find_stopped(struct sentinels *sentinels, cpu_list *stopped)
{
	for (size_t i = 0; i < sentinels->items.count; i++) {
		struct sentinel *sentinel = &sentinels->items.items[i];

		if (sentinel->fd >= 0 && has_stopped(sentinel) && !vector_push(stopped, sentinel->cpu))
			return &error_no_memory;
	}
	return NULL;
}
