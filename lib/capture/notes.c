// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/notes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "capture/clock.h"
#include "capture/own-record.h"
#include "capture/text-file.h"
#include "trace/format.h"

static struct mmt_error *append_note(struct recorder *recorder, enum note_kind kind, pid_t pid, uint64_t time_ns,
				     uint64_t value, uint64_t number)
{
	struct buffer record;

	own_record_begin_bytes(&record);
	buffer_put_u32(&record, kind);
	buffer_put_u64(&record, value);
	buffer_put_u64(&record, number);
	return own_record_append_bytes(recorder, &record, pid, time_ns, NOTE_ID);
}

struct mmt_error *notes_take_marks(struct recorder *recorder)
{
	struct mmt_error *error = NULL;
	uint64_t time_ns;

	if (!recorder->writing || recorder->options->mark_fd < 0)
		return NULL;
	while (!error && read(recorder->options->mark_fd, &time_ns, sizeof(time_ns)) == sizeof(time_ns)) {
		if (recorder->stop_ns && time_ns > recorder->stop_ns)
			continue;
		if (recorder->summary.marks == LIMIT_MARKS) {
			recorder_message(recorder, true, "a mark is left out: there are %d already", LIMIT_MARKS);
			continue;
		}
		if (time_ns < recorder->start_ns)
			time_ns = recorder->start_ns;
		error = append_note(recorder, NOTE_MARK, 0, time_ns, ++recorder->summary.marks, 0);
		recorder_message(recorder, false, "mark %llu at %.3f s", (unsigned long long)recorder->summary.marks,
				 (double)(time_ns - recorder->start_ns) / 1e9);
	}
	return error;
}

struct mmt_error *notes_large_dumps(struct recorder *recorder, uint64_t now_ns)
{
	return append_note(recorder, NOTE_LARGE_DUMPS, 0, now_ns, recorder->large_dumps.on,
			   recorder->large_dumps.switches);
}

/* The second number of statm, in pages. */
static bool read_resident(pid_t pid, uint64_t *bytes_ret)
{
	CLEANUP(free) char *text = NULL;
	char path[64], *position;

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (text_file_read(-1, path, &text) < 0)
		return false;
	(void)strtoull(text, &position, 10);
	*bytes_ret = strtoull(position, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

struct mmt_error *notes_read_resident(struct recorder *recorder)
{
	uint64_t now_ns = clock_now_ns(), reading = ++recorder->resident_readings;
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->processes.items.count; i++) {
		const struct known_process *process = &recorder->processes.items.items[i];
		uint64_t bytes;

		if (!process->ended && read_resident(process->pid, &bytes))
			error = append_note(recorder, NOTE_RESIDENT, process->pid, now_ns, bytes, reading);
	}
	return error;
}
