// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/cpu-hotplug.h"

#include <errno.h>
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

bool cpus_add_offline(const char *present, const char *smt_control, cpu_list *cpus, size_t *left_out_ret)
{
	size_t most = 2 * cpus->count;
	CLEANUP(vector) cpu_list all = {0};

	*left_out_ret = 0;
	/* Skip disabled SMT siblings. They may be half of all possible CPUs and do not come online by themselves, and
	 * events on them would be expensive. */
	if (strncmp(smt_control, "off", 3) && strncmp(smt_control, "forceoff", 8) && !cpus_parse(present, &all))
		return false;
	for (size_t i = 0; i < all.count; i++) {
		if (has(cpus, all.items[i]))
			continue;
		if (cpus->count == most)
			++*left_out_ret;
		else if (!vector_push(cpus, all.items[i]))
			return false;
	}
	return true;
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

#define ADVANCE_NS_MAX 40000000ULL /* a running clock advances in this time: some have ticks of 10 ms */

void cpu_watch_deinit(struct cpu_watch *watch)
{
	for (size_t i = 0; i < watch->items.count; i++)
		close_descriptor(&watch->items.items[i].fd);
	vector_deinit(&watch->items);
}

/* Returns NULL if out of memory. */
static struct watched_cpu *find_or_add(struct cpu_watch *watch, int cpu)
{
	struct watched_cpu *added;

	for (size_t i = 0; i < watch->items.count; i++) {
		if (watch->items.items[i].cpu == cpu)
			return &watch->items.items[i];
	}
	added = vector_append(&watch->items);
	if (added)
		*added = (struct watched_cpu){.fd = -1, .cpu = cpu};
	return added;
}

int cpu_watch_open(struct cpu_watch *watch, int cpu)
{
	struct watched_cpu *watched = find_or_add(watch, cpu);
	struct perf_event_attr attribute;
	int errno_value;

	if (!watched)
		return ENOMEM;
	close_descriptor(&watched->fd);
	events_describe_dummy(&attribute);
	attribute.inherit = 0;
	attribute.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED;
	watched->fd = (int)syscall(SYS_perf_event_open, &attribute, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	errno_value = watched->fd < 0 ? errno : 0;
	watched->enabled_ns = 0;
	watched->counted_ns = clock_now_ns();
	return errno_value;
}

/* Has the count stopped advancing? An event that cannot be read is on a CPU that has gone offline. */
static bool has_not_advanced(struct watched_cpu *watched)
{
	struct {
		uint64_t value, enabled_ns;
	} counts;

	if (read(watched->fd, &counts, sizeof(counts)) != sizeof(counts) || counts.enabled_ns == watched->enabled_ns)
		return true;
	watched->enabled_ns = counts.enabled_ns;
	watched->counted_ns = clock_now_ns();
	return false;
}

void cpu_watch_find_stopped(struct cpu_watch *watch)
{
	for (size_t i = 0; i < watch->items.count; i++) {
		struct watched_cpu *watched = &watch->items.items[i];
		uint64_t since_ns = clock_now_ns() - watched->counted_ns;

		if (watched->fd < 0 || !has_not_advanced(watched))
			continue;
		/* The last check was so recent that a running clock may not have advanced since. */
		if (since_ns < ADVANCE_NS_MAX)
			usleep((useconds_t)((ADVANCE_NS_MAX - since_ns) / 1000));
		watched->lacks_events |= since_ns >= ADVANCE_NS_MAX || has_not_advanced(watched);
	}
}

bool cpu_watch_add_without_events(struct cpu_watch *watch, int cpu)
{
	struct watched_cpu *watched = find_or_add(watch, cpu);

	if (watched)
		watched->lacks_events = true;
	return watched;
}

bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus)
{
	for (size_t i = 0; i < online->count; i++) {
		struct watched_cpu *watched = find_or_add(watch, online->items[i]);

		if (!watched)
			return false;
		if (watched->missed || (!watched->lacks_events && has(recorded, watched->cpu)))
			continue;
		watched->missed = true;
		if (!watch->missed_count++)
			watch->first_missed = watched->cpu;
	}
	for (size_t i = 0; on_cpus && i < recorded->count; i++) {
		if (!has(online, recorded->items[i]) && !cpu_watch_add_without_events(watch, recorded->items[i]))
			return false;
	}
	return true;
}

bool cpu_watch_pop_online(struct cpu_watch *watch, const cpu_list *online, int *cpu_ret)
{
	for (size_t i = 0; i < watch->items.count; i++) {
		struct watched_cpu *watched = &watch->items.items[i];

		if (!watched->lacks_events || !has(online, watched->cpu))
			continue;
		watched->lacks_events = false;
		*cpu_ret = watched->cpu;
		return true;
	}
	return false;
}
