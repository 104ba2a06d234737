// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <errno.h>
#include <mmtrace/output.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/text/text-parts.h"
#include "output/text/text.h"
#include "support/suite.h"
#include "support/sample-report.h"
#include "support/temporary.h"

static char *render(const struct mmt_report *report, const struct mmt_text_options *options)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(stream);
	ck_assert_ptr_null(mmt_report_write_text(report, options, stream));
	ck_assert_int_eq(fclose(stream), 0);
	return text;
}

#define ASSERT_HAS(text, part) ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part, text)
#define ASSERT_ABSENT(text, part) ck_assert_msg(strstr(text, part) == NULL, "\"%s\" in:\n%s", part, text)

START_TEST(first_screen)
{
	struct mmt_report report = sample_report();
	char *text = render(&report, &(struct mmt_text_options){.stack_frames = 32});

	ASSERT_HAS(text, "MyConsoleApp (pid 3074), 62.1 s   RSS 100.0 MiB at start, 100.0 MiB at end   "
			 "peak 101.0 MiB   ");
	ASSERT_HAS(text, "\nSTEADY: RSS has no steady trend: 0 B from start to end.");
	ASSERT_HAS(text, "\n  mmtrace.data\n");
	ASSERT_HAS(text, "1,338 events: 1,333 mmap, 5 munmap; 0 lost\n");
	ASSERT_HAS(text, "256 of 258 call stacks complete; 2 truncated (no unwind data)\n");
	ASSERT_HAS(text, "checked against the kernel's final map: 412 mappings, all match\n");
	ASSERT_HAS(text, " 1   1.00 GiB resident   100.0 %   LEAK +989.0 MiB per minute   anon   256 x 4.00 MiB   "
			 "0 of 256 freed   made from 1.0 s to 8.0 s   ▁▁▁▁▁▁▁▂▁▁▁▁▁▁▁█\n");
	ASSERT_HAS(text,
		   " 2   4.00 KiB committed   0.0 %   undecided   /memfd:evil\\x1b[31m (deleted) and 1 more file   "
		   "2, 4.00 KiB to 8.00 KiB   1 of 3 freed   unfreed 12.00 KiB   reserved 8.00 KiB");
	free(text);
	report.growth.peak_bytes = 300 << 20;
	report.growth.peak_ns = report.start_ns + 2500000000;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n  RSS was 300.0 MiB before it fell: --to 2.500s shows what held that.\n");
	free(text);
	/* With each request. */
	report.judged_readings = (const struct mmt_resident_reading[]){
	    {1, 90 << 20, 0}, {2, 300 << 20, 0}, {3, 90 << 20, 0}, {4, 290 << 20, 0}, {5, 100 << 20, 0}};
	report.judged_reading_count = 5;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "before it fell");
	free(text);
}
END_TEST

START_TEST(frames)
{
	struct mmt_report report = sample_report();
	char *text = render(&report, &(struct mmt_text_options){.stack_frames = 32});

	ASSERT_HAS(text, "      mmap                libc.so.6\n"
			 "      mmap_allocation     leak.so     leak.c:18\n"
			 "      IL_STUB_PInvoke()   [jit]\n"
			 "      MyTest()            [jit]\n"
			 "      ... 4 runtime frames\n"
			 "      main                dotnet\n");
	ASSERT_HAS(text, "? plain.so+0x1234\n");
	ASSERT_HAS(text, "0xdeadbeef\n");
	ASSERT_HAS(text, "(callers beyond here are missing: no unwind data)\n");
	free(text);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "runtime frames");
	ASSERT_HAS(text, "RunMain");
	free(text);
	text = render(&report, &(struct mmt_text_options){.stack_frames = 2});
	ASSERT_HAS(text, "      IL_STUB_PInvoke()   [jit]\n      MyTest()            [jit]\n      ... 5 more frames\n");
	free(text);
}
END_TEST

static unsigned count_lines_of(const char *text, const char *start)
{
	unsigned count = 0;

	for (; (text = strstr(text, start)); text++)
		count++;
	return count;
}

/* In a stack that is too long, the program's functions stay, and library functions are omitted. */
START_TEST(library_frames_are_omitted_first)
{
	static const char *const functions[] = {"mmap",
						"sysmalloc",
						"_int_malloc",
						"malloc",
						"operator new(unsigned long)",
						"std::vector::vector()",
						"accept()",
						"serve()",
						"run()",
						"main",
						"_start"};
	enum { COUNT = sizeof(functions) / sizeof(functions[0]) };
	struct mmt_frame room[COUNT];
	const struct mmt_frame *pointers[COUNT];
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	char *text;

	for (size_t i = 0; i < COUNT; i++) {
		room[i] = (struct mmt_frame){.kind = MMT_FRAME_NATIVE, .module = "app", .function = functions[i]};
		pointers[i] = &room[i];
	}
	row.frames = pointers;
	row.frame_count = COUNT;
	row.origin = 6;
	report.rows = &row;
	report.row_count = 1;
	text = render(&report, &(struct mmt_text_options){.stack_frames = 9});
	ASSERT_HAS(text, "\n      ... 2 library frames\n"
			 "      _int_malloc                   app\n"
			 "      malloc                        app\n");
	ASSERT_HAS(text, "      accept()                      app\n");
	ASSERT_HAS(text, "      main                          app\n");
	ASSERT_HAS(text, "...: frames omitted; --stacks all shows every frame.\n");
	free(text);
	text = render(&report, &(struct mmt_text_options){.stack_frames = COUNT});
	ASSERT_ABSENT(text, "library frames");
	free(text);
	/* Frames of a runtime and of JIT code are not omitted. */
	room[2].kind = MMT_FRAME_JIT;
	text = render(&report, &(struct mmt_text_options){.stack_frames = 9});
	ASSERT_ABSENT(text, "library frames");
	free(text);
}
END_TEST

/* Containers of C++ below the program's function are one line; what it calls, and what calls it, stay. */
START_TEST(containers_are_folded)
{
	static const char *const functions[] = {"malloc",
						"operator new(unsigned long)",
						"__gnu_cxx::new_allocator<char>::allocate(unsigned long, void const*)",
						"std::allocator_traits<std::allocator<char> >::allocate(unsigned long)",
						"void std::vector<char>::_M_realloc_insert<char>(char&&)",
						"std::vector<char>::push_back(char&&)",
						"keep()",
						"std::for_each()",
						"std::a()",
						"std::b()",
						"std::c()",
						"main"};
	enum { COUNT = sizeof(functions) / sizeof(functions[0]) };
	struct mmt_frame room[COUNT];
	const struct mmt_frame *pointers[COUNT];
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	char *text;

	for (size_t i = 0; i < COUNT; i++) {
		room[i] = (struct mmt_frame){.kind = MMT_FRAME_NATIVE, .module = "app", .function = functions[i]};
		pointers[i] = &room[i];
	}
	row.frames = pointers;
	row.frame_count = COUNT;
	row.origin = 6;
	report.rows = &row;
	report.row_count = 1;
	text = render(&report, &(struct mmt_text_options){.stack_frames = COUNT});
	ASSERT_HAS(text, "      malloc                                 app\n"
			 "      ... 4 library frames\n"
			 "      std::vector<char>::push_back(char&&)   app\n"
			 "      keep()                                 app\n"
			 "      std::for_each()                        app\n"
			 "      std::a()                               app\n");
	ASSERT_HAS(text, "...: frames omitted; --stacks all shows every frame.\n");
	free(text);
	/* With frames that are omitted for want of room, they are one line. */
	text = render(&report, &(struct mmt_text_options){.stack_frames = 3});
	ASSERT_HAS(text,
		   "\n      ... 5 library frames\n      std::vector<char>::push_back(char&&)   app\n      keep() ");
	free(text);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "library frames");
	free(text);
}
END_TEST

/* What the table names is in the stack below it, however few frames fit. */
START_TEST(named_function_stays)
{
	static const char *const functions[] = {"mmap", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "main"};
	enum { COUNT = sizeof(functions) / sizeof(functions[0]) };
	const uint32_t id = 1;
	struct mmt_cause cause = {
	    .name = "f1 (app)", .caller = "f7 (app)", .memory_bytes = 4096, .rows = &id, .row_count = 1};
	struct mmt_frame room[COUNT];
	const struct mmt_frame *pointers[COUNT];
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	char *text;

	for (size_t i = 0; i < COUNT; i++) {
		room[i] = (struct mmt_frame){.kind = MMT_FRAME_NATIVE, .module = "app", .function = functions[i]};
		pointers[i] = &room[i];
	}
	row.frames = pointers;
	row.frame_count = COUNT;
	row.origin = row.cause = 1;
	report.rows = &row;
	report.row_count = 1;
	report.causes = &cause;
	report.cause_count = 1;
	text = render(&report, &(struct mmt_text_options){.stack_frames = 3});
	ASSERT_HAS(text,
		   "      mmap   app\n      f1     app\n      f2     app\n      ... 4 more frames\n      f7     app\n");
	free(text);
}
END_TEST

/* A library or a runtime with more frames than fit does not hide the program that called it. */
START_TEST(program_frames_stay)
{
	enum { COUNT = 24, OWN = 18 };
	char names[COUNT][16];
	struct mmt_frame room[COUNT];
	const struct mmt_frame *pointers[COUNT];
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	char *text;

	for (int jit = 0; jit < 2; jit++) {
		for (int i = 0; i < COUNT; i++) {
			bool library = i < OWN || (jit && i >= COUNT - 4);

			snprintf(names[i], sizeof(names[i]), "f%d", i);
			room[i] = (struct mmt_frame){.kind = jit && !library ? MMT_FRAME_JIT : MMT_FRAME_NATIVE,
						     .module = library ? "lib.so" : "app",
						     .function = names[i]};
			pointers[i] = &room[i];
		}
		room[0].module = room[COUNT - 2].module = "libc.so.6";
		room[COUNT - 1].module = jit ? "lib.so" : "app";
		row.frames = pointers;
		row.frame_count = COUNT;
		row.origin = 1;
		report.rows = &row;
		report.row_count = 1;
		text = render(&report, &(struct mmt_text_options){.stack_frames = 12});
		ASSERT_HAS(text, "      f0    libc.so.6\n"
				 "      f1    lib.so\n");
		ASSERT_HAS(text, "library frames\n"
				 "      f17   lib.so\n" /* what the program called */
				 "      f18   app\n"
				 "      f19   app\n");
		ASSERT_HAS(text, "      f22   libc.so.6\n      f23 ");
		ck_assert_uint_le(count_lines_of(text, "\n      f"), 12);
		free(text);
		text = render(&report, &(struct mmt_text_options){.stack_frames = COUNT});
		ASSERT_ABSENT(text, "library frames");
		free(text);
	}
}
END_TEST

START_TEST(hostile_names)
{
	struct mmt_report report = sample_report();
	char *text = render(&report, &(struct mmt_text_options){0});

	ASSERT_HAS(text, "evil\\x1b[31m\\xff\\x0a");
	ASSERT_HAS(text, "lib\xc3\xa9.so");
	ASSERT_ABSENT(text, "\x1b");
	free(text);
	text = render(&report, &(struct mmt_text_options){.ascii = true});
	for (const char *byte = text; *byte; byte++)
		ck_assert_int_gt(*byte, 0);
	ASSERT_HAS(text, "lib\\xc3\\xa9.so");
	ASSERT_HAS(text, "0000000100000009");
	free(text);
}
END_TEST

static const struct {
	const char *name, *escaped;
} hostile[] = {
    {"plain \"name\" \\ caf\xc3\xa9", "plain \"name\" \\ caf\xc3\xa9"},
    {"\x1b[2J\n\t\x7f", "\\x1b[2J\\x0a\\x09\\x7f"},
    {"\xc2\x9b"
     "31m\xc2\x80\xc2\x9f",
     "\\xc2\\x9b31m\\xc2\\x80\\xc2\\x9f"},
    {"\x9b\xff\xc0\x80", "\\x9b\\xff\\xc0\\x80"},
    {"\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c",
     "\\xe2\\x80\\xaa\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x81\\xa9\\xd8\\x9c"},
};

START_TEST(escapes)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	mmt_write_escaped(hostile[_i].name, stream);
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_str_eq(text, hostile[_i].escaped);
	free(text);
}
END_TEST

static uint8_t *read_file(const char *path, size_t *size_ret)
{
	FILE *stream = fopen(path, "rb");
	uint8_t *bytes = calloc(1, 1 << 20);

	ck_assert_ptr_nonnull(stream);
	*size_ret = fread(bytes, 1, 1 << 20, stream);
	ck_assert(feof(stream));
	fclose(stream);
	return bytes;
}

static void replace_all(uint8_t *bytes, size_t size, const char *from, const char *to)
{
	uint8_t *place = bytes;
	size_t count = 0;

	ck_assert_uint_eq(strlen(to), strlen(from));
	while ((place = memmem(place, size - (size_t)(place - bytes), from, strlen(from))) != NULL) {
		memcpy(place, to, strlen(from));
		count++;
	}
	ck_assert_uint_gt(count, 0);
}

/* An event whose name would end its line, start another and contain a terminal escape sequence. */
START_TEST(dump_of_hostile_names)
{
	char path[TEMPORARY_PATH_SIZE], *text = NULL;
	size_t size = 0;
	uint8_t *bytes = read_file("data/leak.data", &size);
	FILE *stream;

	replace_all(bytes, size, "syscalls:sys_exit_munmap", "sys\n4.2 1/1 x\x1b[0m\xc2\x9b mmap");
	temporary_name(path);
	stream = fopen(path, "wb");
	ck_assert_ptr_nonnull(stream);
	ck_assert_uint_eq(fwrite(bytes, 1, size, stream), size);
	fclose(stream);
	free(bytes);
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_dump(path, NULL, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_HAS(text, " event=sys\\x0a4.2\\x201/1\\x20x\\x1b[0m\\xc2\\x9b\\x20mmap munmap(");
	ASSERT_ABSENT(text, "\x1b");
	ASSERT_ABSENT(text, "\xc2\x9b");
	ASSERT_ABSENT(text, "\n4.2 1/1");
	free(text);
}
END_TEST

START_TEST(warnings_come_first)
{
	struct mmt_report report = sample_report();
	char *text;

	report.completeness.lost_events = 1204;
	text = render(&report, &(struct mmt_text_options){0});
	ck_assert_ptr_eq(strstr(text, "LOST: 1,204 events"), text);
	ASSERT_ABSENT(text, "MISSED");
	free(text);
	report.completeness.missed_threads = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\nMISSED: 1 thread was not recorded");
	free(text);
	report.completeness.incomplete = true;
	report.completeness.damaged = true;
	report.completeness.damage = "record at offset 4711";
	text = render(&report, &(struct mmt_text_options){0});
	ck_assert_ptr_eq(strstr(text, "INCOMPLETE: "), text);
	ASSERT_HAS(text, "\nDAMAGED: record at offset 4711; the report uses what could be read\nLOST: ");
	free(text);
}
END_TEST

START_TEST(differences_from_the_kernel)
{
	struct mmt_report report = sample_report();
	struct mmt_process process = report.processes[0];
	char *text;

	process.mismatch_bytes = 8192;
	report.processes = &process;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "412 mappings, 8.00 KiB differ");
	free(text);
	process.checked = false;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "not checked against the kernel's final map: ");
	free(text);
}
END_TEST

/* A selection is never shown as the complete report. */
START_TEST(requested_figures)
{
	struct mmt_report report = sample_report();
	char *text = render(&report, &(struct mmt_text_options){0});

	ck_assert_ptr_null(strstr(text, "  only "));
	free(text);
	report.options.classes = 1u << MMT_CLASS_FILE | 1u << MMT_CLASS_HEAP;
	report.left_out_process_count = 1200;
	report.windowed = true;
	report.too_recent_bytes = 8192;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n  only memory of class file, heap\n  only the process asked for; 1,200 left out\n");
	ASSERT_HAS(text, "\nunfreed in this window    ");
	ASSERT_HAS(text, "\nmapped in this window     ");
	ASSERT_HAS(text, "\nexcluded as too recent       8.00 KiB\n");
	free(text);
}
END_TEST

/* Which processes hold how much: the first eight, and a line for the rest. */
START_TEST(table_of_processes)
{
	struct mmt_report report = sample_report();
	struct mmt_process processes[12];
	char *text;

	for (int i = 0; i < 12; i++)
		processes[i] = (struct mmt_process){.pid = 100 + i,
						    .parent_pid = i ? 100 : 0,
						    .name = "server",
						    .ended = i == 2,
						    .unfreed_bytes = 4096 * (uint64_t)i,
						    .before_bytes = 8192};
	report.processes = processes;
	processes[0].container_pid = 100;
	processes[1].container_pid = 7;
	report.process_count = 3;
	report.resident_reading_count = 0;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n  process                    unfreed      before\n"
			 "  server (102)              8.00 KiB    8.00 KiB  child of 100, ended\n"
			 "  server (101)              4.00 KiB    8.00 KiB  child of 100, 7 in its container\n"
			 "  server (100)                   0 B    8.00 KiB\n");
	free(text);
	report.process_count = 12;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "  and 4 more with 24.00 KiB (--json has all)\n");
	free(text);
	report.process_count = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ck_assert_ptr_null(strstr(text, "  process  "));
	free(text);
}
END_TEST

/* Of several processes, those that grew come first, and the first lines name them. */
START_TEST(growth_of_processes)
{
	static const struct {
		const char *name;
		uint64_t start_ns, end_ns, start_mib, end_mib;
	} lives[] = {{"master", 1, 9, 10, 10}, {"worker", 1, 9, 20, 21}, {"worker", 1, 9, 20, 60},
		     {"worker", 1, 9, 20, 22}, {"worker", 5, 9, 15, 30}, {"worker", 1, 4, 20, 45},
		     {"worker", 4, 6, 15, 40}};
	struct mmt_report report = sample_report();
	struct mmt_process_readings readings[7];
	struct mmt_process processes[7];
	char *text;

	for (int i = 0; i < 7; i++) {
		readings[i] = (struct mmt_process_readings){.start_ns = lives[i].start_ns,
							    .end_ns = lives[i].end_ns,
							    .start_resident_bytes = lives[i].start_mib << 20,
							    .end_resident_bytes = lives[i].end_mib << 20};
		processes[i] = (struct mmt_process){.pid = 100 + i,
						    .parent_pid = i ? 100 : 0,
						    .name = lives[i].name,
						    .ended = lives[i].end_ns < 9,
						    .readings = &readings[i]};
	}
	readings[2].end_swapped_bytes = 1 << 20;
	report.processes = processes;
	report.process_count = 7;
	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_GROWING,
					    .start_ns = 1,
					    .end_ns = 9,
					    .start_bytes = 90 << 20,
					    .end_bytes = 143 << 20,
					    .end_swap_bytes = 1 << 20,
					    .sharers = 5,
					    .floor_bytes = 256 * 1024};
	text = render(&report, &(struct mmt_text_options){.width = 400});
	/* Which measure the figures have. */
	ASSERT_HAS(text, "   sum of RSS 90.00 MiB at start, 143.0 MiB at end");
	ASSERT_HAS(text, "GROWING: sum of RSS and swap +54.00 MiB");
	ASSERT_HAS(text, "\n  The sum of RSS counts memory that the processes share in each of them.\n");
	ASSERT_HAS(text, "7 processes: master (pid 100), worker x 6, ");
	ASSERT_HAS(
	    text,
	    "\n    +41.00 MiB  worker (pid 102)\n"
	    "    +30.00 MiB  worker (pid 104), which started: all of it\n"
	    "    -17.00 MiB  other processes\n"
	    "  2 processes that ended had each grown by more than 1 MiB, by 50.00 MiB in total, since they were first "
	    "read, of these process 105 most, by 25.00 MiB: "
	    "`report --pid 105` shows what it held when it ended.\n");
	ASSERT_HAS(text, "\n  process                      growth  RSS at end     unfreed      before\n"
			 "  worker (102)             +41.00 MiB   60.00 MiB  ");
	ASSERT_HAS(text, "child of 100, ended, last read at ");
	free(text);
	/* Those that ended had a small part of it. */
	report.growth.end_bytes = 1143 << 20;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_ABSENT(text, "that ended had grown");
	free(text);
	/* Nothing grew: no line. */
	report.growth.end_bytes = 89 << 20;
	processes[5].ended = false;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_ABSENT(text, "MiB  worker (pid");
	ASSERT_ABSENT(text, "that ended had grown");
	free(text);
}
END_TEST

/* Comparisons made during recording are not called final. */
START_TEST(checks_before_the_exit)
{
	struct mmt_report report = sample_report();
	struct mmt_process processes[2] = {report.processes[0], report.processes[0]};
	char *text;

	processes[0].ended = true;
	processes[0].checked_ns = report.start_ns + 1500000000;
	processes[0].check_age_ns = 20000000;
	report.processes = processes;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "  checked against the kernel's map 1.5 s after the start, 20 ms before it ended: 412 mappings, "
		   "all match\n");
	ck_assert_ptr_null(strstr(text, "final map"));
	free(text);
	report.process_count = 2;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "  checked against the kernel's final maps: 1 process, 412 mappings, all match\n"
		   "  checked against the kernel's maps up to 20 ms before they ended: 1 process, 412 mappings, all "
		   "match\n");
	free(text);
	report.process_count = 1;
	processes[0].ended = false;
	processes[0].checked_before_exec = true;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, " 1.5 s after the start, 20 ms before it executed another program: 412 mappings, all match\n");
	ck_assert_ptr_null(strstr(text, "final map"));
	free(text);
	processes[0].checked_before_exec = false;
	report.completeness.incomplete = true;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "map 1.5 s after the start, the last one: 412 mappings, all match\n");
	free(text);
}
END_TEST

#define PROCESSES 20003

/* Many processes take few lines: the worst by name, the others in sums. */
START_TEST(checks_of_many_processes)
{
	struct mmt_process *processes = calloc(PROCESSES, sizeof(*processes));
	struct mmt_report report = sample_report();
	char *text, *stacks, *sums;
	size_t lines = 0;

	for (int i = 0; i < PROCESSES; i++)
		processes[i] = (struct mmt_process){.pid = i + 1, .name = "forks", .ended = true};
	for (int i = 0; i < 8; i++) {
		processes[i].checked = true;
		processes[i].ended = false;
		processes[i].checked_mappings = 100;
		processes[i].mismatch_bytes = i < 5 ? 4096 * (uint64_t)(1 + i) : 0;
	}
	processes[7].unverifiable_bytes = 12288;
	processes[7].unread_bytes = 4096;
	report.processes = processes;
	report.process_count = PROCESSES;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "final maps: 100 mappings, 20.00 KiB differ: forks (pid 5)\n"
		   "  checked against the kernel's final maps: 100 mappings, 16.00 KiB differ: forks (pid 4)\n"
		   "  checked against the kernel's final maps: 100 mappings, 12.00 KiB differ: forks (pid 3)\n"
		   "  checked against the kernel's final maps: 2 more processes, 12.00 KiB differ\n"
		   "  checked against the kernel's final maps: 3 processes, 300 mappings, all match; 8.00 KiB "
		   "could not be verified (changed while the maps were read); 4.00 KiB could not be verified (moved "
		   "while the first maps were read)\n"
		   "  not checked against the kernel's final maps: 19,995 processes that ended by themselves\n");
	stacks = strstr(text, "  256 of 258 call stacks complete");
	sums = strstr(text, "unfreed in this recording");
	ck_assert(stacks && sums);
	for (char *byte = stacks; byte < sums; byte++)
		lines += *byte == '\n';
	ck_assert_uint_eq(lines, 8);
	free(text);
	free(processes);
}
END_TEST

static char *render_stacks(const struct mmt_completeness *completeness)
{
	struct mmt_report report = sample_report();

	report.completeness = *completeness;
	return render(&report, &(struct mmt_text_options){0});
}

/* Unnamed runtime frames explain nothing, wherever they are; named ones do. */
START_TEST(runs_of_unnamed_runtime_frames)
{
	struct mmt_frame lines[] = {
	    {.function = "mmap", .module = "libc.so.6"},
	    {.module = "libcoreclr.so", .module_offset = 0x10},
	    {.module = "libcoreclr.so", .module_offset = 0x20},
	    {.module = "libclrjit.so", .module_offset = 0x30},
	    {.module = "libcoreclr.so", .module_offset = 0x40},
	    {.kind = MMT_FRAME_JIT, .function = "inner()", .module = "[jit]"},
	    {.module = "libcoreclr.so", .module_offset = 0x50},
	    {.module = "libcoreclr.so", .module_offset = 0x60},
	    {.module = "libcoreclr.so", .module_offset = 0x70},
	    {.function = "Dispatch", .module = "libcoreclr.so"},
	    {.kind = MMT_FRAME_JIT, .function = "outer()", .module = "[jit]"},
	    {.module = "app", .module_offset = 0x80},
	    {.module = "app", .module_offset = 0x90},
	    {.module = "app", .module_offset = 0xa0},
	    {.module = "app", .module_offset = 0xb0},
	};
	const struct mmt_frame *pointers[sizeof(lines) / sizeof(*lines)];
	struct mmt_report report = sample_report();
	struct mmt_row row = sample_rows[0];
	char *text;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		pointers[i] = &lines[i];
	row.frames = pointers;
	row.frame_count = sizeof(lines) / sizeof(*lines);
	report.rows = &row;
	report.row_count = 1;
	text = render(&report, &(struct mmt_text_options){.stack_frames = 32});
	ASSERT_HAS(text, "      mmap                 libc.so.6\n"
			 "      ... 4 runtime frames\n"
			 "      inner()              [jit]\n"
			 "      libcoreclr.so+0x50\n"
			 "      libcoreclr.so+0x60\n"
			 "      libcoreclr.so+0x70\n"
			 "      Dispatch             libcoreclr.so\n"
			 "      outer()              [jit]\n"
			 "      app+0x80\n");
	free(text);
	/* Two lines more than permitted. */
	text = render(&report, &(struct mmt_text_options){.stack_frames = 10});
	ASSERT_HAS(text, "      mmap                 libc.so.6\n      ... 4 runtime frames\n");
	ASSERT_HAS(text, "      ... 2 more frames\n      app+0xa0\n      app+0xb0\n");
	free(text);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "runtime frames");
	free(text);
}
END_TEST

#define PYTHON .module = "python3.12", .module_path = "/usr/bin/python3.12"
#define RUBY .module = "libruby-3.1.so", .module_path = "/usr/lib/libruby-3.1.so"

static char *render_frames(const struct mmt_frame *lines, size_t count, size_t stack_frames)
{
	const struct mmt_frame *pointers[32];
	struct mmt_report report = sample_report();
	struct mmt_row row = sample_rows[0];

	for (size_t i = 0; i < count; i++)
		pointers[i] = &lines[i];
	row.frames = pointers;
	row.frame_count = count;
	report.rows = &row;
	report.row_count = 1;
	return render(&report, &(struct mmt_text_options){.stack_frames = stack_frames});
}

/* Only what a function calls, and its callers, are shown of an interpreter. */
START_TEST(frames_of_interpreters)
{
	static const struct mmt_frame python[] = {
	    {.function = "mmap", .module = "libc.so.6"},
	    {.function = "new_mmap_object", .module = "mmap.so", .module_path = "/usr/lib/lib-dynload/mmap.so"},
	    {.function = "type_call", PYTHON},
	    {.function = "_PyObject_MakeTpCall", PYTHON},
	    {.function = "_PyEval_EvalFrameDefault", PYTHON},
	    {.kind = MMT_FRAME_JIT, .function = "py::leak", .module = "[jit]"},
	    {.function = "py_trampoline_evaluator", PYTHON},
	    {.function = "_PyEval_EvalFrameDefault", PYTHON},
	    {.kind = MMT_FRAME_JIT, .function = "py::by_callback", .module = "[jit]"},
	    {.function = "_PyEval_EvalFrameDefault", PYTHON},
	    {.function = "call_back", .module = "plugin.so", .module_path = "/opt/plugin.so"},
	    {.function = "_PyEval_EvalFrameDefault", PYTHON},
	    {.kind = MMT_FRAME_JIT, .function = "py::main", .module = "[jit]"},
	    {.function = "_PyEval_EvalFrameDefault", PYTHON},
	    {.function = "Py_RunMain", PYTHON},
	    {.function = "__libc_start_main", .module = "libc.so.6"},
	    {.function = "_start", PYTHON},
	};
	static const char shown[] = "      mmap                       libc.so.6\n"
				    "      new_mmap_object            mmap.so\n"
				    "      type_call                  python3.12\n"
				    "      ... 2 interpreter frames\n"
				    "      py::leak                   [jit]\n"
				    "      py::by_callback            [jit]\n"
				    "      _PyEval_EvalFrameDefault   python3.12\n"
				    "      call_back                  plugin.so\n"
				    "      _PyEval_EvalFrameDefault   python3.12\n"
				    "      py::main                   [jit]\n"
				    "      ... 2 interpreter frames\n"
				    "      __libc_start_main          libc.so.6\n"
				    "      _start                     python3.12\n";
	/* Without names, where the interpreter's loop begins shows in its name or, without that, in a missing one. */
	static const struct mmt_frame unnamed[] = {
	    {.function = "mmap", .module = "libc.so.6"},
	    {.function = "PyByteArray_Resize", PYTHON},
	    {.function = "type_call", PYTHON},
	    {.function = "call", PYTHON},
	    {.function = "_PyEval_EvalFrameDefault.cold", PYTHON},
	    {.function = "Py_RunMain", PYTHON},
	};
	static const struct mmt_frame stripped[] = {
	    {.function = "mmap", .module = "libc.so.6"},
	    {.module_offset = 0x10, RUBY},
	    {.function = "rb_str_times", RUBY},
	    {.module_offset = 0x20, RUBY},
	    {.function = "rb_yield", RUBY},
	    {.module_offset = 0x30, RUBY},
	};
	char *text = render_frames(python, sizeof(python) / sizeof(*python), 13);

	ASSERT_HAS(text, shown);
	ASSERT_HAS(text, "frames of the interpreter between two functions are omitted; --stacks all shows them.\n");
	free(text);
	text = render_frames(python, sizeof(python) / sizeof(*python), 9);
	ASSERT_HAS(text, "      _PyEval_EvalFrameDefault   python3.12\n      ... 5 more frames\n");
	free(text);
	text = render_frames(python, sizeof(python) / sizeof(*python), 0);
	ASSERT_HAS(text, "py_trampoline_evaluator");
	ASSERT_ABSENT(text, "of the interpreter");
	free(text);
	text = render_frames(unnamed, sizeof(unnamed) / sizeof(*unnamed), 12);
	ASSERT_HAS(text, "      call                 python3.12\n      ... 2 interpreter frames\n");
	ASSERT_ABSENT(text, "between two functions");
	free(text);
	text = render_frames(stripped, sizeof(stripped) / sizeof(*stripped), 12);
	ASSERT_HAS(text, "      rb_str_times          libruby-3.1.so\n      ... 3 interpreter frames\n");
	free(text);
}
END_TEST

START_TEST(unnamed_frames_are_counted_by_kind)
{
	struct mmt_completeness completeness = {.complete_stacks = 1, .frames = 1408, .frames_without_name = 36};
	char *text = render_stacks(&completeness);

	ASSERT_HAS(text, "complete; 36 of 1,408 frames without a name\n");
	free(text);
	completeness.runtime_frames_without_name = 12;
	text = render_stacks(&completeness);
	ASSERT_HAS(text, "complete; 36 of 1,408 frames without a name (12 in runtime libraries)\n");
	free(text);
	completeness.jit_frames_without_name = 20;
	text = render_stacks(&completeness);
	ASSERT_HAS(text, "complete; 36 of 1,408 frames without a name (20 in JIT code, 12 in runtime libraries)\n");
	free(text);
}
END_TEST

START_TEST(stacks_are_complete_doubtful_or_truncated)
{
	char *text = render_stacks(&(struct mmt_completeness){.complete_stacks = 1});

	ASSERT_HAS(text, "\n  1 call stack, complete\n");
	free(text);
	text = render_stacks(&(struct mmt_completeness){
	    .complete_stacks = 7, .stacks_by_end = {[MMT_STACK_END_ENTRY] = 4, [MMT_STACK_END_COROUTINE] = 3}});
	ASSERT_HAS(text, "\n  all 7 call stacks complete\n");
	free(text);
	text = render_stacks(&(struct mmt_completeness){.doubtful_stacks = 1});
	ASSERT_HAS(text, "\n  0 of 1 call stack complete; 1 complete with doubtful frames\n");
	free(text);
	text = render_stacks(&(struct mmt_completeness){
	    .complete_stacks = 1000,
	    .doubtful_stacks = 20,
	    .truncated_stacks = 5,
	    .stacks_by_end = {
		[MMT_STACK_END_ENTRY] = 1020, [MMT_STACK_END_DUMP_EXHAUSTED] = 3, [MMT_STACK_END_CALLCHAIN] = 2}});
	ASSERT_HAS(text,
		   "\n  1,000 of 1,025 call stacks complete; 20 complete with doubtful frames; 5 truncated (3: stack "
		   "dump exhausted; 2: end of the frame-pointer chain)\n");
	free(text);
}
END_TEST

START_TEST(discarded_parts)
{
	struct mmt_report report = sample_report();
	struct mmt_row rows[2] = {sample_rows[0], sample_rows[1]};
	char *text = render(&report, &(struct mmt_text_options){0});

	ASSERT_ABSENT(text, "KiB unmapped");
	ASSERT_ABSENT(text, "in processes that ended");
	free(text);
	report.rows = rows;
	rows[1].original_bytes = 40960;
	report.ended_bytes = 157286400;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "2, 4.00 KiB to 8.00 KiB   28.00 KiB of 40.00 KiB unmapped   1 of 3 freed");
	ASSERT_HAS(text, "\nin processes that ended     150.0 MiB\n");
	free(text);
}
END_TEST

static char *render_end(enum mmt_stack_end end, uint64_t lost_stack_dumps, uint32_t stack_dump_bytes)
{
	struct mmt_report report = sample_report();
	struct mmt_row row = sample_rows[1];

	row.stack_end = end;
	report.rows = &row;
	report.row_count = 1;
	report.completeness.lost_stack_dumps = lost_stack_dumps;
	report.completeness.stacks_by_end[end] = 3;
	report.stack_dump_bytes = stack_dump_bytes;
	report.stacks_recorded = stack_dump_bytes > 0;
	return render(&report, &(struct mmt_text_options){0});
}

static const struct {
	enum mmt_stack_end end;
	uint64_t lost_stack_dumps;
	const char *has, *absent;
	uint32_t stack_dump_bytes;
} advice[] = {
    {MMT_STACK_END_DUMP_EXHAUSTED, 0, "dwarf,65280", "unwind tables", 0},
    {MMT_STACK_END_DUMP_EXHAUSTED, 2, "dwarf,65280", "unwind tables", 0},
    {MMT_STACK_END_DUMP_EXHAUSTED, 0, "dwarf,65280", "frame-pointer", 8192},
    {MMT_STACK_END_DUMP_EXHAUSTED, 0, "-fno-omit-frame-pointer", "dwarf", 65280},
    {MMT_STACK_END_NOT_RECORDED, 0, "no stack recorded", "record with", 8192},
    {MMT_STACK_END_CALLCHAIN, 0, "--call-graph dwarf,65280.", "ring-size", 8192},
    {MMT_STACK_END_CALLCHAIN, 0, "-fno-omit-frame-pointer", "record with", 65280},
    {MMT_STACK_END_DUMP_EXHAUSTED, 3, "larger --ring-size", "dwarf", 0},
    {MMT_STACK_END_NOT_RECORDED, 0, "record with a call graph", "dwarf", 0},
    {MMT_STACK_END_NOT_RECORDED, 3, "larger --ring-size", "call graph", 0},
    {MMT_STACK_END_CALLCHAIN, 0, "--call-graph dwarf.", "ring-size", 0},
    {MMT_STACK_END_CALLCHAIN, 3, "larger --ring-size", "--call-graph", 0},
    {MMT_STACK_END_NO_UNWIND_DATA, 0, "without unwind tables, or an ELF file that is missing", "record with", 0},
    {MMT_STACK_END_NO_UNWIND_DATA, 3, "without unwind tables, or an ELF file that is missing", "record with", 0},
    {MMT_STACK_END_OTHER_STACK, 0, "alternate stack", "without unwind tables", 0},
    {MMT_STACK_END_RETURN_PROBE, 0, "(uretprobe) on the last function", "without unwind tables", 0},
    {MMT_STACK_END_COROUTINE, 0, "(start of a coroutine)", "callers beyond here", 0},
    {MMT_STACK_END_DEPTH_LIMIT, 0, "perf_event_max_stack", "dwarf", 0},
    {MMT_STACK_END_ENTRY, 0, "no symbol", "callers missing", 0},
};

START_TEST(advice_depends_on_the_ending)
{
	char *text = render_end(advice[_i].end, advice[_i].lost_stack_dumps, advice[_i].stack_dump_bytes);

	ASSERT_HAS(text, advice[_i].has);
	ASSERT_ABSENT(text, advice[_i].absent);
	free(text);
}
END_TEST

static const struct {
	const char *name, *shown;
} long_names[] = {
    {"f_23456789 (lib.so)", "f_23456789 (lib.so)"},
    {"allocate_from_a_new_pool_of_pools (libpython.so)", "allocate_from_a_new_pool_of_pools"},
    {"allocate_from_a_new_pool_of_the_process (a.so)", "allocate_from_a_new_po..._the_process"},
    {"os::map_memory(char*, unsigned long) (libjvm.so)", "os::map_memory(char*, unsigned long)"},
    {"os::map_memory(char*, unsigned long, bool) const (libjvm.so)", "os::map_memory"},
    {"std::vector<acme::Item, std::allocator<acme::Item> >::push_back(acme::Item&&) (app)",
     "std::vector<...>::push_back"},
    {"acme::storage::engine::cache::Cache::insert(int) (app)", "...rage::engine::cache::Cache::insert"},
    {"acme::(anonymous namespace)::storage::cache::insert() (app)", "...namespace)::storage::cache::insert"},
    {"a_name_space::the_function_of_the_program_that_keeps_it(int)", "the_function_of_the_pr...hat_keeps_it"},
    {"acme::storage::LruCacheWithEviction<std::pair<int, long> >::insert_into_segment(int)",
     "LruCacheWithE...::insert_into_segment"},
    {"github.com/acme/server/internal/cache.(*Cache).Insert", "...ver/internal/cache.(*Cache).Insert"},
    {"JS:*onRequest /srv/application/lib/server/handlers.js:12:7", "JS:*onRequest handlers.js:12:7"},
    {"py::remember_request:/srv/application/cache.py", "py::remember_request:cache.py"},
    {"/srv/application/files/of/the/data/base/with/records", "/srv/application/files...with/records"},
};

/* A name that has no room is cut so that the function can be recognised. */
START_TEST(long_names_keep_the_function)
{
	static const unsigned columns = 37;
	const struct mmt_text_options options = {0};
	char *text;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	struct text out;

	ck_assert_ptr_nonnull(stream);
	text_begin(&out, stream, &options);
	text_put_name(&out, TEXT_PLAIN, long_names[_i].name, columns);
	ck_assert(text_end(&out));
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_str_eq(text, long_names[_i].shown);
	free(text);
}
END_TEST

/* A sentence is complete, however long the names in it are. */
START_TEST(sentences_are_complete)
{
	struct mmt_report report = sample_report();
	char damage[5001];
	char *text;

	memset(damage, 'x', sizeof(damage) - 1);
	damage[sizeof(damage) - 1] = '\0';
	report.completeness.damaged = true;
	report.completeness.damage = damage;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "x; the report uses what could be read\n");
	free(text);
}
END_TEST

START_TEST(selection)
{
	struct mmt_report report = sample_report();
	char *text = render(&report, &(struct mmt_text_options){.limit = 1});

	ASSERT_HAS(text, "MyTest()");
	ASSERT_ABSENT(text, "0xdeadbeef");
	ASSERT_HAS(text, "1 more stack with 12.00 KiB (");
	free(text);
	text = render(&report, &(struct mmt_text_options){.min_bytes = 12289});
	ASSERT_ABSENT(text, "0xdeadbeef");
	free(text);
	text = render(&report, &(struct mmt_text_options){.limit = 1, .sort = MMT_SORT_ALLOCATED});
	ASSERT_HAS(text, "1 more stack that mapped 16.00 KiB (");
	free(text);
	text = render(&report, &(struct mmt_text_options){.limit = 1, .sort = MMT_SORT_FREED});
	ASSERT_HAS(text, "0xdeadbeef");
	ASSERT_ABSENT(text, "1 more stack"); /* it freed nothing */
	free(text);
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_AGE});
	ck_assert(strstr(text, "0xdeadbeef") < strstr(text, "MyTest()"));
	free(text);
}
END_TEST

static const uint32_t first_rows[] = {2}, second_rows[] = {1, 3, 4};

/* One line for each cause: its kind, its growth, its reservation, its rows; names are escaped. */
START_TEST(table_of_causes)
{
	struct mmt_report report = sample_report();
	struct mmt_cause causes[] = {
	    {.name = "evil\x1b (a.so)",
	     .file = "/dev/shm/cache-of-the-server",
	     .memory_class = MMT_CLASS_FILE,
	     .verdict = MMT_ROW_LEAK,
	     .memory_bytes = 1 << 20,
	     .bytes_per_minute = 2 << 20,
	     .rows = first_rows,
	     .row_count = 1},
	    {.pattern = MMT_PATTERN_ARENA,
	     .verdict = MMT_ROW_CACHE,
	     .memory_bytes = 3 << 20,
	     .unfreed_bytes = 64 << 20,
	     .unfreed_count = 8,
	     .reserved_bytes = 61 << 20,
	     .caller = "parse (b.so)",
	     .caller_bytes = 2 << 20,
	     .bytes_per_minute = 3 << 10,
	     .rows = second_rows,
	     .row_count = 3},
	};
	char *text;

	report.causes = causes;
	report.cause_count = 2;
	report.row_count = 0;
	report.growth.rate_from_ns = 3000000000;
	text = render(&report, &(struct mmt_text_options){.width = 150});
	ASSERT_HAS(text, "\n       memory per minute  leaks first      what  mapped by\n"
			 "  2  1.00 MiB  +2.00 MiB  LEAK             file  evil\\x1b (a.so), cache-of-the-server\n"
			 "  1  3.00 MiB          -  cache            anon  malloc arenas, 66 % grew in calls from "
			 "parse (b.so), of 64.00 MiB mapped, 3 stacks\n"
			 "    LEAK: mapped throughout the recording, and hardly any of it freed\n\n");
	free(text);
	/* What grew most comes first, if it was mapped before, too. */
	report.growth.parts = (struct mmt_growth_part[]){
	    {.place = MMT_GROWTH_BEFORE, .memory_class = MMT_CLASS_GC_RESERVE, .runtime = "Java", .bytes = 300 << 20},
	    {.place = MMT_GROWTH_MADE, .bytes = 4 << 20},
	    {.place = MMT_GROWTH_BEFORE, .memory_class = MMT_CLASS_FILE, .name = "small", .bytes = 3 << 20}};
	report.growth.part_count = 3;
	report.growth.parts_known = true;
	text = render(&report, &(struct mmt_text_options){.width = 150});
	ASSERT_HAS(text, "\n       memory per minute  leaks first      what  mapped by\n"
			 "    300.0 MiB             -                gc    the heap of Java, before\n"
			 "  2  1.00 MiB");
	free(text);
	report.growth.parts_known = false;
	/* A name is cut in its middle where it has no room without its module; what does not fit is below, in one line.
	 */
	causes[0].name = "handle_request_of_a_client_that_waits (server)";
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_HAS(text, "  2  1.00 MiB  +2.00 MiB  LEAK             file  handle_request_of_...that_waits\n"
			 "                          cache-of-the-server\n"
			 "  1  3.00 MiB          -  cache            anon  malloc arenas\n"
			 "                          66 % grew in calls from parse (b.so), 3 stacks\n"
			 "    LEAK: mapped throughout the recording, and hardly any of it freed\n\n");
	free(text);
	causes[1].caller = "very::long_name_of_a_function_that_calls_malloc (lib.so)";
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_HAS(text, "\n                          66 % grew in calls from ");
	free(text);
	/* Of a wrapper, the function that calls it. */
	causes[0].name = "xmalloc (server)";
	causes[0].caller = "read_body (server)";
	causes[0].caller_bytes = 3 << 18;
	text = render(&report, &(struct mmt_text_options){.width = 120});
	ASSERT_HAS(text, "  file  75 % read_body (server), through xmalloc (server), cache-of-the-server\n");
	causes[0].caller = NULL;
	free(text);
	causes[1].pattern = MMT_PATTERN_PYTHON;
	report.growth.bytes_per_minute = MMT_RATE_UNKNOWN;
	text = render(&report, &(struct mmt_text_options){.width = 150});
	ASSERT_HAS(text, "  cache            anon  objects of Python, 66 % grew in calls from very::long_name");
	ASSERT_ABSENT(text, "at end, -");
	free(text);
	report.cause_count = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "mapped by");
	free(text);
}
END_TEST

#define TABLE_CAUSES 8

/* Rates that are noise are not shown, and causes without a line of their own share one. */
START_TEST(rates_of_the_table)
{
	const int64_t mib = 1 << 20;
	struct mmt_report report = sample_report();
	struct mmt_cause causes[TABLE_CAUSES];
	char *text;

	for (size_t i = 0; i < TABLE_CAUSES; i++) {
		causes[i] = (struct mmt_cause){.name = "f",
					       .verdict = i ? MMT_ROW_MADE_EARLY : MMT_ROW_LEAK,
					       .memory_bytes = 64 << 20,
					       .bytes_per_minute = i ? (int64_t)i % 4 * mib : 64 * mib,
					       .rows = first_rows,
					       .row_count = 1};
	}
	report.causes = causes;
	report.cause_count = TABLE_CAUSES;
	report.growth.end_ns = 60000000000;
	report.growth.rate_from_ns = 0;
	report.growth.floor_bytes = 4 << 20;
	text = render(&report, &(struct mmt_text_options){.limit = 1});
	ASSERT_HAS(text, " 64.00 MiB +64.00 MiB  LEAK");
	ASSERT_HAS(text, " 64.00 MiB          -  allocated early");
	ASSERT_HAS(text, " 128.0 MiB  +5.00 MiB  in 2 other places\n"
			 "    LEAK: mapped throughout the recording, and hardly any of it freed\n\n");
	free(text);
	/* Without a verdict there is no rate. */
	report.growth.verdict = MMT_VERDICT_TOO_SHORT;
	text = render(&report, &(struct mmt_text_options){.limit = 1});
	ASSERT_HAS(text, "\n       memory             verdict          what  mapped by\n");
	ASSERT_HAS(text, " other places\n");
	ASSERT_ABSENT(text, "+64.00 MiB  LEAK");
	free(text);
}
END_TEST

/* Rows by another key have a table like that of the causes. */
START_TEST(table_of_rows)
{
	struct mmt_report report = sample_report();
	struct mmt_row rows[] = {report.rows[0], report.rows[0]};
	char *text;

	rows[0].name = "load (server)";
	rows[1].name = "parse (server)";
	rows[1].id = 2;
	rows[1].verdict = MMT_ROW_CACHE;
	rows[1].bytes_per_minute = 0;
	report.rows = rows;
	report.row_count = 2;
	report.by = MMT_BY_FUNCTION;
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_HAS(text, "\n       memory per minute  verdict          what  function\n"
			 "  1  1.00 GiB +989.0 MiB  LEAK             anon  load (server)\n"
			 "  2  1.00 GiB          -  cache            anon  parse (server)\n"
			 "    LEAK: mapped throughout the recording, and hardly any of it freed\n\n"
			 " 1   1.00 GiB resident   50.0 %   LEAK   anon");
	ASSERT_HAS(text, "\ncache: mapped early in the recording, and kept\n");
	free(text);
	report.by = MMT_BY_PROCESS;
	report.then_by = MMT_BY_FILE;
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_HAS(text, "what  process / file\n");
	free(text);
}
END_TEST

#define SECOND_NS 1000000000ull

/* However short the recording is, what the processes freed at their end is what the user looks for. */
START_TEST(memory_freed_at_the_end)
{
	struct mmt_process process = {.pid = 7, .ended = true};
	struct mmt_growth_part part = {.place = MMT_GROWTH_MADE, .bytes = 40 << 20};
	struct mmt_row row = {.id = 1, .memory_bytes = 10 << 20};
	struct mmt_report report = {
	    .to_ns = 1000 * SECOND_NS,
	    .rows = &row,
	    .row_count = 1,
	    .peak_ns = 990 * SECOND_NS,
	    .peak_bytes = 50 << 20,
	    .unfreed_bytes = 2 << 20,
	    .processes = &process,
	    .process_count = 1,
	    .growth = {.verdict = MMT_VERDICT_TOO_SHORT, .start_bytes = 2 << 20, .end_bytes = 48 << 20},
	};
	uint64_t since_ns = 0;

	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 48 << 20);
	ck_assert_uint_eq(since_ns, 990 * SECOND_NS);
	report.growth.verdict = MMT_VERDICT_GROWING;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 48 << 20);
	report.growth.verdict = MMT_VERDICT_STEADY;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	report.growth.verdict = MMT_VERDICT_TOO_SHORT;
	report.peak_ns = 900 * SECOND_NS;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	report.peak_ns = 990 * SECOND_NS;
	report.growth.end_bytes = 1 << 20;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	report.growth.peak_bytes = 9 << 20;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	report.growth.peak_bytes = 50 << 20; /* the last reading came after that */
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 48 << 20);
	report.growth.end_bytes = 48 << 20;
	/* What was reserved was more long before, but the last reading of pages has what the rows do not. */
	report.peak_ns = 100 * SECOND_NS;
	report.growth.parts = &part;
	report.growth.part_count = 1;
	report.growth.parts_known = true;
	report.growth.pages_end_ns = 980 * SECOND_NS;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 30 << 20);
	ck_assert_uint_eq(since_ns, 980 * SECOND_NS);
	row.memory_bytes = 40 << 20;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	row.memory_bytes = 10 << 20;
	report.growth.pages_end_ns = 900 * SECOND_NS;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	report.growth.pages_end_ns = 980 * SECOND_NS;
	process.ended = false;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
}
END_TEST

/* The command leaks and ends, and what it had started lives on: only readings show what was given back. */
START_TEST(memory_of_a_command_that_ended_first)
{
	enum mmt_warning code = MMT_WARNING_STILL_RUNNING;
	struct mmt_resident_reading readings[] = {
	    {.resident_bytes = 4 << 20}, {.resident_bytes = 99 << 20}, {.resident_bytes = 2 << 20}};
	struct mmt_process_readings held = {.end_resident_bytes = 97 << 20};
	struct mmt_process processes[] = {{.pid = 7, .ended = true, .readings = &held}, {.pid = 8}};
	struct mmt_report report = {
	    .to_ns = 1000 * SECOND_NS,
	    .processes = processes,
	    .process_count = 2,
	    .judged_readings = readings,
	    .judged_reading_count = 3,
	    .growth = {.verdict = MMT_VERDICT_TOO_SHORT,
		       .start_bytes = 4 << 20,
		       .peak_bytes = 99 << 20,
		       .end_bytes = 2 << 20,
		       .peak_ns = 990 * SECOND_NS},
	    .completeness = {.warning_codes = &code, .warning_count = 1},
	};
	uint64_t since_ns = 0;

	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 97 << 20);
	ck_assert_uint_eq(since_ns, 990 * SECOND_NS);
	/* Comparisons of commands count what ended. */
	report.options.keep_ended = true;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	report.options.keep_ended = false;
	report.growth.peak_ns = 900 * SECOND_NS;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	report.growth.peak_ns = 990 * SECOND_NS;
	report.growth.peak_bytes = readings[1].resident_bytes = 6 << 20;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	/* What runs on has given it back. */
	report.growth.peak_bytes = readings[1].resident_bytes = 99 << 20;
	held.end_resident_bytes = 4 << 20;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
	held.end_resident_bytes = 97 << 20;
	/* A process that the user did not start with mmtrace has given memory back, and lives on. */
	report.completeness.warning_count = 0;
	ck_assert_uint_eq(mmt_report_freed_at_end(&report, &since_ns), 0);
}
END_TEST

/* The same bytes have one headline, whether stacks are causes of it, or rows by function, file and so on are. */
START_TEST(headline_of_rows)
{
	struct mmt_cause cause = {.verdict = MMT_ROW_LEAK, .memory_bytes = 40 << 20};
	struct mmt_row rows[] = {
	    {.id = 1, .name = "cache", .verdict = MMT_ROW_CACHE, .memory_bytes = 50 << 20},
	    {.id = 2, .name = "leak", .verdict = MMT_ROW_LEAK, .memory_bytes = 40 << 20},
	};
	struct mmt_report report = {
	    .growth = {.verdict = MMT_VERDICT_GROWING, .start_bytes = 1 << 20, .end_bytes = 91 << 20},
	    .rows = rows,
	    .row_count = 2,
	};

	ck_assert_str_eq(mmt_report_headline(&report), "LEAK");
	ck_assert_uint_eq(*mmt_report_first_leak(&report).rows, 2);
	report.causes = &cause;
	report.cause_count = 1;
	ck_assert_str_eq(mmt_report_headline(&report), "LEAK");
	report.cause_count = 0;
	/* A small leak beside what grows more. */
	rows[1].memory_bytes = 10 << 20;
	ck_assert_str_eq(mmt_report_headline(&report), "GROWING");
	/* Memory that keeps growing, as a heap does, and a program that shrank, or commands that ended. */
	rows[1].verdict = MMT_ROW_KEEPS_GROWING;
	rows[1].memory_bytes = 40 << 20;
	report.growth.verdict = MMT_VERDICT_TOO_SHORT;
	ck_assert_str_eq(mmt_report_headline(&report), "GROWING");
	report.growth.end_bytes = 1 << 19;
	ck_assert_str_eq(mmt_report_headline(&report), "UNDECIDED");
	rows[1].memory_bytes = 0;
	ck_assert(!mmt_report_has_leak(&report));
}
END_TEST

/* A command that ended at once and mapped nothing of interest. */
START_TEST(nothing_to_see)
{
	struct mmt_report report = sample_report();
	struct mmt_cause causes[] = {
	    {.pattern = MMT_PATTERN_CODE, .unfreed_bytes = 40 << 20, .rows = first_rows, .row_count = 1},
	    {.pattern = MMT_PATTERN_HEAP, .memory_bytes = 132 << 10, .rows = second_rows, .row_count = 3},
	    {.name = "f", .memory_bytes = 64 << 10, .rows = second_rows, .row_count = 3}};
	struct mmt_growth growth;
	char *text;

	causes[0].memory_bytes = causes[0].unfreed_bytes;
	report.causes = causes;
	report.cause_count = 3;
	report.growth.verdict = MMT_VERDICT_UNKNOWN;
	growth = report.growth;
	report.end_ns = report.start_ns + 17000000;
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_HAS(text, "\nNOTHING TO SEE: in 17 ms, only what every program loads was mapped.\n");
	ASSERT_ABSENT(text, "mapped by");
	free(text);
	/* Then it does not matter which pages stayed, or when there were more. */
	report.growth.faults_recorded = true;
	report.growth.start_bytes = report.growth.end_bytes + (800 << 10);
	report.growth.peak_bytes = report.growth.end_bytes + (4 << 20);
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_HAS(text, "\nNOTHING TO SEE: in 17 ms, ");
	ASSERT_ABSENT(text, "Page faults were recorded");
	ASSERT_ABSENT(text, "before it fell");
	free(text);
	report.growth = growth;
	causes[2].memory_bytes++;
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_HAS(text, "\nNO VERDICT: 17 ms is too short to judge anything.\n");
	ASSERT_HAS(text, "mapped by");
	free(text);
	causes[2].memory_bytes--;
	report.growth.peak_bytes = report.growth.end_bytes + (9u << 20);
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_ABSENT(text, "NOTHING TO SEE");
	free(text);
	report.growth.peak_bytes = report.growth.end_bytes;
	causes[2].verdict = MMT_ROW_LEAK;
	text = render(&report, &(struct mmt_text_options){.width = 80});
	ASSERT_ABSENT(text, "NOTHING TO SEE");
	free(text);
}
END_TEST

/* The second line does not contradict the table. */
START_TEST(leaks_without_growth)
{
	static const struct {
		enum mmt_verdict verdict;
		const char *line;
	} lines[] = {
	    {MMT_VERDICT_TOO_SHORT, "\nLEAK: RSS 0 B so far, judged by the mappings below.\n"},
	    {MMT_VERDICT_STEADY, "\nSTEADY: RSS has no steady trend: 0 B from start to end. But the "
				 "first row, 4.00 MiB, is a LEAK.\n"},
	    {MMT_VERDICT_SHRINKING, "\nSHRINKING: RSS 0 B. But the first row, 4.00 MiB, is a LEAK.\n"},
	    {MMT_VERDICT_UNKNOWN, "\nNO VERDICT: RSS over time is not in the recording: only mappings are judged.\n"},
	};
	struct mmt_report report = sample_report();
	struct mmt_cause cause = {
	    .name = "f", .memory_bytes = 4 << 20, .verdict = MMT_ROW_LEAK, .rows = first_rows, .row_count = 1};
	char *text;

	report.growth.advised_ns = 10000000000;
	report.growth.verdict = MMT_VERDICT_TOO_SHORT;
	report.processes = (const struct mmt_process[]){{.pid = 3074, .name = "p", .ended = true}};
	report.process_count = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\nUNDECIDED: RSS 0 B so far, without a clear trend: it ended after 62.1 s.\n");
	free(text);
	report = sample_report();
	report.growth.advised_ns = 10000000000;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		report.causes = &cause;
		report.cause_count = 1;
		report.growth.verdict = lines[i].verdict;
		text = render(&report, &(struct mmt_text_options){0});
		ASSERT_HAS(text, lines[i].line);
		free(text);
		report.cause_count = 0;
		text = render(&report, &(struct mmt_text_options){0});
		ASSERT_ABSENT(text, "below");
		free(text);
	}
	/* A small leak is not what makes a process grow. Its rate is below zero where processes end. */
	report.cause_count = 1;
	cause.bytes_per_minute = -(3 << 20);
	report.growth.verdict = MMT_VERDICT_TOO_SHORT;
	report.growth.end_bytes = report.growth.start_bytes + (1 << 30);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "\nUNDECIDED: RSS +1.00 GiB so far, without a clear trend: record for at least 10.0 s. But the "
		   "first row, 4.00 MiB, is a LEAK.\n");
	ASSERT_ABSENT(text, "-3.00 MiB");
	free(text);
}
END_TEST

/* Near vm.max_map_count, or requested. */
START_TEST(counts_of_mappings)
{
	struct mmt_report report = sample_report();
	struct mmt_process process = report.processes[0];
	char *text;

	process.mapping_count = 32764;
	report.processes = report.most_mappings = &process;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "max_map_count");
	free(text);
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_MAPPINGS});
	ASSERT_HAS(text, "mappings at the end            32,764 of 65,530 (vm.max_map_count)\n");
	ASSERT_HAS(text, "100.0 %   256 mappings   ");
	free(text);
	process.mapping_count = 32765;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "mappings at the end            32,765 of 65,530 (vm.max_map_count)\n");
	free(text);
}
END_TEST

/* Calls that were refused memory stand above the causes, with the limit that they met; other failures do not. */
START_TEST(refused_calls_come_first)
{
	static const struct mmt_frame frame = {.function = "grow_pool", .module = "server"};
	static const struct mmt_frame *const growing[] = {&frame};
	enum { MEBIBYTE = 1 << 20 };
	static const struct {
		struct mmt_limit limit;
		const char *words;
	} cases[] = {
	    {{MMT_LIMIT_MAPPINGS, 65530, 65529}, "The limit of mappings is met: 65,529 of 65,530 (vm.max_map_count). "},
	    {{MMT_LIMIT_ADDRESS_SPACE, 64 * MEBIBYTE, 63 * MEBIBYTE},
	     "The limit of address space is met: 63.00 MiB of 64.00 MiB mapped (RLIMIT_AS, `ulimit -v`).\n"},
	    {{MMT_LIMIT_DATA, 64 * MEBIBYTE, 63 * MEBIBYTE}, "The limit of data is met: 63.00 MiB of 64.00 MiB "},
	    {{MMT_LIMIT_LOCKED, 8 * MEBIBYTE, 0},
	     "The limit of locked memory is met: 0 B of 8.00 MiB locked (RLIMIT_MEMLOCK, "},
	    {{MMT_LIMIT_COMMIT, 64 * MEBIBYTE, 63 * MEBIBYTE},
	     "This system commits no more memory: 63.00 MiB of 64.00 MiB "},
	    {{MMT_LIMIT_MEMORY, 64 * MEBIBYTE, 0}, "The call asked for more than RAM and swap together: 64.00 MiB, "},
	    {{MMT_LIMIT_HUGE_PAGES, 64 * MEBIBYTE, 63 * MEBIBYTE},
	     "The pool of huge pages is too small: 63.00 MiB of 64.00 MiB in use "},
	    {{MMT_LIMIT_NONE, 0, 0}, "Compare the limits in /proc/PID/limits, "},
	};
	struct mmt_failure failures[] = {
	    {.call = MMT_COUNT_MMAP, .error = EEXIST, .count = 90},
	    {.call = MMT_COUNT_MPROTECT,
	     .error = ENOMEM,
	     .count = 60,
	     .asked_bytes = 60 << 12,
	     .first_ns = 3000000000,
	     .frames = growing,
	     .frame_count = 1},
	};
	struct mmt_report report = sample_report();
	char *text;

	report.failures = failures;
	report.failure_count = 2;
	report.start_ns = 1000000000;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "FAILED:");
	free(text);
	failures[1].refused = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		failures[1].limit = cases[i].limit;
		text = render(&report, &(struct mmt_text_options){0});
		ASSERT_HAS(text,
			   "\nFAILED: 60 x mprotect ENOMEM for 4.00 KiB on average, first 2.0 s after the start, in "
			   "grow_pool\n");
		ASSERT_HAS(text, cases[i].words);
		ck_assert(strstr(text, "FAILED:") < strstr(text, "checked against"));
		free(text);
	}
	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_PLATEAU, .end_bytes = 2 << 20};
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text,
		   " after the start: the kernel refused it more memory, so it may be a leak that can get no further.");
	free(text);
	failures[1].refused = false;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text, " after the start: a warm-up, a cache or a single allocation rather than a leak.");
	free(text);
}
END_TEST

/* A slow leak on a large base is seen; a change that is too small is not. */
START_TEST(trend_of_survivors)
{
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	char *text;

	for (unsigned point = 0; point < MMT_TREND_POINTS; point++)
		row.survivor_trend[point] = 1000000000 + (uint64_t)point * 1000000;
	report.rows = &row;
	report.row_count = 1;
	text = render(&report, &(struct mmt_text_options){.ascii = true});
	ASSERT_HAS(text, "   1223344556677889\n");
	free(text);
	for (unsigned point = 0; point < MMT_TREND_POINTS; point++)
		row.survivor_trend[point] = point < 16 ? 0 : 1000000000 + (uint64_t)point * 10000;
	text = render(&report, &(struct mmt_text_options){.ascii = true});
	ASSERT_HAS(text, "   0000000099999999\n");
	free(text);
}
END_TEST

/* Memory that an allocator keeps by design is not called a leak; verdicts of short recordings appear in the first
 * lines only. */
START_TEST(verdicts_of_rows)
{
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	struct mmt_cause cause = {
	    .verdict = MMT_ROW_LEAK, .memory_bytes = 3ull << 30, .rows = (const uint32_t[]){1, 2, 3}, .row_count = 3};
	char *text;

	report.rows = &row;
	report.row_count = 1;
	report.causes = &cause;
	report.cause_count = 1;
	row.cause = 1;
	row.verdict = MMT_ROW_PART_OF_LEAK;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "   part of a LEAK of 3.00 GiB in 3 stacks   ");
	free(text);
	report.cause_count = row.cause = 0;
	row.verdict = MMT_ROW_KEEPS_GROWING;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "   GROWING +989.0 MiB per minute   ");
	ASSERT_HAS(text, "\nGROWING: a leak or not; stacks show who mapped it, not who keeps or fills it\n");
	ASSERT_ABSENT(text, "LEAK");
	free(text);
	row.verdict = MMT_ROW_CACHE;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "   cache   ");
	ASSERT_ABSENT(text, "989.0 MiB");
	free(text);
	text = render(&report, &(struct mmt_text_options){.colour = true});
	ASSERT_HAS(text, "\x1b[32mcache");
	free(text);
	/* One large mapping that is touched bit by bit can be what grows. */
	row.verdict = MMT_ROW_MADE_EARLY;
	report.growth.verdict = MMT_VERDICT_GROWING;
	text = render(&report, &(struct mmt_text_options){.colour = true});
	ASSERT_HAS(text, "   allocated early   ");
	ASSERT_ABSENT(text, "\x1b[32mallocated early");
	free(text);
	report.growth.verdict = MMT_VERDICT_STEADY;
	row.verdict = MMT_ROW_UNDECIDED;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "   undecided   ");
	free(text);
	row.advised_ns = 90 * 1000000000ull;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "   undecided: record for 90.0 s   ");
	free(text);
	/* The verdict advises a time already. */
	report.growth.verdict = MMT_VERDICT_TOO_SHORT;
	report.growth.advised_ns = 75 * 1000000000ull;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "record for at least 75.0 s");
	ASSERT_HAS(text, "   undecided   ");
	free(text);
	row.verdict = MMT_ROW_TOO_SHORT;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "undecided");
	free(text);
}
END_TEST

/* What grew in a control group, although no process did. */
START_TEST(line_of_a_control_group)
{
	static const struct mmt_control_group row = {
	    .selected = true,
	    .start = {40 << 20, 10 << 20, 9 << 20, 1 << 20, 2 << 20, MMT_UNKNOWN},
	    .end = {124 << 20, 10 << 20, 92 << 20, 81 << 20, 3 << 20, 512 << 20, [MMT_GROUP_HIGH] = MMT_UNKNOWN}};
	struct mmt_report report = sample_report();
	struct mmt_control_group other = row;
	char *text;

	report.control_group = report.limiting_group = &row;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "\n  control group +84.00 MiB (now 124.0 MiB of 512.0 MiB): +80.00 MiB files on tmpfs or shared "
		   "memory, processes ");
	ASSERT_ABSENT(text, "page cache");
	free(text);
	/* That of a process that did not grow: only if memory grew that is in no process. */
	other.selected = false;
	report.control_group = report.limiting_group = &other;
	report.growth.end_bytes = report.growth.start_bytes;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n  the whole control group +84.00 MiB (now 124.0 MiB of 512.0 MiB): +80.00 MiB files on "
			 "tmpfs or shared memory, processes ");
	free(text);
	report.growth.end_bytes += 100 << 20;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "control group");
	free(text);
	report.growth.end_bytes = report.growth.start_bytes;
	/* Most of the group is other processes. */
	other.end[MMT_GROUP_ANON] = 3 * report.growth.end_bytes;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "control group");
	free(text);
	other.end[MMT_GROUP_ANON] = row.end[MMT_GROUP_ANON];
	other.end[MMT_GROUP_SHMEM] = 2 << 20;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "control group");
	free(text);
	report.control_group = NULL;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "control group");
	free(text);
}
END_TEST

/* The report begins with the OOM kill; the figures of the victim are older than its end. */
START_TEST(report_of_a_victim)
{
	struct mmt_report report = sample_report();
	const struct mmt_process_readings readings = {.end_ns = report.start_ns + 1000000000};
	struct mmt_process process = report.processes[0];
	struct mmt_oom_kill marks[] = {{.time_ns = report.start_ns + 1250000000, .pid = process.pid},
				   {.time_ns = report.start_ns + 1300000000, .pid = 1, .name = "other"}};
	char *text;

	process.readings = &readings;
	report.processes = &process;
	report.process_count = 1;
	report.oom_kills = marks;
	report.oom_kill_count = 2;
	text = render(&report, &(struct mmt_text_options){0});
	ck_assert_ptr_eq(strstr(text, "OOM-KILLED: the kernel's OOM killer ended "), text);
	ASSERT_HAS(text,
		   "(pid 3074) 1.2 s after the start; its figures are those of its last reading, 250 ms before\n");
	ASSERT_HAS(text, "ended other (pid 1), which is not in this report, 1.3 s after the start\n");
	free(text);
}
END_TEST

/* A group of which only a target is recorded has a line if its limit is near, or the kernel acted because of it. */
START_TEST(pressure_in_a_control_group)
{
	struct mmt_control_group row = {
	    .path = "/sys/fs/cgroup/a",
	    .end_ns = 10000000000,
	    .start = {40 << 20, 10 << 20, 9 << 20, 80 << 20, 2 << 20, 512 << 20, 4, 1000},
	    .end = {124 << 20, 10 << 20, 92 << 20, 81 << 20, 3 << 20, 512 << 20, 4, 1000, MMT_UNKNOWN}};
	struct mmt_report report = sample_report();
	char path[400] = "", *text;

	report.control_group = report.limiting_group = &row;
	report.growth.verdict = MMT_VERDICT_GROWING;
	report.growth.bytes_per_minute = 1 << 20;
	ck_assert_uint_eq(mmt_control_group_used(&row), 94 << 20);
	ck_assert_uint_eq(mmt_control_group_full_ns(&report), 418 * 60000000000);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "control group");
	free(text);
	report.growth.bytes_per_minute = 209 << 20;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "\n  control group /sys/fs/cgroup/a: 94.00 MiB of its limit of 512.0 MiB are in use besides page "
		   "cache, and this growth fills it in 2 min 0 s\n");
	free(text);
	row.end[MMT_GROUP_LIMIT] = 1ULL << 60;
	report.growth.bytes_per_minute = 1;
	ck_assert_uint_eq(mmt_control_group_full_ns(&report), MMT_UNKNOWN);
	row.end[MMT_GROUP_LIMIT] = 512 << 20;
	report.growth.verdict = MMT_VERDICT_STEADY;
	ck_assert_uint_eq(mmt_control_group_full_ns(&report), MMT_UNKNOWN);
	row.end[MMT_GROUP_OOM_KILLS] = 6;
	row.end[MMT_GROUP_STALLED] = 1000 + 150000;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(
	    text,
	    "\n  control group /sys/fs/cgroup/a: the kernel's OOM killer ended 2 of its processes; threads waited "
	    "150 ms for memory\n");
	free(text);
	row.end[MMT_GROUP_ANON] = 400 << 20;
	row.end[MMT_GROUP_OOM_KILLS] = MMT_UNKNOWN;
	row.end[MMT_GROUP_STALLED] = 1000 + 90000;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(
	    text,
	    "\n  control group /sys/fs/cgroup/a: 484.0 MiB of its limit of 512.0 MiB are in use besides page cache\n");
	free(text);
	row.end[MMT_GROUP_HIGH] = 500 << 20;
	row.end[MMT_GROUP_THROTTLED] = 3;
	ck_assert_uint_eq(mmt_control_group_room(&row), 376 << 20);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "a: 484.0 MiB of its memory.high of 500.0 MiB are in use besides page cache; the kernel slowed "
		   "it down 3 times at its memory.high\n");
	free(text);
	memset(path, 'a', sizeof(path) - 1);
	row.path = path;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "aaaaaa: 484.0 MiB of its memory.high of 500.0 MiB are in use");
	free(text);
}
END_TEST

/* Rows without memory are last, under their own heading. */
START_TEST(sorted_by_memory)
{
	struct mmt_report report = sample_report();
	struct mmt_row rows[3] = {report.rows[0], report.rows[0], report.rows[0]};
	const char *heading;
	char *text;

	for (uint32_t i = 0; i < 3; i++) {
		rows[i].id = i + 1;
		rows[i].memory_bytes = i ? 0 : 4096;
	}
	report.rows = rows;
	report.row_count = 3;
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_MEMORY});
	heading = strstr(text, "\n\naddress space without memory (reserved, or never touched)\n\n");
	ck_assert_msg(heading != NULL, "%s", text);
	ck_assert(strstr(text, "\n 1  ") < heading);
	ck_assert(strstr(text, "\n 2  ") > heading);
	ck_assert_ptr_null(strstr(heading + 3, "address space without"));
	free(text);
	/* A row has memory that is swapped out, if it is known which pages are; otherwise any row may have. */
	report.growth.end_swap_bytes = 1 << 20;
	rows[0].resident_bytes = 1024;
	rows[0].swapped_bytes = 3072;
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_MEMORY});
	ASSERT_HAS(text, "\naddress space without memory (reserved, never touched, or swapped out)\n");
	ASSERT_HAS(text, "\n 1   4.00 KiB resident or swapped out");
	ASSERT_HAS(text, "   swapped out 3.00 KiB");
	free(text);
	report.swapped_known = true;
	rows[0].swapped_bytes = 4096;
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_MEMORY});
	ASSERT_HAS(text, "\naddress space without memory (reserved, or never touched)\n");
	ASSERT_HAS(text, "\n 1   4.00 KiB swapped out");
	free(text);
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_MEMORY, .limit = 1});
	ASSERT_HAS(text, "2 more stacks with 2.00 GiB of address space");
	ASSERT_ABSENT(text, "address space without memory");
	free(text);
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_UNFREED});
	ASSERT_ABSENT(text, "address space without memory");
	free(text);
}
END_TEST

/* Memory that was mapped before counts as well. */
START_TEST(sorted_by_resident_and_committed)
{
	static const enum mmt_sort keys[] = {MMT_SORT_RESIDENT, MMT_SORT_COMMITTED};
	struct mmt_report report = sample_report();
	struct mmt_row rows[2] = {sample_rows[0], sample_rows[0]};

	rows[0].resident_bytes = rows[0].committed_bytes = rows[0].memory_bytes = 8 << 20;
	rows[1].id = 2;
	rows[1].resident_bytes = rows[1].committed_bytes = 4096;
	rows[1].resident_before_bytes = rows[1].committed_before_bytes = 16 << 20;
	rows[1].memory_bytes = (16 << 20) + 4096;
	report.rows = rows;
	for (unsigned i = 0; i < 2; i++) {
		char *text = render(&report, &(struct mmt_text_options){.limit = 1, .sort = keys[i]});

		ASSERT_HAS(text, "\n 2  16.00 MiB resident ");
		ASSERT_ABSENT(text, "\n 1   8.00 MiB resident ");
		free(text);
	}
}
END_TEST

START_TEST(nothing_unfreed)
{
	struct mmt_report report = sample_report();
	char *text;

	report.row_count = 0;
	report.unfreed_bytes = report.committed_bytes = report.reserved_bytes = 0;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "no leak of mappings, and RSS did not grow.\n");
	ASSERT_ABSENT(text, "not certain");
	free(text);
	/* Swapped-out memory has not been released, and may return to RSS. */
	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_STEADY,
					    .start_bytes = 10 << 20,
					    .end_bytes = 60 << 20,
					    .start_swap_bytes = 50 << 20,
					    .floor_bytes = 1 << 20};
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "no leak of mappings, and RSS and swap did not grow.\n");
	ASSERT_ABSENT(text, "not certain");
	free(text);
	/* Whatever the stacks are: they do not change what is mapped. */
	report.completeness = (struct mmt_completeness){.doubtful_stacks = 3, .truncated_stacks = 3};
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "no leak of mappings, and RSS and swap did not grow.\n");
	free(text);
	/* Nothing is known of a process that did nothing, or lets others work. */
	memset(report.events, 0, sizeof(report.events));
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "no memory call was recorded: the process needed none, or other processes do its work.\n");
	ASSERT_ABSENT(text, "no leak");
	free(text);
	/* A process that touches older mappings is not idle. */
	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_GROWING,
					    .start_bytes = 10 << 20,
					    .end_bytes = 60 << 20,
					    .floor_bytes = 1 << 20,
					    .parts_known = true};
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "; what grew was mapped before, see above; ");
	ASSERT_HAS(text, "no memory call was recorded: touching memory that is already mapped needs none.\n");
	ASSERT_ABSENT(text, "idle");
	free(text);
}
END_TEST

/* No sentence points at rows that a limit or an age leaves out, and what is too recent is still mapped. */
START_TEST(rows_that_do_not_follow)
{
	static const struct mmt_growth_part part = {.place = MMT_GROWTH_MADE, .bytes = 50 << 20};
	struct mmt_report report = sample_report();
	char *text;

	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_GROWING,
					    .end_bytes = 50 << 20,
					    .floor_bytes = 1 << 20,
					    .parts_known = true,
					    .parts = &part,
					    .part_count = 1};
	text = render(&report, &(struct mmt_text_options){.limit = 1, .min_bytes = 1ull << 40});
	ASSERT_HAS(text, "+50.00 MiB  in mappings made in this recording\n");
	ASSERT_ABSENT(text, " below");
	free(text);
	report.row_count = 0;
	report.unfreed_bytes = report.committed_bytes = report.reserved_bytes = 0;
	report.too_recent_bytes = 50 << 20;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "Nothing selected is still mapped, as far as the recording can tell; what grew is in no row "
			 "of this report");
	free(text);
}
END_TEST

/* A process that grows in memory that it had before is never called free of leaks. */
static const struct {
	struct mmt_growth growth;
	uint64_t committed_before_bytes;
	const char *verdict, *doubt;
} growths[] = {
    {{.verdict = MMT_VERDICT_GROWING,
      .start_bytes = 50 << 20,
      .end_bytes = 94 << 20,
      .floor_bytes = 262144,
      .end_ns = 30000000000,
      .bytes_per_minute = 640 << 20},
     0,
     "\nGROWING: RSS +44.00 MiB, still rising at the end: a leak, or still filling up.\n",
     "; what grew was mapped before, see above.\n"},
    {{.verdict = MMT_VERDICT_GROWING,
      .start_bytes = 50 << 20,
      .end_bytes = 50 << 20,
      .floor_bytes = 262144,
      .bytes_per_minute = 3 << 20},
     0,
     "\nGROWING: RSS 0 B, still",
     "; what grew was mapped before, see above.\n"},
    /* It grew, but not at the end. */
    {{.verdict = MMT_VERDICT_GROWING,
      .start_bytes = 50 << 20,
      .end_bytes = 94 << 20,
      .end_ns = 61000000000,
      .settled_ns = 56000000000,
      .floor_bytes = 262144,
      .rate_from_ns = 31000000000,
      .bytes_per_minute = 40 << 20},
     0,
     "\nGROWING: RSS +44.00 MiB, but level for the last 5.0 s.\n",
     "; what grew was mapped before, see above.\n"},
    /* At the limit of its control group, all growth of a process is swapped out. */
    {{.verdict = MMT_VERDICT_GROWING,
      .start_bytes = 50 << 20,
      .end_bytes = 50 << 20,
      .end_swap_bytes = 500 << 20,
      .floor_bytes = 262144,
      .parts_known = true,
      .bytes_per_minute = 3 << 20},
     0,
     "\nGROWING: RSS and swap +500.0 MiB, still",
     "; what grew was mapped before, see above.\n"},
    {{.verdict = MMT_VERDICT_STEADY,
      .start_bytes = 50 << 20,
      .end_bytes = 50 << 20,
      .end_swap_bytes = 500 << 20,
      .floor_bytes = 262144},
     0,
     "\nSTEADY: RSS and swap have no steady trend: +500.0 MiB",
     "; what grew was mapped before, see above.\n"},
    {{.verdict = MMT_VERDICT_GROWING,
      .start_bytes = 50 << 20,
      .end_bytes = 40 << 20,
      .end_swap_bytes = 10 << 20,
      .floor_bytes = 262144,
      .bytes_per_minute = 3 << 20},
     0,
     "\nGROWING: RSS and swap 0 B, still",
     "; what grew was mapped before, see above.\n"},
    {{.verdict = MMT_VERDICT_TOO_SHORT, .end_swap_bytes = 4096, .floor_bytes = 262144, .advised_ns = 10000000000},
     0,
     "\nUNDECIDED: RSS and swap +4.00 KiB so far",
     "; memory mapped before may grow, see above.\n"},
    {{.verdict = MMT_VERDICT_PLATEAU,
      .start_bytes = 50 << 20,
      .end_bytes = 94 << 20,
      .end_ns = 61000000000,
      .settled_ns = 21000000000,
      .floor_bytes = 262144},
     0,
     "\nPLATEAU: RSS +44.00 MiB, but level for the last 40.0 s, since 20.0 s after the start",
     "; what grew was mapped before, see above.\n"},
    {{.verdict = MMT_VERDICT_TOO_SHORT, .advised_ns = 10000000000},
     0,
     "\nUNDECIDED: RSS 0 B so far, without a clear trend: record for at least 10.0 s.\n",
     "; memory mapped before may grow, see above.\n"},
    {{.verdict = MMT_VERDICT_TOO_SHORT},
     0,
     "\nUNDECIDED: RSS 0 B so far, but it was read too rarely to tell.\n",
     "; memory mapped before may grow, see above.\n"},
    {{.verdict = MMT_VERDICT_UNKNOWN}, 0, "\nNO VERDICT: ", "; RSS over time was not recorded"},
    {{.verdict = MMT_VERDICT_STEADY, .floor_bytes = 262144},
     1 << 20,
     "\nSTEADY: ",
     "; 1.00 MiB of memory mapped before were made accessible.\n"},
    {{.verdict = MMT_VERDICT_SHRINKING,
      .start_bytes = 94 << 20,
      .end_bytes = 50 << 20,
      .end_ns = 61000000000,
      .settled_ns = 21000000000,
      .floor_bytes = 262144},
     1 << 20,
     "\nSHRINKING: RSS -44.00 MiB, but level for the last 40.0 s.\n",
     "; 1.00 MiB of memory mapped before were made accessible.\n"},
    {{.verdict = MMT_VERDICT_SHRINKING, .start_bytes = 94 << 20, .end_bytes = 50 << 20, .floor_bytes = 262144},
     1 << 20,
     "\nSHRINKING: RSS -44.00 MiB.\n",
     "; 1.00 MiB of memory mapped before were made accessible.\n"},
    {{.verdict = MMT_VERDICT_GROWING,
      .start_bytes = 50 << 20,
      .end_bytes = 49 << 20,
      .start_swap_bytes = 10 << 20,
      .end_swap_bytes = 55 << 20,
      .floor_bytes = 262144,
      .bytes_per_minute = 640 << 20},
     0,
     "   swap 10.00 MiB at start, 55.00 MiB at end   ",
     "\nGROWING: RSS and swap +44.00 MiB, still rising at the end: a leak, or still filling up.\n"},
    {{.verdict = MMT_VERDICT_STEADY,
      .start_bytes = 50 << 20,
      .end_bytes = 40 << 20,
      .end_swap_bytes = 10 << 20,
      .floor_bytes = 262144},
     1 << 20,
     "   swap 0 B at start, 10.00 MiB at end   ",
     "\nSTEADY: RSS and swap have no steady trend: 0 B from start to end."},
};

/* The words say when RSS was read, and of which time nothing is known. */
START_TEST(times_of_readings)
{
	struct mmt_report report = sample_report();
	char *text;

	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_GROWING,
					    .start_ns = report.start_ns + 4000000000,
					    .start_bytes = 90 << 20,
					    .end_bytes = 100 << 20,
					    .end_swap_bytes = 1 << 20,
					    .floor_bytes = 262144};
	report.resident_bytes = 20 << 20;
	report.before_bytes = 0;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text, "   RSS 90.00 MiB after 4.0 s, 100.0 MiB at end   swap 0 B after 4.0 s, 1.00 MiB at end");
	ASSERT_HAS(text, " hold 20.00 MiB, of which 10.00 MiB were there when RSS was first read.");
	free(text);
	report.growth.start_ns = report.start_ns;
	report.before_bytes = 50 << 20;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text, "   RSS 90.00 MiB at start, 100.0 MiB at end");
	ASSERT_HAS(text, " hold 20.00 MiB; memory that was mapped before gave back 10.00 MiB.");
	free(text);
	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_UNKNOWN};
	report.windowed = true;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text, "NO VERDICT: RSS over time is not known for this window: only mappings are judged.");
	free(text);
}
END_TEST

/* Without readings of pages: what the rows hold is compared with the growth of RSS, and swap has a line of its own. */
START_TEST(place_of_growth_with_swap)
{
	static const struct {
		uint64_t end_mib, resident_mib;
		const char *place;
	} places[] = {
	    {70, 20, "\n  Mappings made in this recording hold 20.00 MiB, all of the growth of RSS.\n"},
	    {70, 0, "\n  Mappings made in this recording hold 0 B of the growth of RSS; the rest was touched in "},
	    {70, 5, "\n  Mappings made in this recording hold 5.00 MiB of the growth of RSS; the rest was touched in "},
	    {50, 20, NULL},
	};
	struct mmt_report report = sample_report();
	char *text;

	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_GROWING,
					    .start_bytes = 50 << 20,
					    .end_bytes = places[_i].end_mib << 20,
					    .end_swap_bytes = 300 << 20,
					    .floor_bytes = 262144};
	report.resident_bytes = places[_i].resident_mib << 20;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	if (places[_i].place)
		ASSERT_HAS(text, places[_i].place);
	ASSERT_ABSENT(text, " of it; the rest");
	ASSERT_HAS(text, "\n    +300.0 MiB  in swap, not in RSS: ");
	free(text);
	report.growth.end_swap_bytes = 0;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_ABSENT(text, "swap");
	ASSERT_ABSENT(text, "the growth of RSS");
	free(text);
	/* The pages were read before RSS last was. */
	report.completeness.incomplete = true;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_ABSENT(text, "Mappings made in this recording hold");
	free(text);
}
END_TEST

/* The largest parts have lines of their own, and all lines add up. */
START_TEST(parts_of_growth)
{
	static const struct mmt_toucher touchers[] = {
	    {.name = "first", .bytes = 16 << 20},
	    {.name = "second", .bytes = 12 << 20},
	    {.name = "third", .bytes = 8 << 20},
	    {.name = "fourth", .bytes = 4 << 20},
	};
	/* One sample. */
	static const struct mmt_toucher guess = {.name = "guess", .bytes = 97 << 12, .error_bytes = 97 << 12};
	struct mmt_growth_part parts[] = {
	    {.place = MMT_GROWTH_BEFORE,
	     .memory_class = MMT_CLASS_ANON,
	     .arena = true,
	     .bytes = 40 << 20,
	     .touched_bytes = 40 << 20,
	     .touchers = touchers,
	     .toucher_count = 4},
	    {.place = MMT_GROWTH_MADE, .memory_class = MMT_CLASS_KINDS, .bytes = 8 << 20},
	    {.place = MMT_GROWTH_BEFORE, .memory_class = MMT_CLASS_FILE, .name = "/x\x1b[31m", .bytes = -(4 << 20)},
	    {.place = MMT_GROWTH_COMMITTED,
	     .memory_class = MMT_CLASS_KINDS,
	     .bytes = 3 << 20,
	     .touched_bytes = 97 << 12,
	     .touchers = &guess,
	     .toucher_count = 1},
	    {.place = MMT_GROWTH_UNMAPPED, .memory_class = MMT_CLASS_KINDS, .bytes = -(2 << 20)},
	    {.place = MMT_GROWTH_BEFORE, .memory_class = MMT_CLASS_HEAP, .bytes = 1 << 20},
	    {.place = MMT_GROWTH_KERNEL, .memory_class = MMT_CLASS_KINDS, .bytes = 4096},
	};
	struct mmt_report report = sample_report();
	char *text;

	report.growth.parts_known = true;
	report.growth.parts = parts;
	report.growth.part_count = sizeof(parts) / sizeof(parts[0]);
	report.growth.changing_bytes = 1 << 20;
	report.growth.unexplained_bytes = -8192;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(
	    text,
	    "\n    +40.00 MiB  touched in malloc arenas, mapped before this recording began\n"
	    "                touched by first: 16.00 MiB; second: 12.00 MiB; third: 8.00 MiB; others: 4.00 MiB\n");
	ASSERT_HAS(text, "\n     +8.00 MiB  in mappings made in this recording\n");
	ASSERT_HAS(text, "\n     -4.00 MiB  given back in /x\\x1b[31m, mapped before this recording began\n");
	ASSERT_HAS(text, "\n     +3.00 MiB  in memory mapped before, made accessible in this recording\n");
	ASSERT_HAS(text, "\n     -2.00 MiB  by unmapping what was mapped before this recording began\n");
	ASSERT_HAS(text, "\n     +1.00 MiB  in other memory (--json has all)\n");
	ASSERT_HAS(text, "\n     +1.00 MiB  changed between the readings of RSS and of the resident pages\n");
	ASSERT_HAS(text, "\n     -8.00 KiB  not explained: ");
	ASSERT_ABSENT(text, "guess");
	free(text);
	/* A pool of which more is touched, and how far that can go; it is not known of a malloc arena. */
	parts[0].mapped_bytes = 1 << 30;
	parts[0].filled_bytes = 412 << 20;
	for (int arena = 0; arena < 2; arena++) {
		parts[0].arena = arena;
		text = render(&report, &(struct mmt_text_options){0});
		ck_assert(!!strstr(text,
				   "\n                412.0 MiB of 1.00 GiB touched: it can grow by at most 612.0 "
				   "MiB\n") == !arena);
		free(text);
	}
	/* Each process has copies of its own. */
	parts[0].arena = false;
	report.processes = (const struct mmt_process[]){report.processes[0], report.processes[0]};
	report.process_count = 2;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "can grow by");
	free(text);
	report.process_count = 1;
	/* What no function is known for is said, unless it is within the error. */
	for (uint64_t missing = 4; missing <= 16; missing += 4) {
		parts[0].bytes = (40 + (int64_t)missing) << 20;
		parts[0].unattributed_bytes = missing << 20;
		parts[0].touched_error_bytes = 8 << 20;
		parts[3].unattributed_bytes = (3 << 20) - (97 << 12);
		report.growth.faults_sampled = missing <= 12;
		text = render(&report, &(struct mmt_text_options){0});
		ck_assert(
		    !!strstr(text, "; others: 4.00 MiB; 12.00 MiB not attributed: few sampled page faults, or ") ==
		    (missing == 12));
		ck_assert(!!strstr(text, "; others: 4.00 MiB; 16.00 MiB not attributed: no recorded page fault") ==
			  (missing == 16));
		ck_assert(!!strstr(text, "; others: 4.00 MiB\n") == (missing <= 8));
		ASSERT_HAS(text, "\n                3.00 MiB not attributed: ");
		free(text);
	}
	report.growth.end_bytes += 100 << 20;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "3.00 MiB not attributed");
	free(text);
	report.growth.end_bytes -= 100 << 20;
	/* A command had no pages at its start, but some when its RSS was first read. */
	report.growth.changing_bytes = -(1 << 20);
	report.growth.start_bytes = 1 << 20;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n     -1.00 MiB  of these, already in memory when RSS was first read\n");
	free(text);
	report.growth.start_bytes--;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n     -1.00 MiB  changed between the readings of RSS and of the resident pages\n");
	free(text);
	report.growth.pages_start_bytes = 4096;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n     -1.00 MiB  changed between the readings of RSS and of the resident pages\n");
	free(text);
}
END_TEST

START_TEST(huge_pages_that_are_mostly_empty)
{
	struct mmt_report report = sample_report();
	char *text;

	report.huge_pages_known = true;
	report.huge_pages = (struct mmt_huge_pages){
	    .bytes = 64 << 20, .sampled_bytes = 4 << 20, .zero_bytes = 62 << 20, .hint = "do this"};
	text = render(&report, &(struct mmt_text_options){.limit = 3});
	ASSERT_HAS(text,
		   "\n  64.00 MiB in huge pages, about 62.00 MiB of it never written (all zero; sample: 4.00 MiB)\n"
		   "                do this\n");
	free(text);

	/* Without a reason to act, nothing is printed. */
	report.huge_pages.hint = NULL;
	text = render(&report, &(struct mmt_text_options){.limit = 3});
	ASSERT_ABSENT(text, "huge pages");
	free(text);
}
END_TEST

START_TEST(nothing_unfreed_but_growth)
{
	const struct mmt_cause leak = {.name = "grow",
				       .verdict = MMT_ROW_LEAK,
				       .memory_bytes = 1 << 20,
				       .rows = (const uint32_t[]){1},
				       .row_count = 1};
	struct mmt_report report = sample_report();
	char *text;

	report.row_count = 0;
	report.unfreed_bytes = report.committed_bytes = report.reserved_bytes = 0;
	report.growth = growths[_i].growth;
	report.committed_before_bytes = growths[_i].committed_before_bytes;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, growths[_i].verdict);
	ASSERT_HAS(text, " is still mapped");
	ASSERT_HAS(text, growths[_i].doubt);
	ASSERT_ABSENT(text, "no leak");
	free(text);
	/* The table says more. */
	report.causes = &leak;
	report.cause_count = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, " is still mapped");
	free(text);
}
END_TEST

/* Address space can leak while RSS is level. */
START_TEST(unfreed_grows_while_rss_is_level)
{
	struct mmt_report report = sample_report();
	char *text;

	report.growth = (struct mmt_growth){.verdict = MMT_VERDICT_PLATEAU,
					    .end_bytes = 2 << 20,
					    .settled_ns = report.from_ns,
					    .unfreed_growth_bytes = 15 << 20};
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text,
		   " after the start. But mappings that leak, most of them not resident, grew by 15.00 MiB since then");
	ASSERT_ABSENT(text, "rather than a leak");
	free(text);
	/* What grows may take the place of pages that the kernel took back, such as those of files. */
	report.growth.unfreed_growth_bytes = 0;
	report.stall_count = 1;
	report.stalls = &(struct mmt_stall){.count = 1};
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text, " after the start: memory was short, and the kernel may have made room for what grows.");
	free(text);
	report.stall_count = 0;
	report.growth.unfreed_growth_bytes = 15 << 20;
	report.growth.verdict = MMT_VERDICT_STEADY;
	report.growth.settled_ns = 0;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_HAS(text, " But mappings that leak, most of them not resident, grew by 15.00 MiB in this time");
	free(text);
	report.growth.unfreed_growth_bytes = 0;
	text = render(&report, &(struct mmt_text_options){.width = 400});
	ASSERT_ABSENT(text, "But mappings");
	free(text);
}
END_TEST

/* Memory that a selection excludes can be what grew. */
START_TEST(growth_beside_a_selection)
{
	struct mmt_report report = sample_report();
	char *text;

	report.row_count = 0;
	report.unfreed_bytes = report.committed_bytes = report.reserved_bytes = 0;
	report.growth = growths[0].growth;
	report.options.focus = &(const char *const){"x"};
	report.options.focus_count = 1;
	report.unfiltered_unfreed_bytes = report.unfiltered_committed_bytes = 0;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "; what grew is in no row of this report.\n");
	ASSERT_ABSENT(text, "nothing matches");
	free(text);
	report.unfiltered_committed_bytes = 4096;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "  nothing matches: ");
	free(text);
}
END_TEST

/* Rows with commits elsewhere show a part of the older mappings. */
START_TEST(growth_partly_shown_by_rows)
{
	struct mmt_report report = sample_report();
	char *text;

	report.growth = growths[0].growth;
	report.resident_bytes = 4 << 20;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "such as a heap or files.\n");
	free(text);
}
END_TEST

static const struct {
	struct mmt_completeness completeness;
	struct mmt_process process;
	size_t left_out_process_count;
	uint64_t ended_bytes;
	const char *says;
} doubts[] = {
    {{.incomplete = true}, {.checked = true}, 0, 0, "INCOMPLETE: "},
    {{.damaged = true}, {.checked = true}, 0, 0, "DAMAGED: "},
    {{.lost_events = 2}, {.checked = true}, 0, 0, "trust: 1,338 events, 2 lost; "},
    {{.missed_threads = 2}, {.checked = true}, 0, 0, "MISSED: 2 threads were not recorded: "},
    {{.missed_cpus = 1}, {.checked = true}, 0, 0, "MISSED: 1 CPU came online during recording, "},
    {{.left_processes = 2}, {.checked = true}, 0, 0, "MISSED: 2 processes left the control group, "},
    {{.ambiguous_events = 1}, {.checked = true}, 0, 0, "; 1 may have happened in another order\n"},
    {{.warning_count = 1,
      .warnings = &(const char *const){"x"},
      .warning_codes = &(const enum mmt_warning){MMT_WARNING_NO_STACKS}},
     {.checked = true},
     0,
     0,
     "  note: x\n"},
    {{0}, {.checked = true, .mismatch_bytes = 4096}, 0, 0, "; 4.00 KiB differ from the kernel's maps\n"},
    {{0}, {.checked = true, .unverifiable_bytes = 8192}, 0, 0, "; 8.00 KiB not verified\n"},
    {{0}, {.ended = true}, 0, 0, "; not checked against a map\n"},
    {{0}, {.checked = true}, 2, 0, "  only the process asked for; 2 left out\n"},
    {{0}, {.checked = true}, 0, 4096, "ended by themselves held 4.00 KiB"},
};

START_TEST(nothing_unfreed_with_missing_data)
{
	struct mmt_report report = sample_report();
	char *text;

	report.row_count = 0;
	report.unfreed_bytes = report.committed_bytes = report.reserved_bytes = 0;
	report.completeness = doubts[_i].completeness;
	report.processes = &doubts[_i].process;
	report.left_out_process_count = doubts[_i].left_out_process_count;
	report.ended_bytes = doubts[_i].ended_bytes;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, " is still mapped, as far as the recording can tell");
	ASSERT_HAS(text, doubts[_i].says);
	ASSERT_ABSENT(text, "no leak");
	free(text);
}
END_TEST

/* Before the stacks, if most of them may have wrong frames; otherwise at the end. */
START_TEST(trust_of_doubtful_stacks)
{
	struct mmt_report report = sample_report();
	char *text;

	for (unsigned doubtful = 1; doubtful <= 3; doubtful += 2) {
		report.completeness =
		    (struct mmt_completeness){.complete_stacks = 4 - doubtful, .doubtful_stacks = doubtful};
		text = render(&report, &(struct mmt_text_options){.stack_frames = 32});
		ck_assert_ptr_nonnull(strstr(text, "\ntrust: "));
		ck_assert_int_eq(strstr(text, "\ntrust: ") < strstr(text, "\n      mmap"), doubtful > 2);
		free(text);
	}
}
END_TEST

START_TEST(rows_fit_the_terminal)
{
	struct mmt_report report = sample_report();
	char *text = render(&report, &(struct mmt_text_options){.width = 60, .ascii = true, .stack_frames = 32});
	char *row = strstr(text, "\n 1  ");

	ck_assert_ptr_nonnull(row);
	for (char *line = row + 1; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		ck_assert_msg(strcspn(line, "\n") <= 60, "too long: %.80s", line);
	}
	free(text);
}
END_TEST

/* Names, modules and sources are cut, or left out, where they have no room, and only there. */
START_TEST(stacks_fit_the_terminal)
{
	static const struct mmt_frame long_frames[] = {
	    {.function = "mmap", .module = "libc.so.6", .source_file = "/src/mmap64.c", .source_line = 58},
	    {.function = "acme::storage::Cache<acme::Item, std::allocator<acme::Item> >::insert(acme::Item&&)",
	     .module = "libacme-storage-engine-with-a-long-name.so.12.0.1",
	     .source_file = "/src/cache-of-the-storage-engine.cc",
	     .source_line = 1234,
	     .inlined = true},
	    {.module = "libacme-storage-engine-with-a-long-name.so.12.0.1", .module_offset = 0x123456},
	    {.function = "main", .module = "server"},
	};
	const struct mmt_frame *pointers[] = {&long_frames[0], &long_frames[1], &long_frames[2], &long_frames[3]};
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	char *text;

	row.frames = pointers;
	row.frame_count = 4;
	report.rows = &row;
	report.row_count = 1;
	for (unsigned width = 24; width <= 200; width += 4) {
		const char *line;

		text = render(&report, &(struct mmt_text_options){.width = width, .stack_frames = 12});
		line = strstr(text, "\n      mmap");

		for (int i = 0; i < 4; i++, line = strchr(line + 1, '\n')) {
			ck_assert_ptr_nonnull(line);
			ck_assert_msg(strcspn(line + 1, "\n") <= width, "%u: too long:%.200s", width, line);
		}
		if (width >= 28)
			ASSERT_HAS(text, "      mmap ");
		if (width >= 60)
			ASSERT_HAS(text, "libc.so.6");
		ASSERT_HAS(text, "insert");
		free(text);
	}
	text = render(&report, &(struct mmt_text_options){.stack_frames = 12});
	ASSERT_HAS(text, "insert(acme::Item&&)   libacme-storage-engine-with-a-long-name.so.12.0.1   "
			 "cache-of-the-storage-engine.cc:1234 (inlined)\n");
	free(text);
}
END_TEST

#define SCREEN_PROCESSES 40
#define SCREEN_ROWS 12

/* The line after the first stack and the line on trust. */
static size_t first_screen_lines(const char *text)
{
	const char *stack = strstr(text, "\n      mmap"), *trust = strstr(text, "\ntrust: "), *end;
	size_t lines = 1;

	ck_assert_msg(stack && trust, "no stack, or no trust:\n%s", text);
	end = strstr(stack > trust ? stack + 1 : trust + 1, "\n\n");
	for (; text < end; text++)
		lines += *text == '\n';
	return lines;
}

/* However much there is to say, what matters is on the first 23 lines, and the rest below. */
START_TEST(first_screen_fits)
{
	static const char *const warnings[] = {
	    "interpreted functions of process 17156 (PHP) have no names: start it with -d opcache.enable_cli=1 -d "
	    "opcache.jit_buffer_size=32M -d opcache.jit=1205 -d opcache.jit_debug=0x10, which names the innermost of "
	    "nested functions",
	    "no names for JIT code in process 17162 (Java): record with --ask-runtime, run `jcmd PID Compiler.perfmap` "
	    "before recording ends, or start it with -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"};
	static const enum mmt_warning codes[] = {MMT_WARNING_INTERPRETED_CODE_UNNAMED, MMT_WARNING_JIT_CODE_UNNAMED};
	static const char hint_of_buffers[] =
	    "direct ByteBuffers or Unsafe memory of Java, outside its heap, freed when their owner is collected. A "
	    "leak "
	    "if the program keeps them: `jcmd PID GC.class_histogram` counts java.nio.DirectByteBuffer; "
	    "-XX:MaxDirectMemorySize limits them";
	const struct mmt_growth_part parts[] = {
	    {.place = MMT_GROWTH_BEFORE, .memory_class = MMT_CLASS_HEAP, .bytes = 80 << 20, .hint = hint_of_buffers},
	    {.place = MMT_GROWTH_BEFORE, .memory_class = MMT_CLASS_SHM, .bytes = 40 << 20, .hint = hint_of_buffers},
	    {.place = MMT_GROWTH_MADE, .memory_class = MMT_CLASS_KINDS, .bytes = 8 << 20}};
	struct mmt_report report = sample_report();
	struct mmt_process processes[SCREEN_PROCESSES];
	struct mmt_cause causes[SCREEN_ROWS];
	struct mmt_row rows[SCREEN_ROWS];
	uint32_t ids[SCREEN_ROWS];
	char *text;

	for (uint32_t i = 0; i < SCREEN_ROWS; i++) {
		ids[i] = i + 1;
		rows[i] = report.rows[0];
		rows[i].id = rows[i].cause = i + 1;
		rows[i].hint = hint_of_buffers;
		causes[i] =
		    (struct mmt_cause){.name = "acme::storage::wrapper_of_a_wrapper_of_mmap(unsigned long) (lib.so)",
				       .caller = "acme::storage::Cache<acme::Item>::insert(acme::Item&&) (app)",
				       .memory_bytes = rows[i].memory_bytes,
				       .caller_bytes = rows[i].memory_bytes / 2,
				       .rows = &ids[i],
				       .row_count = 1};
	}
	for (int i = 0; i < SCREEN_PROCESSES; i++)
		processes[i] = (struct mmt_process){.pid = i + 1000, .name = i % 2 ? "worker-of-the-server" : "sh"};
	report.processes = processes;
	report.process_count = SCREEN_PROCESSES;
	report.rows = rows;
	report.causes = causes;
	report.row_count = report.cause_count = SCREEN_ROWS;
	report.completeness.warnings = warnings;
	report.completeness.warning_codes = codes;
	report.completeness.warning_count = 2;
	report.growth.end_bytes += 128 << 20;
	report.growth.verdict = MMT_VERDICT_GROWING;
	report.growth.parts_known = true;
	report.growth.parts = parts;
	report.growth.part_count = 3;
	for (unsigned width = 80; width <= 120; width += 20) {
		text = render(&report, &(struct mmt_text_options){.width = width, .stack_frames = 12, .limit = 10});
		ck_assert_msg(first_screen_lines(text) <= 23, "%zu lines:\n%s", first_screen_lines(text), text);
		ASSERT_HAS(text, "  note: interpreted functions of process 17156");
		ASSERT_HAS(text, "  note: no names for JIT code in process 17162");
		ASSERT_HAS(text, "touched in shared memory");
		ASSERT_HAS(text, "Cache<");
		free(text);
	}
}
END_TEST

/* The command for what stands first is on the first screen, of a process that runs and may grow; and the rest below. */
START_TEST(command_of_the_runtime)
{
	static const char hint[] = "heap of Java. Next: `jcmd PID GC.class_histogram` shows which objects are kept";
	static const char last[] = "\nnext: `jcmd 1234 GC.class_histogram` shows which objects are kept\ntrust: ";
	struct mmt_process processes[] = {{.pid = 1234, .runtime = "java"}, {.pid = 5}}, *process = processes;
	struct mmt_growth_part part = {.place = MMT_GROWTH_BEFORE, .bytes = 512 << 20, .hint = hint};
	static const int32_t pids[] = {1234};
	struct mmt_report report = sample_report();
	struct mmt_row row = report.rows[0];
	char *text;

	row.hint = hint;
	row.pids = pids;
	row.pid_count = 1;
	report.rows = &row;
	report.row_count = 1;
	report.processes = processes;
	report.process_count = 1;
	report.growth.verdict = MMT_VERDICT_GROWING;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, last);
	ASSERT_HAS(strstr(text, last), "\n      heap of Java. Next: `jcmd PID");
	free(text);
	process->container_pid = 7;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\nnext, in its container: `jcmd 7 GC.class_histogram` shows");
	free(text);
	process->container_pid = 1234;
	/* Of older memory, which is more, that of the process with a runtime. */
	row.hint = NULL;
	report.growth.parts = &part;
	report.growth.part_count = 1;
	report.growth.parts_known = true;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, last);
	ASSERT_HAS(text, "                heap of Java\n");
	free(text);
	process->runtime = NULL;
	report.process_count = 2;
	text = render(&report, &(struct mmt_text_options){0});
	ck_assert_ptr_null(strstr(text, "\nnext"));
	free(text);
	row.hint = hint;
	report.growth.part_count = 0;
	report.growth.verdict = MMT_VERDICT_PLATEAU;
	text = render(&report, &(struct mmt_text_options){0});
	ck_assert_ptr_null(strstr(text, "\nnext"));
	free(text);
	report.growth.verdict = MMT_VERDICT_GROWING;
	process->ended = true;
	text = render(&report, &(struct mmt_text_options){0});
	ck_assert_ptr_null(strstr(text, "\nnext"));
	free(text);
}
END_TEST

/* Without rows, or beside smaller ones, the stack that touched most is the first; below, it stands with all its frames.
 */
START_TEST(touched_stack_is_on_the_first_screen)
{
	static const struct mmt_frame function = {.function = "mmap_into_the_pool", .module = "server"};
	const struct mmt_frame *stack[30];
	struct mmt_toucher touchers[] = {
	    {.name = "mmap_into_the_pool (server)", .bytes = 40 << 20, .error_bytes = 8 << 20, .frames = stack},
	    {.name = "second (server)", .bytes = 8 << 20, .frames = stack, .frame_count = 1}};
	const struct mmt_growth_part part = {.place = MMT_GROWTH_BEFORE,
					     .memory_class = MMT_CLASS_ANON,
					     .bytes = 62 << 20,
					     .touched_bytes = 48 << 20,
					     .touchers = touchers,
					     .toucher_count = 2};
	struct mmt_cause cause = {.name = "hold", .memory_bytes = 1 << 20, .rows = first_rows, .row_count = 2};
	const struct mmt_process process = {.pid = 1, .name = "server"};
	struct mmt_report report = sample_report();
	char *text;

	for (size_t i = 0; i < 30; i++)
		stack[i] = &function;
	report.processes = &process;
	report.causes = &cause;
	report.growth.end_bytes = report.growth.start_bytes + (62 << 20);
	report.growth.verdict = MMT_VERDICT_GROWING;
	report.growth.parts_known = true;
	report.growth.parts = &part;
	report.growth.part_count = 1;
	for (int rows = 0; rows < 2; rows++) {
		report.cause_count = rows ? 1 : 0;
		report.row_count = rows ? 2 : 0;
		for (size_t depth = 10; depth <= 30; depth += 20) {
			size_t lines, stacks = 0;

			touchers[0].frame_count = depth;
			text =
			    render(&report, &(struct mmt_text_options){
						.width = 80, .stack_frames = 12, .limit = 10, .sort = MMT_SORT_MEMORY});
			lines = first_screen_lines(text);
			ck_assert_msg(lines <= 23, "%zu lines:\n%s", lines, text);
			ck_assert(strstr(text, "\ntouched: 40.00 MiB (+- 20 %)") < strstr(text, "\ntrust: "));
			for (const char *at = text; (at = strstr(at, "\ntouched: 40.00 MiB")); at++)
				stacks++;
			ck_assert_msg(stacks == (depth > 12 || rows ? 2 : 1), "%zu times:\n%s", stacks, text);
			ck_assert(strstr(text, "\ntouched: 8.00 MiB") > strstr(text, "\ntrust: "));
			ASSERT_ABSENT(text, "Nothing that was mapped");
			free(text);
		}
	}
	/* A leak stands before it. */
	cause.verdict = MMT_ROW_LEAK;
	text = render(
	    &report, &(struct mmt_text_options){.width = 80, .stack_frames = 12, .limit = 10, .sort = MMT_SORT_MEMORY});
	ck_assert(strstr(text, "\ntouched: 40.00 MiB") > strstr(text, "\ntrust: "));
	free(text);
}
END_TEST

/* Parts that the causes explain for the most stand below; others stand above the causes. */
START_TEST(parts_stand_above_if_they_are_the_answer)
{
	struct mmt_growth_part parts[] = {
	    {.place = MMT_GROWTH_MADE, .memory_class = MMT_CLASS_KINDS, .bytes = 80 << 20},
	    {.place = MMT_GROWTH_KERNEL, .memory_class = MMT_CLASS_KINDS, .bytes = 20 << 20}};
	struct mmt_report report = sample_report();

	report.growth.end_bytes = report.growth.start_bytes + (100 << 20);
	report.growth.parts_known = true;
	report.growth.parts = parts;
	report.growth.part_count = 2;
	for (int above = 0; above < 2; above++) {
		char *text = render(&report, &(struct mmt_text_options){.width = 80});
		const char *part = strstr(text, "in mappings made in this recording"), *rows = strstr(text, "\n 1 ");

		ck_assert_msg(part && rows && (part < rows) == above, "%d:\n%s", above, text);
		free(text);
		parts[0].bytes -= 10 << 20;
		parts[1].bytes += 10 << 20;
	}
}
END_TEST

/* Wrapped at words, and unwrapped without a terminal. */
START_TEST(notes_fit_the_terminal)
{
	static const char *const warnings[] = {
	    "one two three four five six seven eight nine ten eleven twelve thirteen "
	    "0123456789012345678901234567890123 "
	    "f\303\274nfzehn"};
	struct mmt_report report = sample_report();
	char *text;

	report.completeness.warnings = warnings;
	report.completeness.warning_codes = &(const enum mmt_warning){MMT_WARNING_MODULE_UNUSABLE};
	report.completeness.warning_count = 1;
	text = render(&report, &(struct mmt_text_options){.width = 40});
	ASSERT_HAS(text, "  note: one two three four five six\n"
			 "        seven eight nine ten eleven\n"
			 "        twelve thirteen\n"
			 "        0123456789012345678...4567890123\n"
			 "        f\303\274nfzehn\n");
	free(text);
	text = render(&report, &(struct mmt_text_options){.width = 40, .colour = true});
	ASSERT_ABSENT(text, "\033[2m\n");
	free(text);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "  note: ");
	ASSERT_HAS(text, warnings[0]);
	free(text);
}
END_TEST

static size_t place_of(const char *text, const char *part)
{
	const char *found = strstr(text, part);

	ck_assert_msg(found != NULL, "no \"%s\" in:\n%s", part, text);
	return (size_t)(found - text);
}

/* Notes that differ in their subject only are one. */
START_TEST(notes_that_are_alike_are_one)
{
	static const char *const warnings[] = {
	    "no names for JIT code in process 5 (Node): start it with -x",
	    "no code of process 7: it ended",
	    "interpreted functions of process 5 (Node) have no names: start it with -x",
	    "no names for JIT code in process 6 (Node): start it with -x",
	    "no code of process 8: it ended",
	    "file gone"};
	static const enum mmt_warning codes[] = {MMT_WARNING_JIT_CODE_UNNAMED,	       MMT_WARNING_MODULE_UNUSABLE,
						 MMT_WARNING_INTERPRETED_CODE_UNNAMED, MMT_WARNING_JIT_CODE_UNNAMED,
						 MMT_WARNING_MODULE_UNUSABLE,	       MMT_WARNING_MODULE_UNUSABLE};
	struct mmt_report report = sample_report();
	char *text;

	report.completeness.warnings = warnings;
	report.completeness.warning_codes = codes;
	report.completeness.warning_count = sizeof(codes) / sizeof(*codes);
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text,
		   "\n  note: no names for JIT code in process 5 (Node); interpreted functions of process 5 (Node) "
		   "have no names, and 1 more: start it with -x\n\n");
	ASSERT_HAS(text, "\n  note: no code of process 7, and 1 more: it ended\n  note: file gone\n");
	free(text);
}
END_TEST

/* Two: processes without names must not push the verdict's explanation off the screen. */
START_TEST(notes_on_missing_names_precede_the_figures)
{
	static const char *const warnings[] = {"file gone", "code 1", "code 2", "children", "code 3"};
	static const enum mmt_warning codes[] = {MMT_WARNING_MODULE_UNUSABLE, MMT_WARNING_JIT_CODE_UNNAMED,
						 MMT_WARNING_INTERPRETED_CODE_UNNAMED, MMT_WARNING_UNRECORDED_CHILDREN,
						 MMT_WARNING_JIT_CODE_UNNAMED};
	const struct mmt_growth_part part = {
	    .place = MMT_GROWTH_BEFORE, .memory_class = MMT_CLASS_HEAP, .bytes = 8 << 20};
	struct mmt_report report = sample_report();
	size_t last = 0;
	char *text;

	report.completeness.warnings = warnings;
	report.completeness.warning_codes = codes;
	report.completeness.warning_count = 5;
	report.growth.parts_known = true;
	report.growth.parts = &part;
	report.growth.part_count = 1;
	text = render(&report, &(struct mmt_text_options){0});
	for (const char *const *line =
		 (const char *const[]){"STEADY: ", "note: code 1\n", "note: code 2\n", "touched in the heap",
				       "  256 of 258", "note: file gone\n", "note: children\n", "note: code 3\n", NULL};
	     *line; line++) {
		ck_assert_uint_gt(place_of(text, *line), last);
		last = place_of(text, *line);
	}
	free(text);
}
END_TEST

static void assert_bytes(uint64_t bytes, const char *expected)
{
	char text[MMT_SIZE_TEXT];

	ck_assert_str_eq(mmt_format_bytes(bytes, text), expected);
}

START_TEST(formats)
{
	char text[MMT_SIZE_TEXT];

	assert_bytes(0, "0 B");
	assert_bytes(1023, "1023 B");
	assert_bytes(4096, "4.00 KiB");
	assert_bytes(271895347, "259.3 MiB");
	assert_bytes(1024 * 1024 - 1, "1.00 MiB");
	assert_bytes(1073741824, "1.00 GiB");
	assert_bytes(UINT64_MAX, "16.00 EiB");
	ck_assert_str_eq(mmt_format_change(-4096, text), "-4.00 KiB");
	ck_assert_str_eq(mmt_format_change(INT64_MIN, text), "-8.00 EiB");
	ck_assert_str_eq(mmt_format_change(0, text), "0 B");
	ck_assert_str_eq(mmt_format_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
	ck_assert_str_eq(mmt_format_count(999, text), "999");
	ck_assert_str_eq(mmt_format_duration(62100000000, text), "62.1 s");
	ck_assert_str_eq(mmt_format_duration(303000000000, text), "5 min 3 s");
	ck_assert_str_eq(mmt_format_duration(UINT64_MAX, text), "5124095 h 34 min");
}
END_TEST

START_TEST(diff)
{
	struct mmt_report before = sample_report(), after = sample_report();
	struct mmt_row grown = sample_rows[0], after_rows[2] = {sample_rows[0]};
	struct mmt_diff_entry entries[] = {
	    {.change = MMT_CHANGE_GROWN,
	     .before = &sample_rows[0],
	     .after = &grown,
	     .bytes = 1073741824,
	     .committed_bytes = 4096},
	    {.change = MMT_CHANGE_GONE, .before = &sample_rows[1], .bytes = -12288, .committed_bytes = -12288},
	};
	struct mmt_diff value = {.rated = true,
				 .before = &before,
				 .after = &after,
				 .entries = entries,
				 .entry_count = 2,
				 .bytes = 1073729536,
				 .committed_bytes = -8192};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	after_rows[0].unfreed_bytes = 2147483648;
	after.rows = after_rows;
	grown.unfreed_bytes = 2147483648;
	grown.unfreed_count = 512;
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_HAS(text,
		   "  +1.00 GiB   grown    LEAK   1.00 GiB to 2.00 GiB   256 to 512 mappings   committed +4.00 KiB   ");
	ASSERT_HAS(text, "+1.00 GiB   committed -8.00 KiB   stacks: ");
	ASSERT_HAS(text, " -12.00 KiB   gone     12.00 KiB to 0 B   2 to 0 mappings   0 B to 0 B per second");
	ASSERT_HAS(text, "stacks: 0 new, 1 gone, 1 grown, 0 shrunk, 0 same\n");
	ASSERT_HAS(text, "/s   2 stacks\nunfreed after");
	ASSERT_HAS(text, "/s   1 stack\nchange");
	ASSERT_HAS(text, "\n?: doubtful");
	ASSERT_HAS(text, "\nfile+0x... or 0x...: no symbol");
	ASSERT_HAS(text, "\ncallers missing, no unwind data: ");
	free(text);
	/* What changed comes first; a heap's stack is not to blame. */
	value.uncertain_count = 1;
	grown.pattern = MMT_PATTERN_HEAP;
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert(strstr(text, "1 match is uncertain") > strstr(text, "\nchange "));
	ASSERT_HAS(text, "   grown    LEAK   malloc heap   1.00 GiB to 2.00 GiB   ");
	free(text);
}
END_TEST

START_TEST(commits_elsewhere_and_lost_calls)
{
	struct mmt_report report = sample_report();
	struct mmt_row rows[3] = {sample_rows[0], sample_rows[1], {.id = 3}};
	char *text;

	rows[2].committed_bytes = rows[2].memory_bytes = 65536;
	rows[2].reserved_by = 1;
	rows[2].resident_bytes = MMT_UNKNOWN;
	rows[2].pattern = MMT_PATTERN_ARENA;
	rows[2].hint = "an arena";
	rows[0].committed_before_bytes = 4096;
	rows[1].frame_count = 0;
	rows[1].lost = true;
	report.rows = rows;
	report.row_count = 3;
	report.completeness.reconciled_bytes = 8192;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n 3  64.00 KiB committed   0.0 %   anon   in 1.00 GiB that #1 reserved\n      an arena\n");
	ASSERT_HAS(text, "committed in memory mapped before 4.00 KiB");
	ASSERT_HAS(text, "      mapped by calls that were lost: known only from the kernel's maps\n");
	ASSERT_HAS(text, "  reconciled with the kernel's maps: 8.00 KiB, although no event was lost\n");
	free(text);
	report.completeness.reconciled_by_loss = true;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "8.00 KiB, because events were lost\n");
	free(text);
}
END_TEST

START_TEST(names_classes_and_windows)
{
	struct mmt_report report = sample_report();
	struct mmt_row rows[2] = {sample_rows[0], sample_rows[1]};
	char *text;

	rows[0].name = "leak.so\x1b";
	rows[0].class_bytes[MMT_CLASS_ANON] = 1024 * 1024;
	rows[1].class_bytes[MMT_CLASS_HEAP] = 12288;
	rows[0].peak_bytes = 2147483648;
	report.rows = rows;
	report.windowed = true;
	report.from_ns = 11000000000;
	report.allocations_to_ns = 21000000000;
	report.to_ns = 31000000000;
	text = render(&report, &(struct mmt_text_options){.sort = MMT_SORT_PEAK});
	ASSERT_HAS(text, "\n      leak.so\\x1b\n");
	ASSERT_ABSENT(text, "mmap_allocation");
	ASSERT_HAS(text, "\nby class:   anon 1.00 MiB   heap 12.00 KiB\n");
	ASSERT_HAS(text, "  window: mapped from 10.0 s to 20.0 s, and still there at 30.0 s after the start\n");
	ASSERT_HAS(text, "peak 2.00 GiB");
	free(text);
}
END_TEST

START_TEST(reclaim_is_said)
{
	static const struct mmt_frame parse = {.function = "parse_request"}, other = {.function = "other"};
	static const struct mmt_frame *const parsing[] = {&parse}, *const others[] = {&other};
	struct mmt_stall stalls[] = {
	    {.count = 8, .total_ns = 200000000, .longest_ns = 52000000, .frames = parsing, .frame_count = 1},
	    {.count = 1, .total_ns = 120000000, .longest_ns = 120000000, .frames = others, .frame_count = 1},
	    {.count = 3, .total_ns = 80000000, .longest_ns = 50000000, .frames = parsing, .frame_count = 1},
	};
	struct mmt_report report = sample_report();
	char *text;

	report.stalls = stalls;
	report.stall_count = 3;
	report.to_ns = report.from_ns + 10000000000;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(
	    text,
	    "\n  threads had to free memory themselves 12 times, 400 ms in all, 120 ms at most; 70 % in calls from "
	    "parse_request\n");
	free(text);
	report.completeness.lost_reclaims = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\n  threads had to free memory themselves at least 12 times, 400 ms in all");
	free(text);
	/* Events on CPUs, which these come with, are those of all processes. */
	for (int i = 0; i < 2; i++) {
		report.completeness.lost_faults = 97;
		report.stalls = i ? stalls : NULL;
		report.stall_count = i ? 3 : 0;
		text = render(&report, &(struct mmt_text_options){0});
		ASSERT_HAS(text,
			   i ? "; up to 97 page faults of any process lost: who" : "; up to 97 page faults lost: who");
		free(text);
	}
	/* A hundredth of the time or less is no problem. */
	report.to_ns = report.from_ns + 40000000000;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_ABSENT(text, "free memory themselves");
	free(text);
	/* Times of a hostile recording. */
	report.to_ns = report.from_ns;
	stalls[0].total_ns = 1;
	report.stall_count = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "100 % in calls from parse_request");
	free(text);
}
END_TEST

START_TEST(failures_and_threads)
{
	static const struct mmt_failure failures[] = {
	    {.call = MMT_COUNT_MMAP, .error = 12, .count = 1200, .asked_bytes = 12884901888},
	    {.call = MMT_COUNT_MPROTECT, .error = 9999, .count = 1},
	    {.call = MMT_COUNT_MMAP, .error = 22, .count = 1},
	    {.call = MMT_COUNT_MMAP, .error = 1, .count = 1},
	};
	static const struct mmt_thread_total totals[] = {
	    {.thread = {1, 2, "maker"}, .allocated_bytes = 8192, .freed_by_others_bytes = 4096, .unfreed_bytes = 4096},
	    {.thread = {1, 3, "eater"}, .released_bytes = 4096},
	};
	static const struct mmt_release releases[] = {{.owner = 0, .releaser = 1, .bytes = 4096}};
	struct mmt_report report = sample_report();
	char *text;

	report.failures = failures;
	report.failure_count = 4;
	report.thread_totals = totals;
	report.thread_total_count = 2;
	report.releases = releases;
	report.release_count = 1;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "\nfailed calls: 1,200 x mmap ENOMEM, asked for 12.00 GiB\n");
	ASSERT_HAS(text, "\nfailed calls: 1 x mprotect error 9999\n");
	ASSERT_HAS(text, "\nand 1 more kind of failed calls (--json has all)\n");
	ASSERT_ABSENT(text, "maker");
	free(text);
	report.by = MMT_BY_THREAD;
	text = render(&report, &(struct mmt_text_options){0});
	ASSERT_HAS(text, "  maker (2)              4.00 KiB   8.00 KiB        0 B   4.00 KiB        0 B\n");
	ASSERT_HAS(text, "    4.00 KiB  mapped by maker (2), released by eater (3)\n");
	free(text);
}
END_TEST

/* The verdict compares rates that are more than noise, and names what grew. */
START_TEST(verdict_of_diff)
{
	static const struct {
		int64_t first, second;
		const char *text;
	} cases[] = {
	    {1 << 20, 48 << 20,
	     "WORSE: RSS +48.00 MiB per minute in the second recording, +1.00 MiB in the first (48.0 times); most "
	     "in a LEAK by f.\n"},
	    {0, 48 << 20, "WORSE: RSS +48.00 MiB per minute in the second recording, level in the first; most in"},
	    {48 << 20, 1 << 20, "BETTER: RSS +1.00 MiB per minute in the second recording, +48.00 MiB in the first.\n"},
	    {1 << 20, 1 << 20, "NO FASTER: RSS +1.00 MiB"},
	    {0, 1 << 18,
	     "PERHAPS WORSE: RSS +256.0 KiB per minute in the second recording, level in the first, but rates vary by"},
	    {20 << 20, (20 << 20) + 100000, "NO FASTER: RSS +20.10 MiB"},
	    {-100 * 1048576, -10 * 1048576, "NO FASTER: RSS -10.00 MiB"},
	    {-100 * 1048576, 0, "NO FASTER: RSS level in the second recording, -100"},
	    /* The cause has less than half of it. */
	    {1 << 20, 98 << 20,
	     "WORSE: RSS +98.00 MiB per minute in the second recording, +1.00 MiB in the first (98.0 "
	     "times).\n"},
	    {MMT_RATE_UNKNOWN, 1 << 20, ""},
	};
	struct mmt_report before = sample_report(), after = sample_report();
	struct mmt_cause cause = {.name = "f", .verdict = MMT_ROW_LEAK, .bytes_per_minute = 40 << 20};
	struct mmt_diff value = {.before = &before, .after = &after};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	after.causes = &cause;
	after.cause_count = 1;
	before.growth.verdict = after.growth.verdict = MMT_VERDICT_GROWING;
	before.growth.bytes_per_minute = cases[_i].first;
	after.growth.bytes_per_minute = cases[_i].second;
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	fclose(stream);
	ck_assert_int_eq(strncmp(text, cases[_i].text, strlen(cases[_i].text)), 0);
	ck_assert(*cases[_i].text || !strncmp(text, "unfreed before", 14));
	free(text);
}
END_TEST

/* What makes the recordings incomparable comes first. */
START_TEST(diff_of_unequal_recordings)
{
	struct mmt_report before = sample_report(), after = sample_report();
	struct mmt_diff value = {.before = &before, .after = &after, .longer_ns = INT64_C(40000000000)};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	before.start_ns = after.start_ns = 0;
	before.end_ns = before.to_ns = 2000000000;
	after.end_ns = after.to_ns = 42000000000;
	before.growth.verdict = after.growth.verdict = MMT_VERDICT_GROWING;
	after.command_end = (struct mmt_command_end){.time_ns = 41000000000, .pid = 99999, .status = SIGSEGV};
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ck_assert_ptr_eq(strstr(text, "second recording: KILLED: the command was killed by SIGSEGV "), text);
	ASSERT_HAS(text, "\nThe first recording is too short to compare (2.0 s): ");
	ASSERT_ABSENT(text, "NO FASTER");
	free(text);
	value.rated = true;
	value.incomparable = true;
	value.left_out_bytes = 41 << 20;
	value.left_out_resident_bytes = 42 << 20;
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_HAS(
	    text,
	    "\nThe second recording is 40.0 s longer, too much to compare (left out: +41.00 MiB unfreed, RSS +42.00 "
	    "MiB).\n");
	free(text);
	value.counted_unlike = before.options.keep_ended = true;
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_HAS(text, "\nProcesses that ended count in the first recording only: ");
	free(text);
	value.counted_unlike = value.incomparable = false;
	value.left_out_bytes = value.left_out_resident_bytes = 0;
	value.longer_ns = -value.longer_ns;
	after.command_end.status = SIGTERM;
	before.to_ns -= 500000000;
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_ABSENT(text, "KILLED");
	ASSERT_HAS(text, "NO FASTER");
	ASSERT_HAS(text, "\nAs of 500 ms before the end of the first recording: what was freed after that counts.\n");
	ASSERT_HAS(text, "\nThe first recording is 40.0 s longer: a leak that grows as fast in both is no change.\n");
	free(text);
}
END_TEST

/* There is nothing to subtract from rows that are new since the first recording. */
START_TEST(diff_of_one_process)
{
	struct mmt_report before = sample_report(), after = sample_report();
	const struct mmt_growth_part swapped_out = {.memory_class = MMT_CLASS_HEAP, .bytes = -(40 << 20)};
	struct mmt_diff value = {.relation = MMT_DIFF_SAME_PROCESS,
				 .before = &before,
				 .after = &after,
				 .mapped_before_bytes = 1 << 20,
				 .mapped_after_bytes = 3 << 20,
				 .bytes = 2 << 20,
				 .committed_bytes = 2 << 20};
	static const struct mmt_process several[4] = {
	    {.pid = 1, .name = "a"}, {.pid = 2, .name = "b"}, {.pid = 3, .name = "c"}, {.pid = 4, .name = "d"}};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	before.process_count = after.process_count = 1;
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_ABSENT(text, "unfreed before");
	ASSERT_HAS(text, "\nnew since         +2.00 MiB   stacks: ");
	ASSERT_HAS(text, " by calls between the recordings, ");
	ASSERT_ABSENT(text, "swap");
	free(text);
	/* What the kernel swapped out in between is not in RSS, but it was not released. */
	before.growth = (struct mmt_growth){.verdict = MMT_VERDICT_STEADY, .end_bytes = 60 << 20};
	after.growth = (struct mmt_growth){.verdict = MMT_VERDICT_STEADY,
					   .start_bytes = 20 << 20,
					   .end_bytes = 21 << 20,
					   .start_swap_bytes = 40 << 20,
					   .end_swap_bytes = 45 << 20};
	value.between_parts_known = true;
	value.between_parts = &swapped_out;
	value.between_part_count = 1;
	value.same_process_count = 4;
	before.process_count = after.process_count = 4;
	before.processes = after.processes = several;
	value.executed_before = &(struct mmt_process){.name = "sh", .pid = 3};
	value.executed_after = &(struct mmt_process){.name = "sleep", .pid = 3};
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_HAS(text, "4 processes in both recordings: ");
	ASSERT_ABSENT(text, "only in the");
	ASSERT_ABSENT(text, "later one");
	ASSERT_HAS(
	    text,
	    "\n  sh (pid 3) is another program in the second, sleep (pid 3): the change between the recordings is "
	    "not that of one program.\n");
	value.executed_after = NULL;
	value.same_process_count = 1;
	ASSERT_HAS(text,
		   "\n  RSS: 60.00 MiB when the first ended, 20.00 MiB when the second began, 21.00 MiB at its end: "
		   "-40.00 MiB between the recordings, +1.00 MiB in the second\n"
		   "  swap: 0 B when the first ended, 40.00 MiB when the second began, 45.00 MiB at its end: "
		   "+40.00 MiB between the recordings, +5.00 MiB in the second\n");
	ASSERT_HAS(text,
		   "NO FASTER: RSS level in the second recording, level in the first; RSS -40.00 MiB between them.\n");
	ASSERT_HAS(text, "\n    -40.00 MiB  the heap (brk)");
	ASSERT_HAS(text, "\n    +40.00 MiB  in swap, not in RSS: ");
	free(text);
	value.replaced_bytes = 3 << 20;
	before.process_count = 2;
	before.start_realtime_ns = 2;
	after.start_realtime_ns = 1;
	after.process_count = 3;
	after.options.ignore_count = before.options.ignore_count = 1;
	after.options.ignore = before.options.ignore = &(const char *const){"x"};
	stream = open_memstream(&text, &size);
	ck_assert_ptr_null(mmt_diff_write_text(&value, &(struct mmt_text_options){0}, stream));
	ck_assert_int_eq(fclose(stream), 0);
	ASSERT_HAS(text, "One process in both recordings");
	ASSERT_HAS(text, "\n  1 process only in the first, 2 only in the second: figures of RSS are of all; 3.00 MiB in "
			 "new ones replace as much in others that ended.\n");
	ASSERT_HAS(text, "The first recording is the later one: pass the earlier one first.\n");
	ASSERT_ABSENT(text, "another program");
	ASSERT_ABSENT(text, "mapped: ");
	ASSERT_ABSENT(text, "by calls between");
	free(text);
}
END_TEST

/* The rate of RSS leaves them out, so a rate beside it would be one of something else. */
START_TEST(brief_processes_have_no_rate)
{
	struct mmt_growth growth = {.peak_with_brief_bytes = 1};
	struct mmt_cause cause = {.verdict = MMT_ROW_TRAFFIC, .bytes_per_minute = 1 << 30};

	ck_assert(!text_shows_rate(&growth, &cause));
	cause.verdict = MMT_ROW_LEAK;
	ck_assert(text_shows_rate(&growth, &cause));
	cause.verdict = MMT_ROW_TRAFFIC;
	growth.peak_with_brief_bytes = 0;
	ck_assert(text_shows_rate(&growth, &cause));
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("text");
	TCase *cases = add_tcase(suite, "text");

	tcase_add_tests(cases, first_screen, frames, library_frames_are_omitted_first, containers_are_folded,
			named_function_stays, program_frames_stay, hostile_names);
	tcase_add_loop_test(cases, escapes, 0, (int)(sizeof(hostile) / sizeof(hostile[0])));
	tcase_add_tests(cases, dump_of_hostile_names, warnings_come_first, differences_from_the_kernel,
			table_of_processes, growth_of_processes, requested_figures, checks_before_the_exit,
			checks_of_many_processes, stacks_are_complete_doubtful_or_truncated,
			runs_of_unnamed_runtime_frames, frames_of_interpreters, unnamed_frames_are_counted_by_kind,
			discarded_parts);
	tcase_add_loop_test(cases, advice_depends_on_the_ending, 0, (int)(sizeof(advice) / sizeof(advice[0])));
	tcase_add_loop_test(cases, long_names_keep_the_function, 0, (int)(sizeof(long_names) / sizeof(long_names[0])));
	tcase_add_tests(cases, report_of_a_victim, sentences_are_complete, selection, sorted_by_memory,
			line_of_a_control_group, pressure_in_a_control_group, sorted_by_resident_and_committed,
			table_of_causes, rates_of_the_table, table_of_rows, memory_freed_at_the_end,
			memory_of_a_command_that_ended_first, headline_of_rows, nothing_to_see, leaks_without_growth,
			counts_of_mappings, refused_calls_come_first, trend_of_survivors, verdicts_of_rows,
			nothing_unfreed);
	tcase_add_loop_test(cases, place_of_growth_with_swap, 0, 4);
	tcase_add_tests(cases, times_of_readings, parts_of_growth, growth_beside_a_selection,
			growth_partly_shown_by_rows, rows_that_do_not_follow, huge_pages_that_are_mostly_empty);
	tcase_add_loop_test(cases, nothing_unfreed_but_growth, 0, (int)(sizeof(growths) / sizeof(growths[0])));
	tcase_add_tests(cases, unfreed_grows_while_rss_is_level);
	tcase_add_loop_test(cases, nothing_unfreed_with_missing_data, 0, (int)(sizeof(doubts) / sizeof(doubts[0])));
	tcase_add_tests(cases, trust_of_doubtful_stacks, rows_fit_the_terminal, stacks_fit_the_terminal,
			notes_fit_the_terminal, notes_that_are_alike_are_one, first_screen_fits, command_of_the_runtime,
			touched_stack_is_on_the_first_screen, parts_stand_above_if_they_are_the_answer,
			notes_on_missing_names_precede_the_figures, commits_elsewhere_and_lost_calls,
			names_classes_and_windows, reclaim_is_said, failures_and_threads, formats, diff);
	tcase_add_loop_test(cases, verdict_of_diff, 0, 8);
	tcase_add_test(cases, diff_of_unequal_recordings);
	tcase_add_test(cases, diff_of_one_process);
	tcase_add_test(cases, brief_processes_have_no_rate);
	return suite;
}
