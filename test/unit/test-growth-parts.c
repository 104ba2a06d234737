// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where RSS grew, in a recording with page readings at its start, in between and at its end. */
#include <check.h>
#include <mmtrace/output.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "analysis/replay/replay.h"
#include "analysis/report/report-build.h"
#include "analysis/report/rows.h"
#include "support/report-file.h"
#include "support/suite.h"

#define PID 7
#define PAGE 4096ull
#define ARENA 0x7f0000000000ull
#define ARENA_BYTES (64ull << 20)
#define HEAP 0x555555600000ull
#define FILE_START 0x7e0000000000ull
#define GONE 0x7d0000000000ull
#define MADE 0x7c0000000000ull
#define RESERVED 0x7b0000000000ull
#define PRIVATE_RW (PROT_READ | PROT_WRITE)
#define C_LIBRARY 0x7f1000000000ull

/* The library whose malloc makes arenas. */
#define C_LIBRARY_LINE line(C_LIBRARY, 16 * PAGE, PROT_READ | PROT_EXEC, c_library, 78)
static const char *c_library = "/usr/lib/libc.so.6";

static struct event_mapping line(uint64_t start, uint64_t length, uint32_t protection, const char *path, uint64_t inode)
{
	return (struct event_mapping){.start = start,
				      .length = length,
				      .protection = protection,
				      .flags = MAP_PRIVATE,
				      .inode = inode,
				      .device_minor = inode ? 1 : 0,
				      .path = path};
}

static void add_pages(process_residencies *processes, uint64_t resident_bytes, const struct resident_run *runs,
		      size_t count)
{
	struct process_residency *process = vector_append(processes);

	ck_assert_ptr_nonnull(process);
	process->pid = PID;
	process->time_ns = 1;
	process->resident_bytes = resident_bytes;
	for (size_t i = 0; i < count; i++)
		ck_assert(vector_push(&process->runs, runs[i]));
}

/* At the start 12 pages are resident, at the end 46; the kernel counts one more at the start and two more at the
 * end. */
static void write_residency(struct recording_builder *builder, bool at_start)
{
	static const struct resident_run start[] = {{HEAP, HEAP + 2 * PAGE},
						    {GONE, GONE + 3 * PAGE},
						    {FILE_START, FILE_START + 5 * PAGE},
						    {ARENA, ARENA + 2 * PAGE}};
	static const struct resident_run end[] = {{HEAP, HEAP + 6 * PAGE},   {RESERVED, RESERVED + 4 * PAGE},
						  {MADE, MADE + 8 * PAGE},   {FILE_START, FILE_START + PAGE},
						  {ARENA, ARENA + 7 * PAGE}, {ARENA + 10 * PAGE, ARENA + 30 * PAGE}};
	struct recording_residency residency = {0};

	if (at_start)
		add_pages(&residency.at_start, 13 * PAGE, start, sizeof(start) / sizeof(start[0]));
	add_pages(&residency.processes, 48 * PAGE, end, sizeof(end) / sizeof(end[0]));
	report_file_add_residency(builder, &residency);
}

/* RSS at the start and at the end of the recording, before the pages are read; 0: none. */
static void write_recording(bool at_start, uint64_t first_bytes, uint64_t last_bytes)
{
	const struct event_mapping lines[] = {
	    line(HEAP, 16 * PAGE, PRIVATE_RW, "[heap]", 0),
	    line(RESERVED, 16 * PAGE, PROT_NONE, "", 0),
	    line(GONE, 16 * PAGE, PRIVATE_RW, "", 0),
	    line(FILE_START, 16 * PAGE, PROT_READ, "/usr/share/data", 77),
	    line(ARENA, 32 * PAGE, PRIVATE_RW, "", 0),
	    line(ARENA + 32 * PAGE, ARENA_BYTES - 32 * PAGE, PROT_NONE, "", 0),
	    C_LIBRARY_LINE,
	};
	struct recording_builder *builder = builder_create(report_file_path());

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, sizeof(lines) / sizeof(lines[0]));
	builder_mmap_exit(builder, 2000, PID, PID, MADE, 16 * PAGE, 0x1234);
	builder_munmap_exit(builder, 2100, PID, PID, GONE, 16 * PAGE);
	builder_call(builder, &(struct builder_call){.call = CALL_MPROTECT,
						     .time_ns = 2200,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {RESERVED, 16 * PAGE, PRIVATE_RW}});
	if (first_bytes) {
		builder_note(builder, 1001, PID, NOTE_RESIDENT, first_bytes, 1);
		builder_note(builder, 2900, PID, NOTE_RESIDENT, last_bytes, 2);
	}
	write_residency(builder, at_start);
	builder_finish(builder, 3000);
}

static const struct mmt_growth_part *find_part(const struct mmt_growth *growth, enum mmt_growth_place place,
					       enum mmt_class memory_class)
{
	for (size_t i = 0; i < growth->part_count; i++) {
		if (growth->parts[i].place == place &&
		    (place != MMT_GROWTH_BEFORE || growth->parts[i].memory_class == memory_class))
			return &growth->parts[i];
	}
	ck_abort_msg("no part %s", mmt_growth_place_name(place));
	return NULL;
}

static void assert_kind(const struct mmt_growth *growth, enum mmt_class memory_class, bool arena, uint64_t start_pages,
			uint64_t end_pages)
{
	for (size_t i = 0; i < growth->kind_count; i++) {
		const struct mmt_resident_kind *held = &growth->kinds[i];

		if (held->memory_class != memory_class || held->arena != arena)
			continue;
		ck_assert_uint_eq(held->start_bytes, start_pages * PAGE);
		ck_assert_uint_eq(held->end_bytes, end_pages * PAGE);
		return;
	}
	ck_abort_msg("no memory of class %s", mmt_class_name(memory_class));
}

static void move(struct recording_builder *builder, uint64_t time_ns, uint64_t from, uint64_t old_bytes, uint64_t to,
		 uint64_t new_bytes)
{
	builder_call(builder, &(struct builder_call){.call = CALL_MREMAP,
						     .time_ns = time_ns,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {from, old_bytes, new_bytes, MREMAP_MAYMOVE},
						     .result = (int64_t)to});
}

#define BUFFER_START 0x7a0000000000ull
#define BUFFER_NEXT 0x7a8000000000ull
#define BUFFER_LAST 0x790000000000ull

/* A buffer from before the recording grows, and moves up and down meanwhile: its 5 pages were not unmapped, and not
 * touched again. Two more are touched, and one that a move added; a page beside it was unmapped. */
START_TEST(moved_memory_is_not_new)
{
	const struct event_mapping lines[] = {line(BUFFER_START - PAGE, PAGE, PRIVATE_RW, "", 0),
					      line(BUFFER_START, 8 * PAGE, PRIVATE_RW, "", 0),
					      line(FILE_START, 16 * PAGE, PROT_READ, "/usr/share/data", 77)};
	static const struct resident_run start[] = {{BUFFER_START - PAGE, BUFFER_START + PAGE},
						    {BUFFER_START + 2 * PAGE, BUFFER_START + 6 * PAGE},
						    {FILE_START, FILE_START + 5 * PAGE}};
	static const struct resident_run end[] = {{BUFFER_LAST, BUFFER_LAST + PAGE},
						  {BUFFER_LAST + 2 * PAGE, BUFFER_LAST + 9 * PAGE},
						  {FILE_START, FILE_START + 5 * PAGE}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0};
	struct mmt_report_options options;
	struct mmt_report *report;
	struct buffer buffer;

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, sizeof(lines) / sizeof(lines[0]));
	builder_note(builder, 1001, PID, NOTE_RESIDENT, 11 * PAGE, 1);
	move(builder, 2000, BUFFER_START, 8 * PAGE, BUFFER_NEXT, 12 * PAGE - 100);
	move(builder, 2100, BUFFER_NEXT, 12 * PAGE, BUFFER_LAST, 16 * PAGE);
	builder_munmap_exit(builder, 2200, PID, PID, BUFFER_START - PAGE, PAGE);
	builder_note(builder, 2900, PID, NOTE_RESIDENT, 13 * PAGE, 2);
	add_pages(&residency.at_start, 11 * PAGE, start, sizeof(start) / sizeof(start[0]));
	add_pages(&residency.processes, 13 * PAGE, end, sizeof(end) / sizeof(end[0]));
	buffer_init(&buffer, 1 << 16);
	ck_assert_ptr_null(section_write(&section_residency, &residency, &buffer));
	builder_section(builder, FEATURE_MMTRACE_RESIDENCY, buffer.data, buffer.size);
	buffer_deinit(&buffer);
	section_residency.deinit(&residency);
	builder_finish(builder, 3000);
	mmt_report_options_init(&options);
	report = report_file_report(&options);
	ck_assert(report->growth.parts_known);
	ck_assert_uint_eq(report->growth.part_count, 3);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_ANON)->bytes, 2 * PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_MADE, MMT_CLASS_ANON)->bytes, PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_UNMAPPED, MMT_CLASS_ANON)->bytes, -(int64_t)PAGE);
	ck_assert_int_eq(report->growth.unexplained_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

/* Readable memory from before is made writable, page by page, and touched: that took calls. */
START_TEST(made_writable_is_touched_after_a_call)
{
	const struct event_mapping lines[] = {line(BUFFER_START, 2048 * PAGE, PROT_READ, "", 0)};
	static const struct resident_run end[] = {{BUFFER_START, BUFFER_START + 1024 * PAGE}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0};
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, 1);
	for (uint64_t i = 0; i < (_i ? 1024u : 0u); i++)
		builder_call(builder, &(struct builder_call){.call = CALL_MPROTECT,
							     .time_ns = 1100 + i,
							     .pid = PID,
							     .tid = PID,
							     .arguments = {BUFFER_START + i * PAGE, PAGE, PRIVATE_RW}});
	add_pages(&residency.at_start, PAGE, end, 0);
	add_pages(&residency.processes, 1024 * PAGE, end, 1);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert_int_eq(!strstr(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_ANON)->hint,
				 _i ? "after mprotect made it writable" : "touched without a system call"),
			 0);
	mmt_report_destroy(report);
}
END_TEST

/* MREMAP_DONTUNMAP takes the 5 pages of a mapping from before to a new one: the old mapping has given them back, and
 * nothing is unmapped. */
START_TEST(pages_taken_from_a_mapping_that_stays)
{
	const struct event_mapping lines[] = {line(BUFFER_START, 8 * PAGE, PRIVATE_RW, "", 0)};
	const struct resident_run start = {BUFFER_START, BUFFER_START + 5 * PAGE};
	const struct resident_run end = {BUFFER_NEXT, BUFFER_NEXT + 5 * PAGE};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0};
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, 1);
	builder_call(builder, &(struct builder_call){
				  .call = CALL_MREMAP,
				  .time_ns = 2000,
				  .pid = PID,
				  .tid = PID,
				  .arguments = {BUFFER_START, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP},
				  .result = (int64_t)BUFFER_NEXT});
	add_pages(&residency.at_start, 5 * PAGE, &start, 1);
	add_pages(&residency.processes, 5 * PAGE, &end, 1);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert(report->growth.parts_known);
	ck_assert_uint_eq(report->growth.part_count, 2);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_ANON)->bytes, -5 * (int64_t)PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_MADE, MMT_CLASS_ANON)->bytes, 5 * PAGE);
	ck_assert_uint_eq(report->resident_bytes, 5 * PAGE);
	ck_assert_int_eq(report->growth.unexplained_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

#define HUGE 0x600000000000ull
#define HUGE_PAGE (2ull << 20)

/* RSS does not include huge pages of hugetlbfs: 3 that were there before, of a file and of a segment whose device alone
 * shows it, and 1 that is unmapped, are in no part, nor are 2 that are mapped in the recording. */
START_TEST(hugetlb_is_apart)
{
	struct event_mapping lines[] = {line(HUGE, HUGE_PAGE, PRIVATE_RW, "/anon_hugepage (deleted)", 5),
					line(HUGE + 2 * HUGE_PAGE, 2 * HUGE_PAGE, PRIVATE_RW, "/mnt/huge/file", 6),
					line(HUGE + 8 * HUGE_PAGE, HUGE_PAGE, PRIVATE_RW, "/SYSV00000000 (deleted)", 7),
					line(BUFFER_START, 8 * PAGE, PRIVATE_RW, "", 0)};
	const struct resident_run start[] = {{HUGE, HUGE + HUGE_PAGE},
					     {HUGE + 2 * HUGE_PAGE, HUGE + 4 * HUGE_PAGE},
					     {HUGE + 8 * HUGE_PAGE, HUGE + 9 * HUGE_PAGE},
					     {BUFFER_START, BUFFER_START + 2 * PAGE}};
	const struct resident_run end[] = {{HUGE + 2 * HUGE_PAGE, HUGE + 4 * HUGE_PAGE},
					   {HUGE + 8 * HUGE_PAGE, HUGE + 9 * HUGE_PAGE},
					   {HUGE + 16 * HUGE_PAGE, HUGE + 18 * HUGE_PAGE},
					   {BUFFER_START, BUFFER_START + 5 * PAGE}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0};
	struct mmt_report *report;

	for (size_t i = 0; i < 3; i++)
		lines[i].device_minor = BUILDER_HUGETLB_MINOR;
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, 4);
	builder_munmap_exit(builder, 1500, PID, PID, HUGE, HUGE_PAGE);
	builder_call(builder, &(struct builder_call){.call = CALL_MMAP,
						     .time_ns = 2000,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {0, 2 * HUGE_PAGE, PRIVATE_RW,
								   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB},
						     .result = (int64_t)(HUGE + 16 * HUGE_PAGE)});
	add_pages(&residency.at_start, 2 * PAGE, start, 4);
	add_pages(&residency.processes, 5 * PAGE, end, 4);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert(report->growth.parts_known);
	ck_assert_uint_eq(report->growth.part_count, 1);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_ANON)->bytes, 3 * PAGE);
	ck_assert_int_eq(report->growth.unexplained_bytes, 0);
	ck_assert_int_eq(report->growth.hugetlb_bytes, HUGE_PAGE);
	ck_assert_uint_eq(report->processes[0].resident_bytes, 5 * PAGE);
	ck_assert_uint_eq(report->resident_bytes, 2 * HUGE_PAGE);
	ck_assert_uint_eq(report->resident_hugetlb_bytes, 2 * HUGE_PAGE);
	/* Only what is in RSS has a kind. */
	ck_assert_uint_eq(report->growth.kind_count, 1);
	assert_kind(&report->growth, MMT_CLASS_ANON, false, 2, 5);
	mmt_report_destroy(report);
}
END_TEST

#define SWAPPED 0x710000000000ull

/* Of two mappings, 6 pages of one are swapped out and 1 is resident, and 5 of the other are resident: the first holds
 * more memory. So does what is swapped out of memory from before that was made accessible. */
START_TEST(swapped_memory_belongs_to_rows)
{
	const struct event_mapping lines[] = {line(RESERVED, 16 * PAGE, PROT_NONE, "", 0)};
	const struct resident_run resident[] = {{SWAPPED, SWAPPED + PAGE}, {MADE, MADE + 5 * PAGE}};
	const struct resident_run out[] = {{SWAPPED + PAGE, SWAPPED + 7 * PAGE}, {RESERVED, RESERVED + 4 * PAGE}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0}, swapped = {0};
	struct mmt_report_options options;
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, 1);
	builder_mmap_exit(builder, 2000, PID, PID, SWAPPED, 16 * PAGE, 0x1111);
	builder_mmap_exit(builder, 2001, PID, PID, MADE, 16 * PAGE, 0x2222);
	builder_call(builder, &(struct builder_call){.call = CALL_MPROTECT,
						     .time_ns = 2200,
						     .pid = PID,
						     .tid = PID,
						     .arguments = {RESERVED, 16 * PAGE, PRIVATE_RW}});
	builder_note(builder, 2900, PID, NOTE_RESIDENT, 6 * PAGE, 1);
	builder_note(builder, 2900, PID, NOTE_SWAPPED, 10 * PAGE, 1);
	add_pages(&residency.processes, 6 * PAGE, resident, 2);
	add_pages(&swapped.processes, 10 * PAGE, out, 2);
	report_file_add_residency(builder, &residency);
	report_file_add_swapped(builder, &swapped);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert(report->swapped_known);
	ck_assert_uint_eq(report->row_count, 3);
	ck_assert_uint_eq(report->rows[0].swapped_bytes, 6 * PAGE);
	ck_assert_uint_eq(report->rows[0].resident_bytes, PAGE);
	ck_assert_uint_eq(report->rows[0].memory_bytes, 7 * PAGE);
	ck_assert_uint_eq(report->rows[1].swapped_bytes, 0);
	ck_assert_uint_eq(report->rows[1].memory_bytes, 5 * PAGE);
	ck_assert_uint_eq(report->rows[2].swapped_bytes, 4 * PAGE);
	ck_assert_uint_eq(report->rows[2].memory_bytes, 4 * PAGE);
	ck_assert_uint_eq(report->resident_bytes, 6 * PAGE);
	mmt_report_destroy(report);
	/* It is known at the end only. */
	mmt_report_options_init(&options);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 2950};
	report = report_file_report(&options);
	ck_assert(!report->swapped_known);
	ck_assert_uint_eq(report->rows[0].swapped_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

#define ENDED (PID + 1)
#define UNREAD (PID + 2)

/* Of several processes, one has ended, with what it had at the start, and one has only readings of RSS: they are parts
 * of the sum. A child that began and ended in the recording is none. */
START_TEST(ended_and_unread_processes)
{
	const struct event_mapping lines[] = {line(HEAP, 16 * PAGE, PRIVATE_RW, "[heap]", 0)};
	const struct resident_run start = {HEAP, HEAP + 6 * PAGE}, end = {HEAP, HEAP + 8 * PAGE};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0};
	struct mmt_report *report;

	for (int32_t pid = PID; pid <= UNREAD; pid++)
		builder_snapshot(builder, SNAPSHOT_START, 1000, pid, lines, 1);
	for (int32_t pid = PID; pid <= UNREAD; pid++)
		builder_note(builder, 1001, pid, NOTE_RESIDENT, 6 * PAGE, 1);
	builder_fork(builder, 1500, UNREAD + 1, UNREAD + 1, PID, PID);
	builder_note(builder, 1600, UNREAD + 1, NOTE_RESIDENT, 50 * PAGE, 2);
	builder_exit(builder, 1700, UNREAD + 1, UNREAD + 1);
	builder_exit(builder, 2000, ENDED, ENDED);
	builder_note(builder, 2900, PID, NOTE_RESIDENT, 8 * PAGE, 3);
	builder_note(builder, 2900, UNREAD, NOTE_RESIDENT, 9 * PAGE, 3);
	add_pages(&residency.at_start, 6 * PAGE, &start, 1);
	add_pages(&residency.at_start, 6 * PAGE, &start, 1);
	residency.at_start.items[1].pid = ENDED;
	add_pages(&residency.processes, 8 * PAGE, &end, 1);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert(report->growth.parts_known);
	ck_assert_uint_eq(report->growth.part_count, 3);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_HEAP)->bytes, 2 * PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_ENDED, 0)->bytes, -6 * (int64_t)PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_UNREAD, 0)->bytes, 3 * PAGE);
	ck_assert_int_eq(report->growth.unexplained_bytes, 0);
	ck_assert_int_eq(report->growth.changing_bytes, 0);
	mmt_report_destroy(report);
}
END_TEST

/* Of several groups, that counts in which the OOM killer ended processes, or whose limit is the nearest at the end. */
START_TEST(control_group_with_the_nearest_limit)
{
	static const uint64_t limits[][2] = {{UINT64_MAX, UINT64_MAX}, {6000, 5000}, {5500, 5500}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct mmt_report *report;

	builder_mmap_exit(builder, 1000, PID, PID, MADE, 16 * PAGE, 0x1234);
	for (uint64_t i = 0; i < 2; i++) {
		for (int32_t group = 0; group < 3; group++) {
			builder_note(builder, 1100 + i, group, NOTE_GROUP_CURRENT, 4900, i);
			builder_note(builder, 1100 + i, group, NOTE_GROUP_LIMIT, limits[group][i], i);
			builder_note(builder, 1100 + i, group, NOTE_GROUP_OOM_KILLS, _i && !group ? i : 7, i);
		}
		builder_note(builder, 1100 + i, INT32_MAX, NOTE_GROUP_CURRENT, 1, i);
	}
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert_ptr_eq(report->limiting_group, report->control_group);
	ck_assert_uint_eq(report->limiting_group->end[MMT_GROUP_LIMIT], _i ? MMT_UNKNOWN : 5000);
	ck_assert_uint_eq(mmt_control_group_oom_kills(report->limiting_group), _i ? 1 : 0);
	mmt_report_destroy(report);
}
END_TEST

/* Only groups of processes in the report count, if these are known, and those without the latest reading were removed.
 */
START_TEST(control_group_of_others)
{
	static const char *const paths[] = {"/sys/fs/cgroup/a", "/sys/fs/cgroup/b", "/sys/fs/cgroup/c",
					    "/sys/fs/cgroup"};
	static const int32_t pids[] = {PID + 1};
	static const struct {
		const char *member; /* of which PID + 1 is */
		bool filtered;
		int32_t number;
	} cases[] = {{"/b/below", false, 0}, {"/b/below", true, 1}, {"/bb", true, 3}, {"", true, 3}};
	struct mmt_report_options options = {.pids = cases[_i].filtered ? pids : NULL, .pid_count = cases[_i].filtered};
	struct recording_builder *builder = builder_create(report_file_path());
	struct mmt_report *report;

	builder_note_text(builder, 1000, PID, NOTE_STARTED, 1, 0, "/a");
	builder_note_text(builder, 1000, PID + 1, NOTE_STARTED, 1, 0, cases[_i].member);
	builder_note_text(builder, 1000, PID + 2, NOTE_STARTED, 1, 0, "/b");
	for (int32_t i = 0; i < 2; i++) {
		builder_mmap_exit(builder, 1000, PID + i, PID + i, MADE, 16 * PAGE, 0x1234);
		for (int32_t group = 0; group < (i ? 4 : 3); group += group == 1 && i ? 2 : 1) {
			builder_note_text(builder, 1100 + (uint64_t)i, group, NOTE_GROUP_CURRENT, 4900, 0,
					  paths[group]);
			builder_note(builder, 1100 + (uint64_t)i, group, NOTE_GROUP_LIMIT,
				     5000 + 10 * (uint64_t)(group == 2 ? 0 : group + 1), 0);
		}
	}
	builder_finish(builder, 3000);
	report = report_file_report(&options);
	ck_assert_str_eq(report->limiting_group->path, paths[cases[_i].number]);
	mmt_report_destroy(report);
}
END_TEST

/* OOM kills of recorded processes and of others. A mark of an older recording is none. */
START_TEST(oom_kills)
{
	struct recording_builder *builder = builder_create(report_file_path());
	char text[MMT_OOM_KILL_TEXT];
	struct mmt_report *report;

	builder_mmap_exit(builder, 1000, PID, PID, MADE, 16 * PAGE, 0x1234);
	builder_note(builder, 1100, PID, NOTE_OOM_KILL, PID, 0);
	builder_note(builder, 1200, 0, NOTE_MARK, 1, 0);
	builder_note(builder, 1300, PID + 1, NOTE_OOM_KILL, PID, 0);
	/* A process with a PID that the killed one had. */
	builder_fork(builder, 2000, PID + 1, PID + 1, PID, PID);
	builder_mmap_exit(builder, 2100, PID + 1, PID + 1, MADE, 16 * PAGE, 0x1234);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->oom_kill_count, 2);
	ck_assert_uint_eq(report->oom_kills[0].time_ns, 1100);
	ck_assert_ptr_eq(mmt_oom_kill_victim(report, &report->oom_kills[0]), &report->processes[0]);
	ck_assert_ptr_null(mmt_oom_kill_victim(report, &report->oom_kills[1]));
	ck_assert_ptr_nonnull(strstr(mmt_oom_kill_describe(&report->oom_kills[1], text), "OOM kill of a process (pid "));
	mmt_report_destroy(report);
}
END_TEST

/* The end of the command is known, unless it is later than the window. A signal comes before a status. */
START_TEST(end_of_the_command)
{
	struct recording_builder *builder = builder_create(report_file_path());
	struct mmt_report_options options;
	char text[MMT_STATUS_TEXT];
	struct mmt_report *report;

	builder_mmap_exit(builder, 1000, PID, PID, MADE, 16 * PAGE, 0x1234);
	builder_note(builder, 2000, PID, NOTE_COMMAND_ENDED, SIGSEGV | 0x80, 0);
	builder_note(builder, 2500, PID, NOTE_COMMAND_ENDED, 3 << 8, 0);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->command_end.time_ns, 2000);
	ck_assert_str_eq(mmt_format_status(report->command_end.status, text),
			 "was killed by SIGSEGV (Segmentation fault)");
	mmt_report_destroy(report);
	mmt_report_options_init(&options);
	options.to = (struct mmt_timestamp){.kind = MMT_TIMESTAMP_CLOCK, .ns = 1500};
	report = report_file_report(&options);
	ck_assert_uint_eq(report->command_end.time_ns, 0);
	mmt_report_destroy(report);
	ck_assert_str_eq(mmt_format_status(3 << 8, text), "exited with status 3");
	ck_assert_str_eq(mmt_format_status(35, text), "was killed by signal 35");
}
END_TEST

/* The counters of a control group have the first and the last reading, and the largest. */
START_TEST(counters_of_a_control_group)
{
	static const uint64_t sizes[] = {100, 900, 300};
	struct recording_builder *builder = builder_create(report_file_path());
	const struct mmt_control_group *group;
	struct mmt_report *report;

	builder_mmap_exit(builder, 1000, PID, PID, MADE, 16 * PAGE, 0x1234);
	for (uint64_t i = 0; i < 3; i++) {
		for (uint32_t kind = NOTE_GROUP_CURRENT; kind < NOTE_GROUP_LIMIT; kind++)
			builder_note(builder, 1100 + i, 0, (enum note_kind)kind, sizes[i] + kind, i);
		builder_note(builder, 1100 + i, 0, NOTE_GROUP_LIMIT, i ? 5000 : UINT64_MAX, i);
	}
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	group = report->control_group;
	ck_assert_ptr_nonnull(group);
	ck_assert_uint_eq(group->start_ns, 1100);
	ck_assert_uint_eq(group->end_ns, 1102);
	ck_assert_uint_eq(group->start[MMT_GROUP_CURRENT], 100 + NOTE_GROUP_CURRENT);
	ck_assert_uint_eq(group->end[MMT_GROUP_SHMEM], 300 + NOTE_GROUP_SHMEM);
	ck_assert_uint_eq(group->end[MMT_GROUP_KERNEL], 300 + NOTE_GROUP_KERNEL);
	ck_assert_uint_eq(group->start[MMT_GROUP_LIMIT], MMT_UNKNOWN);
	ck_assert_uint_eq(group->end[MMT_GROUP_LIMIT], 5000);
	ck_assert_uint_eq(group->peak_bytes, 900 + NOTE_GROUP_CURRENT);
	mmt_report_destroy(report);
}
END_TEST

#define CHILD (PID + 1)

/* A child of clone(CLONE_VM) moves memory of the space that it shares. The memory of both counts once: 5 pages. A
 * report of the child alone shows its readings. */
START_TEST(child_in_the_same_space)
{
	const struct event_mapping lines[] = {line(BUFFER_START, 8 * PAGE, PRIVATE_RW, "", 0)};
	const struct resident_run start = {BUFFER_START, BUFFER_START + 5 * PAGE};
	const struct resident_run end = {BUFFER_NEXT, BUFFER_NEXT + 5 * PAGE};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0};
	struct mmt_report_options options;
	const int32_t child = CHILD;
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, 1);
	builder_note(builder, 1001, PID, NOTE_RESIDENT, 5 * PAGE, 1);
	builder_fork(builder, 1500, CHILD, CHILD, PID, PID);
	builder_new_task(builder, 1500, PID, PID, CHILD, CLONE_VM);
	builder_call(builder, &(struct builder_call){.call = CALL_MREMAP,
						     .time_ns = 2000,
						     .pid = CHILD,
						     .tid = CHILD,
						     .arguments = {BUFFER_START, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE},
						     .result = (int64_t)BUFFER_NEXT});
	builder_note(builder, 2900, PID, NOTE_RESIDENT, 5 * PAGE, 2);
	builder_note(builder, 2900, CHILD, NOTE_RESIDENT, 5 * PAGE, 2);
	builder_note(builder, 2900, CHILD, NOTE_SWAPPED, PAGE, 2);
	add_pages(&residency.at_start, 5 * PAGE, &start, 1);
	add_pages(&residency.processes, 5 * PAGE, &end, 1);
	add_pages(&residency.processes, 5 * PAGE, &end, 1);
	residency.processes.items[1].pid = CHILD;
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->process_count, 2);
	ck_assert(report->growth.parts_known);
	ck_assert_uint_eq(report->growth.part_count, 0);
	ck_assert_uint_eq(report->growth.end_bytes, 5 * PAGE);
	ck_assert_uint_eq(report->growth.end_swap_bytes, 0);
	ck_assert_int_eq(report->growth.unexplained_bytes, 0);
	mmt_report_destroy(report);
	mmt_report_options_init(&options);
	options.pids = &child;
	options.pid_count = 1;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->growth.end_bytes, 5 * PAGE);
	ck_assert_uint_eq(report->growth.end_swap_bytes, PAGE);
	mmt_report_destroy(report);
}
END_TEST

/* The ranges may be any values: what is replaced where memory is moved to is gone, and nothing counts twice. */
START_TEST(pages_that_move)
{
	static struct resident_run runs[] = {{PAGE, 3 * PAGE}, {5 * PAGE, 6 * PAGE}, {8 * PAGE, 12 * PAGE}};
	static const struct {
		uint64_t from, to, length, displaced;
		struct resident_run expected[4];
		size_t count;
	} cases[] = {
	    {2 * PAGE,
	     20 * PAGE,
	     4 * PAGE,
	     0,
	     {{PAGE, 2 * PAGE}, {8 * PAGE, 12 * PAGE}, {20 * PAGE, 21 * PAGE}, {23 * PAGE, 24 * PAGE}},
	     4},
	    {9 * PAGE, 0, 3 * PAGE, 2 * PAGE, {{0, 3 * PAGE}, {5 * PAGE, 6 * PAGE}, {8 * PAGE, 9 * PAGE}}, 3},
	    {PAGE, 9 * PAGE, 2 * PAGE, 2 * PAGE, {{5 * PAGE, 6 * PAGE}, {8 * PAGE, 12 * PAGE}}, 2},
	    {PAGE, 2 * PAGE, 2 * PAGE, 0, {{PAGE, 3 * PAGE}, {5 * PAGE, 6 * PAGE}, {8 * PAGE, 12 * PAGE}}, 3},
	    {PAGE, UINT64_MAX - PAGE, 2 * PAGE, 0, {{PAGE, 3 * PAGE}, {5 * PAGE, 6 * PAGE}, {8 * PAGE, 12 * PAGE}}, 3},
	    {PAGE, 30 * PAGE, 0, 0, {{PAGE, 3 * PAGE}, {5 * PAGE, 6 * PAGE}, {8 * PAGE, 12 * PAGE}}, 3},
	};
	const resident_runs start = {runs, 3, 3}, none = {0};
	struct process_pages pages = {.all.start = &start, .alone.start = &none};

	ck_assert(growth_parts_move(&pages, cases[_i].from, cases[_i].to, cases[_i].length));
	ck_assert_uint_eq(pages.all.displaced_bytes, cases[_i].displaced);
	ck_assert_uint_eq(pages.all.start->count, cases[_i].count);
	for (size_t i = 0; i < cases[_i].count; i++) {
		ck_assert_uint_eq(pages.all.start->items[i].start, cases[_i].expected[i].start);
		ck_assert_uint_eq(pages.all.start->items[i].end, cases[_i].expected[i].end);
	}
	vector_deinit(&pages.all.own_start);
}
END_TEST

/* Following very many moves could take hours: the parts are then left out instead of wrong. */
START_TEST(too_many_moves)
{
	struct resident_run runs[] = {{PAGE, 3 * PAGE}};
	const resident_runs start = {runs, 1, 1}, none = {0};
	struct process_pages pages = {.all.start = &start, .alone.start = &none, .move_steps = 1u << 26};

	ck_assert(growth_parts_move(&pages, PAGE, 10 * PAGE, PAGE));
	ck_assert(pages.moves_unknown);
	ck_assert_uint_eq(pages.all.start->count, 1);
	ck_assert_ptr_eq(pages.all.start->items, runs);
}
END_TEST

START_TEST(every_page_has_a_part)
{
	struct mmt_report *report;
	const struct mmt_growth *growth;

	write_recording(true, 0, 0);
	report = report_file_report(NULL);
	growth = &report->growth;
	ck_assert(growth->parts_known);
	ck_assert_uint_eq(growth->part_count, 6);
	ck_assert_uint_eq(growth->pages_start_bytes, 13 * PAGE);
	ck_assert_uint_eq(growth->pages_end_bytes, 48 * PAGE);
	ck_assert_int_eq(growth->unexplained_bytes, PAGE);
	ck_assert(growth->parts[0].arena);
	ck_assert_int_eq(growth->parts[0].bytes, 25 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_MADE, 0)->bytes, 8 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_COMMITTED, 0)->bytes, 4 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_BEFORE, MMT_CLASS_HEAP)->bytes, 4 * PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_UNMAPPED, 0)->bytes, -3 * (int64_t)PAGE);
	ck_assert_int_eq(find_part(growth, MMT_GROWTH_BEFORE, MMT_CLASS_FILE)->bytes, -4 * (int64_t)PAGE);
	ck_assert_str_eq(find_part(growth, MMT_GROWTH_BEFORE, MMT_CLASS_FILE)->name, "/usr/share/data");
	/* All memory at both times by kind: what is unmapped later was anonymous. */
	ck_assert(growth->kinds_at_start && growth->kinds_at_end);
	assert_kind(growth, MMT_CLASS_HEAP, false, 2, 6);
	assert_kind(growth, MMT_CLASS_FILE, false, 5, 1);
	assert_kind(growth, MMT_CLASS_ANON, true, 2, 27);
	assert_kind(growth, MMT_CLASS_ANON, false, 3, 4 + 8);
	ck_assert_uint_eq(growth->kind_count, 4);
	mmt_report_destroy(report);
}
END_TEST

/* Other allocators align memory to 64 MiB, too. */
START_TEST(aligned_memory_without_glibc_is_no_arena)
{
	struct mmt_report *report;

	c_library = "/lib/ld-musl-x86_64.so.1";
	write_recording(true, 0, 0);
	c_library = "/usr/lib/libc.so.6";
	report = report_file_report(NULL);
	ck_assert(report->growth.parts_known);
	for (size_t i = 0; i < report->growth.part_count; i++)
		ck_assert(!report->growth.parts[i].arena);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_ANON)->bytes, 25 * PAGE);
	ck_assert_uint_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_ANON)->mapped_bytes, 32 * PAGE);
	ck_assert_uint_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_ANON)->filled_bytes, 27 * PAGE);
	assert_kind(&report->growth, MMT_CLASS_ANON, false, 2 + 3, 27 + 4 + 8);
	mmt_report_destroy(report);
}
END_TEST

/* The kernel shows a thread's stack and an arena right above it as one mapping. */
START_TEST(arena_above_a_stack)
{
	const uint64_t stack = 2048 * PAGE, used = 5120 * PAGE; /* together larger than a stack */
	const struct event_mapping lines[] = {
	    line(ARENA - stack - PAGE, PAGE, PROT_NONE, "", 0),
	    line(ARENA - stack, stack + used, PRIVATE_RW, "", 0),
	    line(ARENA + used, ARENA_BYTES - used, PROT_NONE, "", 0),
	    C_LIBRARY_LINE,
	};
	const struct resident_run start[] = {{ARENA - 2 * PAGE, ARENA + PAGE}};
	const struct resident_run end[] = {{ARENA - 5 * PAGE, ARENA + 21 * PAGE}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_residency residency = {0};
	const struct mmt_growth *growth;
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, sizeof(lines) / sizeof(lines[0]));
	add_pages(&residency.at_start, 3 * PAGE, start, 1);
	add_pages(&residency.processes, 26 * PAGE, end, 1);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, 3000);
	report = report_file_report(NULL);
	growth = &report->growth;
	ck_assert_uint_eq(growth->part_count, 2);
	ck_assert(growth->parts[0].arena);
	ck_assert_int_eq(growth->parts[0].bytes, 20 * PAGE);
	ck_assert_int_eq(growth->parts[1].bytes, 3 * PAGE);
	ck_assert_uint_eq(growth->kind_count, 2);
	assert_kind(growth, MMT_CLASS_ANON, true, 1, 21);
	assert_kind(growth, MMT_CLASS_THREAD_STACK, false, 2, 5);
	mmt_report_destroy(report);
}
END_TEST

/* What a running process gains or loses between the readings of its RSS and of its pages is not unexplained. */
START_TEST(parts_add_up_while_the_process_runs)
{
	static const struct {
		uint64_t first, last;
		int64_t changing, unexplained; /* pages; the parts are 34 */
	} cases[] = {
	    {13, 48, 0, 1},   /* as the pages have it */
	    {13, 47, 0, 0},   /* between 34 and 35 */
	    {13, 40, -7, 0},  /* grew by 8 pages after the last size: 7 of them are in the parts */
	    {13, 60, 12, 1},  /* released 12 pages in between */
	    {10, 48, 3, 1},   /* grew by 3 before the first pages were read */
	    {20, 48, -6, 0},  /* lost 7 there */
	    {13, 100, 52, 1}, /* ... 52 pages: more than the parts have */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mmt_report *report;

		write_recording(true, cases[i].first * PAGE, cases[i].last * PAGE);
		report = report_file_report(NULL);
		ck_assert(report->growth.parts_known);
		ck_assert_int_eq(report->growth.unexplained_bytes, cases[i].unexplained * PAGE);
		ck_assert_int_eq(report->growth.changing_bytes, cases[i].changing * PAGE);
		ck_assert_int_eq(34 * PAGE + report->growth.changing_bytes + report->growth.unexplained_bytes,
				 (int64_t)(cases[i].last - cases[i].first) * PAGE);
		mmt_report_destroy(report);
	}
}
END_TEST

START_TEST(no_parts_without_the_first_reading)
{
	struct mmt_report *report;

	write_recording(false, 0, 0);
	report = report_file_report(NULL);
	ck_assert(!report->growth.parts_known && !report->growth.kinds_at_start);
	ck_assert(report->growth.kinds_at_end);
	ck_assert_uint_eq(report->growth.part_count, 0);
	mmt_report_destroy(report);
}
END_TEST

#define RUN(start, pages) ((struct resident_run){start, (start) + (pages)*PAGE})
#define SECOND 1000000000ull
#define BASE (1000 * SECOND)
#define LATER 0x7a0000000000ull

/* The maps read just before a page reading at `time_ns`: the heap, and MADE and LATER with 16 pages, or none. */
static void write_maps(struct recording_builder *builder, uint64_t time_ns, bool made, bool later)
{
	struct event_mapping lines[3] = {line(HEAP, 64 * PAGE, PRIVATE_RW, "[heap]", 0)};
	size_t count = 1;

	if (later)
		lines[count++] = line(LATER, 16 * PAGE, PRIVATE_RW, "", 0);
	if (made)
		lines[count++] = line(MADE, 16 * PAGE, PRIVATE_RW, "", 0);
	builder_snapshot(builder, SNAPSHOT_INTERVAL, time_ns - 1, PID, lines, count);
}

/* Readings at 2, 4 and 6 s; the process touches more of its heap, maps 16 pages at 3 s and again at 5 s, and unmaps
 * the first at 5.5 s. RSS is the resident pages and one more. */
static void write_readings(void)
{
	const struct event_mapping lines[] = {line(HEAP, 64 * PAGE, PRIVATE_RW, "[heap]", 0)};
	const struct resident_run start[] = {RUN(HEAP, 2)};
	const struct resident_run first[] = {RUN(HEAP, 4)};
	const struct resident_run second[] = {RUN(HEAP, 5), RUN(MADE, 8)};
	const struct resident_run third[] = {RUN(HEAP, 1), RUN(HEAP + 8 * PAGE, 9), RUN(LATER, 3)};
	const struct resident_run last[] = {RUN(HEAP, 30), RUN(LATER, 16)};
	struct recording_residency residency = {0};
	struct recording_builder *builder = builder_create_at(report_file_path(), BASE);

	builder_snapshot(builder, SNAPSHOT_START, BASE, PID, lines, 1);
	write_maps(builder, BASE + 2 * SECOND, false, false);
	builder_pages(builder, BASE + 2 * SECOND, PID, &(struct builder_pages){1, false, 5 * PAGE, first, 1});
	builder_mmap_exit(builder, BASE + 3 * SECOND, PID, PID, MADE, 16 * PAGE, 0x1234);
	write_maps(builder, BASE + 4 * SECOND, true, false);
	builder_pages(builder, BASE + 4 * SECOND, PID, &(struct builder_pages){2, true, 14 * PAGE, second, 1});
	builder_pages(builder, BASE + 4 * SECOND, PID, &(struct builder_pages){2, false, 14 * PAGE, second + 1, 1});
	builder_mmap_exit(builder, BASE + 5 * SECOND, PID, PID, LATER, 16 * PAGE, 0x5678);
	builder_munmap_exit(builder, BASE + 5 * SECOND + SECOND / 2, PID, PID, MADE, 16 * PAGE);
	write_maps(builder, BASE + 6 * SECOND, false, true);
	builder_pages(builder, BASE + 6 * SECOND, PID, &(struct builder_pages){3, false, 14 * PAGE, third, 3});
	add_pages(&residency.at_start, 3 * PAGE, start, 1);
	residency.at_start.items[0].time_ns = BASE + 1;
	add_pages(&residency.processes, 47 * PAGE, last, 2);
	residency.processes.items[0].time_ns = BASE + 8 * SECOND;
	report_file_add_residency(builder, &residency);
	builder_finish(builder, BASE + 8 * SECOND);
}

/* Times in seconds since the start; 0: not given. */
static struct mmt_report *report_window(double from, double to)
{
	struct mmt_report_options options;

	mmt_report_options_init(&options);
	if (from > 0)
		options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, BASE + (uint64_t)(from * SECOND)};
	if (to > 0)
		options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, BASE + (uint64_t)(to * SECOND)};
	return report_file_report(&options);
}

static void check_sum(const struct mmt_growth *growth)
{
	int64_t sum = growth->unexplained_bytes;

	ck_assert(growth->parts_known);
	for (size_t i = 0; i < growth->part_count; i++)
		sum += growth->parts[i].bytes;
	ck_assert_int_eq(sum, (int64_t)(growth->pages_end_bytes - growth->pages_start_bytes));
}

/* Up to 4.5 s: what was resident at 4 s, of the mappings from before the start and of those made since. */
START_TEST(window_ends_with_its_last_reading)
{
	struct mmt_report *report;

	write_readings();
	report = report_window(0, 4.5);
	check_sum(&report->growth);
	ck_assert_uint_eq(report->growth.pages_start_ns, BASE + 1);
	ck_assert_uint_eq(report->growth.pages_end_ns, BASE + 4 * SECOND);
	ck_assert_uint_eq(report->growth.pages_end_bytes, 14 * PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_MADE, 0)->bytes, 8 * PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_HEAP)->bytes, 3 * PAGE);
	ck_assert_int_eq(report->growth.unexplained_bytes, 0);
	ck_assert_uint_eq(report->resident_ns, BASE + 4 * SECOND);
	ck_assert_uint_eq(report->resident_bytes, 8 * PAGE);
	ck_assert_uint_eq(report->rows[0].resident_bytes, 8 * PAGE);
	ck_assert_uint_eq(report->rows[0].memory_bytes, 8 * PAGE);
	ck_assert_uint_eq(report->processes[0].resident_bytes, 13 * PAGE);
	mmt_report_destroy(report);
}
END_TEST

/* From 3.9 s: the reading at 4 s is nearer than the one at 2 s, and the mapping made at 3 s precedes the window. */
START_TEST(window_starts_with_the_nearest_reading)
{
	struct mmt_report *report;

	write_readings();
	report = report_window(3.9, 7);
	check_sum(&report->growth);
	ck_assert_uint_eq(report->growth.pages_start_ns, BASE + 4 * SECOND);
	ck_assert_uint_eq(report->growth.pages_end_ns, BASE + 6 * SECOND);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_MADE, 0)->bytes, 3 * PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_HEAP)->bytes, 5 * PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_UNMAPPED, 0)->bytes, -8 * (int64_t)PAGE);
	ck_assert_uint_eq(report->resident_bytes, 3 * PAGE);
	mmt_report_destroy(report);
	/* From 2.9 s that mapping is made in the window, and none of it was resident at 2 s. */
	report = report_window(2.9, 4.5);
	check_sum(&report->growth);
	ck_assert_uint_eq(report->growth.pages_start_ns, BASE + 2 * SECOND);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_MADE, 0)->bytes, 8 * PAGE);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_HEAP)->bytes, PAGE);
	mmt_report_destroy(report);
	/* To the end of the recording it is compared with the last reading. */
	report = report_window(5.2, 0);
	check_sum(&report->growth);
	ck_assert_uint_eq(report->growth.pages_start_ns, BASE + 6 * SECOND);
	ck_assert_uint_eq(report->growth.pages_end_ns, BASE + 8 * SECOND);
	ck_assert_uint_eq(report->resident_ns, BASE + 8 * SECOND);
	mmt_report_destroy(report);
}
END_TEST

/* A mapping made between the start of the window and the reading nearest to it keeps the pages that it had then. */
START_TEST(mapping_between_start_and_nearest_reading_keeps_its_pages)
{
	struct mmt_report *report;

	write_readings();
	report = report_window(5.2, 0);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_BEFORE, MMT_CLASS_HEAP)->bytes, 20 * PAGE);
	mmt_report_destroy(report);
	report = report_window(4.99, 0);
	/* 4 s is nearer. */
	ck_assert_uint_eq(report->growth.pages_start_ns, BASE + 4 * SECOND);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_MADE, 0)->bytes, 16 * PAGE);
	mmt_report_destroy(report);
	report = report_window(4.9999, 7);
	ck_assert_int_eq(find_part(&report->growth, MMT_GROWTH_MADE, 0)->bytes, 3 * PAGE);
	mmt_report_destroy(report);
}
END_TEST

/* Without two readings, or if the same one is nearest to both ends, nothing can be compared. */
START_TEST(no_parts_without_two_readings)
{
	struct mmt_report *report;

	write_readings();
	report = report_window(3.9, 5);
	ck_assert(!report->growth.parts_known);
	ck_assert_uint_eq(report->resident_bytes, 0);
	ck_assert_uint_eq(report->resident_ns, BASE + 4 * SECOND);
	mmt_report_destroy(report);
	report = report_window(0, 1);
	ck_assert(!report->growth.parts_known);
	ck_assert_uint_eq(report->resident_bytes, MMT_UNKNOWN);
	ck_assert_uint_eq(report->resident_ns, 0);
	mmt_report_destroy(report);
}
END_TEST

/* Steps have the readings made in them. */
START_TEST(steps_have_their_readings)
{
	static const uint64_t expected[] = {MMT_UNKNOWN, 0,	   MMT_UNKNOWN, 8 * PAGE,
					    MMT_UNKNOWN, 3 * PAGE, MMT_UNKNOWN, 16 * PAGE};
	struct mmt_report_options options;
	struct mmt_report *report;

	write_readings();
	mmt_report_options_init(&options);
	options.every_ns = SECOND + 1;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->step_count, 8);
	for (size_t i = 0; i < 8; i++)
		ck_assert_uint_eq(report->steps[i].resident_bytes, expected[i]);
	mmt_report_destroy(report);
}
END_TEST

/* Readings that no recorder writes do not count; the preceding one does. */
START_TEST(impossible_readings_are_ignored)
{
	static const struct {
		struct resident_run runs[2];
		bool more;
		int32_t pid;
	} bad[] = {
	    {{{MADE, MADE}, {LATER, LATER + PAGE}}, false, PID},
	    {{{MADE + PAGE, MADE}, {MADE + PAGE, MADE + 2 * PAGE}}, false, PID},
	    {{{MADE, MADE + 2 * PAGE}, {MADE + PAGE, MADE + 3 * PAGE}}, false, PID},
	    {{{0, UINT64_MAX}, {0, UINT64_MAX}}, false, PID},
	    {{{HEAP, HEAP + PAGE}, {MADE, (1ull << 56) + PAGE}}, false, PID},
	    {{{HEAP, HEAP + PAGE}, {MADE, MADE + PAGE}}, true, PID},
	    {{{HEAP, HEAP + PAGE}, {MADE, MADE + PAGE}}, false, PID + 1},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct event_mapping lines[] = {line(HEAP, 64 * PAGE, PRIVATE_RW, "[heap]", 0)};
		const struct resident_run good[] = {RUN(MADE, 5)};
		struct recording_builder *builder = builder_create_at(report_file_path(), BASE);
		struct mmt_report *report;

		builder_snapshot(builder, SNAPSHOT_START, BASE, PID, lines, 1);
		builder_mmap_exit(builder, BASE + SECOND, PID, PID, MADE, 16 * PAGE, 0x1234);
		write_maps(builder, BASE + 2 * SECOND, true, false);
		builder_pages(builder, BASE + 2 * SECOND, PID, &(struct builder_pages){1, false, 5 * PAGE, good, 1});
		write_maps(builder, BASE + 3 * SECOND, true, false);
		builder_pages(builder, BASE + 3 * SECOND, bad[i].pid,
			      &(struct builder_pages){2, bad[i].more, PAGE, bad[i].runs, 2});
		builder_mmap_exit(builder, BASE + 4 * SECOND, PID, PID, LATER, 16 * PAGE, 0x5678);
		builder_finish(builder, BASE + 8 * SECOND);
		report = report_window(0, 7);
		ck_assert_uint_eq(report->resident_bytes, 5 * PAGE);
		ck_assert_uint_eq(report->resident_ns, BASE + 2 * SECOND);
		mmt_report_destroy(report);
	}
}
END_TEST

/* The recorder reads the pages of a process once after each snapshot; additional readings, or one before the first
 * snapshot, do not count. */
START_TEST(one_reading_for_each_snapshot)
{
	const struct event_mapping lines[] = {line(HEAP, 64 * PAGE, PRIVATE_RW, "[heap]", 0)};
	const struct resident_run pages[] = {RUN(HEAP, 1), RUN(HEAP, 2), RUN(HEAP, 3), RUN(HEAP, 4), RUN(HEAP, 5)};
	struct recording_builder *builder = builder_create_at(report_file_path(), BASE);
	static const uint64_t expected[] = {MMT_UNKNOWN, 2 * PAGE, MMT_UNKNOWN, 4 * PAGE, MMT_UNKNOWN};

	builder_snapshot(builder, SNAPSHOT_START, BASE, PID, lines, 1);
	for (uint32_t i = 0; i < 5; i++) {
		uint64_t time_ns = BASE + (i + 1) * SECOND + SECOND / 2;

		if (i == 1 || i == 3)
			write_maps(builder, time_ns, false, false);
		builder_pages(builder, time_ns, PID, &(struct builder_pages){i + 1, false, PAGE, &pages[i], 1});
	}
	builder_finish(builder, BASE + 8 * SECOND);
	for (size_t i = 0; i < 5; i++) {
		struct mmt_report *report = report_window(i ? i + 1 : 0, i + 2);

		ck_assert_uint_eq(report->processes[0].resident_bytes, expected[i]);
		mmt_report_destroy(report);
	}
}
END_TEST

/* All readings from before the window together: only the runs of the one that is its start are kept. */
START_TEST(runs_are_counted_once)
{
	struct mmt_report_options options;
	struct replay_options replay_options = {.find_row = rows_find};
	struct page_readings readings;
	struct replay replay;
	struct arena arena = {0};
	struct rows rows;
	const struct process_pages *pages;

	write_readings();
	mmt_report_options_init(&options);
	options.input = report_file_path();
	options.from = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, BASE + 7 * SECOND};
	ck_assert_ptr_null(rows_init(&rows, &options, &arena));
	replay_options.report = &options;
	replay_options.context = &rows;
	ck_assert_ptr_null(replay_init(&replay, &replay_options));
	rows.replay = &replay;
	page_readings_watch(&readings, &rows);
	ck_assert_ptr_null(replay_run(&replay));
	ck_assert_uint_eq(readings.processes.count, 1);
	pages = map_next(&readings.processes, NULL)->pointer;
	ck_assert_uint_eq(pages->all.own_start.count, 3);
	ck_assert_uint_eq(readings.run_count, 3);
	page_readings_deinit(&readings);
	rows_deinit(&rows);
	arena_deinit(&arena);
	replay_deinit(&replay);
}
END_TEST

/* The last reading before a window without readings does not show what was resident in it. */
START_TEST(window_without_readings_has_no_parts)
{
	struct mmt_report *report;

	write_readings();
	report = report_window(4.2, 5.9);
	ck_assert(!report->growth.parts_known);
	ck_assert_uint_eq(report->resident_bytes, MMT_UNKNOWN);
	ck_assert_uint_eq(report->resident_ns, 0);
	ck_assert_uint_eq(report->processes[0].resident_bytes, MMT_UNKNOWN);
	mmt_report_destroy(report);
}
END_TEST

/* Sizes that no process has: nothing overflows (sanitizers would detect it), and the order of the parts is right. */
START_TEST(absurd_sizes_do_not_overflow)
{
	static const uint64_t sizes[][2] = {{UINT64_MAX, 1}, {1, UINT64_MAX}, {INT64_MAX, 1ull << 63}};

	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint64_t *size = sizes[i / 2];
		const struct event_mapping lines[] = {line(HEAP, 64 * PAGE, PRIVATE_RW, "[heap]", 0)};
		const struct resident_run low = {HEAP, HEAP + 2 * PAGE}, high = {0, 1ull << 56};
		struct recording_residency residency = {0};
		struct recording_builder *builder = builder_create_at(report_file_path(), BASE);
		struct mmt_report *report;

		builder_snapshot(builder, SNAPSHOT_START, BASE, PID, lines, 1);
		builder_note(builder, BASE + 1, PID, NOTE_RESIDENT, size[0], 1);
		builder_note(builder, BASE + 7 * SECOND, PID, NOTE_RESIDENT, size[1], 2);
		add_pages(&residency.at_start, size[0], i % 2 ? &low : &high, 1);
		add_pages(&residency.processes, size[1], i % 2 ? &high : &low, 1);
		report_file_add_residency(builder, &residency);
		builder_finish(builder, BASE + 8 * SECOND);
		report = report_file_report(NULL);
		ck_assert(report->growth.parts_known);
		ck_assert_uint_le(report->growth.pages_start_bytes, 1ull << 56);
		ck_assert_uint_le(report->growth.pages_end_bytes, 1ull << 56);
		mmt_report_destroy(report);
	}
}
END_TEST

#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define LIBRARY 0x7fff00000000ull

/* A mapping from before the recording, of which 1 MiB is touched during the recording, and the expected owner of the
 * heap. */
struct touched {
	uint64_t start, length;
	uint32_t protection;
	const char *path;
	const char *heap;
};

/* One process that has mapped `library` and these, each adjacent to the one before unless it has a start. */
static void check_heaps(const char *library, const struct touched *touched, size_t count)
{
	struct event_mapping lines[16];
	struct resident_run runs[16];
	struct recording_residency residency = {0};
	struct recording_builder *builder = builder_create_at(report_file_path(), BASE);
	uint64_t start = 0, expected[2] = {0}, found[2] = {0};
	struct mmt_report *report;
	const char *heap = NULL;
	size_t run_count = 0;

	for (size_t i = 0; i < count; i++) {
		start = touched[i].start ? touched[i].start : start;
		lines[i] =
		    line(start, touched[i].length, touched[i].protection, touched[i].path, *touched[i].path ? 5 : 0);
		if (*touched[i].path)
			lines[i].flags = MAP_SHARED;
		start += touched[i].length;
		if (!touched[i].protection)
			continue;
		runs[run_count++] = (struct resident_run){lines[i].start, lines[i].start + MIB};
		expected[!touched[i].heap] += MIB;
		heap = touched[i].heap ? touched[i].heap : heap;
	}
	lines[count] = line(LIBRARY, 16 * PAGE, PROT_READ | PROT_EXEC, library, 77);
	builder_snapshot(builder, SNAPSHOT_START, BASE, PID, lines, count + 1);
	add_pages(&residency.at_start, PAGE, NULL, 0);
	add_pages(&residency.processes, run_count * MIB, runs, run_count);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, BASE + 8 * SECOND);
	report = report_file_report(NULL);
	ck_assert(report->growth.parts_known);
	for (size_t i = 0; i < report->growth.part_count; i++) {
		const struct mmt_growth_part *part = &report->growth.parts[i];

		found[!part->runtime] += (uint64_t)part->bytes;
		if (!part->runtime)
			continue;
		ck_assert_str_eq(part->runtime, heap);
		ck_assert_int_eq(part->pattern, MMT_PATTERN_GC_HEAP);
		ck_assert_ptr_nonnull(part->hint);
	}
	ck_assert_uint_eq(found[0], expected[0]);
	ck_assert_uint_eq(found[1], expected[1]);
	mmt_report_destroy(report);
}

/* The layouts of the runtimes: G1, Serial and Parallel of Java 17 and 25 with -Xmx40g, ZGC, .NET 10, Node 20. */
START_TEST(growth_is_attributed_to_runtime_heaps)
{
	static const struct touched low[] = {{4 * GIB, 384 * MIB, PRIVATE_RW, "", "Java"},
					     {0, 3 * GIB, PROT_NONE, "", NULL},
					     {MADE + 8 * MIB, 8 * MIB, PRIVATE_RW, "", NULL},
					     {0, 5 * GIB, PROT_NONE, "", NULL}};
	/* Below are a mapping of a library, and the stack of a thread with its guard. */
	static const struct touched high[] = {{MADE + PAGE, 2 * MIB, PRIVATE_RW, "", NULL},
					      {0, 4 * MIB - PAGE, PROT_NONE, "", NULL},
					      {0, 8 * MIB - PAGE, PRIVATE_RW, "", NULL},
					      {0, PAGE, PROT_NONE, "", NULL},
					      {0, 8 * MIB, PRIVATE_RW, "", NULL},
					      {0, MIB, PROT_NONE, "", NULL},
					      {0, 64 * MIB, PRIVATE_RW, "", "Java"},
					      {0, 64 * MIB, PROT_NONE, "", NULL},
					      {0, 384 * MIB, PRIVATE_RW, "", "Java"},
					      {0, 40 * GIB, PROT_NONE, "", NULL},
					      {0, 2 * MIB, PRIVATE_RW, "", NULL}};
	static const struct touched generations[] = {{MADE - PAGE, 126 * MIB + PAGE, PRIVATE_RW, "", "Java"},
						     {0, 13 * GIB, PROT_NONE, "", NULL},
						     {0, 252 * MIB, PRIVATE_RW, "", "Java"},
						     {0, 26 * GIB, PROT_NONE, "", NULL}};
	static const struct touched complete[] = {{LATER, 20 * GIB, PRIVATE_RW, "", NULL},
						  {MADE, 40 * GIB, PRIVATE_RW, "", "Java"}};
	static const struct touched zgc[] = {{4ull << 40, 378 * MIB, PRIVATE_RW, "/memfd:java_heap (deleted)", "Java"}};
	static const struct touched regions[] = {{MADE, 31 * MIB, PRIVATE_RW, "", ".NET"},
						 {0, MIB, PROT_NONE, "", NULL},
						 {0, 2 * MIB, PRIVATE_RW, "", ".NET"},
						 {0, 46 * GIB, PROT_NONE, "", NULL},
						 {LIBRARY - 4 * GIB - PAGE, 2 * MIB, PRIVATE_RW, "", NULL},
						 {0, 2012 * MIB, PROT_NONE, "", NULL}};
	static const struct touched pages[] = {{MADE, 16 * MIB, PRIVATE_RW, "", "Node"},
					       {MADE + GIB, MIB + PAGE, PRIVATE_RW, "", NULL},
					       {MADE + 2 * GIB - PAGE, PAGE, PROT_NONE, "", NULL},
					       {0, 8 * MIB, PRIVATE_RW, "", NULL}};
	/* Where Go has its heap, in a program that is not written in Go. */
	static const struct touched unknown[] = {{0xc000000000, 4 * MIB, PRIVATE_RW, "", NULL},
						 {0, 60 * MIB, PROT_NONE, "", NULL}};

#define CHECK(library, mappings) check_heaps(library, mappings, sizeof(mappings) / sizeof((mappings)[0]))
	CHECK("/usr/lib/server/libjvm.so", low);
	CHECK("/usr/lib/server/libjvm.so", high);
	CHECK("/usr/lib/server/libjvm.so", generations);
	CHECK("/usr/lib/server/libjvm.so", complete);
	CHECK("/usr/lib/server/libjvm.so", zgc);
	CHECK("/usr/share/dotnet/libcoreclr.so", regions);
	CHECK("/usr/bin/node", pages);
	CHECK("/usr/bin/service", unknown);
#undef CHECK
}
END_TEST

/* The recorder was killed: the last reading is earlier than the end, when RSS was larger. */
START_TEST(killed_recorder_has_no_final_parts)
{
	const struct event_mapping lines[] = {line(HEAP, 64 * PAGE, PRIVATE_RW, "[heap]", 0)};
	const struct resident_run start[] = {RUN(HEAP, 2)}, end[] = {RUN(HEAP, 10)};
	struct recording_residency residency = {0};
	struct recording_builder *builder = builder_create_at(report_file_path(), BASE);
	struct mmt_report *report;

	builder_snapshot(builder, SNAPSHOT_START, BASE, PID, lines, 1);
	builder_note(builder, BASE + 1, PID, NOTE_RESIDENT, 2 * PAGE, 1);
	write_maps(builder, BASE + 6 * SECOND, false, false);
	builder_pages(builder, BASE + 6 * SECOND, PID, &(struct builder_pages){1, false, 10 * PAGE, end, 1});
	builder_note(builder, BASE + 7 * SECOND, PID, NOTE_RESIDENT, 40 * PAGE, 2);
	add_pages(&residency.at_start, 2 * PAGE, start, 1);
	report_file_add_residency(builder, &residency);
	builder_finish(builder, BASE + 8 * SECOND);
	report = report_window(0, 0);
	ck_assert(!report->windowed && !report->growth.pages_at_ends);
	check_sum(&report->growth);
	ck_assert_int_eq(report->growth.changing_bytes, 0);
	ck_assert_uint_eq(report->growth.pages_end_ns, BASE + 6 * SECOND);
	mmt_report_destroy(report);
	write_readings();
	report = report_window(0, 0);
	ck_assert(report->growth.pages_at_ends);
	mmt_report_destroy(report);
}
END_TEST

/* Memory that was resident at the last reading, but was unmapped before the window ended, is not held. */
START_TEST(memory_unmapped_after_the_last_reading_is_not_held)
{
	const struct event_mapping lines[] = {line(HEAP, 64 * PAGE, PRIVATE_RW, "[heap]", 0)};
	const struct resident_run pages[] = {RUN(LATER, 3), RUN(MADE, 8)};
	struct recording_builder *builder = builder_create_at(report_file_path(), BASE);
	struct mmt_report_options options;
	struct mmt_report *report;
	uint64_t resident_bytes = 0;

	builder_snapshot(builder, SNAPSHOT_START, BASE, PID, lines, 1);
	builder_mmap_exit(builder, BASE + SECOND, PID, PID, MADE, 16 * PAGE, 0x1234);
	builder_mmap_exit(builder, BASE + 2 * SECOND, PID, PID, LATER, 16 * PAGE, 0x5678);
	write_maps(builder, BASE + 4 * SECOND, true, true);
	builder_pages(builder, BASE + 4 * SECOND, PID, &(struct builder_pages){1, false, 11 * PAGE, pages, 2});
	builder_munmap_exit(builder, BASE + 5 * SECOND, PID, PID, MADE, 16 * PAGE);
	builder_finish(builder, BASE + 8 * SECOND);
	mmt_report_options_init(&options);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, BASE + 7 * SECOND};
	options.lifetime_steps = 16;
	report = report_file_report(&options);
	ck_assert_uint_eq(report->resident_ns, BASE + 4 * SECOND);
	ck_assert_uint_eq(report->resident_bytes, 3 * PAGE);
	ck_assert_uint_eq(report->row_count, 2);
	ck_assert_uint_eq(report->rows[0].resident_bytes, 3 * PAGE);
	ck_assert_uint_eq(report->rows[1].freed_bytes, 16 * PAGE);
	ck_assert_uint_eq(report->rows[1].resident_bytes, 0);
	ck_assert_uint_eq(report->rows[1].memory_bytes, 0);
	for (size_t i = 0; i < report->part_count; i++)
		resident_bytes += report->parts[i].resident_bytes;
	ck_assert_uint_eq(resident_bytes, 3 * PAGE);
	mmt_report_destroy(report);
}
END_TEST

#define HUGE_BYTES (2ull << 20)
#define HUGE_PAGES 16 /* of each of two mappings */

/* Huge pages of a new mapping, of which 3 of 4 sampled bytes are zero, and of an older arena, which is full. `all`:
 * with the samples. */
static void write_huge_recording(bool all)
{
	const struct event_mapping lines[] = {
	    line(ARENA, HUGE_PAGES * HUGE_BYTES, PRIVATE_RW, "", 0),
	    line(ARENA + HUGE_PAGES * HUGE_BYTES, ARENA_BYTES - HUGE_PAGES * HUGE_BYTES, PROT_NONE, "", 0),
	    C_LIBRARY_LINE,
	};
	static const struct resident_run runs[] = {{MADE, MADE + HUGE_PAGES * HUGE_BYTES},
						   {ARENA, ARENA + HUGE_PAGES * HUGE_BYTES}};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_huge_pages huge = {.setting = HUGE_ALWAYS};
	struct process_huge_pages *process = vector_append(&huge.processes);
	struct recording_residency residency = {0};

	ck_assert_ptr_nonnull(process);
	process->pid = PID;
	process->bytes = 2 * HUGE_PAGES * HUGE_BYTES;
	process->sampled_bytes = all ? 2 * HUGE_PAGES * 32 * PAGE : 0;
	process->zero_bytes = all ? HUGE_PAGES * 24 * PAGE : 0;
	builder_snapshot(builder, SNAPSHOT_START, 1000, PID, lines, 3);
	builder_mmap_exit(builder, 2000, PID, PID, MADE, HUGE_PAGES * HUGE_BYTES, 0x1234);
	add_pages(&residency.processes, 2 * HUGE_PAGES * HUGE_BYTES, runs, 2);
	report_file_add_residency(builder, &residency);
	report_file_add_huge_pages(builder, &huge);
	builder_finish(builder, 3000);
}

/* Whatever the rows are, and also if no row has the memory. */
START_TEST(huge_pages_of_the_process)
{
	const uint64_t bytes = HUGE_PAGES * HUGE_BYTES;
	struct mmt_report_options options;
	struct mmt_report *report;

	write_huge_recording(true);
	for (unsigned i = 0; i < 2; i++) {
		mmt_report_options_init(&options);
		options.by = i ? MMT_BY_PROCESS : MMT_BY_STACK;
		options.classes = i ? 1u << MMT_CLASS_HEAP : 0;
		report = report_file_report(&options);
		ck_assert(report->huge_pages_known);
		ck_assert_uint_eq(report->huge_pages.bytes, 2 * bytes);
		ck_assert_uint_eq(report->huge_pages.sampled_bytes, 2 * HUGE_PAGES * 32 * PAGE);
		ck_assert_uint_eq(report->huge_pages.zero_bytes, bytes * 3 / 4);
		ck_assert_ptr_nonnull(strstr(report->huge_pages.hint, "transparent_hugepage/enabled"));
		mmt_report_destroy(report);
	}
	/* It was read when recording ended. */
	mmt_report_options_init(&options);
	options.to = (struct mmt_timestamp){MMT_TIMESTAMP_CLOCK, 2500};
	report = report_file_report(&options);
	ck_assert(!report->huge_pages_known);
	mmt_report_destroy(report);
}
END_TEST

START_TEST(huge_pages_without_a_sample)
{
	struct mmt_report *report;

	write_huge_recording(false);
	report = report_file_report(NULL);
	ck_assert(report->huge_pages_known);
	ck_assert_uint_eq(report->huge_pages.bytes, 2 * HUGE_PAGES * HUGE_BYTES);
	ck_assert_uint_eq(report->huge_pages.zero_bytes, MMT_UNKNOWN);
	ck_assert_ptr_null(report->huge_pages.hint);
	mmt_report_destroy(report);
	/* Earlier versions did not read them. */
	write_recording(true, 0, 0);
	report = report_file_report(NULL);
	ck_assert(!report->huge_pages_known);
	ck_assert_ptr_null(report->huge_pages.hint);
	mmt_report_destroy(report);
}
END_TEST

/* A process with MADE in huge pages, of which `samples` were read: `zero_bytes` of 32 pages each. */
static void add_huge_process(struct recording_huge_pages *huge, int32_t pid, size_t samples, uint32_t zero_bytes)
{
	const struct process_huge_pages process = {.pid = pid,
						   .bytes = HUGE_PAGES * HUGE_BYTES,
						   .sampled_bytes = samples * 32 * PAGE,
						   .zero_bytes = samples * zero_bytes};

	ck_assert(vector_push(&huge->processes, process));
}

/* One process was never written and sampled four times as densely as the next one, which is full; a third one was
 * not sampled. */
static void write_huge_processes(void)
{
	const struct event_mapping lines[] = {line(HEAP, 16 * PAGE, PRIVATE_RW, "[heap]", 0)};
	const struct resident_run run = {MADE, MADE + HUGE_PAGES * HUGE_BYTES};
	struct recording_builder *builder = builder_create(report_file_path());
	struct recording_huge_pages huge = {.setting = HUGE_ALWAYS};
	struct recording_residency residency = {0};

	add_huge_process(&huge, PID, HUGE_PAGES, 32 * PAGE);
	add_huge_process(&huge, PID + 1, HUGE_PAGES / 4, 0);
	add_huge_process(&huge, PID + 2, 0, 0);
	for (int32_t i = 0; i < 3; i++) {
		builder_snapshot(builder, SNAPSHOT_START, 1000, PID + i, lines, 1);
		add_pages(&residency.processes, HUGE_PAGES * HUGE_BYTES, &run, 1);
		residency.processes.items[i].pid = PID + i;
	}
	for (int32_t i = 0; i < 3; i++)
		builder_mmap_exit(builder, 2000 + (uint64_t)i, PID + i, PID + i, MADE, HUGE_PAGES * HUGE_BYTES, 0x1234);
	report_file_add_residency(builder, &residency);
	report_file_add_huge_pages(builder, &huge);
	builder_finish(builder, 3000);
}

START_TEST(estimates_of_huge_pages_add_up)
{
	const uint64_t bytes = HUGE_PAGES * HUGE_BYTES;
	struct mmt_report *report;

	write_huge_processes();
	report = report_file_report(NULL);
	ck_assert_uint_eq(report->huge_pages.bytes, 3 * bytes);
	ck_assert_uint_eq(report->huge_pages.sampled_bytes, (HUGE_PAGES + HUGE_PAGES / 4) * 32 * PAGE);
	ck_assert_uint_eq(report->huge_pages.zero_bytes, bytes);
	mmt_report_destroy(report);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("growth-parts");
	TCase *tests = add_tcase(suite, "growth-parts");

	tcase_add_checked_fixture(tests, report_file_setup, report_file_teardown);
	tcase_add_tests(
	    tests, every_page_has_a_part, aligned_memory_without_glibc_is_no_arena, arena_above_a_stack,
	    pages_taken_from_a_mapping_that_stays, child_in_the_same_space, hugetlb_is_apart,
	    swapped_memory_belongs_to_rows, ended_and_unread_processes, counters_of_a_control_group, end_of_the_command,
	    swapped_memory_belongs_to_rows, ended_and_unread_processes, counters_of_a_control_group, oom_kills,
	    parts_add_up_while_the_process_runs, no_parts_without_the_first_reading, window_ends_with_its_last_reading,
	    window_starts_with_the_nearest_reading, mapping_between_start_and_nearest_reading_keeps_its_pages,
	    no_parts_without_two_readings, steps_have_their_readings, impossible_readings_are_ignored,
	    one_reading_for_each_snapshot, runs_are_counted_once, window_without_readings_has_no_parts,
	    absurd_sizes_do_not_overflow, growth_is_attributed_to_runtime_heaps, killed_recorder_has_no_final_parts,
	    memory_unmapped_after_the_last_reading_is_not_held, huge_pages_of_the_process, huge_pages_without_a_sample,
	    estimates_of_huge_pages_add_up, moved_memory_is_not_new, too_many_moves);
	tcase_add_loop_test(tests, made_writable_is_touched_after_a_call, 0, 2);
	tcase_add_loop_test(tests, control_group_of_others, 0, 4);
	tcase_add_loop_test(tests, control_group_with_the_nearest_limit, 0, 2);
	tcase_add_loop_test(tests, pages_that_move, 0, 6);
	return suite;
}
