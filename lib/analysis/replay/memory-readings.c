// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/memory-readings.h"

#include "base/limits.h"

void memory_readings_deinit(struct memory_readings *memory)
{
	vector_deinit_each(&memory->processes, process, vector_deinit(&process->points));
	vector_deinit(&memory->readings);
	map_deinit(&memory->latest);
	vector_deinit(&memory->sorted);
}

/* Keep the readings at even places. */
static void halve_readings(struct memory_readings *memory)
{
	memory->readings.count = (memory->readings.count + 1) / 2;
	for (size_t i = 0; i < memory->readings.count; i++)
		memory->readings.items[i] = memory->readings.items[2 * i];
	memory->point_count = 0;
	array_each(process, memory->processes.items, memory->processes.count) {
		size_t kept = 0;

		for (size_t j = 0; j < process->points.count; j++) {
			struct memory_point point = process->points.items[j];

			if (point.reading % 2)
				continue;
			point.reading /= 2;
			process->points.items[kept++] = point;
		}
		process->points.count = kept;
		memory->point_count += kept;
	}
}

static struct process_readings *find_latest(const struct memory_readings *memory, int32_t pid)
{
	const uint64_t *index = map_get(&memory->latest, (uint32_t)pid);

	return index ? &memory->processes.items[*index] : NULL;
}

static uint64_t limit_size(uint64_t bytes)
{
	return bytes < LIMIT_RESIDENT_BYTES ? bytes : LIMIT_RESIDENT_BYTES;
}

/* The point of the reading in progress; NULL: the process has none. */
static struct memory_point *find_point(const struct memory_readings *memory, struct process_readings *process)
{
	struct memory_point *point = process && !process->over && process->points.count
					 ? &process->points.items[process->points.count - 1]
					 : NULL;

	return point && point->reading + 1 == memory->readings.count ? point : NULL;
}

static struct mmt_error *take_process(struct memory_readings *memory, const struct event *event)
{
	struct process_readings *process = find_latest(memory, event->pid);
	uint64_t bytes = limit_size(event->note.value);
	struct memory_point point = {.reading = (uint32_t)memory->readings.count - 1, .resident_bytes = bytes};
	const struct memory_point *last;

	if (!process || process->over) {
		if (memory->processes.count == LIMIT_READ_PROCESSES)
			return NULL;
		if (!map_put(&memory->latest, (uint32_t)event->pid, memory->processes.count))
			return &error_no_memory;
		process = vector_append(&memory->processes);
		if (!process)
			return &error_no_memory;
		process->pid = event->pid;
	}
	if (!process->points.count || process->of.end_ns < memory->from_ns) {
		process->of.start_ns = event->time_ns;
		process->of.start_resident_bytes = bytes;
		process->of.start_swapped_bytes = 0;
	}
	process->of.end_ns = event->time_ns;
	process->of.end_resident_bytes = bytes;
	process->of.end_swapped_bytes = process->of.lazy_free_bytes = 0;
	if (find_point(memory, process))
		return NULL;
	/* A process that appeared since Pss was last read has most likely been forked, and shares all it has. */
	last = process->points.count ? &process->points.items[process->points.count - 1] : NULL;
	if (last) {
		point.pss_bytes = subtract(bytes, subtract(last->resident_bytes, last->pss_bytes));
		point.private_bytes = subtract(bytes, subtract(last->resident_bytes, last->private_bytes));
		point.lent_bytes = last->lent_bytes;
		point.gained_bytes = last->gained_bytes;
		point.lost_bytes = last->lost_bytes;
	} else if (!memory->has_pss) {
		point.pss_bytes = point.private_bytes = bytes;
	}
	memory->point_count++;
	return vector_push(&process->points, point) ? NULL : &error_no_memory;
}

/* The records of one reading are consecutive. */
static struct mmt_error *take_resident(struct memory_readings *memory, const struct event *event)
{
	const struct mmt_resident_reading next = {.time_ns = event->time_ns};
	struct mmt_resident_reading *reading;

	if (!memory->readings.count || event->note.number != memory->number) {
		if (memory->readings.count == LIMIT_READINGS || memory->point_count >= LIMIT_READING_POINTS)
			halve_readings(memory);
		if (!vector_push(&memory->readings, next))
			return &error_no_memory;
	}
	memory->number = event->note.number;
	reading = &memory->readings.items[memory->readings.count - 1];
	/* Saturate: differences of readings of a corrupt file must not overflow. */
	reading->resident_bytes = saturating_add(reading->resident_bytes, event->note.value, LIMIT_RESIDENT_BYTES);
	return take_process(memory, event);
}

/* Follows the resident size of the same process and reading. */
static void take_swapped(struct memory_readings *memory, const struct event *event)
{
	struct process_readings *process = find_latest(memory, event->pid);
	struct memory_point *point = find_point(memory, process);
	struct mmt_resident_reading *reading;

	if (!memory->readings.count || event->note.number != memory->number)
		return;
	reading = &memory->readings.items[memory->readings.count - 1];
	reading->swapped_bytes = saturating_add(reading->swapped_bytes, event->note.value, LIMIT_RESIDENT_BYTES);
	if (!process || process->over)
		return;
	process->of.end_swapped_bytes = limit_size(event->note.value);
	if (process->of.start_ns == process->of.end_ns)
		process->of.start_swapped_bytes = process->of.end_swapped_bytes;
	if (!point || point->has_pss)
		return;
	point->swapped_bytes = process->of.end_swapped_bytes;
	point->swap_pss_bytes = point->swapped_bytes;
	if (point > process->points.items)
		point->swap_pss_bytes =
		    subtract(point->swapped_bytes, subtract(point[-1].swapped_bytes, point[-1].swap_pss_bytes));
}

/* All but these bytes of the size changed evenly. */
static uint64_t estimate(const struct memory_point points[3], uint64_t bytes, uint64_t later_bytes, double share)
{
	double rest = (double)subtract(points[0].resident_bytes, bytes);
	double later = (double)subtract(points[2].resident_bytes, later_bytes);

	return subtract(points[1].resident_bytes, (uint64_t)(rest + (later - rest) * share));
}

/* Between two readings of Pss, what the process shared changed evenly. */
static void estimate_between(const struct memory_readings *memory, struct memory_point *first,
			     struct memory_point *point)
{
	struct memory_point *before = point;
	uint64_t start_ns, span_ns;

	while (before > first && !before[-1].has_pss)
		before--;
	/* A process that started after Pss was first read shared as much before its own first reading as in it. */
	if (before == first) {
		uint64_t shared = subtract(point->resident_bytes, point->pss_bytes);
		uint64_t not_alone = subtract(point->resident_bytes, point->private_bytes);

		if (first->pss_bytes == first->resident_bytes)
			return;
		for (; first < point; first++) {
			first->pss_bytes = subtract(first->resident_bytes, shared);
			first->private_bytes = subtract(first->resident_bytes, not_alone);
			first->lent_bytes = point->lent_bytes;
		}
		return;
	}
	before--;
	start_ns = memory->readings.items[before->reading].time_ns;
	span_ns = memory->readings.items[point->reading].time_ns - start_ns;
	for (struct memory_point *between = before + 1; between < point; between++) {
		uint64_t since_ns = memory->readings.items[between->reading].time_ns - start_ns;
		double share = span_ns ? (double)since_ns / (double)span_ns : 1;
		const struct memory_point points[] = {*before, *between, *point};

		between->pss_bytes = estimate(points, before->pss_bytes, point->pss_bytes, share);
		between->private_bytes = estimate(points, before->private_bytes, point->private_bytes, share);
		between->lent_bytes =
		    (uint64_t)((double)before->lent_bytes * (1 - share) + (double)point->lent_bytes * share);
		if (point->anonymous_bytes)
			between->anonymous_bytes =
			    estimate(points, before->anonymous_bytes, point->anonymous_bytes, share);
	}
}

static void take_pss(struct memory_readings *memory, const struct event *event)
{
	struct process_readings *process = find_latest(memory, event->pid);
	struct memory_point *point = find_point(memory, process);

	if (!point || point->has_pss || event->pss.reading != memory->number)
		return;
	/* What the process itself can have added or given back since Pss was read: a page copied takes a fault. */
	if (process->has_pss) {
		uint64_t resident = limit_size(event->pss.resident_bytes), huge = limit_size(event->pss.huge_bytes);
		uint64_t faults = subtract(event->pss.faults, process->last.faults), copied;

		if (__builtin_mul_overflow(faults, memory->page_bytes, &copied))
			copied = LIMIT_RESIDENT_BYTES;
		copied = saturating_add(copied, subtract(huge, process->last.huge_bytes), LIMIT_RESIDENT_BYTES);
		copied = saturating_add(copied, subtract(resident, process->last.resident_bytes), LIMIT_RESIDENT_BYTES);
		point->gained_bytes = saturating_add(point->gained_bytes, copied, LIMIT_RESIDENT_BYTES);
		point->lost_bytes = saturating_add(point->lost_bytes, subtract(process->last.resident_bytes, resident),
						   LIMIT_RESIDENT_BYTES);
	}
	point->has_pss = process->has_pss = memory->has_pss = true;
	point->pss_bytes = limit_size(event->pss.pss_bytes);
	point->swap_pss_bytes = limit_size(event->pss.swap_pss_bytes);
	point->private_bytes = limit_size(event->pss.private_bytes);
	point->anonymous_bytes = limit_size(event->pss.anonymous_bytes);
	point->lent_bytes =
	    event->pss.pss_anon_bytes ? subtract(point->anonymous_bytes, limit_size(event->pss.pss_anon_bytes)) : 0;
	estimate_between(memory, process->points.items, point);
	process->last = event->pss;
}

struct mmt_error *memory_readings_take(struct memory_readings *memory, const struct event *event)
{
	struct process_readings *process = find_latest(memory, event->pid);

	if (event->kind == EVENT_PSS)
		take_pss(memory, event);
	else if (event->note.kind == NOTE_RESIDENT)
		return take_resident(memory, event);
	else if (event->note.kind == NOTE_SWAPPED)
		take_swapped(memory, event);
	else if (find_point(memory, process) && event->note.number == memory->number)
		process->of.lazy_free_bytes = limit_size(event->note.value);
	return NULL;
}

void memory_readings_end_process(struct memory_readings *memory, int32_t pid)
{
	struct process_readings *process = find_latest(memory, pid);

	if (process)
		process->over = true;
}

size_t memory_readings_first(const struct memory_readings *memory, uint64_t from_ns)
{
	return partition_point(memory->readings.count, i, memory->readings.items[i].time_ns < from_ns);
}

uint64_t memory_readings_resident(const struct memory_readings *memory)
{
	return memory->readings.count ? memory->readings.items[memory->readings.count - 1].resident_bytes : MMT_UNKNOWN;
}

/* Places of processes, which are in the order of the starts. */
COMPARISON_WITH(compare_processes, uint32_t, struct process_readings,
		order_of(with[*a].pid, with[*b].pid) ?: order_of(*a, *b))

struct mmt_error *memory_readings_sort(struct memory_readings *memory)
{
	array_each(process, memory->processes.items, memory->processes.count) {
		size_t count = process->points.count;

		process->of.late_bytes = process->most_bytes = 0;
		for (size_t i = 0; i < count; i++) {
			const struct memory_point *point = &process->points.items[i];
			bool late = i >= smaller_of(count - count / 4, subtract(count, 3));
			uint64_t *most = late ? &process->of.late_bytes : &process->most_bytes;

			*most = larger_of(*most, point->resident_bytes + point->swapped_bytes);
		}
		process->most_bytes = larger_of(process->most_bytes, process->of.late_bytes);
	}
	for (size_t i = memory->sorted.count; i < memory->processes.count; i++) {
		if (!vector_push(&memory->sorted, (uint32_t)i))
			return &error_no_memory;
	}
	if (memory->sorted.count)
		qsort_r(memory->sorted.items, memory->sorted.count, sizeof(*memory->sorted.items), compare_processes,
			memory->processes.items);
	return NULL;
}

struct process_readings *memory_readings_of(const struct memory_readings *memory, const struct process *process)
{
	struct process_readings *all = memory->processes.items, *found;
	const uint32_t *sorted = memory->sorted.items;
	int32_t pid = process->pid;
	size_t after = partition_point(
	    memory->sorted.count, i,
	    all[sorted[i]].pid < pid || (all[sorted[i]].pid == pid && all[sorted[i]].of.start_ns <= process->ended_ns));

	if (!after)
		return NULL;
	found = &all[sorted[after - 1]];
	/* A process without a known parent was there when recording began. */
	return found->pid == pid && (!process->parent_pid || found->of.start_ns >= process->started_ns) &&
		       found->of.end_ns >= memory->from_ns
		   ? found
		   : NULL;
}
