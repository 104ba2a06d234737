// SPDX-License-Identifier: LGPL-2.1-or-later
/* CPU hotplug: which CPUs exist, and on which of them calls are missed. */
#include "capture/perf/ring-buffers.h"

#include "capture/procfs/proc.h"

#define ONLINE_FILE "/sys/devices/system/cpu/online"

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

bool cpus_have(const cpu_list *cpus, int cpu)
{
	return array_find(item, cpus->items, cpus->count, *item == cpu);
}

#define ASLEEP_NS_MIN 10000000ULL /* the two clocks are not read at the same time */

bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus,
		    uint64_t asleep_ns)
{
	bool suspended = watch->checked && asleep_ns > watch->asleep_ns + ASLEEP_NS_MIN;
	CLEANUP(free) char *text = NULL;

	/* In suspend to idle all CPUs stay online. */
	if (suspended && text_file_read(-1, "/sys/power/mem_sleep", &text) >= 0)
		suspended = !strstr(text, "[s2idle]");
	watch->checked = true;
	watch->asleep_ns = asleep_ns;
	for (size_t i = 0; on_cpus && i < recorded->count; i++) {
		int cpu = recorded->items[i];

		if ((!cpus_have(online, cpu) || (suspended && i)) && !cpus_have(&watch->away, cpu) &&
		    !vector_push(&watch->away, cpu))
			return false;
	}
	array_each(cpu, online->items, online->count) {
		if ((!cpus_have(recorded, *cpu) || cpus_have(&watch->away, *cpu)) && !cpus_have(&watch->missed, *cpu) &&
		    !vector_push(&watch->missed, *cpu))
			return false;
	}
	return true;
}
