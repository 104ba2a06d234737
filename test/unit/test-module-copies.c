// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/suite.h"
#include "base/compression.h"
#include "base/limits.h"
#include "trace/sections/sections.h"

static const char content[] = "what the program file held, and some more of it";

/* A file that contains only the section: two modules, the second with a copy in two frames. */
static struct recording_file make_file(struct buffer *buffer)
{
	struct recording_file file = {.path = (char *)"test", .fd = fileno(tmpfile())};
	struct module_copy images[] = {
	    {.device_major = 8, .device_minor = 1, .inode = 77, .path = (char *)"/lib/plain.so"},
	    {.device_minor = 44, .inode = 5, .path = (char *)"/app/program", .build_id = {1, 2, 3}, .build_id_size = 3},
	};
	struct module_copies copies = {.images = {images, 2, 2}};
	struct compressor compressor = {0};

	buffer_init(buffer, 4096);
	module_copies_encode_index(&copies, buffer);
	images[1].offset = (uint32_t)buffer->size;
	ck_assert_ptr_null(compressor_init(&compressor));
	ck_assert_ptr_null(compressor_frame(&compressor, content, 10, buffer));
	ck_assert_ptr_null(compressor_frame(&compressor, content + 10, sizeof(content) - 10, buffer));
	compressor_deinit(&compressor);
	images[1].stored = (uint32_t)buffer->size - images[1].offset;
	images[1].size = sizeof(content);
	module_copies_encode_index(&copies, buffer);
	return file;
}

static void write_file(struct recording_file *file, const struct buffer *buffer, size_t size)
{
	ck_assert_int_eq(ftruncate(file->fd, 0), 0);
	ck_assert_int_eq(pwrite(file->fd, buffer->data, size, 0), (ssize_t)size);
	file->size = size;
	file->sections[FEATURE_MMTRACE_IMAGES] = (struct file_section){.size = size, .present = true};
}

START_TEST(round_trip)
{
	struct module_copies copies = {0};
	struct buffer buffer;
	struct recording_file file = make_file(&buffer);
	uint8_t *data;

	write_file(&file, &buffer, buffer.size);
	ck_assert_ptr_null(module_copies_load(&file, &copies));
	ck_assert_uint_eq(copies.images.count, 2);
	ck_assert_str_eq(copies.images.items[0].path, "/lib/plain.so");
	ck_assert_uint_eq(copies.images.items[0].device_major, 8);
	ck_assert_uint_eq(copies.images.items[0].inode, 77);
	ck_assert_uint_eq(copies.images.items[0].size, 0);
	ck_assert_uint_eq(copies.images.items[0].build_id_size, 0);
	ck_assert_uint_eq(copies.images.items[1].device_minor, 44);
	ck_assert_uint_eq(copies.images.items[1].build_id_size, 3);
	ck_assert_uint_eq(copies.images.items[1].build_id[2], 3);
	ck_assert_uint_eq(copies.images.items[1].size, sizeof(content));
	ck_assert_ptr_null(module_copies_extract(&copies, &copies.images.items[1], &data));
	ck_assert_mem_eq(data, content, sizeof(content));
	free(data);
	module_copies_deinit(&copies);
	buffer_deinit(&buffer);
	close(file.fd);
}
END_TEST

/* Truncated anywhere, it or its copy is refused. */
START_TEST(truncation_anywhere_is_refused)
{
	struct buffer buffer;
	struct recording_file file = make_file(&buffer);

	for (size_t size = 0; size < buffer.size; size++) {
		struct module_copies copies = {0};
		struct mmt_error *error;

		write_file(&file, &buffer, size);
		error = module_copies_load(&file, &copies);
		ck_assert_ptr_nonnull(error);
		ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
		ck_assert_uint_eq(copies.images.count, 0);
		mmt_error_destroy(error);
	}
	buffer_deinit(&buffer);
	close(file.fd);
}
END_TEST

/* False claims about the copy cause an error and use no more memory than the claimed size. */
START_TEST(copies_of_a_wrong_size_are_refused)
{
	const uint64_t sizes[] = {1, sizeof(content) - 1, sizeof(content) + 1, 1 << 20};
	struct buffer buffer;
	struct recording_file file = make_file(&buffer);

	write_file(&file, &buffer, buffer.size);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct module_copies copies = {0};
		struct mmt_error *error;
		uint8_t *data = NULL;

		ck_assert_ptr_null(module_copies_load(&file, &copies));
		copies.images.items[1].size = sizes[i];
		error = module_copies_extract(&copies, &copies.images.items[1], &data);
		ck_assert_ptr_nonnull(error);
		ck_assert_ptr_nonnull(strstr(error->message, "copy of /app/program"));
		mmt_error_destroy(error);
		module_copies_deinit(&copies);
	}
	buffer_deinit(&buffer);
	close(file.fd);
}
END_TEST

/* Many copies of the same few bytes, or of more bytes than programs can have, are not unpacked. */
START_TEST(overlapping_or_excessive_copies_are_refused)
{
	struct module_copy images[3] = {
	    {.inode = 1, .path = (char *)"/a"}, {.inode = 2, .path = (char *)"/b"}, {.inode = 3, .path = (char *)"/c"}};
	struct module_copies copies = {.images = {images, 3, 3}}, read = {0};
	struct recording_file file;
	struct mmt_error *error;
	struct buffer buffer;

	file = make_file(&buffer);
	for (unsigned lie = 0; lie < 3; lie++) {
		size_t offset;

		buffer_clear(&buffer);
		module_copies_encode_index(&copies, &buffer);
		offset = buffer.size;
		buffer_put(&buffer, content, 30);
		for (size_t i = 0; i < 3; i++) {
			images[i].offset = (uint32_t)(offset + 10 * i - (lie == 1 && i == 2));
			images[i].stored = 10;
			images[i].size = lie == 2 ? LIMIT_IMAGE_BYTES / 2 : 10;
		}
		module_copies_encode_index(&copies, &buffer);
		write_file(&file, &buffer, buffer.size);
		error = module_copies_load(&file, &read);
		ck_assert_int_eq(error == NULL, lie == 0);
		if (error)
			ck_assert_int_eq(error->code, MMT_ERROR_FORMAT);
		ck_assert_uint_eq(read.images.count, lie ? 0 : 3);
		mmt_error_destroy(error);
		module_copies_deinit(&read);
	}
	buffer_deinit(&buffer);
	close(file.fd);
}
END_TEST

START_TEST(newer_versions_are_refused)
{
	struct module_copies copies = {0};
	struct buffer buffer;
	struct recording_file file = make_file(&buffer);
	struct mmt_error *error;

	buffer_patch(&buffer, 0, 99, sizeof(uint32_t));
	write_file(&file, &buffer, buffer.size);
	error = module_copies_load(&file, &copies);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_UNSUPPORTED);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
	close(file.fd);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("module-copies");
	TCase *tests = add_tcase(suite, "module copies");

	tcase_add_tests(tests, round_trip, truncation_anywhere_is_refused, copies_of_a_wrong_size_are_refused,
			overlapping_or_excessive_copies_are_refused, newer_versions_are_refused);
	return suite;
}
