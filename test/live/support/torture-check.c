// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 *     torture-check RECORDING DIRECTORY [PID ADDRESS]
 *
 * Replays what the torture program did (test/workload/torture.c) and compares the model with the kernel's maps at every
 * checkpoint, page by page. One line per difference, and at the end one of figures; exit status 1 when anything differs
 * or is missing. With a process and an address: also one line for every call that changed what the model has there.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/replay/replay.h"
#include "base/syscall-table.h"
#include "base/cleanup.h"
#include "support/space-valid.h"

#define MARKER_ADDRESS 1
#define SHOWN_MAXIMUM 10

/* The dumps of one process, in the order of its checkpoints. */
struct dumps {
	int32_t pid;
	FILE *file;
	bool spoiled; /* a difference was found: what follows from it is not counted as another */
};

struct check {
	const char *directory;
	VECTOR(struct dumps) dumps;
	VECTOR(char) text; /* maps of one checkpoint */
	int32_t watched_pid;
	uint64_t watched_address;
	struct space_interval watched; /* what was there after the last call */
	uint64_t checkpoints, wrong_checkpoints, mismatch_bytes, unverifiable_bytes, mappings, processes_wrong;
	uint64_t out_of_order;
	bool failed;
};

static void fail(struct check *check, const char *what, int32_t pid, uint64_t number)
{
	fprintf(stderr, "process %d, checkpoint %" PRIu64 ": %s\n", pid, number, what);
	check->failed = true;
}

static struct dumps *find_dumps(struct check *check, int32_t pid)
{
	struct dumps dumps = {.pid = pid};
	char path[4096];

	for (size_t i = 0; i < check->dumps.count; i++) {
		if (check->dumps.items[i].pid == pid)
			return &check->dumps.items[i];
	}
	snprintf(path, sizeof(path), "%s/maps.%d", check->directory, pid);
	dumps.file = fopen(path, "re");
	if (!dumps.file || !vector_push(&check->dumps, dumps))
		return NULL;
	return &check->dumps.items[check->dumps.count - 1];
}

static bool read_dump(struct check *check, struct dumps *dumps, uint64_t number)
{
	char header[128], *end;
	size_t length;

	if (!fgets(header, sizeof(header), dumps->file) || strtoull(header, &end, 10) != number)
		return false;
	length = strtoull(end, NULL, 10);
	check->text.count = 0;
	while (check->text.count <= length) {
		if (!vector_push(&check->text, '\0'))
			return false;
	}
	return fread(check->text.items, 1, length, dumps->file) == length;
}

struct line {
	uint64_t start, end;
	struct space_attributes attributes;
};

static bool parse_line(const char *text, struct line *line)
{
	char protection[5];
	int name = 0;

	*line = (struct line){0};
	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &line->start, &line->end,
		   protection, &line->attributes.file_offset, &line->attributes.device_major,
		   &line->attributes.device_minor, &line->attributes.inode, &name) < 7)
		return false;
	line->attributes.protection = (protection[0] == 'r' ? PROT_READ : 0) | (protection[1] == 'w' ? PROT_WRITE : 0) |
				      (protection[2] == 'x' ? PROT_EXEC : 0);
	line->attributes.shared = protection[3] == 's';
	line->attributes.heap = !strncmp(text + name, "[heap]", 6);
	line->attributes.stack = !strncmp(text + name, "[stack]", 7);
	line->attributes.shm = !strncmp(text + name, "/SYSV", 5);
	line->attributes.ring = !strncmp(text + name, "/[aio]", 6);
	line->attributes.zero = !line->attributes.shared && !strncmp(text + name, "/dev/zero\n", 10);
	return true;
}

static void show_interval(const struct space_interval *interval)
{
	const struct space_attributes *attributes = &interval->attributes;

	fprintf(stderr,
		"    model:  %" PRIx64 "-%" PRIx64 " %c%c%c%c %08" PRIx64 " %02x:%02x %" PRIu64 " birth %u%s%s\n",
		interval->start, interval->end, attributes->protection & PROT_READ ? 'r' : '-',
		attributes->protection & PROT_WRITE ? 'w' : '-', attributes->protection & PROT_EXEC ? 'x' : '-',
		attributes->shared ? 's' : 'p', attributes->file_offset, attributes->device_major,
		attributes->device_minor, attributes->inode, interval->allocation,
		attributes->unknown ? " unknown" : "", attributes->growsdown ? " growsdown" : "");
}

/* The first line of the dump that ends after `address`. */
static void show_difference(const struct check *check, const struct space *space, uint64_t address)
{
	const struct space_interval *interval = space_next(space, address);
	struct line line;

	for (const char *text = check->text.items; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL) {
		if (!parse_line(text, &line))
			break;
		if (line.end <= address)
			continue;
		fprintf(stderr, "    kernel: %.*s\n", (int)strcspn(text, "\n"), text);
		break;
	}
	if (interval)
		show_interval(interval);
}

/* Compares and, where the model may do so, reconciles; the result is the one before reconciling. */
static struct mmt_error *compare(struct check *check, struct space *space, uint64_t time_ns,
				 struct space_check *result_ret)
{
	struct mmt_error *error = space_snapshot_begin(space, SPACE_SNAPSHOT_CHECK, ALLOCATION_UNKNOWN, time_ns);
	const char *text = check->text.items;
	struct line line;

	while (!error && parse_line(text, &line)) {
		error = space_snapshot_line(space, time_ns, line.start, line.end, &line.attributes);
		text = strchr(text, '\n');
		if (!text)
			break;
		text++;
	}
	if (!error)
		error = space_snapshot_end(space, time_ns);
	*result_ret = space_check_result(space);
	return error;
}

static void at_marker(struct check *check, const struct process *process, uint64_t number, uint64_t time_ns)
{
	struct dumps *dumps = find_dumps(check, process->pid);
	struct space_check result;
	struct mmt_error *error;
	const char *why;

	if (!dumps || !read_dump(check, dumps, number)) {
		fail(check, "no maps of it", process->pid, number);
		return;
	}
	error = compare(check, process->space, time_ns, &result);
	if (error) {
		mmt_error_destroy(error);
		fail(check, "no memory", process->pid, number);
		return;
	}
	if (!space_valid(process->space, &why))
		fail(check, why, process->pid, number);
	check->checkpoints++;
	check->mappings += result.mappings;
	check->mismatch_bytes += result.mismatch_bytes;
	check->unverifiable_bytes += result.unverifiable_bytes;
	if (!result.mismatch_bytes && !result.unverifiable_bytes)
		return;
	check->wrong_checkpoints++;
	if (dumps->spoiled)
		return;
	dumps->spoiled = true;
	if (check->processes_wrong++ >= SHOWN_MAXIMUM)
		return;
	fprintf(stderr,
		"process %d, checkpoint %" PRIu64 ", time %" PRIu64 ": %" PRIu64 " bytes differ, %" PRIu64
		" undecided, first at %" PRIx64 "\n",
		process->pid, number, time_ns, result.mismatch_bytes, result.unverifiable_bytes, result.first_wrong);
	show_difference(check, process->space, result.first_wrong);
}

static void watch(struct check *check, const struct process *process, const struct event *event)
{
	const struct space_interval nothing = {0}, *found = space_find(process->space, check->watched_address);
	const uint64_t *arguments = event->call.arguments;

	if (!found)
		found = &nothing;
	if (!memcmp(found, &check->watched, sizeof(*found)))
		return;
	check->watched = *found;
	fprintf(stderr, "process %d, thread %d, time %" PRIu64 ": %s(%" PRIx64, process->pid, event->tid,
		event->time_ns, call_describe(event->call.call)->name, arguments[0]);
	for (unsigned i = 1; i < call_describe(event->call.call)->arguments; i++)
		fprintf(stderr, ", %" PRIx64, arguments[i]);
	fprintf(stderr, ") = %" PRIx64 "\n", (uint64_t)event->call.result);
	show_interval(found);
}

static struct mmt_error *after_call(void *context, struct replay *replay, const struct process *process,
				    const struct event *event)
{
	struct check *check = context;

	(void)replay;
	if (process->pid == check->watched_pid)
		watch(check, process, event);
	if (event->call.call == CALL_MUNMAP && event->call.arguments[0] == MARKER_ADDRESS &&
	    event->call.result == -EINVAL && event->call.arguments[1])
		at_marker(check, process, event->call.arguments[1], event->time_ns);
	return NULL;
}

/* Every dump must have had its marker. */
static void check_dumps(struct check *check)
{
	DIR *directory = opendir(check->directory);
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int32_t pid = !strncmp(entry->d_name, "maps.", 5) ? (int32_t)strtol(entry->d_name + 5, NULL, 10) : 0;
		struct dumps *dumps = pid ? find_dumps(check, pid) : NULL;

		if (dumps && fgetc(dumps->file) != EOF)
			fail(check, "maps that no marker of the recording belongs to", pid, 0);
	}
	if (directory)
		closedir(directory);
	if (!check->checkpoints)
		fail(check, "no checkpoint at all", 0, 0);
}

/* If calls are missing, comparisons prove nothing. (Stack dumps may be lost.) */
static void check_loss(struct check *check, const struct replay *replay)
{
	const struct reader_metadata *metadata = replay->metadata;
	uint64_t lost = replay->lost_events;

	for (size_t i = 0; metadata->has_loss && i < metadata->loss.lost.count && i < metadata->attribute_count; i++) {
		if (metadata->attributes[i].role != ROLE_DUMP)
			lost += metadata->loss.lost.items[i];
	}
	if (lost)
		fail(check, "events were lost: larger rings are needed", 0, 0);
}

/* Calls replayed out of order prove nothing either. */
static void check_order(struct check *check, const struct replay *replay)
{
	check->out_of_order = replay->reader->out_of_order;
	if (check->out_of_order)
		fail(check, "events came out of the recording in another order than they happened", 0, 0);
}

static struct mmt_error *check_recording(struct check *check, const char *recording)
{
	struct replay replay;
	struct mmt_report_options report;
	struct replay_options options = {.report = &report};
	struct mmt_error *error;

	mmt_report_options_init(&report);
	report.input = recording;
	error = replay_init(&replay, &options);
	if (error)
		return error;
	replay.watch = (struct replay_watch){.call = after_call, .context = check};
	error = replay_run(&replay);
	check_loss(check, &replay);
	check_order(check, &replay);
	replay_deinit(&replay);
	return error;
}

int main(int argc, char **argv)
{
	struct check check = {0};
	struct mmt_error *error;

	if (argc != 3 && argc != 5) {
		fputs("usage: torture-check RECORDING DIRECTORY [PID ADDRESS]\n", stderr);
		return 2;
	}
	check.directory = argv[2];
	if (argc == 5) {
		check.watched_pid = (int32_t)strtol(argv[3], NULL, 10);
		check.watched_address = strtoull(argv[4], NULL, 16);
	}
	error = check_recording(&check, argv[1]);
	if (error) {
		fprintf(stderr, "%s\n", error->message);
		mmt_error_destroy(error);
		return 2;
	}
	check_dumps(&check);
	for (size_t i = 0; i < check.dumps.count; i++)
		fclose(check.dumps.items[i].file);
	printf("check processes=%zu checkpoints=%" PRIu64 " mappings=%" PRIu64 " wrong_checkpoints=%" PRIu64
	       " mismatch_bytes=%" PRIu64 " unverifiable_bytes=%" PRIu64 " out_of_order=%" PRIu64 "\n",
	       check.dumps.count, check.checkpoints, check.mappings, check.wrong_checkpoints, check.mismatch_bytes,
	       check.unverifiable_bytes, check.out_of_order);
	vector_deinit(&check.dumps);
	vector_deinit(&check.text);
	return check.failed || check.wrong_checkpoints;
}
