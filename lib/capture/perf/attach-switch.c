// SPDX-License-Identifier: LGPL-2.1-or-later
/* Switching events off and on while they are recorded: see attach.h. */
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include "base/thread.h"
#include "capture/perf/attach.h"
#include "capture/perf/scheduling-priority.h"

/* No other thread closes the descriptors before this one has ended. */
static void *switch_events(void *context)
{
	struct event_switch *switching = context;
	unsigned long request = switching->on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
	size_t done = 0;

	/* The recorder waits for this thread before it closes events, and the rings fill during that wait. */
	priority_take_nice();
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

struct mmt_error *attach_begin_switch(struct attachment *attachment, bool on)
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
	/* Without a thread, switch here. */
	if (!switching->has_thread)
		switch_events(switching);
	return NULL;
}

enum switch_state attach_switch_state(const struct attachment *attachment)
{
	const struct event_switch *switching = &attachment->switching;

	if (__atomic_load_n(&switching->is_complete, __ATOMIC_ACQUIRE))
		return SWITCH_COMPLETE;
	return switching->has_thread ? SWITCH_AT_WORK : SWITCH_CUT_SHORT;
}

bool attach_stop_switch(struct attachment *attachment)
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
