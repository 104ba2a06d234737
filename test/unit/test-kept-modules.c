// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which ELF files are copied into a recording, and how much of them. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "capture/recorder/recorder.h"
#include "support/recorder-state.h"
#include "support/suite.h"
#include "support/temporary.h"

#define MIB (1u << 20)

static struct mmt_record_options options;
static struct recorder recorder;
static struct kept_modules kept;
static struct recording_file file;
static struct module_copies copies;
static int stop_ends[2];
static uint64_t next_inode;

static void set_up(void)
{
	ck_assert_int_eq(pipe(stop_ends), 0);
	mmt_record_options_init(&options);
	options.stop_fd = stop_ends[0];
	recorder = (struct recorder){.options = &options};
	recorder_state_init(&recorder);
	kept = (struct kept_modules){0};
	copies = (struct module_copies){0};
	file = (struct recording_file){.path = (char *)"test", .fd = fileno(tmpfile())};
	next_inode = 1;
}

static void tear_down(void)
{
	module_copies_deinit(&copies);
	kept_modules_deinit(&kept);
	close(stop_ends[0]);
	close(stop_ends[1]);
}

/* A sparse ELF file, by its number; the second descriptor can change its size later. */
static int add_file(uint64_t size)
{
	char path[TEMPORARY_PATH_SIZE];
	struct module_copy image = {.inode = next_inode++, .path = path};
	int fd, writing;

	temporary_name(path);
	writing = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	fd = open(path, O_RDONLY);
	ck_assert_int_ge(writing, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(writing, "\177ELF", 4), 4);
	ck_assert_int_eq(ftruncate(writing, (off_t)size), 0);
	unlink(path);
	ck_assert_ptr_null(kept_modules_add(NULL, &kept, MMT_IMAGES_MISSING, &image, fd, size));
	return writing;
}

/* The part of the section that a report reads. */
static void encode_and_load(void)
{
	struct buffer buffer;

	buffer_init(&buffer, LIMIT_SECTION_BYTES);
	ck_assert_ptr_null(kept_modules_encode(&recorder, &kept, &buffer));
	ck_assert_int_eq(pwrite(file.fd, buffer.data, buffer.size, 0), (ssize_t)buffer.size);
	file.size = buffer.size;
	file.sections[FEATURE_MMTRACE_IMAGES] = (struct file_section){.size = buffer.size, .present = true};
	buffer_deinit(&buffer);
	ck_assert_ptr_null(module_copies_load(&file, &copies));
}

START_TEST(a_growing_file_is_copied_as_it_was)
{
	int first = add_file(4096), second = add_file(8192);
	uint8_t *data;

	ck_assert_int_eq(ftruncate(first, 300ll * MIB), 0);
	encode_and_load();
	ck_assert_uint_eq(copies.images.count, 2);
	ck_assert_uint_eq(copies.images.items[0].size, 4096);
	ck_assert_uint_eq(copies.images.items[1].size, 8192);
	ck_assert_ptr_null(module_copies_extract(&copies, &copies.images.items[0], &data));
	ck_assert_mem_eq(data, "\177ELF", 4);
	free(data);
	close(first);
	close(second);
}
END_TEST

START_TEST(a_shrinking_file_is_copied_up_to_its_end)
{
	int first = add_file(2 * MIB), second = add_file(4096);

	ck_assert_int_eq(ftruncate(first, 5000), 0);
	ck_assert_int_eq(ftruncate(second, 0), 0);
	encode_and_load();
	ck_assert_uint_eq(copies.images.items[0].size, 5000);
	ck_assert_uint_eq(copies.images.items[1].size, 0);
	ck_assert_uint_eq(kept.failed, 1);
	close(first);
	close(second);
}
END_TEST

START_TEST(the_largest_file_is_omitted)
{
	const unsigned sizes_mib[] = {100, 120, 30, 110, 200};
	const unsigned copied_mib[] = {100, 0, 30, 110, 0};

	for (size_t i = 0; i < 5; i++)
		close(add_file((uint64_t)sizes_mib[i] * MIB));
	ck_assert_uint_eq(kept.bytes, 240ull * MIB);
	ck_assert_uint_eq(kept.left_out_count, 2);
	encode_and_load();
	for (size_t i = 0; i < 5; i++)
		ck_assert_uint_eq(copies.images.items[i].size, (uint64_t)copied_mib[i] * MIB);
}
END_TEST

START_TEST(a_second_stop_request_omits_the_remaining_files)
{
	close(add_file(4096));
	close(add_file(4096));
	recorder.stop_requests = 1;
	ck_assert_int_eq(write(stop_ends[1], "12", 2), 2);
	encode_and_load();
	ck_assert_uint_eq(copies.images.count, 2);
	ck_assert_uint_eq(copies.images.items[0].size, 0);
	ck_assert_uint_eq(copies.images.items[1].size, 0);
	ck_assert_uint_eq(kept.interrupted, 2);
}
END_TEST

START_TEST(the_first_stop_request_omits_nothing)
{
	close(add_file(4096));
	recorder.stop_requests = 1;
	ck_assert_int_eq(write(stop_ends[1], "1", 1), 1);
	encode_and_load();
	ck_assert_uint_eq(copies.images.items[0].size, 4096);
	ck_assert_uint_eq(kept.interrupted, 0);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("kept-modules");
	TCase *images = add_tcase(suite, "modules");

	tcase_add_checked_fixture(images, set_up, tear_down);
	tcase_add_tests(images, a_growing_file_is_copied_as_it_was, a_shrinking_file_is_copied_up_to_its_end,
			the_largest_file_is_omitted, a_second_stop_request_omits_the_remaining_files,
			the_first_stop_request_omits_nothing);
	return suite;
}
