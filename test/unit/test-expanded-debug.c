// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads this program's own debug information, linked with compressed sections (see test/CMakeLists.txt), and compares
 * with what libdw itself finds in it.
 */
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/names/dwarf-names.h"
#include "code/names/debug-files.h"
#include "code/names/line-tables.h"
#include "support/suite.h"
#include "support/temporary.h"

#define ADDRESS_STEP 3

struct sample {
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	uint64_t start, end;  /* of .text */
	uint64_t info_header; /* offset of the section's header */
	uint64_t info_offset, info_size;
	bool info_compressed, has_addresses;
};

static struct sample sample;

static bool look_at_sample(void)
{
	Elf_Scn *section = NULL;
	size_t names;

	elf_version(EV_CURRENT);
	sample = (struct sample){.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
	sample.elf = elf_begin(sample.fd, ELF_C_READ, NULL);
	if (!sample.elf || elf_getshdrstrndx(sample.elf, &names))
		return false;
	while ((section = elf_nextscn(sample.elf, section))) {
		GElf_Shdr header;
		const char *name;

		gelf_getshdr(section, &header);
		name = elf_strptr(sample.elf, names, header.sh_name);
		if (!strcmp(name, ".text")) {
			sample.start = header.sh_addr;
			sample.end = header.sh_addr + header.sh_size;
		} else if (!strcmp(name, ".debug_info")) {
			sample.info_header =
			    elf64_getehdr(sample.elf)->e_shoff + elf_ndxscn(section) * sizeof(Elf64_Shdr);
			sample.info_compressed = header.sh_flags & SHF_COMPRESSED;
			sample.info_offset = header.sh_offset;
			sample.info_size = header.sh_size;
		} else if (!strcmp(name, ".debug_addr")) {
			sample.has_addresses = true;
		}
	}
	sample.dwarf = dwarf_begin_elf(sample.elf, DWARF_C_READ, NULL);
	return sample.dwarf;
}

static void open_sample(void)
{
	ck_assert(look_at_sample());
}

static void close_sample(void)
{
	dwarf_end(sample.dwarf);
	elf_end(sample.elf);
	close(sample.fd);
}

static struct debug_image *expand(void)
{
	int fd = expanded_debug_create(sample.fd, 1);
	struct debug_image *image;
	struct stat status;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &status), 0);
	ck_assert_uint_eq(status.st_nlink, 0);
	image = debug_image_open(fd);
	ck_assert_ptr_nonnull(image);
	close(fd);
	return image;
}

static void check_text(const char *left, const char *right)
{
	ck_assert_int_eq(!left, !right);
	if (left)
		ck_assert_str_eq(left, right);
}

static void check_frames(struct dwarf_names *left, struct dwarf_names *right, uint64_t address)
{
	struct debug_frame a[DWARF_NAMES_INLINE_MAX], b[DWARF_NAMES_INLINE_MAX];
	size_t count = dwarf_names_find(left, address, a, DWARF_NAMES_INLINE_MAX);

	ck_assert_uint_eq(count, dwarf_names_find(right, address, b, DWARF_NAMES_INLINE_MAX));
	for (size_t i = 0; i < count; i++) {
		check_text(a[i].name, b[i].name);
		check_text(a[i].linkage_name, b[i].linkage_name);
		check_text(a[i].source_file, b[i].source_file);
		check_text(a[i].directory, b[i].directory);
		ck_assert_uint_eq(a[i].source_line, b[i].source_line);
		ck_assert_uint_eq(a[i].inlined, b[i].inlined);
	}
}

/* Also after its memory was released partway. */
START_TEST(decompressed_file_has_the_same_names)
{
	struct debug_image *image = expand();
	struct dwarf_names *own, *expanded;
	uint64_t address;

	ck_assert_ptr_null(dwarf_names_create(sample.dwarf, "/proc/self/exe", &own));
	ck_assert_ptr_null(dwarf_names_create(debug_image_dwarf(image), "/proc/self/exe", &expanded));
	for (uint64_t i = 0; i < 2; i++) {
		for (uint64_t at = sample.start + i; at < sample.end; at += ADDRESS_STEP)
			check_frames(own, expanded, at);
		debug_image_release(image);
	}
	ck_assert_uint_gt(dwarf_names_bytes_read(expanded), 0);
	ck_assert_int_eq(dwarf_names_state(expanded), DWARF_NAMES_SOUND);
	ck_assert(debug_image_address(image, &address));
	dwarf_names_destroy(own);
	dwarf_names_destroy(expanded);
	debug_image_close(image);
}
END_TEST

/* libdw's own answer about a line. */
static bool oracle_line(Dwarf_Die *unit, uint64_t address, const char **file_ret, int *number_ret)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);

	if (!line || dwarf_lineno(line, number_ret) || *number_ret <= 0)
		return false;
	*file_ret = dwarf_linesrc(line, NULL, NULL);
	return true;
}

/* Every unit at every address, including addresses outside the unit and between its lines. */
START_TEST(lines_match_libdw)
{
	struct line_tables *tables = line_tables_create(sample.dwarf);
	Dwarf_CU *position = NULL;
	Dwarf_Die unit;
	size_t found = 0, none = 0;

	while (!dwarf_get_units(sample.dwarf, position, &position, NULL, NULL, &unit, NULL)) {
		const struct unit_lines *lines = line_tables_of_unit(tables, &unit);

		ck_assert_ptr_eq(lines, line_tables_of_unit(tables, &unit));
		for (uint64_t at = sample.start; lines && at < sample.end; at += ADDRESS_STEP) {
			const char *expected = NULL, *file = NULL;
			uint32_t line = 0;
			int number = 0;
			bool known = oracle_line(&unit, at, &expected, &number);

			ck_assert_int_eq(known, unit_lines_find(lines, at, &file, &line));
			check_text(expected, file);
			ck_assert_uint_eq((uint32_t)number * known, line);
			found += known;
			none += !known;
		}
	}
	ck_assert_uint_gt(found, 1000);
	ck_assert_uint_gt(none, 1000);
	line_tables_destroy(tables);
}
END_TEST

START_TEST(small_sections_are_not_decompressed)
{
	ck_assert_int_eq(expanded_debug_create(sample.fd, UINT64_C(1) << 40), -1);
	ck_assert_int_eq(expanded_debug_create(-1, 1), -1);
}
END_TEST

START_TEST(no_directory_to_write_to)
{
	const char *before = getenv("TMPDIR");
	char *kept = before ? strdup(before) : NULL;

	setenv("TMPDIR", "/nonexistent", 1);
	ck_assert_int_eq(expanded_debug_create(sample.fd, 1), -1);
	/* No file can be created there. */
	setenv("TMPDIR", "/proc/self", 1);
	ck_assert_int_eq(expanded_debug_create(sample.fd, 1), -1);
	if (kept)
		setenv("TMPDIR", kept, 1);
	else
		unsetenv("TMPDIR");
	free(kept);
}
END_TEST

/* Like a full disk: a part of it can be written. */
START_TEST(no_space_for_the_file)
{
	struct rlimit before, small;
	int expanded;

	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 1 << 16;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	ck_assert_int_eq(expanded_debug_create(sample.fd, 1), -1);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	expanded = expanded_debug_create(sample.fd, 1);
	ck_assert_int_ge(expanded, 0);
	close(expanded);
}
END_TEST

/* A copy of the sample, with other bytes at `offset`, or truncated. */
static int copy_changed(uint64_t offset, const void *bytes, size_t size, uint64_t end)
{
	char path[TEMPORARY_PATH_SIZE];
	struct stat status;
	char *content;
	int fd;

	temporary_name(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(sample.fd, &status), 0);
	content = malloc((size_t)status.st_size);
	ck_assert_int_eq(pread(sample.fd, content, (size_t)status.st_size, 0), status.st_size);
	ck_assert_int_eq(write(fd, content, (size_t)status.st_size), status.st_size);
	free(content);
	temporary_remove(path);
	if (size)
		ck_assert_int_eq(pwrite(fd, bytes, size, (off_t)offset), (ssize_t)size);
	if (end)
		ck_assert_int_eq(ftruncate(fd, (off_t)end), 0);
	return fd;
}

static int create_changed(uint64_t offset, const void *bytes, size_t size, uint64_t end)
{
	int fd = copy_changed(offset, bytes, size, end);
	int expanded = expanded_debug_create(fd, 1);

	close(fd);
	if (expanded >= 0)
		close(expanded);
	return expanded;
}

START_TEST(damaged_sections_are_refused)
{
	const uint64_t sizes[] = {0, 1, UINT64_MAX, UINT64_C(1) << 32};
	const uint16_t wrong_index = 0xfeff;
	uint64_t size;

	ck_assert_int_ge(create_changed(0, NULL, 0, 0), 0);
	ck_assert_int_eq(create_changed(sample.info_offset + sample.info_size / 2, "\xff\xff\0\xff", 4, 0), -1);
	ck_assert_int_eq(create_changed(0, NULL, 0, sample.info_offset + sample.info_size / 2), -1);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		ck_assert_int_eq(
		    create_changed(sample.info_offset + offsetof(Elf64_Chdr, ch_size), &sizes[i], sizeof(*sizes), 0),
		    -1);
	/* One byte more, or fewer, than the decompressed size. */
	ck_assert_int_eq(
	    pread(sample.fd, &size, sizeof(size), (off_t)(sample.info_offset + offsetof(Elf64_Chdr, ch_size))),
	    sizeof(size));
	for (int i = -1; i <= 1; i += 2) {
		uint64_t other = size + (uint64_t)i;

		ck_assert_int_eq(
		    create_changed(sample.info_offset + offsetof(Elf64_Chdr, ch_size), &other, sizeof(other), 0), -1);
	}
	ck_assert_int_eq(create_changed(offsetof(Elf64_Ehdr, e_shstrndx), &wrong_index, sizeof(wrong_index), 0), -1);
	ck_assert_int_eq(create_changed(0, "MZ", 2, 0), -1);
}
END_TEST

static volatile sig_atomic_t begun;

static void note_writing(int number)
{
	(void)number;
	begun = 1;
}

/* No file is created for sections whose claimed size is impossible for their bytes or exceeds the limit. */
/* Code and data of large programs are not copied. */
START_TEST(only_sections_with_names_are_kept)
{
	int fd = expanded_debug_create(sample.fd, 1);
	size_t names, kept = 0;
	Elf_Scn *section = NULL;
	Elf *elf;

	ck_assert_int_ge(fd, 0);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	ck_assert_ptr_nonnull(elf);
	ck_assert_int_eq(elf_getshdrstrndx(elf, &names), 0);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		ck_assert_ptr_nonnull(gelf_getshdr(section, &header));
		name = elf_strptr(elf, names, header.sh_name);
		ck_assert_ptr_nonnull(name);
		if (header.sh_type == SHT_NOBITS)
			continue;
		ck_assert(!strncmp(name, ".debug_", 7) || !strcmp(name, ".shstrtab"));
		kept++;
	}
	ck_assert_uint_ge(kept, 5); /* info, abbrev, line, str and the names of the sections */
	elf_end(elf);
	close(fd);
}
END_TEST

START_TEST(impossible_sizes_are_refused)
{
	const uint64_t claims[] = {sample.info_size * 1100, (UINT64_C(8) << 30) + 1, UINT64_MAX};
	struct rlimit before, none;

	signal(SIGXFSZ, note_writing);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	for (size_t i = 0; i < 2 * sizeof(claims) / sizeof(*claims); i++) {
		uint64_t place = sample.info_offset + offsetof(Elf64_Chdr, ch_size);
		/* flags, address, offset and size: as if it were not compressed */
		const uint64_t plain[] = {0, 0, sample.info_offset, claims[i / 2]};
		int fd, limited, expanded;

		if (i == 1) /* of bytes as they are: that many may be */
			continue;
		if (i % 2)
			fd = copy_changed(sample.info_header + offsetof(Elf64_Shdr, sh_flags), plain, sizeof(plain), 0);
		else
			fd = copy_changed(place, &claims[i / 2], sizeof(*claims), 0);
		limited = setrlimit(RLIMIT_FSIZE, &none); /* no assertion below it: they are written to a file */
		expanded = expanded_debug_create(fd, 1);
		limited |= setrlimit(RLIMIT_FSIZE, &before);
		ck_assert_int_eq(limited, 0);
		ck_assert_int_eq(expanded, -1);
		ck_assert(!begun);
		close(fd);
	}
}
END_TEST

/* On a separate file system. */
static int create_on_disk(const char *directory, uint64_t bytes)
{
	char options[64];
	int fd;

	snprintf(options, sizeof(options), "size=%llu", (unsigned long long)bytes);
	ck_assert_int_eq(mount("none", directory, "tmpfs", 0, options), 0);
	setenv("TMPDIR", directory, 1);
	fd = expanded_debug_create(sample.fd, 1);
	if (fd >= 0)
		close(fd);
	ck_assert_int_eq(umount2(directory, MNT_DETACH), 0);
	return fd;
}

START_TEST(half_of_the_free_space_is_left)
{
	char directory[TEMPORARY_PATH_SIZE];
	int fd = expanded_debug_create(sample.fd, 1);
	struct stat status;

	ck_assert_int_eq(fstat(fd, &status), 0);
	close(fd);
	temporary_directory(directory);
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		SKIP_TEST("no private mounts can be made here"); /* only root can */
	ck_assert_int_ge(create_on_disk(directory, (uint64_t)status.st_size * 5 / 2), 0);
	ck_assert_int_eq(create_on_disk(directory, (uint64_t)status.st_size * 3 / 2), -1);
}
END_TEST

/* Sections of another compiler refer to .debug_addr, or are not compressed. */
static bool is_compressed(void)
{
	bool compressed = look_at_sample() && sample.info_compressed && !sample.has_addresses;

	close_sample();
	return compressed;
}

Suite *test_suite(void)
{
	Suite *suite = suite_create("expanded-debug");
	TCase *cases = add_tcase(suite, "expanded-debug");

	if (!is_compressed())
		skip_suite("this compiler's debug information is not compressed, or has .debug_addr");
	tcase_add_checked_fixture(cases, open_sample, close_sample);
	tcase_set_timeout(cases, 600);
	tcase_add_tests(cases, decompressed_file_has_the_same_names, lines_match_libdw,
			small_sections_are_not_decompressed, no_directory_to_write_to, no_space_for_the_file,
			damaged_sections_are_refused, only_sections_with_names_are_kept, impossible_sizes_are_refused,
			half_of_the_free_space_is_left);
	return suite;
}
