/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints the memory calls of a recording, each with its call stack. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <mmtrace/events.h>
#include <mmtrace/output.h>

static void print_stack(const struct mmt_stack *stack)
{
	for (size_t i = 0; i < stack->frame_count; i++) {
		fputs("    ", stdout);
		mmt_write_escaped(stack->frames[i]->function ? stack->frames[i]->function : "?", stdout);
		putchar('\n');
	}
}

static struct mmt_error *print_calls(struct mmt_events *events)
{
	const struct mmt_event *event;
	struct mmt_error *error;

	while (!(error = mmt_events_next(events, &event)) && event) {
		const struct mmt_stack *stack;

		if (event->kind != MMT_EVENT_CALL)
			continue;
		printf("%" PRIu64 " ns, thread %" PRId32 ": %s", event->time_ns, event->tid, event->call->name);
		if (event->call->failed)
			printf(" failed: %s\n", strerror((int)-event->call->result));
		else
			printf(" of %" PRIu64 " bytes\n", event->call->range_bytes);
		error = mmt_events_symbolize(events, &stack);
		if (error)
			break;
		print_stack(stack);
	}
	return error;
}

int main(int argc, char **argv)
{
	struct mmt_events *events = NULL;
	struct mmt_error *error;

	error = mmt_events_open(argc > 1 ? argv[1] : "mmtrace.data", NULL, &events);
	if (!error)
		error = print_calls(events);
	if (!error && mmt_events_get_state(events)->damage)
		fprintf(stderr, "the recording is damaged: %s\n", mmt_events_get_state(events)->damage);
	mmt_events_close(events);
	if (!error)
		return 0;
	fprintf(stderr, "%s\n", mmt_error_get_message(error));
	mmt_error_destroy(error);
	return 1;
}
