// SPDX-License-Identifier: LGPL-2.1-or-later
/* Handles the records of the ring buffers, and lets jobs and waits run beside a thread that reads them. ring-buffers.c
 * takes the records out of the buffers. */
#include "capture/recorder/ring-reader.h"

#include <errno.h>

#include "capture/recorder/recorder.h"
#include "trace/format/sample-layout.h"

#define SAMPLE_ID_OFFSET 8
#define SAMPLE_PID_OFFSET 24
#define SAMPLE_RAW_OFFSET 48
#define RAW_VICTIM_OFFSET 8  /* after the fields of every tracepoint */
#define RAW_NAMED_BYTES 60   /* since Linux 6.9 */
#define WAIT_TICK_NS 2000000 /* interval at which the thread of the ring reader checks the rings */
#define CLOCK_CHECK_BYTES                                                                                              \
	(32 << 10)	 /* bytes of records between two checks of the clock, about 50 microseconds of work */
#define TRAILER_BYTES 32 /* sample_id trailer of records other than samples: pid and tid, time, cpu, identifier */

bool ring_reader_parse_sample(const struct perf_event_attr *attribute, const void *record, size_t size,
			      struct sample_parts *parts_ret)
{
	struct sample_shape shape = sample_shape_of(attribute);
	struct bytes bytes = bytes_over(record, size);

	bytes_skip(&bytes, sizeof(struct perf_event_header));
	*parts_ret = sample_walk(&shape, &bytes);
	return bytes_ok(&bytes);
}

size_t ring_reader_cut_dump(uint8_t *record, const struct sample_parts *parts, size_t kept_bytes)
{
	uint64_t dump_bytes = (kept_bytes / sizeof(uint64_t) + 1) * sizeof(uint64_t), copied_bytes = kept_bytes;
	size_t offset = (size_t)(parts->stack - record);
	uint8_t *stack = record + offset, *end = stack + parts->stack_bytes + sizeof(copied_bytes);
	struct perf_event_header header;
	size_t size;

	memcpy(&header, record, sizeof(header));
	memset(stack + kept_bytes, 0, dump_bytes - kept_bytes);
	memcpy(stack - sizeof(dump_bytes), &dump_bytes, sizeof(dump_bytes));
	memcpy(stack + dump_bytes, &copied_bytes, sizeof(copied_bytes));
	size = (size_t)(record + header.size - end);
	memmove(stack + dump_bytes + sizeof(copied_bytes), end, size);
	size += offset + dump_bytes + sizeof(copied_bytes);
	header.size = (uint16_t)size;
	memcpy(record, &header, sizeof(header));
	return size;
}

/* Remove the bytes of a sample that must not be written to the file: those that the kernel did not copy, which are old
 * contents of the ring, and the program's arguments and environment, which are above all frames. A large dump ends
 * before them. Return the new size of the record. */
static size_t hide_strings(const struct recorder *recorder, const struct event_description *event,
			   const struct sample_parts *parts, uint8_t *record, size_t size)
{
	const struct architecture *architecture = recorder->architecture;
	uint64_t sampled = event->attribute.sample_regs_user, stack_pointer = 0;
	uint8_t *stack = record + (parts->stack - record);
	unsigned bit = 0;
	size_t kept;

	while (bit < architecture->perf_register_count &&
	       architecture->perf_to_dwarf[bit] != (int)architecture->stack_pointer)
		bit++;
	if (parts->registers && bit < architecture->perf_register_count && (sampled >> bit & 1))
		stack_pointer = layout_word(parts->registers,
					    8 * (size_t)__builtin_popcountll(sampled & ((UINT64_C(1) << bit) - 1)));
	kept = program_strings_find(stack, parts->copied_bytes, stack_pointer);
	if (event->ring == RING_FAULT && event->has_dump && !recorder->reader.fault_dumps.on &&
	    kept > EVENTS_LEAF_BYTES)
		kept = EVENTS_LEAF_BYTES;
	if ((event->role == ROLE_LARGE_DUMP || event->ring == RING_FAULT) &&
	    kept + sizeof(uint64_t) < parts->stack_bytes)
		return ring_reader_cut_dump(record, parts, kept);
	memset(stack + kept, 0, parts->stack_bytes - kept);
	return size;
}

static void count_sample(struct recorder *recorder, const struct event_description *event,
			 const struct sample_parts *parts)
{
	struct mmt_record_summary *summary = &recorder->summary;

	if (event->role == ROLE_SYSCALL && !event->is_enter) {
		summary->events[call_describe(event->call)->counter]++;
		/* One entry is the PERF_CONTEXT_USER marker, so a callchain of the maximum length has one entry
		 * more. */
		summary->cut_callchains += parts->callchain_count > recorder->reader.callchain_limit;
	}
	summary->fault_samples += event->role == ROLE_FAULT;
	if (event->ring == RING_FAULT)
		return;
	if (event->role == ROLE_LARGE_DUMP)
		summary->large_stack_dumps++;
	else if (event->has_dump)
		summary->stack_dumps++;
	/* Most calls with a large dump also have a small one: count their stack only once. */
	if (event->has_dump && (event->role != ROLE_DUMP || !recorder->reader.large_dumps.on ||
				!events_count_large_dumps(&recorder->reader.events)))
		summary->deep_stacks += parts->copied_bytes == parts->stack_bytes;
}

static void put_id_in_file(const struct recorder *recorder, uint8_t *record, size_t offset)
{
	const uint64_t *in_file;
	uint64_t id;

	memcpy(&id, record + offset, sizeof(id));
	in_file = map_get(&recorder->reader.attachment.id_in_file, id);
	if (in_file)
		memcpy(record + offset, in_file, sizeof(id));
}

/* Copy a record that may be changed before it is written. Replace the identifier of an event that was opened after
 * the head of the file was written: the file only knows the identifier of an earlier event. */
static uint8_t *copy_record(struct recorder *recorder, const void *record, size_t size)
{
	uint32_t type = ((const struct perf_event_header *)record)->type;
	uint8_t *copy = recorder->reader.changed;

	memcpy(copy, record, size);
	if (!recorder->reader.attachment.id_in_file.count)
		return copy;
	put_id_in_file(recorder, copy, type == PERF_RECORD_SAMPLE ? SAMPLE_ID_OFFSET : size - sizeof(uint64_t));
	if (type == PERF_RECORD_LOST)
		put_id_in_file(recorder, copy, sizeof(struct perf_event_header));
	return copy;
}

/* Is the time within the recording? `stop_ns` is set when recording stops. */
static bool is_recorded(const struct recorder *recorder, uint64_t time_ns)
{
	return recorder->writing && time_ns >= recorder->start_ns &&
	       (!recorder->stop_ns || time_ns <= recorder->stop_ns);
}

/* Is the process a child that is not recorded, because it was forked during the last snapshots? It has no snapshot. Its
 * calls are skipped, too: their ring may be read before the ring with its FORK record. */
static bool is_unrecorded_child(const struct recorder *recorder, pid_t pid)
{
	return recorder->closed && !process_table_find(&recorder->processes, pid);
}

/* Should the activity of this process at this time be recorded? With SCOPE_ALL_PROCESSES, a process that is not known
 * yet is added, because it may have entered the control group, unless the last snapshots have begun. */
static struct mmt_error *check_scope(struct recorder *recorder, pid_t pid, uint64_t time_ns, bool *recorded_ret)
{
	const struct process_event seen = {.kind = PROCESS_SEEN, .pid = pid, .time_ns = time_ns};
	struct scope *scope = &recorder->reader.scope;

	*recorded_ret = scope_admits(scope, pid, time_ns);
	if (*recorded_ret || recorder->closed || scope->kind != SCOPE_ALL_PROCESSES || pid <= 0 ||
	    pid == scope->recorder)
		return NULL;
	*recorded_ret = !recorder_has_helper(recorder, pid) && !proc_is_kernel_thread(pid);
	if (!*recorded_ret)
		return NULL;
	return scope_follow(scope, pid, 0) ? process_events_push(recorder, &seen, NULL) : &error_no_memory;
}

bool ring_reader_parse_victim(const void *record, size_t size, pid_t *pid_ret, char name_ret[16])
{
	struct bytes bytes = bytes_over(record, size), raw;
	uint32_t raw_bytes, name = 0;
	const void *content;

	bytes_skip(&bytes, SAMPLE_RAW_OFFSET);
	raw_bytes = bytes_u32(&bytes);
	content = bytes_take(&bytes, raw_bytes);
	if (!bytes_ok(&bytes))
		return false;
	raw = bytes_over(content, raw_bytes);
	bytes_skip(&raw, RAW_VICTIM_OFFSET);
	*pid_ret = (pid_t)bytes_u32(&raw);
	*name_ret = '\0';
	if (!bytes_ok(&raw) || raw_bytes < RAW_NAMED_BYTES)
		return bytes_ok(&raw);
	name = bytes_u32(&raw);
	raw = bytes_over(content, raw_bytes);
	bytes_skip(&raw, name & UINT16_MAX);
	snprintf(name_ret, 16, "%s", bytes_string(&raw) ?: "");
	return bytes_ok(&raw);
}

/* Note which process the OOM killer chose, in any scope. */
static struct mmt_error *note_oom_kill(struct recorder *recorder, const void *record, size_t size, pid_t tid,
				       uint64_t time_ns)
{
	struct mmt_record_summary *summary = &recorder->summary;
	char name[sizeof(summary->oom_name)];
	CLEANUP(free) char *text = NULL;
	pid_t pid;

	if (!is_recorded(recorder, time_ns) || !ring_reader_parse_victim(record, size, &pid, name))
		return NULL;
	text = *name ? NULL : proc_text(pid, "comm");
	if (text)
		snprintf(name, sizeof(name), "%.*s", (int)strlen(text) - 1, text);
	if (process_table_find(&recorder->processes, pid) && !summary->oom_kills++) {
		summary->oom_pid = pid;
		memcpy(summary->oom_name, name, sizeof(name));
	}
	return recorder_note(recorder, NOTE_OOM_KILL, pid, time_ns, (uint64_t)tid, 0, name);
}

/* Since Linux 6.3 the kernel fills in one sample for all events of a page fault. With another recorder, even of another
 * user, it may have the identifier of an event of that one. Its fields show which event it is of: see add_faults().
 * Return the number of the event and its identifier; NULL: it is of none. */
static const uint64_t *find_fault_event(struct ring_reader *reader, const void *record, size_t size, uint64_t *id_ret)
{
	const struct attachment *attachment = &reader->attachment;
	size_t event = 0, i = attachment->events.count;
	struct sample_parts parts;

	while (event < reader->events.items.count &&
	       (reader->events.items.items[event].role != ROLE_FAULT ||
		!ring_reader_parse_sample(&reader->events.items.items[event].attribute, record, size, &parts)))
		event++;
	while (i > 0 && attachment->events.items[i - 1].event != event)
		i--;
	*id_ret = i ? attachment->events.items[i - 1].id : 0;
	return map_get(&attachment->event_of_id, *id_ret);
}

static struct mmt_error *handle_sample(struct recorder *recorder, const void *record, size_t size)
{
	static const uint64_t some = 1;
	struct ring_reader *reader = &recorder->reader;
	struct bytes bytes = bytes_over(record, size);
	const struct event_description *event;
	struct sample_parts parts;
	struct mmt_error *error = NULL;
	const uint64_t *index;
	uint64_t id, time_ns;
	uint8_t *copy;
	pid_t pid, tid;
	bool mine, foreign;

	bytes_skip(&bytes, SAMPLE_ID_OFFSET);
	id = bytes_u64(&bytes);
	index = map_get(&reader->attachment.event_of_id, id);
	foreign = !index && reader->reads_faults;
	if (foreign)
		index = find_fault_event(reader, record, size, &id);
	event = index ? &reader->events.items.items[*index] : NULL;
	bytes_skip(&bytes, SAMPLE_PID_OFFSET - SAMPLE_ID_OFFSET - 8);
	pid = (pid_t)bytes_u32(&bytes);
	tid = (pid_t)bytes_u32(&bytes);
	time_ns = bytes_u64(&bytes);
	if (map_get(&reader->attachment.oom_ids, id))
		return note_oom_kill(recorder, record, size, tid, time_ns);
	/* The exit of a call, the entry of the next one, and a sample in user space all show that the thread has left
	 * its last call. An entry that is recorded beside the exit may be that of the last call. */
	if (!event || (event->role == ROLE_SYSCALL && !event->is_enter))
		in_flight_note_outside(&reader->in_flight, pid, tid, time_ns);
	if (!event)
		return attach_note_outside(&reader->attachment, tid, time_ns, id);
	if (!attach_note_sample(&reader->attachment, id))
		return &error_no_memory;
	reader->large_dumps.calls += event->has_large_dump;
	/* Events on CPUs have the faults of all processes, which fill the rings, too. */
	if (event->ring == RING_FAULT)
		large_dumps_rule_update(&reader->fault_dumps, 1, time_ns);
	if (event->ring == RING_FAULT)
		mine = event->on_cpus ? scope_follows(&reader->scope, pid, time_ns)
				      : scope_admits(&reader->scope, pid, time_ns);
	else
		error = check_scope(recorder, pid, time_ns, &mine);
	reader->scope.passed_over += !mine && event->ring != RING_FAULT;
	if (error || !mine)
		return error;
	if (!is_recorded(recorder, time_ns) || is_unrecorded_child(recorder, pid))
		return NULL;
	if (event->role == ROLE_LARGE_DUMP || event->role == ROLE_FAULT) {
		/* Reading such a ring takes milliseconds, and another ring may overflow in that time. */
		reader->large_dumps.discard = reader->large_dumps.discard || rings_are_half_full(&reader->rings, false);
		/* Of which thread's event a foreign sample is cannot be known. */
		if (reader->large_dumps.discard || (foreign && !event->on_cpus)) {
			reader->lost.items[*index]++;
			return NULL;
		}
	}
	copy = copy_record(recorder, record, size);
	if (foreign) {
		memcpy(copy + SAMPLE_ID_OFFSET, &id, sizeof(id));
		put_id_in_file(recorder, copy, SAMPLE_ID_OFFSET);
	}
	if (!ring_reader_parse_sample(&event->attribute, copy, size, &parts))
		return error_create(MMT_ERROR_SYSTEM,
				    "the kernel's ring buffer contains a sample of %s with an unexpected layout",
				    event->name);
	if (event->ring != RING_FAULT)
		error = process_events_note_call(recorder, pid, time_ns);
	if (error)
		return error;
	count_sample(recorder, event, &parts);
	/* Others may read the file: it has 1 instead of the physical address of a page. */
	if (parts.physical && layout_word(parts.physical, 0))
		memcpy(copy + (parts.physical - copy), &some, sizeof(some));
	if (parts.stack_bytes)
		size = hide_strings(recorder, event, &parts, copy, size);
	recorder_append(recorder, copy, size, time_ns);
	return NULL;
}

/* Handle a FORK record of a new thread or process. `*left_out_ret`: it is a child that is not recorded. The kernel
 * reports children to the events of their parent even if the events are not inherited. */
static struct mmt_error *handle_fork(struct recorder *recorder, struct bytes bytes, uint64_t time_ns, bool recorded,
				     bool *left_out_ret)
{
	struct process_event fork = {.kind = PROCESS_FORK, .time_ns = time_ns, .recorded = recorded};
	pid_t tid, parent_tid;
	bool new_thread;

	fork.pid = (pid_t)bytes_u32(&bytes);
	fork.parent = (pid_t)bytes_u32(&bytes);
	tid = (pid_t)bytes_u32(&bytes);
	parent_tid = (pid_t)bytes_u32(&bytes);
	*left_out_ret = fork.pid != fork.parent && is_unrecorded_child(recorder, fork.pid);
	if (*left_out_ret)
		return NULL;
	if (attach_note_clone(&recorder->reader.attachment, parent_tid, time_ns) && recorder->writing)
		recorder->summary.missed_threads++;
	if (!thread_coverage_note_fork(&recorder->reader.attachment.coverage, tid, time_ns, &new_thread))
		return &error_no_memory;
	recorder->summary.threads += new_thread;
	return fork.pid == fork.parent ? NULL : process_events_push(recorder, &fork, NULL);
}

static struct mmt_error *handle_comm(struct recorder *recorder, uint16_t misc, struct bytes bytes, uint64_t time_ns)
{
	const struct process_event exec = {.kind = PROCESS_EXEC, .pid = (pid_t)bytes_u32(&bytes), .time_ns = time_ns};
	struct mmt_error *error;
	bool new_thread;

	if (!(misc & PERF_RECORD_MISC_COMM_EXEC))
		return NULL;
	error = process_events_push(recorder, &exec, NULL);
	/* The thread that calls exec ends all other threads and gets the TID of the main thread. */
	if (!error && !thread_coverage_note_fork(&recorder->reader.attachment.coverage, exec.pid, time_ns, &new_thread))
		error = &error_no_memory;
	return error;
}

static struct mmt_error *handle_mapping(struct recorder *recorder, struct bytes bytes, uint64_t time_ns)
{
	struct process_event mapping = {.kind = PROCESS_MAPPING, .time_ns = time_ns};
	const char *path;
	uint64_t length;

	mapping.pid = (pid_t)bytes_u32(&bytes);
	bytes_u32(&bytes);
	mapping.start = bytes_u64(&bytes);
	length = bytes_u64(&bytes);
	mapping.end = mapping.start + length;
	bytes_u64(&bytes);
	mapping.device_major = bytes_u32(&bytes);
	mapping.device_minor = bytes_u32(&bytes);
	mapping.inode = bytes_u64(&bytes);
	bytes_u64(&bytes);
	mapping.protection = bytes_u32(&bytes);
	bytes_u32(&bytes);
	path = bytes_string(&bytes);
	return bytes_ok(&bytes) ? process_events_push(recorder, &mapping, path) : NULL;
}

/* Count lost records for the status line. The summary uses the kernel's own counts. */
static void handle_lost(struct recorder *recorder, struct bytes bytes, bool counted)
{
	const uint64_t *index = map_get(&recorder->reader.attachment.event_of_id, bytes_u64(&bytes));
	uint64_t count = bytes_u64(&bytes);
	enum attribute_role role = index ? recorder->reader.events.items.items[*index].role : ROLE_OTHER;

	/* Stack dumps and page faults have rings of their own, without FORK records. */
	recorder->reader.attachment.coverage.forks_missing |= !role_is_dump(role) && !role_is_paging(role);
	if (counted && role == ROLE_DUMP)
		recorder->progress.lost_stack_dumps += count;
	else if (counted && role != ROLE_LARGE_DUMP && !role_is_paging(role))
		recorder->progress.lost_events += count;
}

/* Handle records other than samples. */
static struct mmt_error *handle_side_band(struct recorder *recorder, const struct perf_event_header *header)
{
	struct bytes bytes = bytes_over(header, header->size);
	struct bytes trailer = bytes;
	struct mmt_error *error = NULL;
	uint64_t time_ns;
	pid_t pid, tid;
	bool counted, mine = true, left_out = false;

	bytes_skip(&trailer, header->size < TRAILER_BYTES ? 0 : header->size - TRAILER_BYTES);
	pid = (pid_t)bytes_u32(&trailer);
	tid = (pid_t)bytes_u32(&trailer);
	time_ns = bytes_u64(&trailer);
	if (recorder->stop_ns && time_ns > recorder->stop_ns)
		return NULL;
	if (header->type != PERF_RECORD_LOST && is_unrecorded_child(recorder, pid))
		return NULL;
	if (header->type != PERF_RECORD_LOST)
		error = check_scope(recorder, pid, time_ns, &mine);
	if (error || !mine)
		return error;
	counted = is_recorded(recorder, time_ns);
	bytes_skip(&bytes, sizeof(*header));
	switch (header->type) {
	case PERF_RECORD_SWITCH:
		/* Only coverage events report context switches. */
		bytes_skip(&trailer, 8); /* cpu */
		return attach_note(&recorder->reader.attachment, tid, time_ns, bytes_u64(&trailer));
	case PERF_RECORD_FORK:
		error = handle_fork(recorder, bytes, time_ns, counted, &left_out);
		if (left_out)
			return NULL;
		break;
	case PERF_RECORD_EXIT:
		bytes_skip(&bytes, 8); /* pid and the parent's pid */
		error = attach_note(&recorder->reader.attachment, (pid_t)bytes_u32(&bytes), time_ns, 0);
		break;
	case PERF_RECORD_LOST:
		handle_lost(recorder, bytes, counted);
		break;
	case PERF_RECORD_COMM:
		error = handle_comm(recorder, header->misc, bytes, time_ns);
		break;
	case PERF_RECORD_MMAP2:
		error = handle_mapping(recorder, bytes, time_ns);
		break;
	default:
		break;
	}
	if (!error && counted)
		recorder_append(recorder, copy_record(recorder, header, header->size), header->size, time_ns);
	return error;
}

static struct mmt_error *handle_record(void *context, const void *record, size_t size)
{
	const struct perf_event_header *header = record;
	struct recorder *recorder = context;

	recorder->reader.bytes_until_clock_check -= (int64_t)size;
	if (recorder->reader.bytes_until_clock_check <= 0) {
		recorder->reader.bytes_until_clock_check = CLOCK_CHECK_BYTES;
		/* Bytes already read from the ring count as filled until they are returned to the kernel. */
		if (priority_pause_is_due(&recorder->priority, clock_now_ns()) &&
		    !rings_are_half_full(&recorder->reader.rings, true))
			priority_pause(&recorder->priority);
	}
	return header->type == PERF_RECORD_SAMPLE ? handle_sample(context, record, size)
						  : handle_side_band(context, header);
}

/* Note new processes. New threads need no note, because their process is known. */
static struct mmt_error *note_new_process(void *context, const void *record, size_t size)
{
	struct bytes bytes = bytes_over(record, size);
	struct recorder *recorder = context;
	pid_t pid, parent;

	if (((const struct perf_event_header *)record)->type != PERF_RECORD_FORK)
		return NULL;
	bytes_skip(&bytes, sizeof(struct perf_event_header));
	pid = (pid_t)bytes_u32(&bytes);
	parent = (pid_t)bytes_u32(&bytes);
	bytes_skip(&bytes, 8); /* tid and the parent's tid */
	if (pid == parent)
		return NULL;
	/* Per-thread events have only FORK records of recorded processes. */
	if (recorder->reader.scope.kind == SCOPE_THREADS)
		return scope_follow(&recorder->reader.scope, pid, bytes_u64(&bytes)) ? NULL : &error_no_memory;
	return vector_push(&recorder->reader.scope.forks, ((struct scope_fork){bytes_u64(&bytes), pid, parent}))
		   ? NULL
		   : &error_no_memory;
}

/* Hand the records of all rings that have more than dumps to `handle`, and leave them there. */
static struct mmt_error *peek_rings(struct rings *rings, ring_handler handle, void *context)
{
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < rings->items.count; i++) {
		if (rings->items.items[i].kind == RING_SYSCALL)
			error = rings_peek(&rings->items.items[i], handle, context);
	}
	return error;
}

struct awaited_exec {
	const char *name;
	pid_t pid; /* 0: none yet */
	uint64_t time_ns;
	bool lost; /* records, perhaps of an exec */
};

static struct mmt_error *note_exec(void *context, const void *record, size_t size)
{
	const struct perf_event_header *header = record;
	struct bytes bytes = bytes_over(record, size);
	struct awaited_exec *exec = context;
	const char *name;
	uint64_t time_ns;
	pid_t pid;

	exec->lost |= header->type == PERF_RECORD_LOST;
	if (header->type != PERF_RECORD_COMM || !(header->misc & PERF_RECORD_MISC_COMM_EXEC))
		return NULL;
	bytes_skip(&bytes, sizeof(*header));
	pid = (pid_t)bytes_u32(&bytes);
	bytes_u32(&bytes);
	name = bytes_string(&bytes);
	bytes = bytes_over(record, size);
	bytes_skip(&bytes, size - TRAILER_BYTES + 8);
	time_ns = bytes_u64(&bytes);
	if (bytes_ok(&bytes) && pid > 0 && proc_name_matches(name, exec->name) &&
	    (!exec->pid || time_ns < exec->time_ns)) {
		exec->pid = pid;
		exec->time_ns = time_ns;
	}
	return NULL;
}

static struct mmt_error *discard(void *context, const void *record, size_t size)
{
	struct bytes bytes = bytes_over(record, size);

	bytes_skip(&bytes, SAMPLE_ID_OFFSET);
	return ((const struct perf_event_header *)record)->type != PERF_RECORD_SAMPLE ||
		       attach_note_sample(context, bytes_u64(&bytes))
		   ? NULL
		   : &error_no_memory;
}

struct mmt_error *ring_reader_find_exec(struct recorder *recorder, const char *name, pid_t *pid_ret,
					uint64_t *exec_ns_ret)
{
	struct rings *rings = &recorder->reader.rings;
	struct awaited_exec exec = {.name = name};
	struct mmt_error *error;

	rings_note_heads(rings);
	error = peek_rings(rings, note_exec, &exec);
	for (size_t i = 0; !error && !exec.pid && i < rings->items.count; i++)
		error = rings_read(&rings->items.items[i], discard, &recorder->reader.attachment);
	/* Search them again for FORK records. */
	for (size_t i = 0; exec.pid && i < rings->items.count; i++)
		rings->items.items[i].peeked = 0;
	if (exec.lost && !recorder->reader.lost_waiting)
		recorder_message(recorder, true, "events were lost: a process named %s may have begun unseen", name);
	recorder->reader.lost_waiting |= exec.lost;
	*pid_ret = exec.pid;
	*exec_ns_ret = exec.time_ns;
	return error;
}

/* Read either the rings of large dumps and page faults or all other rings. */
static struct mmt_error *read_rings(struct recorder *recorder, bool last)
{
	struct rings *rings = &recorder->reader.rings;
	struct mmt_error *error = NULL;

	for (size_t i = 0; !error && i < rings->items.count; i++) {
		recorder->reader.reads_faults = rings->items.items[i].kind == RING_FAULT;
		if ((rings->items.items[i].kind >= RING_LARGE_DUMP) == last)
			error = rings_read(&rings->items.items[i], handle_record, recorder);
	}
	return error;
}

struct mmt_error *ring_reader_read(struct recorder *recorder)
{
	/* Notes that were added before the rings are read. Only these can be resolved afterwards: rings read earlier
	 * may have held records older than the newer notes. */
	size_t earlier_notes = recorder->reader.attachment.notes.count;
	struct mmt_error *error;

	/* large_dumps_step() may write a record of the recorder. It must be older than the ring heads, so call it
	 * before they are noted. */
	error = large_dumps_step(recorder);
	rings_note_heads(&recorder->reader.rings);
	/* Search all rings for FORK records up to the heads noted before. A process that made a record up to these
	 * heads was forked earlier, so its FORK record is in some ring by now. The rings are searched one after the
	 * other, so only some of the records that arrive meanwhile are seen, perhaps the FORK of a grandchild without
	 * that of its parent. */
	if (!error && (recorder->reader.scope.kind != SCOPE_THREADS || recorder->reader.faults_on_cpus)) {
		uint64_t begin_ns = clock_now_ns();

		error = peek_rings(&recorder->reader.rings, note_new_process, recorder);
		if (!error && !scope_apply_forks(&recorder->reader.scope, begin_ns))
			error = &error_no_memory;
	}
	error = error ?: read_rings(recorder, false);
	recorder->reader.large_dumps.discard = false;
	error = error ?: read_rings(recorder, true);
	recorder->reader.drained |= !error;
	if (recorder->reader.fault_dumps.on == recorder->reader.attachment.fault_dumps_off && !recorder->stop_ns)
		attach_switch_faults(&recorder->reader.attachment, recorder->reader.fault_dumps.on);
	return error ? error : attach_resolve(&recorder->reader.attachment, earlier_notes);
}

/* The thread of the ring reader. It reads the rings when the recorder's own thread requests it, and reads filling rings
 * while that thread waits for the kernel. It holds the lock except while it sleeps. */
static void *read_beside_jobs(void *context)
{
	struct recorder *recorder = context;
	struct ring_thread *thread = &recorder->reader.thread;

	priority_raise_same(&recorder->priority);
	pthread_mutex_lock(&thread->lock);
	while (!thread->must_end) {
		thread->asleep = !thread->waiting && !thread->requested;
		if (thread->asleep) {
			pthread_cond_wait(&thread->wake, &thread->lock);
		} else if (!thread->requested) {
			uint64_t until_ns = clock_now_ns() + WAIT_TICK_NS;
			const struct timespec until = {(time_t)(until_ns / 1000000000), (long)(until_ns % 1000000000)};

			pthread_cond_timedwait(&thread->wake, &thread->lock, &until);
		}
		if (!thread->error &&
		    (thread->requested || (thread->waiting && rings_are_half_full(&recorder->reader.rings, true))))
			thread->error = ring_reader_read(recorder);
		if (thread->requested)
			pthread_cond_signal(&thread->done);
		thread->requested = false;
	}
	pthread_mutex_unlock(&thread->lock);
	return NULL;
}

static void free_thread(struct ring_thread *thread)
{
	pthread_mutex_unlock(&thread->lock);
	if (thread->started)
		pthread_join(thread->thread, NULL);
	pthread_cond_destroy(&thread->wake);
	pthread_cond_destroy(&thread->done);
	pthread_mutex_destroy(&thread->lock);
	thread->started = false;
}

struct mmt_error *ring_reader_start(struct recorder *recorder)
{
	struct ring_thread *thread = &recorder->reader.thread;
	pthread_condattr_t attributes;
	int failure;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&thread->lock, NULL);
	pthread_cond_init(&thread->wake, &attributes);
	pthread_cond_init(&thread->done, NULL);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_lock(&thread->lock);
	failure = thread_start(&thread->thread, read_beside_jobs, recorder);
	thread->started = failure == 0;
	if (!failure)
		return NULL;
	free_thread(thread);
	return error_system(failure, "cannot create a thread to read the ring buffers (ulimit -u or -v, pids.max)");
}

struct mmt_error *ring_reader_catch_up(struct recorder *recorder)
{
	struct ring_thread *thread = &recorder->reader.thread;

	if (!thread->started)
		return NULL;
	thread->requested = true;
	pthread_cond_signal(&thread->wake);
	while (thread->requested)
		pthread_cond_wait(&thread->done, &thread->lock);
	return TAKE(thread->error);
}

struct mmt_error *ring_reader_give_way(struct recorder *recorder)
{
	struct mmt_error *error = TAKE(recorder->reader.thread.error);

	if (error || !recorder->reader.thread.started)
		return error;
	if (rings_are_half_full(&recorder->reader.rings, true)) {
		priority_follow_rings(&recorder->priority, rings_are_half_full(&recorder->reader.rings, false),
				      clock_now_ns());
		return ring_reader_catch_up(recorder);
	}
	priority_pause_if_due(&recorder->priority);
	return NULL;
}

void ring_reader_begin_wait(void *context)
{
	struct recorder *recorder = context;
	struct ring_thread *thread = &recorder->reader.thread;

	if (thread->waits++ || !thread->started)
		return;
	thread->waiting = true;
	if (thread->asleep)
		pthread_cond_signal(&thread->wake);
	pthread_mutex_unlock(&thread->lock);
}

void ring_reader_end_wait(void *context)
{
	struct recorder *recorder = context;
	struct ring_thread *thread = &recorder->reader.thread;
	int before = errno;

	if (!--thread->waits && thread->started) {
		pthread_mutex_lock(&thread->lock);
		thread->waiting = false;
	}
	errno = before;
}

static void pass_warning(void *recorder, const char *text)
{
	recorder_message(recorder, true, "%s", text);
}

struct mmt_error *ring_reader_start_helper(struct recorder *recorder)
{
	const struct blocking_host host = {.context = recorder,
					   .stop_fd = recorder->options->stop_fd,
					   .raise_nice = recorder->priority.has_nice,
					   .begin_wait = ring_reader_begin_wait,
					   .end_wait = ring_reader_end_wait,
					   .warn = pass_warning};

	return blocking_calls_start(&recorder->calls, &host);
}

void ring_reader_end(struct recorder *recorder)
{
	struct ring_thread *thread = &recorder->reader.thread;

	if (!thread->started)
		return;
	thread->must_end = true;
	pthread_cond_signal(&thread->wake);
	free_thread(thread);
	recorder_keep_failure(recorder, TAKE(thread->error));
}

/* If the list of CPUs cannot be read, nothing is checked. */
struct mmt_error *ring_reader_check_cpus(struct recorder *recorder)
{
	struct cpu_watch *cpus = &recorder->reader.attachment.cpus;
	uint64_t now_ns = clock_now_ns(), asleep_ns = clock_read_ns(CLOCK_BOOTTIME) - now_ns;
	CLEANUP(vector) cpu_list online = {0};
	struct mmt_error *error = cpus_list_online(&online);
	bool on_cpus = recorder->summary.on_cpus || recorder->reader.faults_on_cpus;
	bool ok = error || cpu_watch_note(cpus, &recorder->reader.rings.cpus, &online, on_cpus, asleep_ns);
	size_t missed[2] = {0}; /* CPUs that have no events, or none of page faults */

	mmt_error_destroy(error);
	cpus->checked_ns = now_ns;
	/* Events of threads last while a CPU is offline, those of page faults on CPUs do not. */
	array_each(cpu, cpus->missed.items, cpus->missed.count) {
		bool faults_only = !recorder->summary.on_cpus && cpus_have(&recorder->reader.rings.cpus, *cpu);

		/* Once for each kind: after the machine was suspended, all but the first CPU are missing. */
		if (!missed[faults_only]++ && (size_t)(cpu - cpus->missed.items) >= cpus->reported)
			recorder_message(recorder, true, "CPU %d came online during recording: %s are missing", *cpu,
					 faults_only ? "its page faults" : "some or all of its events");
	}
	cpus->reported = cpus->missed.count;
	recorder->summary.missed_cpus = missed[false];
	return ok ? NULL : &error_no_memory;
}
