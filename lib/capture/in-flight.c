// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/in-flight.h"

#include "capture/proc.h"

/* Of its own time: what is left of a call after its effect is shorter, but for memory of many gigabytes to be freed. */
#define RETURNED_NS 20000000ULL

bool in_flight_add(in_flight_threads *threads, pid_t pid)
{
	proc_pids tids = {0};
	bool done = proc_list_threads(pid, &tids, NULL);

	for (size_t i = 0; done && i < tids.count; i++) {
		struct in_flight_thread thread = {.tid = tids.items[i]};

		if (proc_is_at_work(thread.tid, &thread.ran_ns))
			done = vector_push(threads, thread);
	}
	vector_deinit(&tids);
	return done;
}

void in_flight_remove_returned(in_flight_threads *threads)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->count; i++) {
		struct in_flight_thread thread = threads->items[i];
		uint64_t ran_ns;

		if (proc_is_at_work(thread.tid, &ran_ns) && ran_ns - thread.ran_ns < RETURNED_NS)
			threads->items[kept++] = thread;
	}
	threads->count = kept;
}
