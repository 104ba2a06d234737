// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/recording-builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/syscall-table.h"
#include "trace/format/architecture.h"
#include "trace/format/tracepoint.h"
#include "trace/write/writer.h"

#define PAGE_BYTES 4096
#define CALLCHAIN_LIMIT 127
#define SAMPLE_TYPE (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW)
#define CALL_SAMPLE_TYPE (SAMPLE_TYPE | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)
#define FAULT_SAMPLE_TYPE                                                                                              \
	((SAMPLE_TYPE & ~PERF_SAMPLE_RAW) | PERF_SAMPLE_ADDR | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PHYS_ADDR |         \
	 PERF_SAMPLE_DATA_PAGE_SIZE)
#define RECLAIM_SAMPLE_TYPE ((SAMPLE_TYPE & ~PERF_SAMPLE_RAW) | PERF_SAMPLE_CALLCHAIN)
#define COMMON_FIELDS                                                                                                  \
	"format:\n"                                                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                                         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                                         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                                 \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

struct recording_builder {
	uint64_t lost;
	const struct architecture *architecture;
	struct writer *writer;
	struct buffer body, record; /* of calls, and of any record; kept, since there may be millions */
	bool no_stacks, command;
};

static void require(struct mmt_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "recording builder: %s\n", error->message);
	abort();
}

static void add_format(struct tracepoints *tracepoints, const char *system, uint32_t id, const char *name,
		       const char *fields)
{
	struct tracepoint *tracepoint = vector_append(&tracepoints->items);
	int written;

	if (!tracepoint)
		abort();
	tracepoint->system = strdup(system);
	tracepoint->name = strdup(name);
	tracepoint->id = id;
	written = asprintf(&tracepoint->format, "name: %s\nID: %u\n" COMMON_FIELDS "%s", name, id, fields);
	if (written < 0 || !tracepoint->system || !tracepoint->name)
		abort();
}

/* Of the entry of any call. */
#define ENTRY_FIELDS                                                                                                   \
	"\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"                                                   \
	"\tfield:long a;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:long b;\toffset:24;\tsize:8;\tsigned:0;\n"           \
	"\tfield:long c;\toffset:32;\tsize:8;\tsigned:0;\n\tfield:long d;\toffset:40;\tsize:8;\tsigned:0;\n"           \
	"\tfield:long e;\toffset:48;\tsize:8;\tsigned:0;\n\tfield:long f;\toffset:56;\tsize:8;\tsigned:0;\n\n"         \
	"print fmt: \"0x%lx\", REC->a\n"

static void add_formats(struct writer *writer, const struct architecture *architecture)
{
	struct tracepoints tracepoints = {0};
	struct buffer buffer;

	tracepoints.header_page = strdup("\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
					 "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
					 "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
					 "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n");
	tracepoints.header_event = strdup("# compressed entry header\n");
	for (size_t i = 0; i < CALL_KINDS; i++) {
		char name[64];

		if (call_describe((enum call)i)->at_entry)
			continue;
		snprintf(name, sizeof(name), "sys_exit_%s", call_describe((enum call)i)->name);
		add_format(&tracepoints, "syscalls", (uint32_t)(BUILDER_SYSCALL_ID + i), name,
			   "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
			   "\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n\nprint fmt: \"0x%lx\", REC->ret\n");
		if (!architecture->first_argument_lost)
			continue;
		snprintf(name, sizeof(name), "sys_enter_%s", call_describe((enum call)i)->name);
		add_format(&tracepoints, "syscalls", (uint32_t)(BUILDER_ENTER_ID + i), name, ENTRY_FIELDS);
	}
	add_format(&tracepoints, "syscalls", BUILDER_SYSCALL_ID + CALL_MADVISE, "sys_enter_madvise",
		   "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:unsigned long start;\toffset:16;\tsize:8;\tsigned:0;\n"
		   "\tfield:size_t len_in;\toffset:24;\tsize:8;\tsigned:0;\n"
		   "\tfield:int behavior;\toffset:32;\tsize:8;\tsigned:0;\n\n"
		   "print fmt: \"start: 0x%08lx\", REC->start\n");
	add_format(&tracepoints, "mmap_lock", BUILDER_LOCK_ID, "mmap_lock_acquire_returned",
		   "\tfield:struct mm_struct * mm;\toffset:8;\tsize:8;\tsigned:0;\n"
		   "\tfield:u64 memcg_id;\toffset:16;\tsize:8;\tsigned:0;\n"
		   "\tfield:bool write;\toffset:24;\tsize:1;\tsigned:0;\n"
		   "\tfield:bool success;\toffset:25;\tsize:1;\tsigned:0;\n\n"
		   "print fmt: \"mm=%p\", REC->mm\n");
	add_format(&tracepoints, "task", BUILDER_NEW_TASK_ID, "task_newtask",
		   "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		   "\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
		   "\tfield:unsigned long clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n"
		   "\tfield:short oom_score_adj;\toffset:40;\tsize:2;\tsigned:1;\n\n"
		   "print fmt: \"pid=%d\", REC->pid\n");
	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	tracepoints_encode(&tracepoints, PAGE_BYTES, &buffer);
	require(buffer_finish(&buffer));
	require(writer_add_section(writer, FEATURE_TRACING_DATA, buffer.data, buffer.size));
	buffer_deinit(&buffer);
	tracepoints_deinit(&tracepoints);
}

static void add_attribute(struct writer *writer, struct recording_info *info, struct perf_event_attr *attr,
			  const char *name, uint64_t id, enum attribute_role role)
{
	const uint64_t ids[] = {id, id + BUILDER_SECOND_ROOT};

	attr->use_clockid = 1;
	attr->sample_id_all = 1;
	attr->inherit = 1;
	attr->sample_period = attr->sample_period ? attr->sample_period : 1;
	require(writer_add_attribute(writer, attr, name, ids, 2));
	if (!vector_push(&info->roles, role))
		abort();
}

static const uint64_t call_ids[] = {
    [ROLE_SYSCALL] = BUILDER_SYSCALL_ID, [ROLE_DUMP] = BUILDER_DUMP_ID, [ROLE_LARGE_DUMP] = BUILDER_LARGE_DUMP_ID};

static void add_entries(struct writer *writer, struct recording_info *info)
{
	for (size_t i = 0; i < CALL_KINDS; i++) {
		struct perf_event_attr attr = {
		    .type = PERF_TYPE_TRACEPOINT, .config = BUILDER_ENTER_ID + i, .sample_type = SAMPLE_TYPE};
		char name[64];

		if (call_describe((enum call)i)->at_entry)
			continue;
		snprintf(name, sizeof(name), "syscalls:sys_enter_%s", call_describe((enum call)i)->name);
		add_attribute(writer, info, &attr, name, BUILDER_ENTER_ID + i, ROLE_SYSCALL);
	}
}

static void add_call_attributes(struct writer *writer, const struct architecture *architecture,
				struct recording_info *info, enum attribute_role role, bool no_stacks)
{
	for (size_t i = 0; i < CALL_KINDS; i++) {
		struct perf_event_attr attr = {
		    .type = PERF_TYPE_TRACEPOINT,
		    .config = BUILDER_SYSCALL_ID + i,
		    .sample_type = CALL_SAMPLE_TYPE,
		    .sample_regs_user = architecture_argument_mask(architecture, 6) | architecture->frame_registers,
		    .sample_stack_user = BUILDER_STACK_BYTES,
		};
		bool at_entry = call_describe((enum call)i)->at_entry;
		char name[64];

		if (at_entry && role != ROLE_SYSCALL)
			continue;
		if (no_stacks) {
			attr.sample_type &= ~(uint64_t)PERF_SAMPLE_STACK_USER;
			attr.sample_stack_user = 0;
		}
		if (at_entry)
			attr.sample_type = SAMPLE_TYPE;
		snprintf(name, sizeof(name), "syscalls:sys_%s_%s", at_entry ? "enter" : "exit",
			 call_describe((enum call)i)->name);
		add_attribute(writer, info, &attr, name, call_ids[role] + i, role);
	}
}

static void add_snapshot_attribute(struct writer *writer, struct recording_info *info)
{
	struct perf_event_attr attr = {
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_DUMMY,
	    .sample_type = SAMPLE_TYPE & ~PERF_SAMPLE_RAW,
	    .sample_id_all = 1,
	};
	uint64_t ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS + 4];

	for (size_t i = 0; i < SNAPSHOT_KINDS * SNAPSHOT_PARTS; i++)
		ids[i] = SNAPSHOT_ID_FIRST + i;
	ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS] = SNAPSHOT_ID_NAME;
	ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS + 1] = NOTE_ID;
	ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS + 2] = RESIDENT_PAGES_ID;
	ids[SNAPSHOT_KINDS * SNAPSHOT_PARTS + 3] = PSS_ID;
	require(writer_add_attribute(writer, &attr, "dummy:u", ids, sizeof(ids) / sizeof(ids[0])));
	if (!vector_push(&info->roles, ROLE_SNAPSHOT) ||
	    !vector_push(&info->hugetlb_devices, ((struct device_number){0, BUILDER_HUGETLB_MINOR})))
		abort();
}

static void add_information(struct writer *writer, const struct recording_info *info,
			    const struct architecture *architecture)
{
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	require(section_write(&section_info, info, &buffer));
	require(buffer_finish(&buffer));
	require(writer_add_section(writer, FEATURE_MMTRACE_INFO, buffer.data, buffer.size));
	buffer_clear(&buffer);
	buffer_put_u32(&buffer, (uint32_t)strlen(architecture->name) + 1);
	buffer_put_string(&buffer, architecture->name);
	require(buffer_finish(&buffer));
	require(writer_add_section(writer, FEATURE_ARCH, buffer.data, buffer.size));
	buffer_deinit(&buffer);
}

/* The contents of a recording apart from the calls. */
struct contents {
	bool no_stacks, dumps, large_dumps, locks, command;
	uint64_t start_ns;
	const char *architecture; /* NULL: x86_64 */
	uint64_t fault_period;	  /* 0: no page faults */
};

static struct recording_builder *create(const char *path, const struct contents *contents)
{
	struct recording_builder *builder = calloc(1, sizeof(*builder));
	struct recording_info info = {.page_bytes = PAGE_BYTES,
				      .callchain_limit = CALLCHAIN_LIMIT,
				      .mapping_limit = BUILDER_MAPPING_LIMIT,
				      .command = contents->command,
				      .start_ns = contents->start_ns};
	struct perf_event_attr task = {
	    .type = PERF_TYPE_TRACEPOINT, .config = BUILDER_NEW_TASK_ID, .sample_type = SAMPLE_TYPE};
	struct perf_event_attr fault = {.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_PAGE_FAULTS_MIN,
					.sample_type = FAULT_SAMPLE_TYPE,
					.sample_period = contents->fault_period};
	struct perf_event_attr reclaim = {
	    .type = PERF_TYPE_TRACEPOINT, .config = BUILDER_RECLAIM_ID, .sample_type = RECLAIM_SAMPLE_TYPE};
	struct perf_event_attr lock = {
	    .type = PERF_TYPE_TRACEPOINT, .config = BUILDER_LOCK_ID, .sample_type = SAMPLE_TYPE};
	struct perf_event_attr side_band = {.type = PERF_TYPE_SOFTWARE,
					    .config = PERF_COUNT_SW_DUMMY,
					    .sample_type = SAMPLE_TYPE & ~PERF_SAMPLE_RAW,
					    .mmap = 1,
					    .mmap_data = 1,
					    .mmap2 = 1,
					    .comm = 1,
					    .task = 1};

	if (!builder)
		abort();
	require(writer_create(path, &builder->writer));
	buffer_init(&builder->body, UINT16_MAX);
	buffer_init(&builder->record, UINT16_MAX);
	info.recorder_version = strdup("0.1.0");
	builder->no_stacks = contents->no_stacks;
	builder->command = contents->command;
	info.stack_dump_bytes = contents->no_stacks ? 0 : BUILDER_STACK_BYTES;
	builder->architecture = architecture_find(contents->architecture ? contents->architecture : "x86_64");
	add_formats(builder->writer, builder->architecture);
	if (builder->architecture->first_argument_lost)
		add_entries(builder->writer, &info);
	add_call_attributes(builder->writer, builder->architecture, &info, ROLE_SYSCALL, contents->no_stacks);
	if (contents->dumps)
		add_call_attributes(builder->writer, builder->architecture, &info, ROLE_DUMP, false);
	if (contents->large_dumps)
		add_call_attributes(builder->writer, builder->architecture, &info, ROLE_LARGE_DUMP, false);
	if (contents->fault_period) {
		add_attribute(builder->writer, &info, &fault, "minor-faults", BUILDER_FAULT_ID, ROLE_FAULT);
		add_attribute(builder->writer, &info, &reclaim, "vmscan:mm_vmscan_memcg_reclaim_end",
			      BUILDER_RECLAIM_ID, ROLE_RECLAIM);
		add_attribute(builder->writer, &info, &reclaim, "vmscan:mm_vmscan_memcg_reclaim_begin",
			      BUILDER_RECLAIM_ID + 1, ROLE_RECLAIM);
	}
	add_attribute(builder->writer, &info, &task, "task:task_newtask", BUILDER_NEW_TASK_ID, ROLE_NEW_TASK);
	add_attribute(builder->writer, &info, &side_band, "dummy:u", BUILDER_SIDE_BAND_ID, ROLE_SIDE_BAND);
	if (contents->locks)
		add_attribute(builder->writer, &info, &lock, "mmap_lock:mmap_lock_acquire_returned", BUILDER_LOCK_ID,
			      ROLE_LOCK);
	add_snapshot_attribute(builder->writer, &info);
	add_information(builder->writer, &info, builder->architecture);
	section_info.deinit(&info);
	require(writer_start(builder->writer));
	return builder;
}

struct recording_builder *builder_create(const char *path)
{
	return create(path, &(struct contents){.dumps = true, .locks = true});
}

struct recording_builder *builder_create_with(const char *path, bool dumps, bool locks)
{
	return create(path, &(struct contents){.dumps = dumps, .locks = locks});
}

struct recording_builder *builder_create_with_faults(const char *path, uint64_t period)
{
	return create(path, &(struct contents){.dumps = true, .fault_period = period});
}

struct recording_builder *builder_create_with_large_dumps(const char *path)
{
	return create(path, &(struct contents){.dumps = true, .large_dumps = true});
}

struct recording_builder *builder_create_for_aarch64(const char *path)
{
	return create(path, &(struct contents){.dumps = true, .architecture = "aarch64"});
}

struct recording_builder *builder_create_of_command(const char *path)
{
	return create(path, &(struct contents){.dumps = true, .locks = true, .command = true});
}

struct recording_builder *builder_create_at(const char *path, uint64_t start_ns)
{
	return create(path, &(struct contents){.dumps = true, .locks = true, .start_ns = start_ns});
}

struct recording_builder *builder_create_without_stacks(const char *path)
{
	return create(path, &(struct contents){.no_stacks = true});
}

static void put_record(struct recording_builder *builder, uint32_t type, uint16_t misc, const void *body, size_t size)
{
	struct perf_event_header header = {
	    .type = type, .misc = PERF_RECORD_MISC_USER | misc, .size = (uint16_t)(sizeof(header) + size)};
	struct buffer *record = &builder->record;

	buffer_clear(record);
	buffer_put(record, &header, sizeof(header));
	buffer_put(record, body, size);
	require(buffer_finish(record));
	require(writer_append(builder->writer, record->data, record->size));
}

void builder_record(struct recording_builder *builder, uint32_t type, const void *body, size_t size)
{
	put_record(builder, type, 0, body, size);
}

static void put_task(struct buffer *body, int32_t pid, int32_t tid)
{
	buffer_put_u32(body, (uint32_t)pid);
	buffer_put_u32(body, (uint32_t)tid);
}

static void put_text(struct buffer *body, const char *text)
{
	buffer_put_string(body, text);
	buffer_align(body, 8);
}

/* sample_id of SAMPLE_TYPE, then the record is appended to the file. */
static void put_trailer(struct buffer *body, uint64_t id, uint64_t time_ns, int32_t pid, int32_t tid)
{
	put_task(body, pid, tid);
	buffer_put_u64(body, time_ns);
	buffer_put_u64(body, 0); /* processor */
	buffer_put_u64(body, id);
}

static void append(struct recording_builder *builder, uint32_t type, struct buffer *body, uint64_t id, uint64_t time_ns,
		   int32_t pid, int32_t tid)
{
	put_trailer(body, id, time_ns, pid, tid);
	require(buffer_finish(body));
	builder_record(builder, type, body->data, body->size);
	buffer_deinit(body);
}

static uint64_t register_at_exit(const struct architecture *architecture, const struct builder_call *call, int number)
{
	if (number == architecture->frame_pointer)
		return call->frame_pointer;
	if (number == architecture->stack_pointer)
		return call->stack_pointer;
	if (number == architecture->instruction_pointer)
		return call->instruction_pointer;
	for (size_t i = 0; i < 6; i++) {
		if (number == architecture->argument_registers[i])
			return i || !architecture->first_argument_lost ? call->arguments[i] : (uint64_t)call->result;
	}
	return 0;
}

/* Those of the arguments and of the frame, in perf's order. */
static void put_registers(struct buffer *body, const struct architecture *architecture, const struct builder_call *call)
{
	buffer_put_u64(body, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t left = architecture_argument_mask(architecture, 6) | architecture->frame_registers; left;
	     left &= left - 1)
		buffer_put_u64(
		    body, register_at_exit(architecture, call, architecture->perf_to_dwarf[__builtin_ctzll(left)]));
}

static void put_stack(struct buffer *body, const struct builder_call *call)
{
	static const uint8_t zeros[BUILDER_STACK_BYTES];
	size_t room = call->stack_size > sizeof(zeros) ? call->stack_size : sizeof(zeros);

	buffer_put_u64(body, room);
	buffer_put(body, call->stack, call->stack_size);
	buffer_put(body, zeros, room - call->stack_size);
	buffer_put_u64(body, call->stack_size);
}

static void put_sample_start(struct buffer *body, uint64_t id, uint64_t time_ns, int32_t pid, int32_t tid, uint32_t cpu)
{
	buffer_put_u64(body, id);
	put_task(body, pid, tid);
	buffer_put_u64(body, time_ns);
	buffer_put_u64(body, cpu);
}

/* For calls recorded at their entry: no registers, no stack. */
static void append_entry(struct recording_builder *builder, const struct builder_call *call, uint64_t id,
			 uint32_t argument_count)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	put_sample_start(&body, id, call->time_ns, call->pid, call->tid, call->cpu);
	/* raw: common fields, number of the call, arguments, padding to 8 */
	buffer_put_u32(&body, 20 + argument_count * 8);
	buffer_put_u64(&body, BUILDER_SYSCALL_ID + (uint64_t)call->call);
	buffer_put_u64(&body, 0);
	for (size_t i = 0; i < argument_count; i++)
		buffer_put_u64(&body, call->arguments[i]);
	buffer_put_u32(&body, 0);
	require(buffer_finish(&body));
	builder_record(builder, PERF_RECORD_SAMPLE, body.data, body.size);
	buffer_deinit(&body);
}

static void add_fault(struct recording_builder *builder, uint64_t time_ns, int32_t pid, uint64_t address,
		      uint64_t page_bytes, uint64_t caller, bool zero_page)
{
	const uint64_t words[] = {BUILDER_FAULT_ID,
				  (uint64_t)(uint32_t)pid << 32 | (uint32_t)pid,
				  time_ns,
				  address,
				  0,
				  /* CPU */ 2,
				  (uint64_t)PERF_CONTEXT_USER,
				  caller,
				  !zero_page,
				  page_bytes};

	builder_record(builder, PERF_RECORD_SAMPLE, words, sizeof(words));
}

void builder_fault(struct recording_builder *builder, uint64_t time_ns, int32_t pid, uint64_t address,
		   uint64_t page_bytes, uint64_t caller)
{
	add_fault(builder, time_ns, pid, address, page_bytes, caller, false);
}

void builder_reclaim(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, bool begins,
		     uint64_t caller)
{
	const uint64_t words[] = {BUILDER_RECLAIM_ID + begins,
				  (uint64_t)(uint32_t)tid << 32 | (uint32_t)pid,
				  time_ns,
				  /* CPU */ 2,
				  2,
				  (uint64_t)PERF_CONTEXT_USER,
				  caller};

	builder_record(builder, PERF_RECORD_SAMPLE, words, sizeof(words));
}

void builder_zero_page(struct recording_builder *builder, uint64_t time_ns, int32_t pid, uint64_t address,
		       uint64_t caller)
{
	add_fault(builder, time_ns, pid, address, PAGE_BYTES, caller, true);
}

void builder_lock(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, uint64_t space,
		  bool write)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	put_sample_start(&body, BUILDER_LOCK_ID, time_ns, pid, tid, 0);
	buffer_put_u32(&body, 28); /* raw: common fields, the tracepoint's own, padding to 8 */
	buffer_put_u64(&body, BUILDER_LOCK_ID);
	buffer_put_u64(&body, space);
	buffer_put_u64(&body, 0); /* memcg_id */
	buffer_put_u8(&body, write);
	buffer_put_u8(&body, 1); /* success */
	buffer_put_u16(&body, 0);
	require(buffer_finish(&body));
	builder_record(builder, PERF_RECORD_SAMPLE, body.data, body.size);
	buffer_deinit(&body);
}

void builder_call(struct recording_builder *builder, const struct builder_call *call)
{
	enum attribute_role role = call->dump ? ROLE_DUMP : call->large_dump ? ROLE_LARGE_DUMP : ROLE_SYSCALL;
	uint64_t id = call->id ? call->id : call_ids[role] + (uint64_t)call->call;
	struct buffer *body = &builder->body;

	if (call->enter) {
		append_entry(builder, call, BUILDER_ENTER_ID + (uint64_t)call->call, 6);
		return;
	}
	if (call_describe(call->call)->at_entry) {
		append_entry(builder, call, id, 3);
		return;
	}
	buffer_clear(body);
	put_sample_start(body, id, call->time_ns, call->pid, call->tid, call->cpu);
	buffer_put_u64(body, call->callchain_count + 1);
	buffer_put_u64(body, (uint64_t)PERF_CONTEXT_USER);
	buffer_put(body, call->callchain, call->callchain_count * sizeof(uint64_t));
	buffer_put_u32(body, 28); /* raw: common fields, number of the call, result, padding to 8 */
	buffer_put_u64(body, BUILDER_SYSCALL_ID + (uint64_t)call->call);
	buffer_put_u64(body, 0);
	buffer_put_u64(body, (uint64_t)call->result);
	buffer_put_u32(body, 0);
	put_registers(body, builder->architecture, call);
	if (!builder->no_stacks)
		put_stack(body, call);
	require(buffer_finish(body));
	builder_record(builder, PERF_RECORD_SAMPLE, body->data, body->size);
}

void builder_mmap_exit(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, uint64_t address,
		       uint64_t length, uint64_t caller)
{
	builder_call(builder,
		     &(struct builder_call){
			 .call = CALL_MMAP,
			 .time_ns = time_ns,
			 .pid = pid,
			 .tid = tid,
			 .arguments = {0, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0},
			 .result = (int64_t)address,
			 .callchain = &caller,
			 .callchain_count = 1,
			 .instruction_pointer = caller,
		     });
}

void builder_munmap_exit(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid,
			 uint64_t address, uint64_t length)
{
	builder_call(builder, &(struct builder_call){
				  .call = CALL_MUNMAP,
				  .time_ns = time_ns,
				  .pid = pid,
				  .tid = tid,
				  .arguments = {address, length},
			      });
}

static void append_mapping(struct recording_builder *builder, uint64_t id, uint64_t time_ns, int32_t pid, int32_t tid,
			   const struct event_mapping *mapping)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	put_task(&body, pid, tid);
	buffer_put_u64(&body, mapping->start);
	buffer_put_u64(&body, mapping->length);
	buffer_put_u64(&body, mapping->file_offset);
	buffer_put_u32(&body, mapping->device_major);
	buffer_put_u32(&body, mapping->device_minor);
	buffer_put_u64(&body, mapping->inode);
	buffer_put_u64(&body, 0); /* generation */
	buffer_put_u32(&body, mapping->protection);
	buffer_put_u32(&body, mapping->flags);
	put_text(&body, mapping->path ? mapping->path : "//anon");
	append(builder, PERF_RECORD_MMAP2, &body, id, time_ns, pid, tid);
}

void builder_mapping(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid,
		     const struct event_mapping *mapping)
{
	append_mapping(builder, BUILDER_SIDE_BAND_ID, time_ns, pid, tid, mapping);
}

static void append_comm(struct recording_builder *builder, uint64_t id, uint64_t time_ns, int32_t pid, int32_t tid,
			const char *name)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	put_task(&body, pid, tid);
	put_text(&body, name);
	append(builder, PERF_RECORD_COMM, &body, id, time_ns, pid, tid);
}

void builder_comm(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, const char *name)
{
	append_comm(builder, BUILDER_SIDE_BAND_ID, time_ns, pid, tid, name);
}

void builder_exec(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, const char *name)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	put_task(&body, pid, tid);
	put_text(&body, name);
	put_trailer(&body, BUILDER_SIDE_BAND_ID, time_ns, pid, tid);
	require(buffer_finish(&body));
	put_record(builder, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, body.data, body.size);
	buffer_deinit(&body);
}

static void append_task(struct recording_builder *builder, uint32_t type, uint64_t time_ns, const int32_t ids[4])
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	for (size_t i = 0; i < 4; i++)
		buffer_put_u32(&body, (uint32_t)ids[i]);
	buffer_put_u64(&body, time_ns);
	append(builder, type, &body, BUILDER_SIDE_BAND_ID, time_ns, ids[1], ids[3]);
}

void builder_fork(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, int32_t parent_pid,
		  int32_t parent_tid)
{
	append_task(builder, PERF_RECORD_FORK, time_ns, (const int32_t[]){pid, parent_pid, tid, parent_tid});
}

void builder_exit(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid)
{
	append_task(builder, PERF_RECORD_EXIT, time_ns, (const int32_t[]){pid, pid, tid, tid});
}

void builder_new_task(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid, int32_t new_tid,
		      uint64_t clone_flags)
{
	const uint8_t name[20] = "child";
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	put_sample_start(&body, BUILDER_NEW_TASK_ID, time_ns, pid, tid, 0);
	buffer_put_u32(&body, 52); /* raw: common fields, pid, comm[16] and a gap, flags, score and padding */
	buffer_put_u64(&body, BUILDER_NEW_TASK_ID);
	buffer_put_u32(&body, (uint32_t)new_tid);
	buffer_put(&body, name, sizeof(name));
	buffer_put_u64(&body, clone_flags);
	buffer_put_u64(&body, 0);
	buffer_put_u32(&body, 0);
	require(buffer_finish(&body));
	builder_record(builder, PERF_RECORD_SAMPLE, body.data, body.size);
	buffer_deinit(&body);
}

void builder_lost(struct recording_builder *builder, uint64_t time_ns, uint64_t id, uint64_t count)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	buffer_put_u64(&body, id);
	buffer_put_u64(&body, count);
	append(builder, PERF_RECORD_LOST, &body, id, time_ns, 0, 0);
}

void builder_thread_name(struct recording_builder *builder, uint64_t time_ns, int32_t pid, int32_t tid,
			 const char *name)
{
	append_comm(builder, SNAPSHOT_ID_NAME, time_ns, pid, tid, name);
}

void builder_note_text(struct recording_builder *builder, uint64_t time_ns, int32_t pid, enum note_kind kind,
		       uint64_t value, uint64_t number, const char *text)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	buffer_put_u64(&body, 0);
	buffer_put_u16(&body, 0);
	buffer_put_u16(&body, 20);
	buffer_put_u32(&body, kind);
	buffer_put_u64(&body, value);
	buffer_put_u64(&body, number);
	if (text)
		buffer_put(&body, text, strlen(text) + 1);
	append(builder, RECORD_TEXT_POKE, &body, NOTE_ID, time_ns, pid, pid);
}

void builder_note(struct recording_builder *builder, uint64_t time_ns, int32_t pid, enum note_kind kind, uint64_t value,
		  uint64_t number)
{
	builder_note_text(builder, time_ns, pid, kind, value, number, NULL);
}

void builder_pss(struct recording_builder *builder, uint64_t time_ns, int32_t pid, const struct builder_pss *pss)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	buffer_put_u64(&body, 0);
	buffer_put_u16(&body, 0);
	buffer_put_u16(&body, (PSS_FIELDS - !pss->anonymous_bytes - !pss->pss_anon_bytes) * sizeof(uint64_t));
	buffer_put_u64(&body, pss->reading);
	buffer_put_u64(&body, pss->resident_bytes);
	buffer_put_u64(&body, pss->pss_bytes);
	buffer_put_u64(&body, pss->swap_pss_bytes);
	buffer_put_u64(&body, pss->private_bytes);
	buffer_put_u64(&body, pss->huge_bytes);
	buffer_put_u64(&body, pss->faults);
	if (pss->anonymous_bytes)
		buffer_put_u64(&body, pss->anonymous_bytes);
	if (pss->pss_anon_bytes)
		buffer_put_u64(&body, pss->pss_anon_bytes);
	buffer_align(&body, 8);
	append(builder, RECORD_TEXT_POKE, &body, PSS_ID, time_ns, pid, pid);
}

void builder_pages(struct recording_builder *builder, uint64_t time_ns, int32_t pid, const struct builder_pages *pages)
{
	struct buffer body;

	buffer_init(&body, UINT16_MAX);
	buffer_put_u64(&body, 0);
	buffer_put_u16(&body, 0);
	buffer_put_u16(&body, (uint16_t)(RESIDENT_PAGES_FIXED_BYTES + pages->run_count * RESIDENT_RUN_BYTES));
	buffer_put_u32(&body, pages->reading);
	buffer_put_u32(&body, pages->more ? 0 : RESIDENT_PAGES_LAST);
	buffer_put_u64(&body, pages->resident_bytes);
	for (size_t i = 0; i < pages->run_count; i++) {
		buffer_put_u64(&body, pages->runs[i].start);
		buffer_put_u64(&body, pages->runs[i].end);
	}
	buffer_align(&body, 8);
	append(builder, RECORD_TEXT_POKE, &body, RESIDENT_PAGES_ID, time_ns, pid, pid);
}

void builder_snapshot(struct recording_builder *builder, enum snapshot_kind kind, uint64_t time_ns, int32_t pid,
		      const struct event_mapping *lines, size_t line_count)
{
	append_comm(builder, SNAPSHOT_ID(kind, SNAPSHOT_PART_BEGIN), time_ns, pid, pid, "snapshot");
	for (size_t i = 0; i < line_count; i++)
		append_mapping(builder, SNAPSHOT_ID(kind, SNAPSHOT_PART_LINE), time_ns, pid, pid, &lines[i]);
	append_comm(builder, SNAPSHOT_ID(kind, SNAPSHOT_PART_END), time_ns, pid, pid, "snapshot");
}

void builder_round(struct recording_builder *builder)
{
	require(writer_end_round(builder->writer));
}

struct writer *builder_writer(struct recording_builder *builder)
{
	return builder->writer;
}

void builder_section(struct recording_builder *builder, enum format_feature feature, const void *data, size_t size)
{
	require(writer_add_section(builder->writer, feature, data, size));
}

void builder_lose(struct recording_builder *builder, uint64_t count)
{
	builder->lost += count;
}

static void destroy(struct recording_builder *builder)
{
	writer_destroy(builder->writer);
	buffer_deinit(&builder->body);
	buffer_deinit(&builder->record);
	free(builder);
}

void builder_finish(struct recording_builder *builder, uint64_t stop_ns)
{
	struct recording_loss loss = {.stop_ns = stop_ns,
				      .end = builder->command ? MMT_RECORD_END_TARGET_ENDED : MMT_RECORD_END_STOPPED};
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	/* The first attribute's. */
	if (builder->lost && !vector_push(&loss.lost, builder->lost))
		abort();
	require(section_write(&section_loss, &loss, &buffer));
	require(buffer_finish(&buffer));
	require(writer_add_section(builder->writer, FEATURE_MMTRACE_LOSS, buffer.data, buffer.size));
	buffer_deinit(&buffer);
	section_loss.deinit(&loss);
	require(writer_finish(builder->writer));
	destroy(builder);
}

void builder_abandon(struct recording_builder *builder)
{
	require(writer_flush(builder->writer));
	destroy(builder);
}
