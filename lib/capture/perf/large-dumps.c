// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/large-dumps.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/api.h"
#include "capture/perf/attach.h"
#include "capture/perf/clock.h"
#include "capture/recorder.h"
#include "capture/scheduling-priority.h"

enum switch_state { SWITCH_AT_WORK, SWITCH_COMPLETE, SWITCH_CUT_SHORT };

/* Runs in the thread that switches events. The descriptors stay open until this thread has ended. */
static void *switch_events(void *context)
{
	struct event_switch *switching = context;
	unsigned long request = switching->on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	size_t done = 0;

	/* The recorder waits for this thread before it closes events. During that wait the rings fill. */
	priority_raise_nice();
	for (size_t i = 0; i < switching->fds.count; i++) {
		if (__atomic_load_n(&switching->must_end, __ATOMIC_ACQUIRE))
			break;
		ioctl(switching->fds.items[i], request, 0);
		done = i + 1;
	}
	__atomic_store_n(&switching->is_complete, done == switching->fds.count, __ATOMIC_RELEASE);
	__atomic_store_n(&switching->has_ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * Switches large stack dumps on or off, including inherited events. A separate thread does this, because the kernel
 * takes a tenth of a second if thousands of threads have inherited an event.
 */
static struct mmt_error *attach_begin_switch(struct attachment *attachment, bool on)
{
	struct event_switch *switching = &attachment->switching;

	attach_end_switch(attachment);
	switching->fds.count = 0;
	for (size_t i = 0; i < attachment->events.count; i++) {
		const struct attached_event *event = &attachment->events.items[i];

		if (attachment->set->items.items[event->event].role == ROLE_LARGE_DUMP &&
		    !vector_push(&switching->fds, event->fd))
			return &error_no_memory;
	}
	switching->on = on;
	switching->is_complete = switching->has_ended = switching->must_end = false;
	switching->has_thread = thread_start(&switching->thread, switch_events, switching) == 0;
	/* If no thread can be created, switch in this one. */
	if (!switching->has_thread)
		switch_events(switching);
	return NULL;
}

static enum switch_state attach_switch_state(const struct attachment *attachment)
{
	const struct event_switch *switching = &attachment->switching;

	if (__atomic_load_n(&switching->is_complete, __ATOMIC_ACQUIRE))
		return SWITCH_COMPLETE;
	return switching->has_thread ? SWITCH_AT_WORK : SWITCH_CUT_SHORT;
}

/* Asks the thread to end early, without waiting for it. Returns true if it has ended, or if there is none. */
static bool attach_stop_switch(struct attachment *attachment)
{
	struct event_switch *switching = &attachment->switching;

	if (!switching->has_thread)
		return true;
	__atomic_store_n(&switching->must_end, true, __ATOMIC_RELEASE);
	return __atomic_load_n(&switching->has_ended, __ATOMIC_ACQUIRE);
}

void attach_end_switch(struct attachment *attachment)
{
	struct event_switch *switching = &attachment->switching;

	if (!switching->has_thread)
		return;
	__atomic_store_n(&switching->must_end, true, __ATOMIC_RELEASE);
	pthread_join(switching->thread, NULL);
	switching->has_thread = false;
}

#define SECOND_NS 1000000000ULL
#define CALL_NS (SECOND_NS / LARGE_DUMPS_RATE)
#define FULL_NS (LARGE_DUMPS_BURST * CALL_NS)
#define LOW_NS (FULL_NS / 4)

/*
 * The number of times that all events are switched. A thread that is created while its parent's events are switched may
 * inherit the previous state. At the second time the kernel has linked its events to those of the parent, so they are
 * switched, too.
 */
#define PASSES 2

void large_dumps_rule_init(struct large_dumps_rule *rule, uint64_t now_ns)
{
	*rule = (struct large_dumps_rule){.time_ns = now_ns, .on = true};
}

bool large_dumps_rule_update(struct large_dumps_rule *rule, uint64_t calls, uint64_t now_ns)
{
	uint64_t past_ns = now_ns > rule->time_ns ? now_ns - rule->time_ns : 0;
	uint64_t room_ns;

	rule->time_ns += past_ns;
	rule->level_ns -= past_ns < rule->level_ns ? past_ns : rule->level_ns;
	room_ns = FULL_NS - rule->level_ns;
	rule->level_ns += calls < room_ns / CALL_NS ? calls * CALL_NS : room_ns;
	if (rule->level_ns == FULL_NS)
		rule->on = false;
	else if (rule->level_ns <= LOW_NS)
		rule->on = true;
	return rule->on;
}

void large_dumps_init(struct large_dumps *large, uint64_t now_ns)
{
	memset(large, 0, sizeof(*large));
	large_dumps_rule_init(&large->rule, now_ns);
	large->on = true;
}

static struct mmt_error *begin_switch(struct recorder *recorder, bool on, uint64_t now_ns)
{
	struct large_dumps *large = &recorder->reader.large_dumps;

	attach_end_switch(&recorder->reader.attachment);
	large->on = on;
	recorder->reader.attachment.large_dumps_off = !on;
	large->passes_left = PASSES;
	large->switching = false;
	large->pass_ns = now_ns;
	if (!on)
		large->off_ns = now_ns;
	if (!recorder->writing)
		return NULL;
	if (on)
		large->off_total_ns += now_ns - large->off_ns;
	large->switches++;
	return recorder_note_large_dumps(recorder, now_ns);
}

static struct mmt_error *continue_switch(struct recorder *recorder, uint64_t now_ns)
{
	struct large_dumps *large = &recorder->reader.large_dumps;

	if (large->switching && attach_switch_state(&recorder->reader.attachment) == SWITCH_AT_WORK)
		return NULL;
	if (large->switching && attach_switch_state(&recorder->reader.attachment) == SWITCH_COMPLETE) {
		if (large->passes_left-- == PASSES)
			recorder_message(recorder, false, "large stack dumps are %s",
					 large->on ? "on again" : "off: the call rate is too high");
		large->pass_ns = now_ns + SECOND_NS;
	}
	large->switching = false;
	if (!large->passes_left || now_ns < large->pass_ns)
		return NULL;
	large->switching = true;
	return attach_begin_switch(&recorder->reader.attachment, large->on);
}

struct mmt_error *large_dumps_step(struct recorder *recorder)
{
	struct large_dumps *large = &recorder->reader.large_dumps;
	struct mmt_error *error = NULL;
	uint64_t now_ns;
	bool on;

	if (!events_have_large_dumps(&recorder->reader.events) || recorder->stop_ns)
		return NULL;
	now_ns = clock_now_ns();
	on = large_dumps_rule_update(&large->rule, large->calls, now_ns);
	large->calls = 0;
	/* Stop a switch into the other direction, which ends after its current ioctl(). A later step starts the new
	 * one. */
	if (on != large->on && attach_stop_switch(&recorder->reader.attachment))
		error = begin_switch(recorder, on, now_ns);
	return error ? error : continue_switch(recorder, now_ns);
}

struct mmt_error *large_dumps_begin(struct recorder *recorder)
{
	struct large_dumps *large = &recorder->reader.large_dumps;

	if (large->on || !events_have_large_dumps(&recorder->reader.events))
		return NULL;
	large->off_ns = recorder->start_ns;
	large->switches++;
	return recorder_note_large_dumps(recorder, recorder->start_ns);
}

void large_dumps_end(struct recorder *recorder)
{
	struct large_dumps *large = &recorder->reader.large_dumps;

	attach_end_switch(&recorder->reader.attachment);
	if (!large->on && recorder->stop_ns > large->off_ns)
		large->off_total_ns += recorder->stop_ns - large->off_ns;
}
