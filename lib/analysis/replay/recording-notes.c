// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/recording-notes.h"

#include <inttypes.h>
#include <sys/wait.h>
#include <time.h>

#include "base/limits.h"
#include "base/strings.h"

void notes_deinit(struct notes *notes)
{
	vector_deinit(&notes->oom_kills);
	memory_readings_deinit(&notes->memory);
	vector_deinit(&notes->unrecorded_children);
	vector_deinit(&notes->starts);
	intern_deinit(&notes->control_groups);
	vector_deinit(&notes->groups);
	vector_deinit(&notes->limits);
	map_deinit(&notes->limit_places);
}

bool notes_count(const struct notes *notes, int32_t pid)
{
	return !notes->pids || array_find(counted, notes->pids, notes->pid_count, *counted == pid);
}

uint64_t notes_large_dumps_off_ns(const struct notes *notes, uint64_t end_ns)
{
	uint64_t since_ns = notes->large_dumps_off_since_ns;

	return notes->large_dumps_off_ns + (notes->large_dumps_off && end_ns > since_ns ? end_ns - since_ns : 0);
}

static struct mmt_error *take_start(struct notes *notes, const struct event *event)
{
	const char *path = event->note.text;
	struct process_start start = {event->pid, (int32_t)(event->note.number & INT32_MAX),
				      (int32_t)(event->note.number >> NOTE_PARENT_SHIFT & INT32_MAX), event->note.value,
				      0};

	/* The note precedes the first reading of a process. */
	memory_readings_end_process(&notes->memory, event->pid);
	if (notes->starts.count == LIMIT_STARTS)
		return NULL;
	start.control_group = intern_put_string(&notes->control_groups, strlen(path) < LIMIT_PATH_BYTES ? path : "");
	return start.control_group != INTERN_NONE && vector_push(&notes->starts, start) ? NULL : &error_no_memory;
}

const struct process_start *notes_start(const struct notes *notes, int32_t pid)
{
	for (size_t i = notes->starts.count; i-- > 0;) {
		if (notes->starts.items[i].pid == pid)
			return &notes->starts.items[i];
	}
	return NULL;
}

static uint64_t limit_key(int32_t pid, uint32_t kind)
{
	return (uint64_t)(uint32_t)pid * NOTE_KINDS + kind;
}

static struct mmt_error *take_limit(struct notes *notes, const struct event *event)
{
	const uint64_t key = limit_key(event->pid, event->note.kind), *place = map_get(&notes->limit_places, key);
	struct noted_limit *limit = place ? &notes->limits.items[*place] : vector_append(&notes->limits);

	if (!limit || (!place && !map_put(&notes->limit_places, key, notes->limits.count - 1)))
		return &error_no_memory;
	limit->bytes = event->note.value;
	limit->used = larger_of(limit->used, event->note.number);
	return NULL;
}

const struct noted_limit *notes_limit(const struct notes *notes, int32_t pid, enum note_kind kind)
{
	const uint64_t *place = map_get(&notes->limit_places, limit_key(pid, kind));

	return place ? &notes->limits.items[*place] : NULL;
}

static bool take_oom_kill(struct notes *notes, const struct event *event)
{
	struct mmt_oom_kill oom_kill = {.time_ns = event->time_ns, .pid = event->pid};

	snprintf(oom_kill.name, sizeof(oom_kill.name), "%s", event->note.text);
	return vector_push(&notes->oom_kills, oom_kill);
}

/* The records of one reading have the same time. */
static struct mmt_error *take_group_memory(struct notes *notes, const struct event *event)
{
	uint32_t figure = NOTE_GROUP_FIGURE(event->note.kind);
	const char *path = event->note.text;
	uint64_t value = event->note.value;
	struct mmt_control_group *group;
	struct noted_group *noted;

	if (event->time_ns < notes->memory.from_ns || figure >= MMT_GROUP_FIGURES || event->pid < 0 ||
	    event->pid >= LIMIT_GROUPS)
		return NULL;
	if (!vector_extend(&notes->groups, (size_t)event->pid + 1))
		return &error_no_memory;
	noted = &notes->groups.items[event->pid];
	group = &noted->counters;
	/* The limit may be missing. Sums of changes must not overflow. */
	if (value > INT64_MAX / 4)
		value = MMT_UNKNOWN;
	if (!group->end_ns) {
		group->start_ns = event->time_ns;
		for (size_t i = 0; i < MMT_GROUP_FIGURES; i++)
			group->start[i] = group->end[i] = MMT_UNKNOWN;
		noted->path = intern_put_string(&notes->control_groups, strlen(path) < LIMIT_PATH_BYTES ? path : "");
		if (noted->path == INTERN_NONE)
			return &error_no_memory;
		group->selected = notes->group_selected && event->pid == 0;
	}
	if (event->time_ns == group->start_ns)
		group->start[figure] = value;
	group->end_ns = event->time_ns;
	group->end[figure] = value;
	if (figure == MMT_GROUP_CURRENT && value != MMT_UNKNOWN && value > group->peak_bytes)
		group->peak_bytes = value;
	return NULL;
}

/* Of a wait status; 0: the end is none, or ordinary. */
static int severity(int status)
{
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	return number && number != SIGINT && number != SIGTERM ? 3
	       : number					       ? 2
							       : WIFEXITED(status) && WEXITSTATUS(status);
}

struct mmt_error *notes_take(struct notes *notes, const struct event *event)
{
	struct event note = *event;
	bool done = true;
	int status;

	/* The times are untrusted, and the clock may have jumped: time stands still until it is later again. */
	note.time_ns = larger_of(note.time_ns, notes->latest_ns);
	notes->latest_ns = note.time_ns;
	if (event->kind == EVENT_PSS)
		return notes_count(notes, note.pid) ? memory_readings_take(&notes->memory, &note) : NULL;
	switch (note.note.kind) {
	case NOTE_RESIDENT:
	case NOTE_SWAPPED:
	case NOTE_LAZY_FREE:
		return notes_count(notes, note.pid) ? memory_readings_take(&notes->memory, &note) : NULL;
	case NOTE_STARTED:
		return take_start(notes, &note);
	case NOTE_LIMIT_FIRST ... NOTE_LIMIT_HUGE_PAGES:
		return take_limit(notes, &note);
	case NOTE_UNRECORDED_CHILDREN:
		if (notes_count(notes, note.pid) && notes->unrecorded_children.count < LIMIT_CHILDREN)
			done = vector_push(&notes->unrecorded_children,
					   ((struct missing_children){note.pid, note.note.value}));
		break;
	case NOTE_LARGE_DUMPS:
		if (notes->large_dumps_off == !note.note.value)
			break;
		notes->large_dumps_off_ns = notes_large_dumps_off_ns(notes, note.time_ns);
		notes->large_dumps_off_since_ns = note.time_ns;
		notes->large_dumps_off = !note.note.value;
		break;
	case NOTE_MARK:
		break;
	case NOTE_OOM_KILL:
		done = notes->oom_kills.count == LIMIT_OOM_KILLS || take_oom_kill(notes, &note);
		break;
	case NOTE_COMMAND_ENDED:
		status = (int)(note.note.value & UINT16_MAX);
		/* Of several that ended, one that crashed counts, even if the user stopped the others afterwards. */
		if (severity(status) && severity(status) >= severity(notes->command_end.status))
			notes->command_end = (struct mmt_command_end){note.time_ns, note.pid, status};
		break;
	default:
		return take_group_memory(notes, &note);
	}
	return done ? NULL : &error_no_memory;
}

uint64_t mmt_control_group_oom_kills(const struct mmt_control_group *group)
{
	uint64_t start = group ? group->start[MMT_GROUP_OOM_KILLS] : MMT_UNKNOWN;
	uint64_t end = group ? group->end[MMT_GROUP_OOM_KILLS] : MMT_UNKNOWN;

	return start != MMT_UNKNOWN && end != MMT_UNKNOWN && end > start ? end - start : 0;
}

uint64_t mmt_control_group_limit(const struct mmt_control_group *group)
{
	uint64_t limit = group->end[MMT_GROUP_LIMIT], high = group->end[MMT_GROUP_HIGH];

	return high < limit ? high : limit;
}

uint64_t mmt_control_group_room(const struct mmt_control_group *group)
{
	uint64_t limit = mmt_control_group_limit(group), used = group->end[MMT_GROUP_CURRENT];

	return limit == MMT_UNKNOWN || used == MMT_UNKNOWN ? MMT_UNKNOWN : used < limit ? limit - used : 0;
}

/* Is the first group nearer to its limit, or has it more OOM kills? One without the latest reading was removed. */
static bool is_pressed_more(const struct mmt_control_group *group, const struct mmt_control_group *other)
{
	uint64_t kills = mmt_control_group_oom_kills(group), others = mmt_control_group_oom_kills(other);

	if (kills != others || group->end_ns != other->end_ns)
		return kills != others ? kills > others : group->end_ns > other->end_ns;
	return mmt_control_group_room(group) < mmt_control_group_room(other);
}

/* Does the group, as far as that is known, have only processes that the report leaves out? */
static bool is_of_others(const struct notes *notes, const char *group)
{
	bool others = false;

	array_each(start, notes->starts.items, notes->pids ? notes->starts.count : 0) {
		if (!group_part_of(intern_get(&notes->control_groups, start->control_group, NULL), group))
			continue;
		if (notes_count(notes, start->pid))
			return false;
		others = true;
	}
	return others;
}

void notes_describe(const struct notes *notes, uint64_t from_ns, struct mmt_report *report)
{
	size_t first = memory_readings_first(&notes->memory, from_ns);

	report->oom_kill_count = notes->oom_kills.count;
	report->oom_kills = notes->oom_kills.items;
	if (notes->command_end.time_ns >= from_ns && notes_count(notes, notes->command_end.pid))
		report->command_end = notes->command_end;
	report->resident_reading_count = notes->memory.readings.count - first;
	if (report->resident_reading_count)
		report->resident_readings = notes->memory.readings.items + first;
	array_each(noted, notes->groups.items, notes->groups.count) {
		struct mmt_control_group *group = &noted->counters;

		if (!group->end_ns)
			continue;
		group->path = intern_get(&notes->control_groups, noted->path, NULL);
		if (is_of_others(notes, group->path))
			continue;
		if (!report->limiting_group || is_pressed_more(group, report->limiting_group))
			report->limiting_group = group;
		if (group->selected)
			report->control_group = group;
	}
	if (!report->control_group)
		report->control_group = report->limiting_group;
}

#define EXITED (1ULL << 32) /* beside the name */

static void count_one(struct setuid_execs_count *count, uint32_t name)
{
	if (!count->programs++ || name < count->name)
		count->name = name;
}

void setuid_execs_note(struct setuid_execs *setuid_execs, const struct event *event)
{
	uint32_t tid = (uint32_t)(event->kind == EVENT_MAPPING ? event->tid : event->task.tid);
	uint64_t *program = map_get(&setuid_execs->programs, tid);

	if (program && event->kind == EVENT_EXIT) {
		*program |= EXITED;
	} else if (program) {
		if (event->kind == EVENT_FORK && *program & EXITED)
			count_one(&setuid_execs->gone, (uint32_t)*program);
		map_remove(&setuid_execs->programs, tid);
	}
}

struct setuid_execs_count setuid_execs_count(const struct setuid_execs *setuid_execs)
{
	struct setuid_execs_count count = setuid_execs->gone;

	map_each(program, &setuid_execs->programs, true) {
		if (program->value & EXITED)
			count_one(&count, (uint32_t)program->value);
	}
	return count;
}

#define NS_PER_SECOND 1000000000ull

struct span {
	uint64_t start_ns, end_ns, start_realtime_ns;
};

/* Convert a time of day to nanoseconds since the epoch: its first occurrence in the recording. 0: not possible. */
static uint64_t find_time_of_day(const struct span *span, uint64_t ns)
{
	time_t began = (time_t)(span->start_realtime_ns / NS_PER_SECOND);
	struct tm local;

	if (!localtime_r(&began, &local))
		return 0;
	for (int day = 0; day < 2; day++) {
		struct tm timestamp = {
		    .tm_year = local.tm_year,
		    .tm_mon = local.tm_mon,
		    .tm_mday = local.tm_mday + day,
		    .tm_hour = (int)(ns / NS_PER_SECOND / 3600),
		    .tm_min = (int)(ns / NS_PER_SECOND / 60 % 60),
		    .tm_sec = (int)(ns / NS_PER_SECOND % 60),
		    .tm_isdst = -1,
		};
		time_t found = mktime(&timestamp);

		if (found >= began)
			return (uint64_t)found * NS_PER_SECOND;
	}
	return 0;
}

/* A time in whole seconds that contains the recording's start means that start. */
static uint64_t from_realtime(const struct span *span, uint64_t ns)
{
	uint64_t second = span->start_realtime_ns / NS_PER_SECOND * NS_PER_SECOND;

	if (ns >= span->start_realtime_ns)
		return span->start_ns + (ns - span->start_realtime_ns);
	return ns >= second ? span->start_ns : 0;
}

/* Convert to the recording's clock; 0 or UINT64_MAX: outside the recording. */
static uint64_t resolve_timestamp(const struct span *span, const struct mmt_timestamp *timestamp, uint64_t otherwise)
{
	switch (timestamp->kind) {
	case MMT_TIMESTAMP_SINCE_START:
		return timestamp->ns > UINT64_MAX - span->start_ns ? UINT64_MAX : span->start_ns + timestamp->ns;
	case MMT_TIMESTAMP_BEFORE_END:
		return timestamp->ns > span->end_ns ? 0 : span->end_ns - timestamp->ns;
	case MMT_TIMESTAMP_REALTIME:
		return from_realtime(span, timestamp->ns);
	case MMT_TIMESTAMP_TIME_OF_DAY:
		return from_realtime(span, find_time_of_day(span, timestamp->ns));
	case MMT_TIMESTAMP_CLOCK:
		return timestamp->ns;
	case MMT_TIMESTAMP_DEFAULT:
		break;
	}
	return otherwise;
}

static bool needs_realtime(const struct mmt_timestamp *timestamp)
{
	return timestamp->kind == MMT_TIMESTAMP_REALTIME || timestamp->kind == MMT_TIMESTAMP_TIME_OF_DAY;
}

static struct mmt_error *check_timestamp(const struct span *span, const char *option, uint64_t ns)
{
	double seconds = (double)(span->end_ns - span->start_ns) / (double)NS_PER_SECOND;

	if (ns >= span->start_ns && ns <= span->end_ns)
		return NULL;
	return error_create(MMT_ERROR_INVALID,
			    "--%s lies outside the recording, which is %.3f s long (@%" PRIu64 " to @%" PRIu64 ")",
			    option, seconds, span->start_ns, span->end_ns);
}

struct mmt_error *window_resolve(const struct mmt_report_options *options, uint64_t start_ns, uint64_t end_ns,
				 uint64_t start_realtime_ns, struct window *window_ret)
{
	struct span span = {start_ns, end_ns, start_realtime_ns};
	struct window window = {0};
	struct mmt_error *error;
	uint64_t young;

	if (!start_realtime_ns && (needs_realtime(&options->from) || needs_realtime(&options->to)))
		return error_create(MMT_ERROR_INVALID, "the recording does not contain the time of day of its start: "
						       "use times since the start, such as 10s");
	if (end_ns < start_ns)
		return error_create(MMT_ERROR_INVALID,
				    "--from and --to cannot be used: the recording's clock went back, from @%" PRIu64
				    " at its start to @%" PRIu64 " at its end",
				    start_ns, end_ns);
	window.from_ns = resolve_timestamp(&span, &options->from, start_ns);
	window.to_ns = resolve_timestamp(&span, &options->to, end_ns);
	error = check_timestamp(&span, "from", window.from_ns) ?: check_timestamp(&span, "to", window.to_ns);
	if (error)
		return error;
	window.windowed = options->from.kind || options->to.kind || options->min_age_ns;
	window.ends_early = window.to_ns < end_ns;
	if (window.windowed && window.from_ns >= window.to_ns)
		return error_create(MMT_ERROR_INVALID, "--from must lie before --to");
	young = options->min_age_ns;
	if (young && young >= window.to_ns - window.from_ns)
		return error_create(MMT_ERROR_INVALID, "the window is %.3f s long: --min-age excludes all of it",
				    (double)(window.to_ns - window.from_ns) / (double)NS_PER_SECOND);
	/* Events at the very end belong to the recording. */
	window.allocations_to_ns = young ? window.to_ns - young : UINT64_MAX;
	*window_ret = window;
	return NULL;
}
