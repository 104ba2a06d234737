// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/in-flight.h"

#include "capture/proc.h"

void in_flight_deinit(struct in_flight *in_flight)
{
	vector_deinit(&in_flight->threads);
	map_deinit(&in_flight->read_ns);
}

bool in_flight_add(struct in_flight *in_flight, pid_t pid, uint64_t read_ns)
{
	proc_pids tids = {0};
	bool done = proc_list_threads(pid, &tids, NULL);

	for (size_t i = 0; done && i < tids.count; i++) {
		struct in_flight_thread thread = {.pid = pid, .tid = tids.items[i]};

		if (proc_may_be_in_memory_call(pid, thread.tid))
			done = vector_push(&in_flight->threads, thread) &&
			       map_put(&in_flight->read_ns, (uint32_t)thread.tid, read_ns);
	}
	vector_deinit(&tids);
	return done;
}

void in_flight_note_outside(struct in_flight *in_flight, pid_t tid, uint64_t time_ns)
{
	const uint64_t *read_ns = in_flight->threads.count ? map_get(&in_flight->read_ns, (uint32_t)tid) : NULL;

	if (read_ns && time_ns > *read_ns)
		(void)map_remove(&in_flight->read_ns, (uint32_t)tid);
}

void in_flight_remove_returned(struct in_flight *in_flight)
{
	size_t kept = 0;

	for (size_t i = 0; i < in_flight->threads.count; i++) {
		struct in_flight_thread thread = in_flight->threads.items[i];

		if (map_get(&in_flight->read_ns, (uint32_t)thread.tid) &&
		    proc_may_be_in_memory_call(thread.pid, thread.tid))
			in_flight->threads.items[kept++] = thread;
	}
	in_flight->threads.count = kept;
}
