// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>

#include "base/limits.h"
#include "support/section.h"
#include "support/suite.h"
#include "trace/sections/section-codec.h"
#include "trace/format/format.h"
#include "trace/sections/sections.h"

/* Two frames, the first with an inlined function; a stack of both, and one that stands for lost calls. */
static struct packed_stacks make_stacks(void)
{
	struct packed_stacks stacks = {0};
	struct packed_name name = {
	    .address = 0x7f0000001234, .module_offset = 0x1234, .source_line = 12, .inlined = true};
	struct packed_frame frames[] = {{.first_name = 0, .name_count = 2},
					{.first_name = 2, .name_count = 1, .lookup = PACKED_LOOKUP_RETURN_ADDRESS}};
	struct packed_stack both = {.end = MMT_STACK_END_NO_UNWIND_DATA, .first_frame = 0, .frame_count = 2};
	struct packed_stack lost = {.end = STACK_END_LOST, .first_frame = 2};
	struct packed_stack newer = {.end = 77, .first_frame = 2};
	struct packed_process process = {.names = {.has_perf_map = true, .other_clock = true, .dropped_lines = 7},
					 .unchecked_frames = true,
					 .stacks_end_there = true};
	struct packed_module module = {.state = 2};

	ck_assert(packed_stacks_put_text(&stacks, "allocate", &name.function));
	ck_assert(packed_stacks_put_text(&stacks, "_Z8allocatev", &name.raw_function));
	ck_assert(packed_stacks_put_text(&stacks, "libdemo.so", &name.module));
	ck_assert(packed_stacks_put_text(&stacks, "/opt/libdemo.so", &name.module_path));
	ck_assert(packed_stacks_put_text(&stacks, NULL, &name.source_file));
	ck_assert(vector_push(&stacks.names, name));
	name.inlined = false;
	name.doubtful = true;
	name.kind = 1;
	ck_assert(vector_push(&stacks.names, name));
	ck_assert(vector_push(&stacks.names, name));
	ck_assert(vector_push(&stacks.frames, frames[0]));
	ck_assert(vector_push(&stacks.frames, frames[1]));
	ck_assert(vector_push(&stacks.stack_frames, 1));
	ck_assert(vector_push(&stacks.stack_frames, 0));
	ck_assert(vector_push(&stacks.stacks, both));
	ck_assert(vector_push(&stacks.stacks, lost));
	ck_assert(vector_push(&stacks.stacks, newer));
	ck_assert(packed_stacks_put_text(&stacks, "dotnet", &process.runtime));
	ck_assert(packed_stacks_put_text(&stacks, "broken", &process.jitdump_failure));
	ck_assert(vector_push(&stacks.processes, process));
	ck_assert(packed_stacks_put_text(&stacks, "/opt/gone", &module.path));
	ck_assert(packed_stacks_put_text(&stacks, "/opt/gone.dwo", &module.missing));
	ck_assert(vector_push(&stacks.modules, module));
	ck_assert(packed_stacks_put_text(&stacks, NULL, &stacks.damage));
	return stacks;
}

static struct mmt_error *round_trip(const struct packed_stacks *stacks, struct packed_stacks *read_ret)
{
	struct mmt_error *error;
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(section_write(&section_stacks, stacks, &buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_stacks, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, read_ret);
	buffer_deinit(&buffer);
	return error;
}

START_TEST(everything_is_restored)
{
	struct packed_stacks stacks = make_stacks(), read = {0};

	ck_assert_ptr_null(round_trip(&stacks, &read));
	ck_assert_uint_eq(read.names.count, 3);
	ck_assert_str_eq(packed_stacks_text(&read, read.names.items[0].function), "allocate");
	ck_assert_str_eq(packed_stacks_text(&read, read.names.items[2].raw_function), "_Z8allocatev");
	ck_assert_str_eq(packed_stacks_text(&read, read.names.items[0].module_path), "/opt/libdemo.so");
	ck_assert_ptr_null(packed_stacks_text(&read, read.names.items[0].source_file));
	ck_assert_uint_eq(read.names.items[0].address, 0x7f0000001234);
	ck_assert_uint_eq(read.names.items[0].module_offset, 0x1234);
	ck_assert_uint_eq(read.names.items[0].source_line, 12);
	ck_assert(read.names.items[0].inlined && !read.names.items[0].doubtful);
	ck_assert(!read.names.items[1].inlined && read.names.items[1].doubtful);
	ck_assert_uint_eq(read.names.items[1].kind, 1);
	ck_assert_uint_eq(read.frames.count, 2);
	ck_assert_uint_eq(read.frames.items[0].name_count, 2);
	ck_assert_uint_eq(read.frames.items[1].first_name, 2);
	ck_assert_int_eq(read.frames.items[0].lookup, PACKED_LOOKUP_NONE);
	ck_assert_int_eq(read.frames.items[1].lookup, PACKED_LOOKUP_RETURN_ADDRESS);
	ck_assert_uint_eq(read.stacks.count, 3);
	ck_assert_uint_eq(read.stacks.items[0].end, 3);
	ck_assert_uint_eq(read.stack_frames.items[read.stacks.items[0].first_frame], 1);
	ck_assert_uint_eq(read.stacks.items[1].end, STACK_END_LOST);
	ck_assert_uint_eq(read.stacks.items[1].frame_count, 0);
	ck_assert_uint_eq(read.stacks.items[2].end, MMT_STACK_END_INVALID);
	ck_assert_str_eq(packed_stacks_text(&read, read.processes.items[0].runtime), "dotnet");
	ck_assert(read.processes.items[0].names.has_perf_map && read.processes.items[0].names.other_clock &&
		  read.processes.items[0].unchecked_frames && read.processes.items[0].stacks_end_there);
	ck_assert(!read.processes.items[0].names.has_jitdump);
	ck_assert_str_eq(read.processes.items[0].names.jitdump_failure, "broken");
	ck_assert_uint_eq(read.processes.items[0].names.dropped_lines, 7);
	ck_assert_str_eq(packed_stacks_text(&read, read.modules.items[0].path), "/opt/gone");
	ck_assert_uint_eq(read.modules.items[0].state, 2);
	ck_assert_str_eq(packed_stacks_text(&read, read.modules.items[0].missing), "/opt/gone.dwo");
	ck_assert_ptr_null(packed_stacks_text(&read, read.damage));
	section_stacks.deinit(&read);
	section_stacks.deinit(&stacks);
}
END_TEST

START_TEST(unfinished_recording_names_omitted_parts)
{
	struct packed_stacks read = {0}, stacks = {.unfinished_records = 7,
						   .unfinished_ns = UINT64_C(5000000000),
						   .damage = RESOLVED_NO_TEXT};

	ck_assert_ptr_null(round_trip(&stacks, &read));
	ck_assert_uint_eq(read.unfinished_records, 7);
	ck_assert_uint_eq(read.unfinished_ns, UINT64_C(5000000000));
	section_stacks.deinit(&read);
	section_stacks.deinit(&stacks);
}
END_TEST

START_TEST(older_versions_are_refused)
{
	struct packed_stacks stacks = make_stacks(), read;
	size_t room = LIMIT_UNPACKED_BYTES;
	struct mmt_error *error;
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(section_write(&section_stacks, &stacks, &buffer));
	ck_assert_uint_eq(buffer.data[0], 6); /* tools that would wait for the samples of stack dumps refuse it */
	buffer_patch(&buffer, 0, 4, sizeof(uint32_t));
	bytes = bytes_over(buffer.data, buffer.size);
	error = section_read(&section_stacks, &bytes, &room, &read);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_UNSUPPORTED);
	ck_assert_ptr_nonnull(strstr(error->message, "an older version"));
	mmt_error_destroy(error);
	section_stacks.deinit(&stacks);
	buffer_deinit(&buffer);
}
END_TEST

/* Invalid numbers are refused when they are read, so that later code need not check. */
START_TEST(invalid_numbers_are_refused)
{
	static const char *const expected[] = {"number of a text that does not exist",
					       "number of a name that does not exist",
					       "number of a frame that does not exist",
					       "number of a process that does not exist",
					       "number of a name that does not exist",
					       "ELF file without a path",
					       "unknown kind of frame"};

	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		struct packed_stacks stacks = make_stacks(), read = {0};
		struct mmt_error *error;

		switch (i) {
		case 0:
			stacks.names.items[1].module = 77;
			break;
		case 1:
			stacks.frames.items[1].name_count = 2;
			break;
		case 2:
			stacks.stack_frames.items[0] = 2;
			break;
		case 3:
			stacks.frames.items[0].process = 1;
			break;
		case 4:
			stacks.frames.items[0].name_count = 0;
			break;
		case 5:
			stacks.modules.items[0].path = RESOLVED_NO_TEXT;
			break;
		default:
			stacks.names.items[0].kind = 3;
		}
		error = round_trip(&stacks, &read);
		ck_assert_ptr_nonnull(error);
		ck_assert_msg(strstr(error->message, expected[i]) != NULL, "%s instead of %s", error->message,
			      expected[i]);
		ck_assert_uint_eq(read.stacks.count, 0);
		mmt_error_destroy(error);
		section_stacks.deinit(&stacks);
	}
}
END_TEST

START_TEST(truncation_anywhere_is_refused)
{
	struct packed_stacks stacks = make_stacks();
	struct buffer buffer;

	buffer_init(&buffer, 1 << 20);
	ck_assert_ptr_null(section_write(&section_stacks, &stacks, &buffer));
	for (size_t size = 0; size < buffer.size; size++) {
		struct bytes bytes = bytes_over(buffer.data, size);
		struct packed_stacks read = {0};
		struct mmt_error *error = section_read(&section_stacks, &bytes, &(size_t){LIMIT_UNPACKED_BYTES}, &read);

		ck_assert_msg(error != NULL, "cut at %zu", size);
		ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
		mmt_error_destroy(error);
	}
	buffer_deinit(&buffer);
	section_stacks.deinit(&stacks);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("packed-stacks");
	TCase *tests = add_tcase(suite, "resolved-stacks");

	tcase_add_tests(tests, everything_is_restored, unfinished_recording_names_omitted_parts);
	tcase_add_tests(tests, older_versions_are_refused, invalid_numbers_are_refused, truncation_anywhere_is_refused);
	return suite;
}
