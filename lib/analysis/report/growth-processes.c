// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The verdict on the memory of several processes: which processes count, what they share, which of them grow, and how
 * much they have together. growth-verdict.c judges one series of readings.
 */
#include "analysis/report/report-build.h"

#include "analysis/report/verdict-rules.h"

#define BRIEF_SIBLINGS_MIN 2
#define BRIEF_BYTES (16u << 20) /* a process this much larger than brief ones before it is worth a look */
#define UNREAD_SHARE 16		/* of RSS: with as much in processes without Pss, go by RSS */
#define GROWER_BYTES_MIN (1u << 20)
#define ORIGINS_MAX 64	  /* from parent to parent */
#define TORN_NS 100000000 /* Pss of all processes is read in less, even if they wait for a CPU */
#define OUTSIDE_SHARE 256 /* of the size: less is noise, because the processes are read one after the other */

/* All processes that count, in one reading. */
struct sum {
	double resident, swapped, pss, swap_pss, alone;
	double unread;			 /* of `resident`: in processes whose Pss was never read */
	double gained, lost;		 /* since the reading before; see struct memory_point */
	uint32_t processes, without_pss; /* without_pss: that one of them started or ended meanwhile counts, too */
	double started, ended; /* since the reading before: what processes that did so have of shared memory */
	bool sole;	       /* no other process has memory */
	double brief;	       /* what the brief children, which do not count, have of their own */
};

struct judgement {
	const struct rows *rows;
	struct memory_readings *memory;
	size_t first, count; /* places of the readings in the window */
	size_t processes, brief;
	uint64_t *counted_bytes;	     /* RSS of the processes that count, in all readings */
	struct sum *sums;		     /* of the readings in the window */
	struct mmt_resident_reading *series; /* room for all of them */
	double peak_pss, peak_with_brief;    /* with what others did */
	bool by_pss;
	bool unread;	    /* the Pss of processes with much of the memory is not known */
	bool complete_only; /* leave readings out in which a process has no Pss */
};

/* *cut_ret: the recording shows only a part of its life, which may have been longer. */
static bool lived_briefly(const struct judgement *judgement, const struct process *process, bool *cut_ret)
{
	const struct recording_info *info = &judgement->rows->replay->metadata->info;
	/* Of all readings: it does not depend on where the window begins. */
	uint64_t end_ns = judgement->memory->readings.items[judgement->memory->readings.count - 1].time_ns;
	uint64_t start_ns = judgement->memory->readings.items[0].time_ns;
	uint64_t began_ns = larger_of(process->started_ns, start_ns);
	uint64_t ended_ns = smaller_of(process->ended_ns, end_ns);
	bool is_target = array_find(pid, info->targets.items, info->targets.count, *pid == process->pid);

	*cut_ret = !process->ended || process->started_ns <= start_ns;
	return !is_target && (ended_ns <= began_ns || ended_ns - began_ns < (end_ns - start_ns) / VERDICT_PARTS);
}

/* The process that forked it, also before the recording; NULL: unknown. */
static const struct process *find_parent(const struct judgement *judgement, const struct process *process)
{
	const struct replay *replay = judgement->rows->replay;
	const struct process_start *start = notes_start(&replay->notes, process->pid);

	if (process->forked_from != process->index)
		return replay->processes->all.items[process->forked_from];
	return start && start->parent ? processes_find(replay->processes, start->parent) : NULL;
}

/* Children of one process that ended in the recording. */
struct ended_children {
	uint64_t count, largest_bytes, second_bytes;
	uint64_t whole, brief; /* of those whose whole life is known: how many, and how many lived briefly */
};

/*
 * A server may fork a process for each request. One that runs at the start or at the end stands in for the many between
 * them: leave it out if it is not much larger than those that ended, and most of these lived briefly. Leave none out
 * that the user asked for.
 */
static struct mmt_error *leave_out_brief(struct judgement *judgement)
{
	struct processes *processes = judgement->rows->replay->processes;
	CLEANUP(free)
	struct ended_children *children = calloc(processes->all.count + 1, sizeof(*children)); /* by parent */
	bool cut, brief;

	if (judgement->rows->options->pids)
		return NULL;
	if (!children)
		return &error_no_memory;
	for (const struct process *process = NULL; (process = processes_next(processes, process));) {
		struct ended_children *of = &children[process->forked_from];
		const struct process_readings *readings = memory_readings_of(judgement->memory, process);
		uint64_t size = readings ? readings->most_bytes : 0;

		if (!process->ended || process->forked_from == process->index || process->borrows_space)
			continue;
		brief = lived_briefly(judgement, process, &cut);
		of->whole += !cut;
		of->brief += !cut && brief;
		of->count++;
		of->second_bytes = larger_of(of->second_bytes, smaller_of(of->largest_bytes, size));
		of->largest_bytes = larger_of(of->largest_bytes, size);
	}
	for (const struct process *process = NULL; (process = processes_next(processes, process));) {
		struct process_readings *readings = memory_readings_of(judgement->memory, process);
		const struct process *parent = find_parent(judgement, process);
		const struct ended_children *of = &children[parent ? parent->index : process->index];
		uint64_t size = readings ? readings->most_bytes : 0, largest;

		if (!readings || !lived_briefly(judgement, process, &cut) || (cut && of->brief < of->whole / 2))
			continue;
		largest = process->ended && size == of->largest_bytes ? of->second_bytes : of->largest_bytes;
		/* The parent has had other children that ended, and this one is not much larger. */
		readings->of.brief =
		    process->forked_from == process->index
			? process->ended
			: of->count - process->ended >= BRIEF_SIBLINGS_MIN && size <= 2 * largest + BRIEF_BYTES;
	}
	return NULL;
}

/* Whether no other process that counts has memory in the reading. */
static bool is_sole(const struct judgement *judgement, const struct memory_point *point)
{
	return point->resident_bytes == judgement->counted_bytes[point->reading];
}

static uint64_t program_of(const struct process *process)
{
	space_each(interval, process->space, true) {
		if (interval->attributes.inode && interval->attributes.protection & PROT_EXEC)
			return interval->attributes.inode;
	}
	return 0;
}

/* The process whose memory this one got by fork; NULL: unknown, or it executed another program. */
static const struct process *find_origin(const struct judgement *judgement, const struct process *process)
{
	const struct process *parent = find_parent(judgement, process);

	if (process->program_ns > process->started_ns)
		return NULL;
	if (!parent || process->forked_from != process->index)
		return parent;
	/* The program of a process that ended is not known any more, but another one has another name. */
	return (process->ended ? process->name == parent->name : program_of(parent) == program_of(process)) ? parent
													    : NULL;
}

/* The first of the processes from which this one has its memory, by fork, that counts; NULL: none. `has_brief`: note
 * that they all have brief children. */
static struct process_readings *find_first(const struct judgement *judgement, const struct process *process,
					   bool has_brief)
{
	struct process_readings *first = NULL;

	for (unsigned i = 0; i < ORIGINS_MAX && (process = find_origin(judgement, process)); i++) {
		struct process_readings *readings = memory_readings_of(judgement->memory, process);

		if (!readings || readings->of.brief)
			continue;
		first = readings;
		first->has_brief |= has_brief;
	}
	return first;
}

/* The part of shared anonymous memory that is in Pss. */
static uint64_t shared_in_pss(const struct memory_point *point)
{
	return subtract(point->anonymous_bytes ? subtract(point->anonymous_bytes, point->lent_bytes) : point->pss_bytes,
			point->private_bytes);
}

/* Add what a process that counts has of the memory of the first one of its family. */
static void add_kept(struct process_readings *first, const struct process_readings *readings)
{
	struct memory_point *point = first->points.items, *end = point + first->points.count;
	uint64_t least = UINT64_MAX; /* with brief children, which come and go: the rest is theirs */

	array_each(of, readings->points.items, readings->points.count)
		least = of->has_pss ? smaller_of(shared_in_pss(of), least) : least;
	array_each(of, readings->points.items, readings->points.count) {
		while (point < end && point->reading < of->reading)
			point++;
		if (point < end && point->reading == of->reading)
			point->brief_bytes += readings->has_brief ? least : shared_in_pss(of);
	}
}

/*
 * Pss divides the memory of a process among its brief children, too, which do not count. Find out what they hold: what
 * it lends, less what those forked from it have that count. If there are none, others may have the least that it lends.
 */
static void find_lent_to_brief(const struct judgement *judgement)
{
	for (const struct process *process = NULL; (process = rows_next(judgement->rows, process));) {
		struct process_readings *readings = memory_readings_of(judgement->memory, process);
		struct process_readings *first =
		    readings && !readings->of.brief ? find_first(judgement, process, false) : NULL;

		if (first && first->has_brief && readings->has_pss)
			add_kept(first, readings);
	}
	for (const struct process *process = NULL; (process = rows_next(judgement->rows, process));) {
		struct process_readings *readings = memory_readings_of(judgement->memory, process);
		uint64_t least = UINT64_MAX;
		bool kept = false;

		if (!readings || !readings->has_brief)
			continue;
		array_each(point, readings->points.items, readings->points.count) {
			least = point->has_pss ? smaller_of(point->lent_bytes, least) : least;
			kept |= point->brief_bytes > 0;
		}
		array_each(point, readings->points.items, readings->points.count)
			point->brief_bytes = subtract(point->lent_bytes, kept ? point->brief_bytes : least);
	}
}

/* What Pss leaves to other processes than brief children. */
static uint64_t shared_bytes(const struct memory_point *point)
{
	return subtract(point->resident_bytes, point->pss_bytes + point->brief_bytes);
}

/* Whether something happened while Pss was read. */
static bool is_during(const struct judgement *judgement, size_t reading, uint64_t time_ns)
{
	uint64_t start_ns = judgement->memory->readings.items[reading].time_ns;

	return time_ns >= start_ns && time_ns - start_ns < TORN_NS;
}

/* Add a process to the sums. Memory that comes and goes with it is not the doing of others. */
static void add_process(struct judgement *judgement, const struct process *process,
			const struct process_readings *readings)
{
	/* A process that ended may have been too short-lived; of any other, RSS is all that is known. */
	bool unread = !readings->has_pss && !process->ended;
	const struct memory_point *points = readings->points.items;
	/* The latest reading of Pss with no other process, or the first; with brief children, the least shared one. */
	const struct memory_point *sole_pss = NULL;

	for (size_t i = 0; i < readings->points.count; i++) {
		if (points[i].has_pss && is_sole(judgement, &points[i]) &&
		    (!sole_pss || (readings->has_brief && shared_bytes(&points[i]) < shared_bytes(sole_pss))))
			sole_pss = &points[i];
	}
	for (size_t i = 0; i < readings->points.count; i++) {
		struct memory_point point = points[i];
		bool sole = is_sole(judgement, &point);
		struct sum *sum;

		if (sole && point.has_pss && !readings->has_brief)
			sole_pss = &points[i];
		point.pss_bytes += point.brief_bytes;
		/* The only process shares nothing with others of the recording, whatever it shared before: leave out
		 * what it shares with processes outside of it, which a reading of Pss tells. */
		if (unread || (sole && (!point.has_pss || readings->has_brief))) {
			point.pss_bytes = subtract(point.resident_bytes, sole_pss ? shared_bytes(sole_pss) : 0);
			point.swap_pss_bytes = point.swapped_bytes;
		}
		if (unread || (sole && !point.has_pss))
			point.private_bytes =
			    subtract(point.resident_bytes,
				     sole_pss ? subtract(sole_pss->resident_bytes, sole_pss->private_bytes) : 0);
		if (point.reading < judgement->first)
			continue;
		sum = &judgement->sums[points[i].reading - judgement->first];
		sum->resident += (double)point.resident_bytes;
		sum->swapped += (double)point.swapped_bytes;
		sum->pss += (double)point.pss_bytes;
		sum->alone += (double)point.private_bytes;
		sum->unread += unread ? (double)point.resident_bytes : 0;
		sum->swap_pss += (double)point.swap_pss_bytes;
		sum->gained += i ? (double)points[i].gained_bytes - (double)points[i - 1].gained_bytes
				 : (double)points[i].resident_bytes;
		sum->lost += i ? (double)points[i].lost_bytes - (double)points[i - 1].lost_bytes : 0;
		if (unread && i && points[i].resident_bytes > points[i - 1].resident_bytes)
			sum->gained += (double)(points[i].resident_bytes - points[i - 1].resident_bytes);
		else if (unread && i)
			sum->lost += (double)(points[i - 1].resident_bytes - points[i].resident_bytes);
		sum->processes++;
		sum->sole |= sole;
		sum->without_pss += !points[i].has_pss && !unread;
		sum->started += i ? 0 : (double)point.pss_bytes - (double)point.private_bytes;
		/* The processes are read one after the other: the Pss of some is from before, that of others from
		 * after it. */
		if (!i && points[i].reading > judgement->first)
			sum[-1].without_pss += is_during(judgement, points[i].reading - 1, process->started_ns);
		sum->without_pss += is_during(judgement, points[i].reading, process->ended_ns);
		if (i + 1 == readings->points.count && points[i].reading - judgement->first + 1 < judgement->count) {
			sum[1].lost += (double)points[i].resident_bytes;
			sum[1].ended += (double)point.pss_bytes - (double)point.private_bytes;
		}
	}
}

/* Add what a brief process has of its own: its private memory or, if that was never read, what it has more than the
 * process that it was forked from. */
static void add_brief(struct judgement *judgement, const struct process *process,
		      const struct process_readings *readings)
{
	const struct process *origin = find_origin(judgement, process);
	const struct process_readings *of = origin ? memory_readings_of(judgement->memory, origin) : NULL;
	size_t i = 0;

	array_each(point, readings->points.items, readings->points.count) {
		uint64_t bytes = point->private_bytes;

		while (of && i + 1 < of->points.count && of->points.items[i + 1].reading <= point->reading)
			i++;
		if (!readings->has_pss)
			bytes = subtract(point->resident_bytes,
					 of && of->points.count ? of->points.items[i].resident_bytes : 0);
		if (point->reading >= judgement->first)
			judgement->sums[point->reading - judgement->first].brief += (double)bytes;
	}
}

static uint64_t to_bytes(double bytes)
{
	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* Whether the Pss of all processes is known. */
static bool is_complete(const struct sum *sum)
{
	return !sum->without_pss || sum->sole;
}

/* The share of `bytes` by which the Pss of others changed, if `missing` is what it did not change by. */
static double share_of_others(double bytes, double missing)
{
	return bytes > 0 ? 1 - smaller_of(larger_of(missing / bytes, 0), 1) : 0;
}

/* What a process that starts or ends shares with others changes their Pss at once. Between two readings of the Pss of
 * all processes that was estimated to happen evenly. */
static void correct_estimates(struct judgement *judgement)
{
	const struct mmt_resident_reading *readings = judgement->memory->readings.items + judgement->first;
	struct sum *sums = judgement->sums;
	double started = 0, ended = 0;

	for (size_t i = 1, before = 0; i < judgement->count; i++) {
		double now = 0, excess, of_started, of_ended;

		started += sums[i].started;
		ended += sums[i].ended;
		if (sums[i].without_pss)
			continue;
		/* No more than the Pss of others changed by: the sum stays as it is if they have all that ended, and
		 * had all that started. Nothing is shared any more if one is left, which then has all of it. */
		excess = sums[i].sole ? 0 : sums[i].pss - sums[i].alone - sums[before].pss + sums[before].alone;
		of_started = share_of_others(started, excess);
		of_ended = share_of_others(ended, -excess);
		for (size_t j = before + 1; !sums[before].without_pss && j < i; j++) {
			double share = (double)(readings[j].time_ns - readings[before].time_ns) /
				       (double)(readings[i].time_ns - readings[before].time_ns);

			now += sums[j].started * of_started - sums[j].ended * of_ended;
			if (!sums[j].sole)
				sums[j].pss += (started * of_started - ended * of_ended) * share - now;
		}
		before = i;
		started = ended = 0;
	}
}

/* Decide whether RSS or Pss shows what the processes have. */
static void choose_measure(struct judgement *judgement)
{
	const struct sum *end = &judgement->sums[judgement->count - 1];
	size_t complete = 0;
	bool shared = false;

	array_each(sum, judgement->sums, judgement->count) {
		complete += is_complete(sum);
		shared |= sum->processes > 1 && is_complete(sum) &&
			  mmt_growth_goes_by_pss(to_bytes(sum->resident), to_bytes(sum->pss));
	}
	judgement->unread =
	    judgement->memory->has_pss && end->unread >= end->resident / UNREAD_SHARE && end->unread > 0;
	judgement->by_pss = judgement->memory->has_pss && shared && !judgement->unread;
	/* With fewer there is no verdict: readings without Pss count, too. */
	judgement->complete_only = complete >= VERDICT_READINGS;
}

/*
 * Find out how much of a change of one or several processes is the doing of others, which ended or started to share
 * their memory. What rises after it fell because of others, as the private memory of a process does while it has a
 * child, comes back to what it was.
 */
static void note_outside(double *outside_bytes, double change, double gained, double lost, double floor)
{
	double excess;

	if (change > 0 && *outside_bytes < 0) {
		double back = change < -*outside_bytes ? change : -*outside_bytes;

		*outside_bytes += back;
		change -= back;
	}
	excess = change > gained ? change - gained : change < -lost ? change + lost : 0;
	if (excess > floor || excess < -floor)
		*outside_bytes += excess;
}

/* Make the series that is judged: without what others did, so that its end is the size at the end. Returns the number
 * of its readings. */
static size_t make_series(struct judgement *judgement, double *outside_bytes)
{
	double gained = 0, lost = 0, before = 0, counted = 0;
	double *removed = calloc(judgement->count, sizeof(*removed));
	size_t count = 0;

	for (size_t i = 0; removed && i < judgement->count; i++) {
		const struct sum *sum = &judgement->sums[i];
		bool counts = !judgement->by_pss || !judgement->complete_only || is_complete(sum);

		gained += sum->gained;
		lost += sum->lost;
		counted = !counts ? counted : judgement->by_pss ? sum->pss : sum->resident;
		judgement->peak_with_brief = larger_of(counted + sum->brief, judgement->peak_with_brief);
		if (!counts)
			continue;
		if (judgement->by_pss && !sum->without_pss) {
			double now = sum->pss + sum->swap_pss, floor = now / OUTSIDE_SHARE;

			if (before > 0)
				note_outside(outside_bytes, now - before, gained, lost,
					     larger_of(floor, VERDICT_FLOOR_BYTES));
			before = now;
			gained = lost = 0;
		}
		removed[count] = *outside_bytes;
		judgement->peak_pss = larger_of(sum->pss, judgement->peak_pss);
		judgement->series[count++] = (struct mmt_resident_reading){
		    .time_ns = judgement->memory->readings.items[judgement->first + i].time_ns,
		    .resident_bytes = to_bytes(judgement->by_pss ? sum->pss : sum->resident),
		    .swapped_bytes = to_bytes(judgement->by_pss ? sum->swap_pss : sum->swapped)};
	}
	for (size_t i = 0; i < count; i++) {
		double bytes = (double)judgement->series[i].resident_bytes + *outside_bytes - removed[i];

		judgement->series[i].resident_bytes = to_bytes(bytes);
	}
	free(removed);
	return count;
}

/* The same for one process: its private memory, if it shares memory with others. Or its anonymous memory, which only it
 * can make more, and which stays as it is when others start to share it, or copy it. */
static size_t make_series_of_process(struct judgement *judgement, const struct process_readings *readings,
				     bool anonymous)
{
	const struct memory_point *points = readings->points.items, *last = NULL;
	bool by_pss = judgement->by_pss && readings->has_pss;
	double outside_bytes = 0;
	size_t count = 0;

	for (size_t i = 0; i < readings->points.count; i++) {
		double bytes = (double)points[i].resident_bytes;

		/* Pss is not read of an only process, which shares with no other. */
		if (points[i].reading < judgement->first || (anonymous && !points[i].anonymous_bytes) ||
		    (by_pss && judgement->complete_only && !points[i].has_pss && !is_sole(judgement, &points[i])))
			continue;
		if (anonymous) {
			bytes = (double)points[i].anonymous_bytes;
		} else if (by_pss) {
			if (last && points[i].has_pss)
				note_outside(&outside_bytes,
					     (double)points[i].private_bytes - (double)last->private_bytes,
					     (double)points[i].gained_bytes - (double)last->gained_bytes,
					     (double)points[i].lost_bytes - (double)last->lost_bytes, 0);
			last = points[i].has_pss ? &points[i] : last;
			bytes = (double)points[i].private_bytes - outside_bytes;
		}
		judgement->series[count++] = (struct mmt_resident_reading){
		    .time_ns = judgement->memory->readings.items[points[i].reading].time_ns,
		    .resident_bytes = to_bytes(bytes),
		    .swapped_bytes = by_pss && !anonymous ? points[i].swap_pss_bytes : points[i].swapped_bytes};
	}
	return count;
}

/* Judge each process. One that grows decides the verdict, even if others that shrank or ended hide it in the sum. */
static void judge_processes(struct judgement *judgement, struct mmt_growth *growth)
{
	double least = (double)growth->peak_bytes * VERDICT_NEGLIGIBLE;

	least = larger_of(least, GROWER_BYTES_MIN);
	for (const struct process *process = NULL; (process = rows_next(judgement->rows, process));) {
		struct process_readings *readings = memory_readings_of(judgement->memory, process);
		size_t count = readings && !readings->of.brief ? make_series_of_process(judgement, readings, false) : 0;
		struct mmt_process_readings *of;
		struct mmt_growth own, anonymous;
		uint64_t most_lent = 0;

		if (!count)
			continue;
		array_each(point, readings->points.items, readings->points.count)
			most_lent = larger_of(point->lent_bytes, most_lent);
		of = &readings->of;
		own = mmt_growth_judge(judgement->series, count);
		of->start_private_bytes = judgement->series[0].resident_bytes; /* growth may begin later */
		/* What a process with brief children has alone comes and goes with these. */
		if (judgement->by_pss && (own.verdict != MMT_VERDICT_GROWING || readings->has_brief)) {
			anonymous =
			    mmt_growth_judge(judgement->series, make_series_of_process(judgement, readings, true));
			if (anonymous.verdict == MMT_VERDICT_GROWING &&
			    (own.verdict != anonymous.verdict ||
			     mmt_growth_change(&own) - mmt_growth_change(&anonymous) <= (int64_t)most_lent))
				own = anonymous;
		}
		of->verdict = own.verdict;
		of->bytes_per_minute = own.bytes_per_minute;
		of->growth_bytes = mmt_growth_change(&own);
		of->growth_known = true;
		of->rising = !own.settled_ns;
		/* The sum may be level because others gave back what this one grew by. */
		if (growth->verdict == MMT_VERDICT_PLATEAU && own.verdict == growth->verdict &&
		    (double)of->growth_bytes >= least)
			growth->settled_ns = larger_of(growth->settled_ns, own.settled_ns);
		of->private_known = judgement->by_pss && readings->has_pss;
		of->end_private_bytes = readings->points.items[readings->points.count - 1].private_bytes;
		of->grows = !process->ended && of->verdict == MMT_VERDICT_GROWING && (double)of->growth_bytes >= least;
		if (of->grows && growth->verdict != MMT_VERDICT_GROWING) {
			growth->by_process = true;
			growth->sum_verdict = growth->verdict;
			growth->verdict = MMT_VERDICT_GROWING;
			growth->settled_ns = growth->advised_ns = 0; /* of the sum */
		}
	}
}

/* Judge several processes, and keep the figures that are the RSS of all of them. */
static struct mmt_error *judge_all(struct judgement *judgement, struct mmt_report *report)
{
	struct mmt_growth *growth = &report->growth;
	const struct mmt_resident_reading *all = judgement->memory->readings.items + judgement->first;
	double outside_bytes = 0;
	size_t count, most = 0, first = 0;

	choose_measure(judgement);
	count = judgement->by_pss || judgement->brief ? make_series(judgement, &outside_bytes) : 0;
	if (count) {
		struct mmt_resident_reading *readings = arena_alloc(judgement->rows->arena, count, sizeof(*readings));

		if (!readings)
			return &error_no_memory;
		memcpy(readings, judgement->series, count * sizeof(*readings));
		report->judged_readings = readings;
		report->judged_reading_count = count;
		*growth = mmt_growth_judge(judgement->series, count);
		growth->start_pss_bytes = to_bytes((double)growth->start_bytes - outside_bytes);
		growth->end_pss_bytes = growth->end_bytes;
		growth->peak_pss_bytes = to_bytes(judgement->peak_pss);
		growth->peak_with_brief_bytes = judgement->brief ? to_bytes(judgement->peak_with_brief) : 0;
		/* Pss may be read later than RSS, and growth may begin after a peak. */
		if (growth->start_ns > readings[0].time_ns)
			first = partition_point(judgement->count, i, all[i].time_ns < growth->start_ns);
		growth->start_bytes = to_bytes(judgement->sums[first].resident);
		growth->end_bytes = to_bytes(judgement->sums[judgement->count - 1].resident);
		for (size_t i = 1; i < judgement->count; i++)
			most = judgement->sums[i].resident > judgement->sums[most].resident ? i : most;
		growth->peak_bytes = to_bytes(judgement->sums[most].resident);
		growth->peak_ns = all[most].time_ns;
		growth->start_ns = all[first].time_ns;
		growth->end_ns = all[judgement->count - 1].time_ns;
		growth->by_pss = judgement->by_pss;
		growth->start_private_bytes = to_bytes(judgement->sums[first].alone);
		growth->end_private_bytes = to_bytes(judgement->sums[judgement->count - 1].alone);
		growth->outside_bytes = (int64_t)outside_bytes;
	}
	growth->sharers = judgement->sums[judgement->count - 1].processes;
	growth->pss_missing = judgement->unread;
	judge_processes(judgement, growth);
	return NULL;
}

/* How many readings count if all processes ended by themselves. Those that end in the last 1/17 of the time, such as the
 * workers of a pool, do not end at once: as the rows do, the readings count each as just before its end. And they may give back what they
 * kept in their last moments: if most of a rise is gone by then, and the readings before show growth, only these count.
 */
static size_t count_before_end(const struct rows *rows, const struct mmt_report *report)
{
	const struct mmt_resident_reading *readings = report->resident_readings;
	size_t count = report->resident_reading_count, last = 0, before;
	uint64_t last_ns, near_ns, ended_ns = UINT64_MAX;
	double fall, rise;

	if (!count)
		return 0;
	last_ns = readings[count - 1].time_ns;
	near_ns = last_ns - (last_ns - readings[0].time_ns) / (VERDICT_PARTS + 1);
	for (const struct process *process = NULL; (process = rows_next(rows, process));) {
		const struct process_readings *of = memory_readings_of(&rows->replay->notes.memory, process);

		if (!process->ended)
			return count;
		if (of && of->of.end_ns >= near_ns && !process_totals_are_released(rows->replay, process))
			ended_ns = smaller_of(of->of.end_ns, ended_ns);
	}
	before = larger_of(partition_point(count, i, readings[i].time_ns <= ended_ns), 1);
	/* If others grow by more than what ended, it is no end of them all. */
	if (!array_find(later, readings + before, count - before,
			later->resident_bytes > readings[before - 1].resident_bytes))
		count = before;
	for (size_t i = 0; i < count; i++)
		last = readings[i].resident_bytes >= readings[last].resident_bytes ? i : last;
	if (readings[last].time_ns < near_ns)
		return count;
	rise = (double)readings[last].resident_bytes - (double)readings[0].resident_bytes;
	fall = (double)readings[last].resident_bytes - (double)readings[count - 1].resident_bytes;
	return fall > VERDICT_HALF * rise && mmt_growth_judge(readings, last + 1).verdict == MMT_VERDICT_GROWING
		   ? last + 1
		   : count;
}

struct mmt_error *growth_judge(const struct rows *rows, struct mmt_report *report)
{
	struct memory_readings *memory = &rows->replay->notes.memory;
	struct judgement judgement = {.rows = rows, .memory = memory};
	size_t count = count_before_end(rows, report);
	struct mmt_error *error;
	bool all_brief;

	report->growth = mmt_growth_judge(report->resident_readings, count);
	report->judged_readings = report->resident_readings;
	report->judged_reading_count = report->resident_reading_count;
	judgement.first = memory_readings_first(memory, report->from_ns);
	judgement.count = memory->readings.count - judgement.first;
	/* With more processes than memory_readings keeps apart, only their sum is known. */
	if (!judgement.count || memory->processes.count < 2 || memory->processes.count == LIMIT_READ_PROCESSES)
		return NULL;
	judgement.sums = calloc(judgement.count, sizeof(*judgement.sums));
	judgement.series = calloc(judgement.count, sizeof(*judgement.series));
	judgement.counted_bytes = calloc(memory->readings.count, sizeof(*judgement.counted_bytes));
	error = judgement.sums && judgement.series && judgement.counted_bytes ? leave_out_brief(&judgement)
									      : &error_no_memory;
	for (const struct process *process = NULL; !error && (process = rows_next(rows, process));) {
		const struct process_readings *readings = memory_readings_of(memory, process);

		judgement.processes += readings && readings->points.count;
		judgement.brief += readings && readings->points.count && readings->of.brief;
	}
	all_brief = judgement.brief == judgement.processes;
	judgement.brief = all_brief ? 0 : judgement.brief;
	for (size_t i = 0; !error && i < memory->readings.count; i++)
		judgement.counted_bytes[i] = memory->readings.items[i].resident_bytes;
	for (const struct process *process = NULL; !error && (process = rows_next(rows, process));) {
		struct process_readings *readings = memory_readings_of(memory, process);

		if (!readings || !readings->of.brief)
			continue;
		readings->of.brief = !all_brief;
		array_each(point, readings->points.items, all_brief ? 0 : readings->points.count)
			judgement.counted_bytes[point->reading] -= point->resident_bytes;
		(void)find_first(&judgement, process, !all_brief);
	}
	if (judgement.brief && !error)
		find_lent_to_brief(&judgement);
	for (const struct process *process = NULL; !error && (process = rows_next(rows, process));) {
		const struct process_readings *readings = memory_readings_of(memory, process);

		if (readings && readings->points.count && readings->of.brief)
			add_brief(&judgement, process, readings);
		else if (readings && readings->points.count)
			add_process(&judgement, process, readings);
	}
	correct_estimates(&judgement);
	judgement.count = count; /* sums of all readings were made above */
	if (!error && judgement.processes > 1)
		error = judge_all(&judgement, report);
	free(judgement.sums);
	free(judgement.series);
	free(judgement.counted_bytes);
	return error;
}
