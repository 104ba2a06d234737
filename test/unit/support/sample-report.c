// SPDX-License-Identifier: LGPL-2.1-or-later
#include "support/sample-report.h"

#define MIB (1024ull * 1024)
#define RUNTIME_FRAME(name)                                                                                            \
	{                                                                                                              \
		.kind = MMT_FRAME_NATIVE, .function = (name), .raw_function = (name), .module = "libcoreclr.so",       \
		.module_path = "/usr/lib/dotnet/libcoreclr.so"                                                         \
	}

static const struct mmt_frame leak_stack[] = {
    {.kind = MMT_FRAME_NATIVE,
     .function = "mmap",
     .module = "libc.so.6",
     .module_offset = 0x1000,
     .address = 0x7f0000001000},
    {.kind = MMT_FRAME_NATIVE,
     .function = "mmap_allocation",
     .module = "leak.so",
     .source_file = "/src/leak.c",
     .source_line = 18},
    {.kind = MMT_FRAME_JIT, .function = "IL_STUB_PInvoke()", .module = "[jit]", .module_path = "/memfd:doublemapper"},
    {.kind = MMT_FRAME_JIT, .function = "MyTest()", .module = "[jit]", .module_path = "/memfd:doublemapper"},
    RUNTIME_FRAME("CallDescrWorker"),
    RUNTIME_FRAME("RunMain"),
    RUNTIME_FRAME("ExecuteMainMethod"),
    RUNTIME_FRAME("coreclr_execute_assembly"),
    {.kind = MMT_FRAME_NATIVE, .function = "main", .module = "dotnet"},
};

static const struct mmt_frame cut_stack[] = {
    {.kind = MMT_FRAME_NATIVE, .function = "evil\x1b[31m\xff\n", .module = "lib\xc3\xa9.so"},
    {.kind = MMT_FRAME_NATIVE, .module = "plain.so", .module_offset = 0x1234, .doubtful = true},
    {.kind = MMT_FRAME_UNKNOWN, .address = 0xdeadbeef},
};

static const struct mmt_frame *const leak_frames[] = {
    &leak_stack[0], &leak_stack[1], &leak_stack[2], &leak_stack[3], &leak_stack[4],
    &leak_stack[5], &leak_stack[6], &leak_stack[7], &leak_stack[8],
};
static const struct mmt_frame *const cut_frames[] = {&cut_stack[0], &cut_stack[1], &cut_stack[2]};

static const struct mmt_thread threads[] = {{.pid = 3074, .tid = 3074, .name = ".NET"}};
static const int32_t pids[] = {3074};

const struct mmt_row sample_rows[2] = {
    {.id = 1,
     .frames = leak_frames,
     .frame_count = sizeof(leak_frames) / sizeof(leak_frames[0]),
     .origin = 1,
     .unfreed_bytes = 1024 * MIB,
     .unfreed_count = 256,
     .committed_bytes = 1024 * MIB,
     .resident_bytes = 1024 * MIB,
     .allocated_bytes = 1024 * MIB,
     .allocated_count = 256,
     .smallest_bytes = 4 * MIB,
     .largest_bytes = 4 * MIB,
     .first_ns = 2000000000,
     .last_ns = 9000000000,
     .memory_bytes = 1024 * MIB,
     .verdict = MMT_ROW_LEAK,
     .bytes_per_minute = 989 * MIB,
     .mapping_count = 256,
     .trend = {[15] = 512 * MIB, [31] = 1024 * MIB},
     .survivor_trend = {[15] = 512 * MIB, [31] = 1024 * MIB},
     .threads = threads,
     .thread_count = 1,
     .pids = pids,
     .pid_count = 1},
    {.id = 2,
     .frames = cut_frames,
     .frame_count = sizeof(cut_frames) / sizeof(cut_frames[0]),
     .stack_end = MMT_STACK_END_NO_UNWIND_DATA,
     .unfreed_bytes = 12288,
     .unfreed_count = 2,
     .committed_bytes = 4096,
     .reserved_bytes = 8192,
     .resident_bytes = MMT_UNKNOWN,
     .allocated_bytes = 16384,
     .allocated_count = 3,
     .freed_bytes = 4096,
     .freed_count = 1,
     .smallest_bytes = 4096,
     .largest_bytes = 8192,
     .first_ns = 1000000000,
     .last_ns = 1500000000,
     .resident_before_bytes = MMT_UNKNOWN,
     .memory_bytes = 4096,
     .memory_class = MMT_CLASS_FILE,
     .file = "/memfd:evil\x1b[31m (deleted)",
     .file_count = 2,
     .verdict = MMT_ROW_UNDECIDED,
     .trend = {[31] = 12288},
     .survivor_trend = {[31] = 12288},
     .threads = threads,
     .thread_count = 1,
     .pids = pids,
     .pid_count = 1},
};

static const struct mmt_process processes[] = {
    {.pid = 3074,
     .name = "MyConsoleApp",
     .threads = 12,
     .checked = true,
     .checked_mappings = 412,
     .resident_bytes = MMT_UNKNOWN},
};

static const struct mmt_resident_reading readings[] = {
    {1000000000, 100 * MIB, 0}, {2000000000, 101 * MIB, 0}, {63000000000, 100 * MIB, 0}};

struct mmt_report sample_report(void)
{
	return (struct mmt_report){
	    .input = "mmtrace.data",
	    .command_line = "",
	    .host = "",
	    .kernel = "",
	    .recorded_by = "mmtrace 0.1.0",
	    .start_ns = 1000000000,
	    .end_ns = 63100000000,
	    .from_ns = 1000000000,
	    .to_ns = 63100000000,
	    .mapping_limit = 65530,
	    .most_mappings = processes,
	    .events = {[MMT_COUNT_MMAP] = 1333, [MMT_COUNT_MUNMAP] = 5},
	    .completeness = {.stacks_by_end = {[MMT_STACK_END_ENTRY] = 256, [MMT_STACK_END_NO_UNWIND_DATA] = 2},
			     .complete_stacks = 256,
			     .truncated_stacks = 2},
	    .processes = processes,
	    .process_count = 1,
	    .rows = sample_rows,
	    .row_count = 2,
	    .unfreed_bytes = 1024 * MIB + 12288,
	    .committed_bytes = 1024 * MIB + 4096,
	    .reserved_bytes = 8192,
	    .resident_bytes = MMT_UNKNOWN,
	    .allocated_bytes = 1024 * MIB + 16384,
	    .freed_bytes = 4096,
	    .growth = {.verdict = MMT_VERDICT_STEADY,
		       .start_bytes = 100 * MIB,
		       .end_bytes = 100 * MIB,
		       .peak_bytes = 101 * MIB,
		       .start_ns = 1000000000,
		       .end_ns = 63000000000,
		       .peak_ns = 2000000000,
		       .floor_bytes = 256 * 1024},
	    .resident_readings = readings,
	    .resident_reading_count = 3,
	    .judged_readings = readings,
	    .judged_reading_count = 3,
	};
}
