// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/recorder/recorder.h"

#define SECOND_NS 1000000000ULL
#define CALL_NS (SECOND_NS / LARGE_DUMPS_RATE)
#define FULL_NS (LARGE_DUMPS_BURST * CALL_NS)
#define LOW_NS (FULL_NS / 4)

/* The number of times that all events are switched. A thread that is created while its parent's events are switched may
 * inherit the previous state. At the second time the kernel has linked its events to those of the parent, so they are
 * switched, too. */
#define PASSES 2

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

/* Note whether large stack dumps are on from this time on. */
static struct mmt_error *note_state(struct recorder *recorder, uint64_t time_ns)
{
	const struct large_dumps *large = &recorder->reader.large_dumps;

	return recorder_note(recorder, NOTE_LARGE_DUMPS, 0, time_ns, large->on, large->switches, NULL);
}

struct mmt_error *large_dumps_step(struct recorder *recorder)
{
	struct large_dumps *large = &recorder->reader.large_dumps;
	struct mmt_error *error = NULL;
	enum switch_state state;
	uint64_t now_ns;
	bool on;

	if (!events_count_large_dumps(&recorder->reader.events) || recorder->stop_ns)
		return NULL;
	now_ns = clock_now_ns();
	on = large_dumps_rule_update(&large->rule, large->calls, now_ns);
	large->calls = 0;
	/* Stop a switch into the other direction, which ends after its current ioctl(). A later step starts the new
	 * one. */
	if (on != large->on && attach_stop_switch(&recorder->reader.attachment)) {
		attach_end_switch(&recorder->reader.attachment);
		large->on = on;
		recorder->reader.attachment.large_dumps_off = !on;
		large->passes_left = PASSES;
		large->switching = false;
		large->pass_ns = now_ns;
		if (!on)
			large->off_ns = now_ns;
		else if (recorder->writing)
			large->off_total_ns += now_ns - large->off_ns;
		large->switches += recorder->writing;
		error = recorder->writing ? note_state(recorder, now_ns) : NULL;
	}
	if (error)
		return error;
	state = attach_switch_state(&recorder->reader.attachment);
	if (large->switching && state == SWITCH_AT_WORK)
		return NULL;
	if (large->switching && state == SWITCH_COMPLETE) {
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

struct mmt_error *large_dumps_begin(struct recorder *recorder)
{
	struct large_dumps *large = &recorder->reader.large_dumps;

	if (large->on || !events_count_large_dumps(&recorder->reader.events))
		return NULL;
	large->off_ns = recorder->start_ns;
	large->switches++;
	return note_state(recorder, recorder->start_ns);
}
