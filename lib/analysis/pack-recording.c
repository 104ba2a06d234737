// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packs a recording: replays it to symbolize all stacks, then writes it again without stack dumps. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <mmtrace/pack.h>

#include "analysis/replay/replay.h"
#include "analysis/report/classes.h"
#include "base/helper-process.h"
#include "trace/write/writer.h"

/* First pass of packing: find the stack of each call and symbolize all stacks. */

struct pack_stacks {
	struct call_stacks calls;
	struct intern callchains; /* as resolver_keep_callchains() makes them; stack number 0: none */
	struct packed_stacks resolved;
	struct heap_censuses heaps; /* with the types that only symbols name */
	bool lacks_names;	    /* a process that reads names ended early */
};

/* Resolve all frames up to this one: frame numbers follow the order of the stacks. */
static struct mmt_error *resolve_frames(struct packed_stacks *resolved, struct resolver *code, uint32_t last)
{
	while (resolved->frames.count <= last) {
		uint32_t number = (uint32_t)resolved->frames.count;
		struct packed_frame frame = resolver_packed_frame(code, number);
		const struct mmt_frame *names;
		size_t count;
		struct mmt_error *error = resolver_names(code, number, &names, &count);

		if (error)
			return error;
		frame.first_name = (uint32_t)resolved->names.count;
		frame.name_count = (uint32_t)count;
		for (size_t i = 0; i < count; i++) {
			struct packed_name name = {.address = names[i].address,
						   .module_offset = names[i].module_offset,
						   .source_line = names[i].source_line,
						   .kind = names[i].kind,
						   .inlined = names[i].inlined,
						   .doubtful = names[i].doubtful};

			if (!packed_stacks_put_text(resolved, names[i].function, &name.function) ||
			    !packed_stacks_put_text(resolved, names[i].raw_function, &name.raw_function) ||
			    !packed_stacks_put_text(resolved, names[i].module, &name.module) ||
			    !packed_stacks_put_text(resolved, names[i].module_path, &name.module_path) ||
			    !packed_stacks_put_text(resolved, names[i].source_file, &name.source_file) ||
			    !vector_push(&resolved->names, name))
				return &error_no_memory;
		}
		if (!vector_push(&resolved->frames, frame))
			return &error_no_memory;
	}
	return NULL;
}

static struct mmt_error *resolve_stack(struct pack_stacks *stacks, const struct replay *replay, uint32_t number)
{
	enum mmt_stack_end end;
	size_t count;
	const uint32_t *frames = resolver_stack(replay->code, number, &count, &end);
	struct packed_stack stack = {.end = number == replay->lost_stack ? STACK_END_LOST : end,
				     .first_frame = (uint32_t)stacks->resolved.stack_frames.count,
				     .frame_count = (uint32_t)count};

	for (size_t i = 0; i < count; i++) {
		struct mmt_error *error = resolve_frames(&stacks->resolved, replay->code, frames[i]);

		if (error)
			return error;
		if (!vector_push(&stacks->resolved.stack_frames, frames[i]))
			return &error_no_memory;
	}
	return vector_push(&stacks->resolved.stacks, stack) ? NULL : &error_no_memory;
}

static struct mmt_error *resolve_facts(struct packed_stacks *resolved, const struct replay *replay)
{
	struct reorder_unfinished unfinished = reader_unfinished(replay->reader);
	const char *damage = reader_damage(replay->reader), *path;
	enum module_state state;
	size_t position = 0;
	char *missing;

	for (size_t i = 0; i < replay->processes->all.count; i++) {
		struct jit_code_state code = resolver_jit(replay->code, (uint32_t)i);
		const struct space *space = replay->processes->all.items[i]->space;
		struct packed_process process = {.names = code.names,
						 .unchecked_frames = code.unchecked_frames,
						 .stacks_end_there = code.stacks_end_there,
						 .released =
						     i < replay->stacks.goes.count && replay->stacks.goes.items[i],
						 .released_known = true};

		if (!code.runtime && classes_may_have_go_heap(space) && resolver_is_go(replay->code, space))
			code.runtime = runtimes_find("go");
		if (!packed_stacks_put_text(resolved, code.runtime ? code.runtime->name : NULL, &process.runtime) ||
		    !packed_stacks_put_text(resolved, code.names.jitdump_failure, &process.jitdump_failure) ||
		    !vector_push(&resolved->processes, process))
			return &error_no_memory;
	}
	while ((path = resolver_unusable(replay->code, &position, &state, &missing))) {
		CLEANUP(free) char *part = missing;
		struct packed_module module = {.state = state};

		if (!packed_stacks_put_text(resolved, path, &module.path) ||
		    !packed_stacks_put_text(resolved, part, &module.missing) ||
		    !vector_push(&resolved->modules, module))
			return &error_no_memory;
	}
	resolved->unfinished_records = unfinished.records;
	resolved->unfinished_ns = unfinished.span_ns;
	return packed_stacks_put_text(resolved, damage, &resolved->damage) ? NULL : &error_no_memory;
}

/* Only now do vtables have symbols. Reads the censuses again, because those of the reader are its own. */
static struct mmt_error *name_vtables(struct heap_censuses *heaps, const struct replay *replay)
{
	CLEANUP(free) uint8_t *data = NULL;
	size_t size, room = LIMIT_UNPACKED_BYTES;
	struct bytes bytes;
	struct mmt_error *error = recording_file_load(replay->reader->file, FEATURE_MMTRACE_HEAP, &data, &size);

	if (error || !data || !replay->metadata->heaps.items.count)
		return error;
	bytes = bytes_over(data, size);
	error = section_read(&section_heap, &bytes, &room, heaps);
	array_while(census, heaps->items.items, heaps->items.count, !error) {
		const struct process *process = processes_find(replay->processes, census->pid);

		array_each(group, census->groups, process ? smaller_of(census->group_count, LIMIT_HEAP_TYPES) : 0) {
			const char *type =
			    group->content == MMT_HEAP_POINTER
				? resolver_vtable_type(replay->code, process->space, group->name, group->offset)
				: NULL;
			char *name = type ? strdup(type) : NULL;

			if (!name)
				continue;
			free(group->name);
			group->content = MMT_HEAP_TYPE;
			group->name = name;
			group->offset = 0;
		}
	}
	return error;
}

/* Run the pass. Returns the reader, at the start of the recording. */
static struct mmt_error *pack_stacks_find(struct pack_stacks *stacks, const char *input,
					  const struct mmt_progress *progress, struct reader **reader_ret)
{
	struct mmt_report_options options;
	struct replay_options replay_options = {.report = &options};
	struct replay replay;
	struct mmt_error *error;

	mmt_report_options_init(&options);
	options.input = input;
	options.progress = progress;
	error = replay_init(&replay, &replay_options);
	if (error)
		return error;
	replay.stacks.callchains = &stacks->callchains;
	resolver_keep_callchains(replay.code, &stacks->callchains);
	error = replay.metadata->ours
		    ? replay_find_stacks(&replay)
		    : error_create(MMT_ERROR_UNSUPPORTED, "%s: only recordings of mmtrace can be packed", input);
	for (size_t i = 0; !error && i < resolver_stack_count(replay.code); i++)
		error = resolve_stack(stacks, &replay, (uint32_t)i);
	stacks->lacks_names = modules_names_failure(resolver_modules(replay.code)) != 0;
	error = error ?: resolve_facts(&stacks->resolved, &replay);
	if (!error && !replay.metadata->packed)
		error = name_vtables(&stacks->heaps, &replay);
	stacks->calls = replay.stacks;
	replay.stacks = (struct call_stacks){0};
	error = error ?: reader_rewind(*reader_ret = TAKE(replay.reader));
	replay_deinit(&replay);
	return error;
}

/* Second pass of packing: read the recording again and add stack numbers to its calls. */

#define ROUND_BYTES (1u << 20)

struct pack {
	struct pack_stacks stacks;
	struct reader *reader;
	const struct reader_metadata *metadata;
	const struct recording_file *file; /* of the reader */
	struct writer *writer;
	struct buffer sample;
	bool held; /* `sample` is a dump that may be the last record of an incomplete recording */
	size_t round_bytes;
	uint64_t calls;			     /* see call_stacks_counts() */
	const struct mmt_progress *progress; /* NULL: do not report progress */
	struct stat named;		     /* of the input, before it is read */
};

/* Events that may have a stack, as call_stacks_counts() says. */
static bool is_numbered(const struct reader_attribute *attribute)
{
	return role_is_paging(attribute->role) ||
	       (attribute->role == ROLE_SYSCALL && attribute->is_call && !attribute->is_enter);
}

/* Copy sections without changes. */
static struct mmt_error *copy_sections(struct pack *pack, const enum format_feature *features, size_t count)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		CLEANUP(free) uint8_t *data = NULL;
		size_t size;

		error = recording_file_load(pack->file, features[i], &data, &size);
		if (!error && data)
			error = writer_add_section(pack->writer, features[i], data, size);
	}
	return error;
}

/* The words of the recorder and the name of the command, but not its arguments, which may be secret. Older recorders
 * did not always write "--" before a command: then nothing tells where it begins. */
static struct mmt_error *add_command_line(struct pack *pack)
{
	CLEANUP(free) uint8_t *data = NULL;
	size_t size, begin, end, subcommand_end;
	bool separated = false;
	uint32_t count;
	struct buffer buffer;
	struct bytes bytes;
	struct mmt_error *error = recording_file_load(pack->file, FEATURE_CMDLINE, &data, &size);

	if (error || !data)
		return error;
	bytes = bytes_over(data, size);
	count = bytes_u32(&bytes);
	begin = end = subcommand_end = (size_t)(bytes.position - data);
	for (uint32_t i = 0; i < count; i++) {
		struct bytes word = bytes_sub(&bytes, bytes_u32(&bytes));

		if (!bytes_ok(&bytes))
			break;
		if (!separated && !strcmp(bytes_string(&word), "--")) {
			separated = true;
			count = i + 2 < count ? i + 2 : count;
		}
		end = (size_t)(bytes.position - data);
		if (i < 2)
			subcommand_end = end;
	}
	if (pack->metadata->info.command && !separated) {
		count = count < 2 ? count : 2;
		end = subcommand_end;
	}
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	buffer_put_u32(&buffer, count);
	buffer_put(&buffer, data + begin, end - begin);
	return writer_take_section(pack->writer, FEATURE_CMDLINE, &buffer);
}

static struct mmt_error *add_head(struct pack *pack)
{
	static const enum format_feature early[] = {FEATURE_MMTRACE_INFO, FEATURE_TRACING_DATA, FEATURE_HOSTNAME,
						    FEATURE_OSRELEASE,	  FEATURE_VERSION,	FEATURE_ARCH,
						    FEATURE_NRCPUS,	  FEATURE_CLOCKID,	FEATURE_CLOCK_DATA};
	struct mmt_error *error = NULL;
	struct buffer buffer;

	for (size_t i = 0; !error && i < pack->file->attributes.count; i++) {
		const struct file_attribute *attribute = &pack->file->attributes.items[i];
		const struct reader_attribute *described = &pack->metadata->attributes[i];
		struct perf_event_attr stripped =
		    strip_attribute(&attribute->attr, pack->metadata->architecture, is_numbered(described));

		error = writer_add_attribute(pack->writer, &stripped, described->name, attribute->ids.items,
					     attribute->ids.count);
	}
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	error = error ?: copy_sections(pack, early, sizeof(early) / sizeof(*early))
			      ?: add_command_line(pack)
			      ?: section_write(&section_stacks, &pack->stacks.resolved, &buffer)
			      ?: writer_take_section(pack->writer, FEATURE_MMTRACE_STACKS, &buffer);
	buffer_deinit(&buffer);
	return error;
}

static struct mmt_error *append(struct pack *pack, const void *record, size_t size)
{
	struct mmt_error *error = writer_append(pack->writer, record, size);

	pack->held = false;
	pack->round_bytes += size;
	if (error || pack->round_bytes < ROUND_BYTES)
		return error;
	pack->round_bytes = 0;
	return writer_end_round(pack->writer);
}

static struct mmt_error *write_sample(struct pack *pack, const struct event *event)
{
	const struct perf_event_attr *attr = &pack->file->attributes.items[event->attribute].attr;
	const struct reader_attribute *described = &pack->metadata->attributes[event->attribute];
	bool numbered = is_numbered(described);
	struct stripped_stack stack = {.keep_callchain = pack->metadata->packed};
	struct mmt_error *error;
	const uint64_t *words;
	uint32_t call_stack;
	size_t size;

	pack->held = role_is_dump(described->role);
	if (pack->held && pack->metadata->has_loss)
		return NULL;
	call_stack = numbered && call_stacks_counts(event) ? call_stacks_get(&pack->stacks.calls, pack->calls) : 0;
	if (call_stack) {
		words = intern_get(&pack->stacks.callchains, call_stack - 1, &size);
		stack.number = (uint32_t)words[0];
		stack.callchain = words + 1;
		stack.callchain_count = size / sizeof(*words) - 1;
	}
	buffer_clear(&pack->sample);
	error = strip_sample(attr, pack->metadata->architecture, event->record,
			     described->is_call ? described->call : CALL_MMAP, numbered ? &stack : NULL, &pack->sample)
		    ?: buffer_finish(&pack->sample);
	return error || pack->held ? error : append(pack, pack->sample.data, pack->sample.size);
}

/* Keep records of mappings, tasks and losses, and notes, unchanged, and drop the rest: other records, now or of a later
 * recorder, may contain memory contents (stack dumps and chunks of perf maps and jitdumps do). */
static struct mmt_error *write_event(struct pack *pack, const struct event *event)
{
	switch (event->record_type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE:
		return append(pack, event->record, event->record_size);
	case PERF_RECORD_SAMPLE:
		return event->attribute < pack->file->attributes.count ? write_sample(pack, event) : NULL;
	case RECORD_TEXT_POKE:
		/* Those with a kind hold only numbers and marks: notes, Pss, addresses of resident pages. */
		return event->kind != EVENT_OTHER ? append(pack, event->record, event->record_size) : NULL;
	default:
		return NULL;
	}
}

/* Report progress of the first of two passes. */
static void report_first_pass(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
	const struct mmt_progress *progress = ((const struct pack *)context)->progress;

	progress->tell(progress->context, done_bytes, 2 * total_bytes);
}

static struct mmt_error *write_all(struct pack *pack)
{
	static const enum format_feature late[] = {
	    FEATURE_SAMPLE_TIME,     FEATURE_MMTRACE_LOSS,    FEATURE_MMTRACE_RESIDENCY, FEATURE_MMTRACE_HUGE_PAGES,
	    FEATURE_MMTRACE_SWAPPED, FEATURE_MMTRACE_OPTIONS, FEATURE_MMTRACE_SHARED,	 FEATURE_MMTRACE_HEAP};
	const size_t count_late = sizeof(late) / sizeof(*late) - (pack->stacks.heaps.items.count > 0);
	const uint32_t checksum[] = {1, 0}; /* version; filled in by the writer */
	struct mmt_error *error = add_head(pack);
	uint64_t total_bytes = pack->reader->file->data_end;
	struct buffer buffer;
	bool end = false;

	error = error ?: writer_write_head(pack->writer);
	for (uint32_t count = 1; !error && !end; count++) {
		struct event event;

		error = reader_next(pack->reader, &event, &end);
		if (error || end)
			break;
		pack->calls += call_stacks_counts(&event);
		error = write_event(pack, &event);
		if (count % PROGRESS_EVENTS == 0 && pack->progress)
			pack->progress->tell(pack->progress->context, total_bytes + event.file_offset, 2 * total_bytes);
	}
	/* Without a loss section, the time of the last record is when the recording ends. */
	if (!error && pack->held && !pack->metadata->has_loss)
		error = append(pack, pack->sample.data, pack->sample.size);
	error = error ?: writer_end_round(pack->writer);
	/* A recording without an end has the build-ids among its records instead. */
	if (!error && pack->metadata->build_ids.entries.count) {
		buffer_init(&buffer, LIMIT_SECTION_BYTES);
		build_ids_encode(&pack->metadata->build_ids, &buffer);
		error = writer_take_section(pack->writer, FEATURE_BUILD_ID, &buffer);
	}
	error = error ?: copy_sections(pack, late, count_late);
	if (!error && pack->stacks.heaps.items.count) {
		buffer_init(&buffer, LIMIT_SECTION_BYTES);
		error = section_write(&section_heap, &pack->stacks.heaps, &buffer)
			    ?: writer_take_section(pack->writer, FEATURE_MMTRACE_HEAP, &buffer);
		buffer_deinit(&buffer);
	}
	if (!error && !pack->writer->file.stream)
		error = writer_add_section(pack->writer, FEATURE_MMTRACE_CHECKSUM, checksum, sizeof(checksum));
	return error ? error : writer_finish(pack->writer);
}

/* Rename the output to its final name once it is complete and synced. The input must not have been written since it was
 * opened and, if the output replaces it, must still have its name. */
static struct mmt_error *take_name(struct pack *pack, const struct mmt_pack_options *options)
{
	struct stat status, named;
	struct mmt_error *error;

	/* Only the raw recording can have them. */
	if (!options->output && pack->stacks.lacks_names)
		return error_create(MMT_ERROR_INVALID,
				    "a process that reads names from ELF files ended early, and some may be missing: "
				    "the recording was not replaced; with --output, it is packed all the same");
	error = output_file_sync(&pack->writer->file);
	if (error)
		return error;
	if (fstat(pack->file->fd, &status) < 0)
		return error_system(errno, "cannot stat it");
	if ((uint64_t)status.st_size != pack->file->size)
		return error_create(MMT_ERROR_INVALID,
				    "it changed while it was packed: pack it after recording has ended");
	if (!options->output && stat(options->input, &named) < 0)
		return error_system(errno, "cannot stat it");
	/* Of a recording that was written to a pipe, an unnamed copy was read. */
	if (!options->output && (named.st_dev != pack->named.st_dev || named.st_ino != pack->named.st_ino ||
				 named.st_size != pack->named.st_size))
		return error_create(MMT_ERROR_INVALID, "another file now has its name, and was not replaced");
	return writer_start(pack->writer);
}

/* Check the output before the work starts. */
static struct mmt_error *create_output(struct pack *pack, const struct mmt_pack_options *options, uint64_t input_bytes)
{
	struct mmt_error *error = writer_create(options->output ? options->output : options->input, &pack->writer);

	return error ? error : output_file_check_room(&pack->writer->file, input_bytes);
}

static struct mmt_error *pack_into(struct pack *pack, const struct mmt_pack_options *options)
{
	const struct mmt_progress first = {.tell = report_first_pass, .context = pack};
	struct mmt_error *error = NULL;

	/* A missing input, or one that is not a regular file, gets its own error when it is read. */
	if (stat(options->input, &pack->named) == 0 && S_ISREG(pack->named.st_mode))
		error = create_output(pack, options, (uint64_t)pack->named.st_size);
	else if (options->output)
		error = create_output(pack, options, 0);
	if (!error && options->confine && pack->writer) {
		CLEANUP(close) int spill = open(pipe_input_directory(), O_PATH | O_DIRECTORY | O_CLOEXEC);

		confine_thread((const int[]){pack->writer->file.directory, spill}, 2);
	}
	error = error ?: pack_stacks_find(&pack->stacks, options->input, pack->progress ? &first : NULL, &pack->reader);
	error = error ?: pack->writer ? NULL : create_output(pack, options, 0);
	if (error)
		return error;
	pack->file = pack->reader->file;
	pack->metadata = &pack->reader->metadata.values;
	if (!options->output)
		pack->writer->file.replaces = true;
	if (!pack->metadata->compressed)
		pack->writer->plain = true;
	error = write_all(pack) ?: take_name(pack, options);
	return error_context(error, "%s", options->input);
}

struct mmt_error *mmt_pack(const struct mmt_pack_options *options, struct mmt_pack_summary *summary_ret)
{
	struct pack pack = {.progress = options->progress};
	const struct packed_stacks *resolved = &pack.stacks.resolved;
	struct mmt_error *error;

	buffer_init(&pack.sample, 2 * UINT16_MAX);
	error = pack_into(&pack, options);
	*summary_ret = (struct mmt_pack_summary){0};
	if (!error)
		*summary_ret = (struct mmt_pack_summary){.input_bytes = pack.file->size,
							 .output_bytes = writer_bytes(pack.writer),
							 .stacks = resolved->stacks.count,
							 .frames = resolved->frames.count};
	for (size_t i = 0; i < summary_ret->frames; i++) {
		if (resolved->names.items[resolved->frames.items[i].first_name].function == RESOLVED_NO_TEXT)
			summary_ret->frames_without_name++;
	}
	writer_destroy(pack.writer);
	reader_close(pack.reader);
	call_stacks_deinit(&pack.stacks.calls);
	intern_deinit(&pack.stacks.callchains);
	section_stacks.deinit(&pack.stacks.resolved);
	section_heap.deinit(&pack.stacks.heaps);
	buffer_deinit(&pack.sample);
	return error;
}
