// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/cpu-hotplug.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "capture/procfs/clock.h"
#include "capture/perf/perf-events.h"
#include "capture/procfs/proc.h"

#define ONLINE_FILE "/sys/devices/system/cpu/online"
#define PRESENT_FILE "/sys/devices/system/cpu/present"
#define SMT_FILE "/sys/devices/system/cpu/smt/control"

bool cpus_parse(const char *text, cpu_list *cpus)
{
	for (const char *position = text;;) {
		char *end;
		long first = strtol(position, &end, 10);
		long last = first;

		if (end == position)
			return true;
		if (*end == '-')
			last = strtol(end + 1, &end, 10);
		for (long cpu = first; cpu <= last && cpu < LIMIT_CPU_LIST; cpu++) {
			if (!vector_push(cpus, (int)cpu))
				return false;
		}
		if (*end != ',')
			return true;
		position = end + 1;
	}
}

struct mmt_error *cpus_list_online(cpu_list *cpus)
{
	CLEANUP(free) char *text = NULL;
	int result = text_file_read(-1, ONLINE_FILE, &text);

	if (result < 0)
		return error_system(-result, "cannot read " ONLINE_FILE);
	if (!cpus_parse(text, cpus))
		return &error_no_memory;
	return cpus->count ? NULL : error_create(MMT_ERROR_SYSTEM, "no CPU in " ONLINE_FILE);
}

static bool has(const cpu_list *cpus, int cpu)
{
	for (size_t i = 0; i < cpus->count; i++) {
		if (cpus->items[i] == cpu)
			return true;
	}
	return false;
}

static bool add(cpu_list *cpus, int cpu)
{
	return has(cpus, cpu) || vector_push(cpus, cpu);
}

bool cpus_add_offline(const char *present, const char *smt_control, cpu_list *cpus, size_t *left_out_ret)
{
	size_t most = 2 * cpus->count;
	cpu_list all = {0};
	bool ok = true;

	*left_out_ret = 0;

	/* Skip disabled SMT siblings. They may be half of all possible CPUs and do not come online by themselves, and
	 * events on them would be expensive. */
	if (strncmp(smt_control, "off", 3) && strncmp(smt_control, "forceoff", 8))
		ok = cpus_parse(present, &all);
	for (size_t i = 0; ok && i < all.count; i++) {
		if (cpus->count < most)
			ok = add(cpus, all.items[i]);
		else
			*left_out_ret += !has(cpus, all.items[i]);
	}
	vector_deinit(&all);
	return ok;
}

struct mmt_error *cpus_list_usable(cpu_list *cpus, size_t *online_ret, size_t *left_out_ret)
{
	CLEANUP(free) char *present = NULL;
	CLEANUP(free) char *smt_control = NULL;
	struct mmt_error *error = cpus_list_online(cpus);

	*online_ret = cpus->count;
	*left_out_ret = 0;
	if (error || text_file_read(-1, PRESENT_FILE, &present) < 0)
		return error;
	(void)text_file_read(-1, SMT_FILE, &smt_control);
	return cpus_add_offline(present, smt_control ? smt_control : "", cpus, left_out_ret) ? NULL : &error_no_memory;
}

void cpu_watch_deinit(struct cpu_watch *watch)
{
	vector_deinit(&watch->missed);
	vector_deinit(&watch->without_events);
}

bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus)
{
	bool ok = true;

	for (size_t i = 0; ok && i < online->count; i++) {
		int cpu = online->items[i];

		if (!has(recorded, cpu) || has(&watch->without_events, cpu))
			ok = add(&watch->missed, cpu);
	}
	for (size_t i = 0; ok && on_cpus && i < recorded->count; i++) {
		int cpu = recorded->items[i];

		if (!has(online, cpu))
			ok = add(&watch->without_events, cpu);
	}
	return ok;
}

bool cpu_watch_add_without_events(struct cpu_watch *watch, int cpu)
{
	return add(&watch->without_events, cpu);
}

bool cpu_watch_note_stopped(struct cpu_watch *watch, const cpu_list *stopped, const cpu_list *online)
{
	bool ok = true;

	for (size_t i = 0; ok && i < stopped->count; i++) {
		int cpu = stopped->items[i];

		if (has(online, cpu))
			ok = add(&watch->missed, cpu) && add(&watch->without_events, cpu);
	}
	return ok;
}

bool cpu_watch_pop_online(struct cpu_watch *watch, const cpu_list *online, int *cpu_ret)
{
	for (size_t i = 0; i < watch->without_events.count; i++) {
		if (!has(online, watch->without_events.items[i]))
			continue;
		*cpu_ret = watch->without_events.items[i];
		watch->without_events.items[i] = watch->without_events.items[--watch->without_events.count];
		return true;
	}
	return false;
}

#define ADVANCE_NS_MAX 40000000ULL /* a running clock advances in this time: some have ticks of 10 ms */

void hotplug_events_deinit(struct hotplug_events *hotplug_events)
{
	for (size_t i = 0; i < hotplug_events->items.count; i++) {
		if (hotplug_events->items.items[i].fd >= 0)
			close(hotplug_events->items.items[i].fd);
	}
	vector_deinit(&hotplug_events->items);
}

/* Returns NULL if out of memory. */
static struct hotplug_event *find_or_add(struct hotplug_events *hotplug_events, int cpu)
{
	struct hotplug_event *added;

	for (size_t i = 0; i < hotplug_events->items.count; i++) {
		if (hotplug_events->items.items[i].cpu == cpu)
			return &hotplug_events->items.items[i];
	}
	added = vector_append(&hotplug_events->items);
	if (added)
		*added = (struct hotplug_event){.fd = -1, .cpu = cpu};
	return added;
}

int hotplug_events_open(struct hotplug_events *hotplug_events, int cpu)
{
	struct hotplug_event *hotplug_event = find_or_add(hotplug_events, cpu);
	struct perf_event_attr attribute;
	int errno_value;

	if (!hotplug_event)
		return ENOMEM;
	if (hotplug_event->fd >= 0)
		close(hotplug_event->fd);
	events_describe_hotplug_event(&attribute);
	hotplug_event->fd = (int)syscall(SYS_perf_event_open, &attribute, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	errno_value = hotplug_event->fd < 0 ? errno : 0;
	hotplug_event->enabled_ns = 0;
	hotplug_event->checked_ns = clock_now_ns();
	return errno_value;
}

/* Has the count stopped advancing? An event that cannot be read is on a CPU that has gone offline. */
static bool has_not_advanced(struct hotplug_event *hotplug_event)
{
	struct {
		uint64_t value, enabled_ns;
	} counts;

	if (read(hotplug_event->fd, &counts, sizeof(counts)) != sizeof(counts) ||
	    counts.enabled_ns == hotplug_event->enabled_ns)
		return true;
	hotplug_event->enabled_ns = counts.enabled_ns;
	hotplug_event->checked_ns = clock_now_ns();
	return false;
}

/* Waits if the last check was so recent that a running clock may not have advanced since. */
static bool has_stopped(struct hotplug_event *hotplug_event)
{
	uint64_t since_ns = clock_now_ns() - hotplug_event->checked_ns;

	if (!has_not_advanced(hotplug_event))
		return false;
	if (since_ns >= ADVANCE_NS_MAX)
		return true;
	usleep((useconds_t)((ADVANCE_NS_MAX - since_ns) / 1000));
	return has_not_advanced(hotplug_event);
}

struct mmt_error *hotplug_events_find_stopped(struct hotplug_events *hotplug_events, cpu_list *stopped)
{
	for (size_t i = 0; i < hotplug_events->items.count; i++) {
		struct hotplug_event *hotplug_event = &hotplug_events->items.items[i];

		if (hotplug_event->fd >= 0 && has_stopped(hotplug_event) && !vector_push(stopped, hotplug_event->cpu))
			return &error_no_memory;
	}
	return NULL;
}
