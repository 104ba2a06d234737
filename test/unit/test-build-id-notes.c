// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "capture/recorder/build-id-notes.h"
#include "support/suite.h"

/* A file with one segment of two notes: another vendor's, then the build ID. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr program;
	struct {
		Elf64_Nhdr header;
		char name[8];
		uint8_t content[8];
	} foreign;
	struct {
		Elf64_Nhdr header;
		char name[4];
		uint8_t content[20];
	} build_id;
};

static struct image make_image(void)
{
	struct image image = {
	    .header = {.e_phoff = offsetof(struct image, program), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 1},
	    .program = {.p_type = PT_NOTE,
			.p_offset = offsetof(struct image, foreign),
			.p_filesz = sizeof(image.foreign) + sizeof(image.build_id)},
	    .foreign = {.header = {.n_namesz = 5, .n_descsz = 7, .n_type = NT_GNU_BUILD_ID}, .name = "Test"},
	    .build_id = {.header = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID}, .name = "GNU"},
	};

	memcpy(image.header.e_ident, ELFMAG, SELFMAG);
	image.header.e_ident[EI_CLASS] = ELFCLASS64;
	image.header.e_ident[EI_DATA] = ELFDATA2LSB;
	for (unsigned i = 0; i < 20; i++)
		image.build_id.content[i] = (uint8_t)(0xa0 + i);
	return image;
}

START_TEST(build_id_after_another_note_is_found)
{
	const struct image image = make_image();
	struct build_id_entry entry = {0};

	ck_assert(build_id_notes_find(&image, sizeof(image), &entry));
	ck_assert_uint_eq(entry.size, 20);
	ck_assert_mem_eq(entry.bytes, image.build_id.content, 20);
}
END_TEST

START_TEST(truncation_anywhere_is_safe)
{
	const struct image image = make_image();
	struct build_id_entry entry = {0};

	for (size_t size = 0; size < sizeof(image); size++) {
		/* A copy of exactly this size, so that a sanitizer detects reads beyond it. */
		void *copy = malloc(size ? size : 1);

		memcpy(copy, &image, size);
		ck_assert(!build_id_notes_find(copy, size, &entry));
		free(copy);
	}
}
END_TEST

START_TEST(false_sizes_are_refused)
{
	struct build_id_entry entry = {0};
	struct image image = make_image();

	image.build_id.header.n_descsz = 21;
	ck_assert(!build_id_notes_find(&image, sizeof(image), &entry));
	image = make_image();
	image.build_id.header.n_descsz = 0;
	ck_assert(!build_id_notes_find(&image, sizeof(image), &entry));
	image = make_image();
	image.foreign.header.n_namesz = UINT32_MAX;
	ck_assert(!build_id_notes_find(&image, sizeof(image), &entry));
	image = make_image();
	image.program.p_offset = UINT64_MAX - 8;
	ck_assert(!build_id_notes_find(&image, sizeof(image), &entry));
	image = make_image();
	image.header.e_phoff = UINT64_MAX;
	ck_assert(!build_id_notes_find(&image, sizeof(image), &entry));
	image = make_image();
	image.header.e_phentsize = 8;
	ck_assert(!build_id_notes_find(&image, sizeof(image), &entry));
	image = make_image();
	image.header.e_ident[EI_CLASS] = ELFCLASS32;
	ck_assert(!build_id_notes_find(&image, sizeof(image), &entry));
}
END_TEST

START_TEST(vdso_has_a_build_id)
{
	const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct build_id_entry entry = {0};

	if (!vdso)
		SKIP_TEST("there is no vDSO here");
	ck_assert(build_id_notes_find(vdso, 4096, &entry));
	ck_assert_uint_eq(entry.size, 20);
}
END_TEST

START_TEST(each_file_is_read_once)
{
	struct build_id_notes notes = {0};
	const struct build_id_mapping first = {1, 0x1000, 0x2000, 1, 2, 3, "/a"};
	const struct build_id_mapping again = {2, 0x5000, 0x6000, 1, 2, 3, "/a"};
	const struct build_id_mapping other = {1, 0x3000, 0x4000, 1, 2, 4, "/a"};
	const struct build_id_mapping memory = {1, 0x7000, 0x8000, 0, 0, 0, "//anon"};

	ck_assert_ptr_null(build_id_notes_want(&notes, &first));
	ck_assert_ptr_null(build_id_notes_want(&notes, &again));
	ck_assert_uint_eq(notes.wanted.count, 1);
	ck_assert_ptr_null(build_id_notes_want(&notes, &other));
	ck_assert_ptr_null(build_id_notes_want(&notes, &memory));
	ck_assert_uint_eq(notes.wanted.count, 2);
	build_id_notes_deinit(&notes);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("build-id-notes");
	TCase *notes = add_tcase(suite, "notes");

	tcase_add_tests(notes, build_id_after_another_note_is_found, truncation_anywhere_is_safe,
			false_sizes_are_refused, vdso_has_a_build_id, each_file_is_read_once);
	return suite;
}
