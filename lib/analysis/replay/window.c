// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/replay/window.h"

#include <inttypes.h>
#include <time.h>

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
	case MMT_TIMESTAMP_MARK: /* notes_resolve() has converted them to clock times */
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

/* Length of the period before the window's end whose mappings are excluded as too recent. */
static uint64_t young_ns(const struct mmt_report_options *options, const struct window *window)
{
	uint64_t length = window->to_ns - window->from_ns;
	uint64_t tail = (uint64_t)(options->tail * (double)length);

	return options->min_age_ns > length || tail > length - options->min_age_ns ? length
										   : options->min_age_ns + tail;
}

struct mmt_error *window_resolve(const struct mmt_report_options *options, uint64_t start_ns, uint64_t end_ns,
				 uint64_t start_realtime_ns, struct window *window_ret)
{
	struct span span = {start_ns, end_ns, start_realtime_ns};
	struct window window = {0};
	struct mmt_error *error;
	uint64_t young;

	if (!start_realtime_ns && (needs_realtime(&options->from) || needs_realtime(&options->to)))
		return error_create(MMT_ERROR_INVALID, "the recording does not say at which time of day it began: give "
						       "the time since its start (10s) instead");
	if (end_ns < start_ns)
		return error_create(MMT_ERROR_INVALID,
				    "the recording has no parts: its clock went back, from @%" PRIu64 " at its start "
				    "to @%" PRIu64 " at its end; leave the window out",
				    start_ns, end_ns);
	window.from_ns = resolve_timestamp(&span, &options->from, start_ns);
	window.to_ns = resolve_timestamp(&span, &options->to, end_ns);
	error = check_timestamp(&span, "from", window.from_ns);
	if (!error)
		error = check_timestamp(&span, "to or --at", window.to_ns);
	if (error)
		return error;
	window.windowed = options->from.kind || options->to.kind || options->min_age_ns || options->tail > 0;
	window.ends_early = window.to_ns < end_ns;
	if (window.windowed && window.from_ns >= window.to_ns)
		return error_create(MMT_ERROR_INVALID, "--from must lie before --to");
	young = young_ns(options, &window);
	window.allocations_to_ns = window.to_ns - young;
	if (young && window.allocations_to_ns <= window.from_ns)
		return error_create(MMT_ERROR_INVALID,
				    "the window is %.3f s long: nothing in it is as old as --min-age "
				    "and --tail ask for",
				    (double)(window.to_ns - window.from_ns) / (double)NS_PER_SECOND);
	/* Events at the very end belong to the recording. */
	if (!young)
		window.allocations_to_ns = UINT64_MAX;
	*window_ret = window;
	return NULL;
}
