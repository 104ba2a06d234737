// SPDX-License-Identifier: LGPL-2.1-or-later
#include "analysis/resolver/resolver-state.h"

#include <check.h>
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/compression.h"
#include "capture/recorder/build-id-notes.h"
#include "support/host.h"
#include "support/suite.h"
#include "trace/format/architecture.h"

#define IMAGES_MAX 4

static const struct architecture architecture = {.elf_machine = HOST_MACHINE};
static struct module_copy images[IMAGES_MAX];
static struct reader_metadata metadata;
static struct mapped_modules mapped;
static char own_path[PATH_MAX];

/* Emulators resolve the link /proc/self/exe, but not the file that it leads to. */
static void find_own_path(void)
{
	ssize_t length = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);

	ck_assert_int_gt(length, 0);
	own_path[length] = 0;
}

static void set_up(void)
{
	metadata = (struct reader_metadata){.architecture = &architecture};
	mapped = (struct mapped_modules){0};
	memset(images, 0, sizeof(images));
	find_own_path();
}

static uint64_t own_inode(void)
{
	struct stat status;

	ck_assert_int_eq(stat(own_path, &status), 0);
	return status.st_ino;
}

static void tear_down(void)
{
	mapped_modules_deinit(&mapped);
}

static void begin(size_t image_count)
{
	metadata.images.images.items = images;
	metadata.images.images.count = image_count;
	ck_assert_ptr_null(mapped_modules_init(&mapped, &metadata, true));
}

static struct module *open_mapped(const char *path, uint64_t inode)
{
	struct space_attributes attributes = {
	    .device_major = 8, .inode = inode, .path = intern_put_string(&mapped.paths, path)};

	ck_assert_uint_ne(attributes.path, INTERN_NONE);
	return mapped_modules_open(&mapped, mapped_modules_image(&mapped, &attributes));
}

/* The inode of a deleted file was reused for the next one. */
START_TEST(reused_inode)
{
	uint64_t inode = own_inode();

	images[0] = (struct module_copy){.device_major = 8, .inode = inode, .path = own_path};
	images[1] = (struct module_copy){.device_major = 8, .inode = inode, .path = (char *)"/gone/second.so"};
	begin(2);
	ck_assert_int_eq(module_state(open_mapped("/gone/second.so", inode)), MODULE_MISSING);
	ck_assert_int_eq(module_state(open_mapped(own_path, inode)), MODULE_READABLE);
}
END_TEST

/* The path names a file that was not mapped. */
START_TEST(replaced_file)
{
	uint64_t inode = own_inode() + 1;

	images[0] = (struct module_copy){.device_major = 8, .inode = inode, .path = own_path};
	begin(1);
	ck_assert_int_eq(module_state(open_mapped(own_path, inode)), MODULE_CHANGED);
}
END_TEST

/* A build ID shows that it is the same file, whatever the inode. */
START_TEST(reused_inode_with_build_ids)
{
	uint64_t inode = own_inode();

	images[0] = (struct module_copy){.device_major = 8, .inode = inode, .path = own_path};
	images[1] = (struct module_copy){
	    .device_major = 8, .inode = inode, .path = (char *)"/gone/second.so", .build_id = {2}, .build_id_size = 20};
	begin(2);
	ck_assert_int_eq(module_state(open_mapped("/gone/second.so", inode)), MODULE_MISSING);
}
END_TEST

static uint8_t *read_own_program(size_t *size_ret)
{
	CLEANUP(fclose) FILE *stream = fopen(own_path, "r");
	struct stat status;
	uint8_t *data;

	ck_assert_int_eq(fstat(fileno(stream), &status), 0);
	*size_ret = (size_t)status.st_size;
	data = malloc(*size_ret);
	ck_assert_uint_eq(fread(data, 1, *size_ret, stream), *size_ret);
	return data;
}

/* A copy of the module, with these bytes, in a separate file. */
static struct recording_file keep_copy(struct module_copy *image, const void *data, size_t size)
{
	struct module_copies copies = {.images = {images, 1, 1}};
	struct compressor compressor = {0};
	struct recording_file file = {.path = (char *)"test", .fd = fileno(tmpfile())};
	struct buffer buffer;

	buffer_init(&buffer, 1 << 24);
	module_copies_encode_index(&copies, &buffer);
	image->offset = (uint32_t)buffer.size;
	ck_assert_ptr_null(compressor_init(&compressor));
	ck_assert_ptr_null(compressor_frame(&compressor, data, size, &buffer));
	compressor_deinit(&compressor);
	image->stored = (uint32_t)(buffer.size - image->offset);
	image->size = size;
	ck_assert_int_eq(pwrite(file.fd, buffer.data, buffer.size, 0), (ssize_t)buffer.size);
	file.size = buffer.size;
	file.sections[FEATURE_MMTRACE_IMAGES] = (struct file_section){.size = buffer.size, .present = true};
	buffer_deinit(&buffer);
	return file;
}

/* The same build under another path is the same file and shares the copy. Without build IDs it may be another one. */
START_TEST(copy_under_another_path)
{
	size_t size;
	CLEANUP(free) uint8_t *data = read_own_program(&size);
	struct build_id_entry own = {0};
	struct recording_file file;

	ck_assert(build_id_notes_find(data, size, &own));
	for (int i = 0; i < 2; i++) {
		images[i] = (struct module_copy){.device_major = 8, .inode = 77, .build_id_size = own.size};
		memcpy(images[i].build_id, own.bytes, own.size);
		images[i + 2] = (struct module_copy){.device_major = 8, .inode = 78};
	}
	images[0].path = images[2].path = (char *)"/elsewhere/program";
	images[1].path = images[3].path = (char *)"/gone/program";
	file = keep_copy(&images[0], data, size);
	images[2].offset = images[0].offset;
	images[2].stored = images[0].stored;
	images[2].size = images[0].size;
	metadata.images.file = &file;
	begin(4);
	ck_assert_int_eq(module_state(open_mapped("/gone/program", 77)), MODULE_READABLE);
	ck_assert_int_eq(module_state(open_mapped("/elsewhere/program", 78)), MODULE_READABLE);
	ck_assert_int_eq(module_state(open_mapped("/gone/program", 78)), MODULE_MISSING);
	close(file.fd);
}
END_TEST

/* An existing file is better than an unreadable copy. */
START_TEST(damaged_copy)
{
	struct recording_file file;

	images[0] = (struct module_copy){.device_major = 8, .inode = own_inode(), .path = own_path};
	file = keep_copy(&images[0], "no program at all", 17);
	metadata.images.file = &file;
	begin(1);
	ck_assert_int_eq(module_state(open_mapped(own_path, own_inode())), MODULE_READABLE);
	close(file.fd);
}
END_TEST

START_TEST(each_path_is_reported_once)
{
	enum module_state state;
	size_t position = 0;
	char *missing;

	begin(0);
	(void)open_mapped("/gone/one.so", 5);
	(void)open_mapped("/gone/one.so", 6);
	(void)open_mapped(own_path, own_inode());
	(void)open_mapped("/gone/two.so", 8);
	for (int again = 0; again < 2; again++) {
		position = 0;
		ck_assert_str_eq(mapped_modules_unusable(&mapped, &position, &state, &missing), "/gone/one.so");
		ck_assert_int_eq(state, MODULE_MISSING);
		ck_assert_ptr_null(missing);
		ck_assert_str_eq(mapped_modules_unusable(&mapped, &position, &state, &missing), "/gone/two.so");
		ck_assert_ptr_null(mapped_modules_unusable(&mapped, &position, &state, &missing));
		position = 0; /* the missing part is not used */
		ck_assert_str_eq(mapped_modules_unusable(&mapped, &position, &state, NULL), "/gone/one.so");
	}
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("mapped-modules");
	TCase *tests = add_tcase(suite, "mapped modules");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, reused_inode, reused_inode_with_build_ids, copy_under_another_path, replaced_file,
			damaged_copy, each_path_is_reported_once);
	return suite;
}
