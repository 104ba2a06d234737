// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts lost events. lost-events.h names the places from the recorder to the warning in the report. */
#include "analysis/replay/lost-events.h"

#include "base/limits.h"
#include "trace/read/reader.h"

void lost_events_deinit(struct lost_events *lost)
{
	vector_deinit(&lost->latest);
}

bool lost_events_note(struct lost_events *lost, int32_t cpu, uint64_t sequence)
{
	lost->anywhere = sequence;
	if (cpu < 0 || cpu >= LIMIT_CPUS) {
		lost->everywhere = sequence;
		return true;
	}
	while (lost->latest.count <= (size_t)cpu) {
		if (!vector_push(&lost->latest, 0))
			return false;
	}
	lost->latest.items[cpu] = sequence;
	return true;
}

bool lost_events_since(const struct lost_events *lost, int32_t cpu, uint64_t sequence)
{
	if (lost->anywhere <= sequence)
		return false;
	if (cpu < 0 || lost->everywhere > sequence)
		return true;
	return (size_t)cpu < lost->latest.count && lost->latest.items[cpu] > sequence;
}

void lost_events_count(const struct reader_metadata *metadata, uint64_t reported, struct mmt_completeness *counts_ret)
{
	for (size_t i = 0; i < metadata->loss.lost.count && i < metadata->attribute_count; i++) {
		if (metadata->attributes[i].role == ROLE_DUMP)
			counts_ret->lost_stack_dumps += metadata->loss.lost.items[i];
		else if (metadata->attributes[i].role == ROLE_LARGE_DUMP)
			counts_ret->lost_large_stack_dumps += metadata->loss.lost.items[i];
		else
			counts_ret->lost_events += metadata->loss.lost.items[i];
	}
	if (!metadata->has_loss)
		counts_ret->lost_events = reported;
}
