// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/tail.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "capture/residency.h"

static struct mmt_error *add_loss(struct recorder *recorder, const uint64_t *lost, struct buffer *buffer)
{
	struct recording_loss loss = {
	    .stop_ns = recorder->stop_ns,
	    .end = recorder->summary.end,
	    .missed_threads = recorder->summary.missed_threads,
	    .missed_cpus = recorder->summary.missed_cpus,
	    .left_processes = recorder->summary.left_processes,
	};
	struct mmt_error *error = NULL;

	/* The snapshot attribute loses nothing. */
	for (size_t i = 0; !error && i <= recorder->events.items.count; i++) {
		if (!vector_push(&loss.lost, i < recorder->events.items.count ? lost[i] : 0))
			error = &error_no_memory;
	}
	if (!error) {
		recording_loss_encode(&loss, buffer);
		error = recorder_add_section(recorder, FEATURE_MMTRACE_LOSS, buffer);
	}
	recording_loss_deinit(&loss);
	return error;
}

/* The copies move into the section's value. */
static struct mmt_error *add_perf_maps(struct recorder *recorder, struct buffer *buffer)
{
	struct perf_map_copies copies = {0};
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->earlier_maps.count; i++) {
		if (vector_push(&copies.maps, recorder->earlier_maps.items[i]))
			recorder->earlier_maps.items[i] = (struct perf_map_copy){0};
		else
			error = &error_no_memory;
	}
	for (size_t i = 0; !error && i < recorder->processes.items.count; i++) {
		struct known_process *process = &recorder->processes.items.items[i];

		if (!process->perf_map.text)
			continue;
		if (vector_push(&copies.maps, process->perf_map))
			process->perf_map = (struct perf_map_copy){0};
		else
			error = &error_no_memory;
	}
	if (!error && copies.maps.count)
		error = perf_map_copies_encode(&copies, buffer);
	if (!error && copies.maps.count)
		error = recorder_add_section(recorder, FEATURE_MMTRACE_PERF_MAPS, buffer);
	perf_map_copies_deinit(&copies);
	return error;
}

static struct mmt_error *read_process_residency(const struct process_ranges *process,
						struct recording_residency *residency)
{
	struct process_residency *pages;
	struct residency_reader reader;
	struct mmt_error *error = NULL;

	if (!residency_open(&reader, process->pid))
		return NULL;
	pages = vector_append(&residency->processes);
	if (pages)
		pages->pid = process->pid;
	else
		error = &error_no_memory;
	for (size_t i = 0; !error && i < process->ranges.count; i++)
		error = residency_read(&reader, process->ranges.items[i].start, process->ranges.items[i].end, pages);
	residency_close(&reader);
	/* Half of it would be a wrong number: none is "unknown". */
	if (!error && reader.gave_up) {
		vector_deinit(&pages->runs);
		residency->processes.count--;
	}
	return error;
}

static struct mmt_error *add_residency(struct recorder *recorder, struct buffer *buffer)
{
	struct recording_residency residency = {0};
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < recorder->final_ranges.count; i++)
		error = read_process_residency(&recorder->final_ranges.items[i], &residency);
	if (!error && residency.processes.count)
		error = recording_residency_encode(&residency, buffer);
	if (!error && residency.processes.count)
		error = recorder_add_section(recorder, FEATURE_MMTRACE_RESIDENCY, buffer);
	recording_residency_deinit(&residency);
	return error;
}

static struct mmt_error *add_build_ids(struct recorder *recorder, struct buffer *buffer)
{
	build_ids_encode(&recorder->build_ids.found, buffer);
	return recorder_add_section(recorder, FEATURE_BUILD_ID, buffer);
}

static struct mmt_error *add_jitdumps(struct recorder *recorder, struct buffer *buffer)
{
	struct mmt_error *error = jitdumps_encode(recorder, buffer);

	return error || !buffer->size ? error : recorder_add_section(recorder, FEATURE_MMTRACE_JITDUMPS, buffer);
}

static struct mmt_error *add_code(struct recorder *recorder, struct buffer *buffer)
{
	struct mmt_error *error;

	if (!recorder->code.processes.count)
		return NULL;
	error = generated_code_encode(recorder, buffer);
	return error ? error : recorder_add_section(recorder, FEATURE_MMTRACE_CODE, buffer);
}

static void warn_of_images(const struct recorder *recorder)
{
	static const char consequence[] = "their frames may have no names";
	const struct kept_images *kept = &recorder->images;

	if (kept->left_out_count)
		recorder_message(recorder, true,
				 "%llu %s not copied, %s%s: the copies in a recording may have %u MiB, and the largest "
				 "files are left out; %s when the files are gone",
				 (unsigned long long)kept->left_out_count,
				 kept->left_out_count == 1 ? "program file is" : "program files are",
				 kept->left_out ? kept->left_out : "?", kept->left_out_count == 1 ? "" : " and others",
				 IMAGES_BYTES_MAX >> 20, consequence);
	if (kept->interrupted)
		recorder_message(recorder, true, "%zu %s not copied because of the second request to stop; %s",
				 kept->interrupted, kept->interrupted == 1 ? "program file was" : "program files were",
				 consequence);
	if (kept->failed)
		recorder_message(recorder, true, "%zu %s could not be read or compressed, and %s not copied; %s",
				 kept->failed, kept->failed == 1 ? "program file" : "program files",
				 kept->failed == 1 ? "was" : "were", consequence);
}

static struct mmt_error *add_images(struct recorder *recorder, struct buffer *buffer)
{
	struct mmt_error *error = kept_images_encode(recorder, &recorder->images, buffer);

	warn_of_images(recorder);
	return error ? error : recorder_add_section(recorder, FEATURE_MMTRACE_IMAGES, buffer);
}

static struct mmt_error *add_sample_time(struct recorder *recorder, struct buffer *buffer)
{
	buffer_put_u64(buffer, recorder->first_ns);
	buffer_put_u64(buffer, recorder->last_ns);
	return recorder_add_section(recorder, FEATURE_SAMPLE_TIME, buffer);
}

/* A section that the recording can do without. Takes `error`. */
static void warn_left_out(const struct recorder *recorder, const char *what, struct mmt_error *error,
			  struct buffer *buffer)
{
	if (error)
		recorder_message(recorder, true, "%s left out: %s", what, mmt_error_get_message(error));
	mmt_error_destroy(error);
	buffer_clear(buffer);
}

void tail_add(struct recorder *recorder, const uint64_t *lost)
{
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	warn_left_out(recorder, "which pages were resident is", add_residency(recorder, &buffer), &buffer);
	recorder_keep_failure(recorder, add_loss(recorder, lost, &buffer));
	warn_left_out(recorder, "jitdumps are", add_jitdumps(recorder, &buffer), &buffer);
	warn_left_out(recorder, "perf maps are", add_perf_maps(recorder, &buffer), &buffer);
	warn_left_out(recorder, "generated code is", add_code(recorder, &buffer), &buffer);
	recorder_keep_failure(recorder, add_build_ids(recorder, &buffer));
	warn_left_out(recorder, "copies of programs are", add_images(recorder, &buffer), &buffer);
	recorder_keep_failure(recorder, add_sample_time(recorder, &buffer));
	buffer_deinit(&buffer);
}
