// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/cpus.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "capture/text-file.h"

#define ONLINE_FILE "/sys/devices/system/cpu/online"
#define CPUS_MAX 65536

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
		for (long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
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

void cpu_watch_deinit(struct cpu_watch *watch)
{
	vector_deinit(&watch->unseen);
	vector_deinit(&watch->away);
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

bool cpu_watch_note(struct cpu_watch *watch, const cpu_list *recorded, const cpu_list *online, bool on_cpus)
{
	bool ok = true;

	for (size_t i = 0; ok && i < online->count; i++) {
		int cpu = online->items[i];

		if (!has(recorded, cpu) || has(&watch->away, cpu))
			ok = add(&watch->unseen, cpu);
	}
	for (size_t i = 0; ok && on_cpus && i < recorded->count; i++) {
		int cpu = recorded->items[i];

		if (!has(online, cpu))
			ok = add(&watch->away, cpu);
	}
	return ok;
}
