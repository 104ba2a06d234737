// SPDX-License-Identifier: LGPL-2.1-or-later
#include "capture/perf/perf-events.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include "capture/procfs/permissions.h"

#define COVERAGE_PERIOD_NS 1000000
#define FAULT_PERIOD 97 /* a prime: programs touch memory in powers of two */

static void describe_common(struct perf_event_attr *attribute)
{
	memset(attribute, 0, sizeof(*attribute));
	attribute->size = sizeof(*attribute);
	attribute->sample_type = EVENTS_SAMPLE_TYPE;
	attribute->read_format = PERF_FORMAT_ID;
	attribute->sample_period = 1;
	attribute->inherit = 1;
	attribute->sample_id_all = 1;
	attribute->exclude_callchain_kernel = 1;
	attribute->watermark = 1;
	attribute->use_clockid = 1;
	attribute->clockid = CLOCK_MONOTONIC;
}

void events_describe_dummy(struct perf_event_attr *attribute)
{
	describe_common(attribute);
	attribute->type = PERF_TYPE_SOFTWARE;
	attribute->config = PERF_COUNT_SW_DUMMY;
	attribute->exclude_kernel = 1;
}

void events_describe_coverage_event(struct event_description *description)
{
	*description = (struct event_description){.name = "context switches", .ring = RING_SYSCALL};
	events_describe_dummy(&description->attribute);
	description->attribute.config = PERF_COUNT_SW_TASK_CLOCK;
	description->attribute.sample_period = COVERAGE_PERIOD_NS;
	description->attribute.context_switch = 1;
}

uint32_t events_dump_bytes(const struct mmt_record_options *options)
{
	switch (options->call_graph) {
	case MMT_CALL_GRAPH_AUTO:
		return options->lean ? MMT_STACK_DUMP_BYTES_LEAN : MMT_STACK_DUMP_BYTES_DEFAULT;
	case MMT_CALL_GRAPH_DWARF:
		return options->stack_dump_bytes;
	default:
		return 0;
	}
}

uint32_t events_large_dump_bytes(const struct mmt_record_options *options)
{
	return options->call_graph == MMT_CALL_GRAPH_AUTO && !options->lean ? MMT_STACK_DUMP_BYTES_MAX : 0;
}

static struct mmt_error *add_side_band(const struct mmt_record_options *options, struct event_set *set)
{
	struct event_description *event = vector_append(&set->items);

	if (!event)
		return &error_no_memory;
	events_describe_dummy(&event->attribute);
	event->attribute.mmap = 1;
	event->attribute.mmap2 = 1;
	event->attribute.mmap_data = !options->lean;
	event->attribute.comm = 1;
	event->attribute.comm_exec = 1;
	event->attribute.task = 1;
	event->role = ROLE_SIDE_BAND;
	snprintf(event->name, sizeof(event->name), "dummy:u");
	return NULL;
}

/* Describe the event of the last tracepoint. */
static void describe_tracepoint(struct perf_event_attr *attribute, const struct tracepoints *tracepoints)
{
	describe_common(attribute);
	attribute->type = PERF_TYPE_TRACEPOINT;
	attribute->config = tracepoints->items.items[tracepoints->items.count - 1].id;
	attribute->sample_type |= PERF_SAMPLE_RAW;
}

/* *event_ret is NULL if the kernel has no such tracepoint. */
static struct mmt_error *add_tracepoint(struct event_set *set, const struct tracepoint_source *source,
					const char *system, const char *name, struct event_description **event_ret)
{
	struct mmt_error *error;
	struct event_description *event;
	bool found;

	*event_ret = NULL;
	error = tracefs_add_tracepoint(source, system, name, &set->tracepoints, &found);
	if (error || !found)
		return error;
	event = vector_append(&set->items);
	if (!event)
		return &error_no_memory;
	describe_tracepoint(&event->attribute, &set->tracepoints);
	snprintf(event->name, sizeof(event->name), "%s:%s", system, name);
	*event_ret = event;
	return NULL;
}

static void add_bytes(const struct architecture *architecture, uint32_t bytes, struct perf_event_attr *attribute)
{
	attribute->sample_type |= PERF_SAMPLE_STACK_USER;
	attribute->sample_stack_user = bytes;
	attribute->sample_regs_user |= architecture->frame_registers;
}

/*
 * Add the stack to the event of a call that maps memory: the callchain, and the stack bytes that hold the caller of a
 * frameless wrapper. Another event records the stack dump. Taking a second sample costs more than its content, so with
 * --lean and for rare calls this sample contains the dump; rare calls then need no second event. Each register costs as
 * much as a hundred bytes of stack, and unwinding rarely needs callee-saved registers.
 */
static void add_stack(const struct mmt_record_options *options, const struct architecture *architecture,
		      struct event_description *event)
{
	struct perf_event_attr *attribute = &event->attribute;
	uint32_t dump_bytes = events_dump_bytes(options);

	if (options->call_graph == MMT_CALL_GRAPH_NONE)
		return;
	event->has_dump = dump_bytes && (options->lean || call_describe(event->call)->rare);
	add_bytes(architecture, event->has_dump ? dump_bytes : EVENTS_LEAF_BYTES, attribute);
	if (options->lean) {
		event->ring = RING_DUMP; /* separate, so that dumps never displace calls that release memory */
		return;
	}
	attribute->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (event->has_dump)
		attribute->sample_regs_user |= architecture->saved_registers;
}

/* *event_ret is NULL if the kernel has no such tracepoint. */
static struct mmt_error *add_syscall(struct event_set *set, const struct tracepoint_source *source, enum call call,
				     bool entry, struct event_description **event_ret)
{
	struct mmt_error *error;
	char name[64];

	snprintf(name, sizeof(name), "sys_%s_%s", entry ? "enter" : "exit", call_describe(call)->name);
	error = add_tracepoint(set, source, "syscalls", name, event_ret);
	if (error || !*event_ret)
		return error;
	(*event_ret)->role = ROLE_SYSCALL;
	(*event_ret)->call = call;
	return NULL;
}

static struct mmt_error *add_call(struct event_set *set, const struct tracepoint_source *source,
				  const struct mmt_record_options *options, const struct architecture *architecture,
				  enum call call)
{
	const struct call_description *description = call_describe(call);
	bool entry = description->at_entry && options->no_madvise;
	struct event_description *event = NULL;
	struct mmt_error *error = NULL;

	if (description->unrecorded)
		return NULL;
	/* The entry has the first argument. It must be opened before the event of the exit: an exit without an entry
	 * then shows that the call began before the recording. */
	if (architecture->first_argument_lost && !entry)
		error = add_syscall(set, source, call, true, &event);
	if (event) {
		event->is_enter = true;
		event->filter = description->entry_filter;
	}
	error = error ?: add_syscall(set, source, call, entry, &event);
	if (error)
		return error;
	/* Another event records the entry of this call. Without the tracepoint of its exit, a missing exit would
	 * go unnoticed. */
	if (!event && (!description->rare || (description->at_entry && !entry)))
		return error_create(MMT_ERROR_UNSUPPORTED,
				    "this kernel has no tracepoint syscalls:sys_%s_%s; it needs CONFIG_FTRACE_SYSCALLS",
				    entry ? "enter" : "exit", description->name);
	if (!event)
		return NULL;
	event->filter = entry || !description->at_entry ? description->filter : description->exit_filter;
	if (entry)
		return NULL;
	event->attribute.sample_type |= PERF_SAMPLE_REGS_USER;
	event->attribute.sample_regs_user = architecture_argument_mask(architecture, description->arguments);
	if (call_has_stack(call))
		add_stack(options, architecture, event);
	return NULL;
}

/* Add the stack dumps of calls that map memory and whose syscall events have none: a second event on the same
 * tracepoint, with a ring of its own. */
static struct mmt_error *add_dumps(struct event_set *set, const struct architecture *architecture,
				   enum attribute_role role, uint32_t dump_bytes)
{
	size_t count = set->items.count;

	for (size_t i = 0; i < count; i++) {
		struct event_description *dump;
		struct event_description *syscall_event;

		if (set->items.items[i].role != ROLE_SYSCALL || set->items.items[i].is_enter ||
		    set->items.items[i].has_dump || !call_has_stack(set->items.items[i].call))
			continue;
		dump = vector_append(&set->items);
		if (!dump)
			return &error_no_memory;
		syscall_event = &set->items.items[i];
		syscall_event->has_large_dump = false;
		*dump = *syscall_event;
		syscall_event->has_large_dump = role == ROLE_LARGE_DUMP;
		dump->role = role;
		dump->ring = role == ROLE_DUMP ? RING_DUMP : RING_LARGE_DUMP;
		dump->has_dump = true;
		dump->attribute.sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
		dump->attribute.sample_regs_user = architecture->saved_registers;
		add_bytes(architecture, dump_bytes, &dump->attribute);
		snprintf(dump->name, sizeof(dump->name), "syscalls:sys_exit_%s/%sstack-dump",
			 call_describe(syscall_event->call)->name, role == ROLE_DUMP ? "" : "large-");
	}
	return NULL;
}

/* Open an event for this thread and close it. Return 0, or why it cannot be opened: EINVAL if the kernel does not
 * know everything that the attribute requests. */
static int try_event(const struct perf_event_attr *attribute)
{
	int fd = (int)syscall(SYS_perf_event_open, attribute, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Minor faults are sampled, major ones rare. Both fire when the fault is done, so the size of the page is known
 * (Linux 5.11 and later). PERF_SAMPLE_PERIOD must not be added: with it, the kernel reports every fault. Every fault
 * has a dump only where it is asked for: it would cost more than the fault. Samples on CPUs have dumps while there are
 * few of them; else an event without dumps takes the place of the first one. The zero page, which a read maps, has no
 * physical address; these need privileges, and among all faults the write that follows shows the same. If minor
 * faults are sampled, those of major faults have none, so that their size tells them apart. */
static struct mmt_error *add_faults(const struct mmt_record_options *options, const struct architecture *architecture,
				    struct event_set *set)
{
	static const struct {
		const char *name;
		uint64_t config;
	} events[] = {{"minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN}, {"major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ}};
	bool all = options->faults == MMT_FAULTS_ALL, lean = options->lean;
	uint32_t most_bytes = all && options->call_graph != MMT_CALL_GRAPH_DWARF ? 0 : events_dump_bytes(options);
	bool in_turn = most_bytes && !all;

	/* Those with odd numbers have no dumps. */
	for (unsigned i = 0; i < 4; i += in_turn ? 1 : 2) {
		uint32_t dump_bytes = i % 2 ? 0 : most_bytes;
		struct event_description *event = vector_append(&set->items);

		if (!event)
			return &error_no_memory;
		*event = (struct event_description){
		    .role = ROLE_FAULT, .ring = RING_FAULT, .has_dump = dump_bytes, .in_turn = in_turn};
		snprintf(event->name, sizeof(event->name), "%s", events[i / 2].name);
		describe_common(&event->attribute);
		event->attribute.type = PERF_TYPE_SOFTWARE;
		event->attribute.config = events[i / 2].config;
		event->attribute.sample_period = all || i >= 2 ? 1 : FAULT_PERIOD;
		event->attribute.sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE;
		if (try_event(&event->attribute) == EINVAL)
			event->attribute.sample_type &= ~(uint64_t)PERF_SAMPLE_DATA_PAGE_SIZE;
		event->attribute.sample_type |= PERF_SAMPLE_PHYS_ADDR;
		if (all || i >= 2 || try_event(&event->attribute))
			event->attribute.sample_type &= ~(uint64_t)PERF_SAMPLE_PHYS_ADDR;
		if (options->call_graph == MMT_CALL_GRAPH_NONE)
			continue;
		event->attribute.sample_type |= PERF_SAMPLE_REGS_USER | (lean ? 0 : PERF_SAMPLE_CALLCHAIN);
		event->attribute.sample_regs_user = architecture->saved_registers;
		add_bytes(architecture, dump_bytes ? dump_bytes : EVENTS_LEAF_BYTES, &event->attribute);
	}
	return NULL;
}

const char *const events_reclaim_names[EVENTS_RECLAIM] = {
    "mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end", "mm_vmscan_memcg_reclaim_begin",
    "mm_vmscan_memcg_reclaim_end"};

/* Threads that free memory before they can allocate some, beside sampled page faults: on CPUs, because each thread
 * would need several events on each CPU. The stack is that of the end; as of faults, with dumps or without, in turn.
 * Recording does without them. */
static struct mmt_error *add_reclaims(struct event_set *set, const struct tracepoint_source *source, size_t first_fault)
{
	const uint64_t of_faults = PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_PHYS_ADDR;
	struct event_description fault, end, *event;

	for (size_t i = 0; i < EVENTS_RECLAIM; i++) {
		struct mmt_error *error = add_tracepoint(set, source, "vmscan", events_reclaim_names[i], &event);
		size_t kinds = i % 2 && set->items.items[first_fault].in_turn ? 2 : 1;

		if (error) {
			mmt_error_destroy(error);
			return NULL;
		}
		for (size_t kind = 0; event && kind < kinds; kind++) {
			fault = set->items.items[first_fault + kind];
			end = *event;
			if (kind && !vector_push(&set->items, end))
				return &error_no_memory;
			event = &set->items.items[set->items.count - 1];
			event->role = ROLE_RECLAIM;
			event->ring = RING_FAULT;
			event->attribute.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
			if (i % 2 == 0)
				continue;
			event->has_dump = fault.has_dump;
			event->in_turn = fault.in_turn;
			event->attribute.sample_type = fault.attribute.sample_type & ~of_faults;
			event->attribute.sample_regs_user = fault.attribute.sample_regs_user;
			event->attribute.sample_stack_user = fault.attribute.sample_stack_user;
		}
	}
	return NULL;
}

bool kernel_is_supported(const char *release)
{
	unsigned major = 0, minor = 0;

	(void)sscanf(release, "%4u.%4u", &major, &minor);
	return major > 5 || (major == 5 && minor >= 10);
}

struct mmt_error *events_check_permitted(void)
{
	struct perf_event_attr attribute;
	int errno_value;

	events_describe_dummy(&attribute);
	errno_value = try_event(&attribute);
	if (permission_was_refused(errno_value))
		return error_refused(permission_explain(PERMISSION_EVENTS), "none");
	return errno_value ? error_system(errno_value, "none") : NULL;
}

struct mmt_error *events_are_restricted(const struct tracepoint_source *source, bool *restricted_ret)
{
	struct tracepoints tracepoints = {0};
	struct mmt_error *error = tracefs_add_tracepoint(source, "task", "task_newtask", &tracepoints, restricted_ret);
	struct perf_event_attr attribute;
	int errno_value;

	if (!error && *restricted_ret) {
		describe_tracepoint(&attribute, &tracepoints);
		attribute.disabled = 1;
		attribute.inherit = 0;
		errno_value = try_event(&attribute);
		*restricted_ret = errno_value == EACCES || errno_value == EPERM;
	}
	tracepoints_deinit(&tracepoints);
	return error;
}

struct mmt_error *events_describe_oom_kill(const struct tracepoint_source *source, struct perf_event_attr *attribute,
					   bool *found_ret)
{
	struct tracepoints tracepoints = {0};
	struct mmt_error *error = tracefs_add_tracepoint(source, "oom", "mark_victim", &tracepoints, found_ret);

	if (!error && *found_ret) {
		describe_tracepoint(attribute, &tracepoints);
		attribute->inherit = 0;
	}
	tracepoints_deinit(&tracepoints);
	return error;
}

struct mmt_error *events_create(const struct mmt_record_options *options, const struct tracepoint_source *source,
				bool restricted, const struct architecture *architecture, struct event_set *set)
{
	uint32_t dump_bytes = events_dump_bytes(options), large_dump_bytes = events_large_dump_bytes(options);
	struct event_description *new_task = NULL;
	struct perf_event_attr lost;
	size_t first;
	struct mmt_error *error;

	memset(set, 0, sizeof(*set));
	error = tracefs_add_headers(source, &set->tracepoints) ?: add_side_band(options, set);
	if (!error && !restricted) {
		error = add_tracepoint(set, source, "task", "task_newtask", &new_task);
		if (new_task)
			new_task->role = ROLE_NEW_TASK;
		else if (!error)
			error = error_create(MMT_ERROR_UNSUPPORTED, "this kernel has no tracepoint task:task_newtask");
	}
	for (unsigned call = 0; !error && call < CALL_KINDS; call++)
		error = add_call(set, source, options, architecture, (enum call)call);
	if (!error && dump_bytes && !options->lean)
		error = add_dumps(set, architecture, ROLE_DUMP, dump_bytes);
	first = set->items.count;
	if (!error && (options->faults > MMT_FAULTS_NONE ||
		       (options->faults == MMT_FAULTS_AUTO && dump_bytes && !options->lean && !restricted)))
		error = add_faults(options, architecture, set)
			    ?: options->faults == MMT_FAULTS_ALL ? NULL
								 : add_reclaims(set, source, first);
	if (!error && large_dump_bytes)
		error = add_dumps(set, architecture, ROLE_LARGE_DUMP, large_dump_bytes);
	/* Add what kernels of the supported versions may lack. Without PERF_FORMAT_LOST (Linux 6.0, and later 5.10 and
	 * 5.15) attach_add_lost() calculates what was lost. */
	events_describe_dummy(&lost);
	lost.read_format |= PERF_FORMAT_LOST;
	if (try_event(&lost) == EINVAL)
		lost.read_format = PERF_FORMAT_ID;
	array_each(event, set->items.items, set->items.count) {
		event->attribute.exclude_kernel |= restricted;
		event->attribute.read_format = lost.read_format;
	}
	return error;
}

size_t events_count_large_dumps(const struct event_set *set)
{
	size_t count = 0;

	while (count < set->items.count && set->items.items[set->items.count - 1 - count].role == ROLE_LARGE_DUMP)
		count++;
	return count;
}

void events_leave_out_large_dumps(struct event_set *set)
{
	set->items.count -= events_count_large_dumps(set);
}

bool events_put_faults_on_cpus(struct event_set *set, int cpu)
{
	bool permitted = false;

	array_each(event, set->items.items, set->items.count) {
		struct perf_event_attr attribute = event->attribute;
		int fd;

		if (!role_is_paging(event->role))
			continue;
		attribute.inherit = 0;
		fd = permitted ? -1 : (int)syscall(SYS_perf_event_open, &attribute, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
		permitted |= fd >= 0;
		cleanup_close(&fd);
		if (!permitted)
			return false;
		event->attribute = attribute;
		event->on_cpus = true;
	}
	return permitted;
}

bool events_leave_out_faults(struct event_set *set, bool all)
{
	size_t kept = 0;
	bool left = false;

	for (size_t i = 0; i < set->items.count; i++) {
		struct event_description event = set->items.items[i];

		if (event.role == ROLE_RECLAIM ||
		    (event.role == ROLE_FAULT && (all || (event.in_turn && !event.has_dump))))
			continue;
		event.in_turn = false;
		left |= event.role == ROLE_FAULT;
		set->items.items[kept++] = event;
	}
	set->items.count = kept;
	return left;
}

size_t events_count_of_threads(const struct event_set *set)
{
	size_t count = 0;

	array_each(event, set->items.items, set->items.count)
		count += !event->on_cpus;
	return count;
}

void events_deinit(struct event_set *set)
{
	vector_deinit(&set->items);
	tracepoints_deinit(&set->tracepoints);
}
