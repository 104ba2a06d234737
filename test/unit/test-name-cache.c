// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code/names/name-cache.h"
#include "support/suite.h"
#include "support/temporary.h"

static char base[TEMPORARY_PATH_SIZE], directory[TEMPORARY_PATH_SIZE + 32];

static struct name_cache_key make_key(uint8_t first)
{
	struct name_cache_key key = {
	    .build_id = {first, 1, 2, 3},
	    .build_id_size = 20,
	    .demangled = true,
	    .module = {.st_dev = 1, .st_ino = 2, .st_size = 3, .st_mtim = {.tv_sec = 4, .tv_nsec = 5}}};

	return key;
}

static void begin(void)
{
	temporary_directory(base);
	snprintf(directory, sizeof(directory), "%s/above/names", base);
}

static void end(void)
{
	temporary_remove(base);
}

static bool has(struct name_cache *cache, const struct name_cache_key *key, const char *expected)
{
	uint8_t *data = NULL;
	size_t size = 0;
	const uint8_t *content = name_cache_read(cache, key, &data, &size);
	bool same = content && size == strlen(expected) && !memcmp(content, expected, size);

	ck_assert(content || !data);
	free(data);
	return same;
}

static struct name_cache *open_cache(void)
{
	return name_cache_open(directory, 1u << 20);
}

static size_t count_files(void)
{
	DIR *stream = opendir(directory);
	size_t count = 0;

	ck_assert_ptr_nonnull(stream);
	for (const struct dirent *entry; (entry = readdir(stream));)
		count += entry->d_name[0] != '.';
	closedir(stream);
	return count;
}

/* The only file of the cache; its name goes into `path`. */
static int open_file(char path[TEMPORARY_PATH_SIZE + 160], int flags)
{
	DIR *stream = opendir(directory);
	const struct dirent *entry = NULL;
	int fd;

	ck_assert_ptr_nonnull(stream);
	while ((entry = readdir(stream)) && entry->d_name[0] == '.')
		;
	ck_assert_ptr_nonnull(entry);
	snprintf(path, TEMPORARY_PATH_SIZE + 160, "%s/%.100s", directory, entry->d_name);
	closedir(stream);
	fd = open(path, flags);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static void keep(struct name_cache *cache, const struct name_cache_key *key, const void *content, size_t size)
{
	struct buffer buffer;

	name_cache_begin(cache, key, &buffer);
	buffer_put(&buffer, content, size);
	name_cache_write(cache, key, &buffer);
	buffer_deinit(&buffer);
}

START_TEST(finds_cached_names_of_the_same_file)
{
	struct name_cache_key key = make_key(7), other = key;
	struct name_cache *cache = open_cache();

	ck_assert_ptr_nonnull(cache);
	ck_assert(!has(cache, &key, ""));
	keep(cache, &key, "content", 7);
	ck_assert(has(cache, &key, "content"));
	keep(cache, &key, "another", 7);
	ck_assert(has(cache, &key, "another"));
	ck_assert_uint_eq(count_files(), 1);
	other.module.st_ino++;
	ck_assert(!has(cache, &other, "another"));
	other = key;
	other.module.st_mtim.tv_nsec++;
	ck_assert(!has(cache, &other, "another"));
	other = key;
	other.module.st_ctim.tv_nsec++; /* written to, and the other time set back */
	ck_assert(!has(cache, &other, "another"));
	other = key;
	other.demangled = false;
	ck_assert(!has(cache, &other, "another"));
	name_cache_close(cache);
	cache = open_cache(); /* the next report */
	ck_assert(has(cache, &key, "another"));
	name_cache_close(cache);
}
END_TEST

START_TEST(caches_nothing_without_a_build_id)
{
	struct name_cache_key key = make_key(7);
	struct name_cache *cache = open_cache();

	key.build_id_size = 8; /* as --build-id=0x... gives any program */
	keep(cache, &key, "content", 7);
	ck_assert_uint_eq(count_files(), 0);
	ck_assert(!has(cache, &key, "content"));
	name_cache_close(cache);
}
END_TEST

START_TEST(ignores_damaged_files)
{
	struct name_cache_key key = make_key(7);
	struct name_cache *cache = open_cache();
	struct stat status;
	char path[TEMPORARY_PATH_SIZE + 160];
	int fd;

	keep(cache, &key, "content", 7);
	fd = open_file(path, O_RDWR);
	ck_assert_int_eq(fstat(fd, &status), 0);
	for (off_t i = 0; i < status.st_size; i++) {
		uint8_t byte, wrong;

		if (i >= 12 && i < 16) /* unused */
			continue;
		ck_assert_int_eq(pread(fd, &byte, 1, i), 1);
		wrong = byte ^ 0x40;
		ck_assert_int_eq(pwrite(fd, &wrong, 1, i), 1);
		ck_assert(!has(cache, &key, "content"));
		ck_assert_int_eq(pwrite(fd, &byte, 1, i), 1);
	}
	ck_assert(has(cache, &key, "content"));
	for (off_t i = status.st_size - 1; i >= 0; i--) {
		ck_assert_int_eq(ftruncate(fd, i), 0);
		ck_assert(!has(cache, &key, "content"));
	}
	close(fd);
	keep(cache, &key, "content", 7);
	ck_assert(has(cache, &key, "content"));
	name_cache_close(cache);
}
END_TEST

START_TEST(trusts_only_private_files)
{
	struct name_cache_key key = make_key(7);
	struct name_cache *cache = open_cache();
	char path[TEMPORARY_PATH_SIZE + 160];
	int fd;

	keep(cache, &key, "content", 7);
	fd = open_file(path, O_RDONLY);
	ck_assert_int_eq(fchmod(fd, 0620), 0);
	ck_assert(!has(cache, &key, "content"));
	ck_assert_int_eq(fchmod(fd, 0602), 0);
	ck_assert(!has(cache, &key, "content"));
	ck_assert_int_eq(fchmod(fd, 0600), 0);
	ck_assert(has(cache, &key, "content"));
	if (geteuid() == 0) { /* root does not believe another user */
		ck_assert_int_eq(fchown(fd, 12345, (gid_t)-1), 0);
		ck_assert(!has(cache, &key, "content"));
	}
	close(fd);
	name_cache_close(cache);
	ck_assert_int_eq(chmod(directory, 0770), 0);
	ck_assert_ptr_null(open_cache());
	ck_assert_int_eq(chmod(directory, 0700), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(directory, 12345, (gid_t)-1), 0);
		ck_assert_ptr_null(open_cache());
	}
}
END_TEST

START_TEST(creates_no_directory_in_shared_ones)
{
	ck_assert_int_eq(chmod(base, 0777), 0);
	ck_assert_ptr_null(open_cache());
	ck_assert_int_eq(chmod(base, 0700), 0);
	if (geteuid() == 0) {
		ck_assert_int_eq(chown(base, 12345, (gid_t)-1), 0);
		ck_assert_ptr_null(open_cache());
		ck_assert_int_eq(chown(base, 0, (gid_t)-1), 0);
	}
	snprintf(directory, sizeof(directory), "%s/a/b/c", base); /* two levels are made, no more */
	ck_assert_ptr_null(open_cache());
	snprintf(directory, sizeof(directory), "relative");
	ck_assert_ptr_null(open_cache());
	snprintf(directory, sizeof(directory), "%s/a", base);
	ck_assert_int_eq(symlink(base, directory), 0);
	ck_assert_ptr_null(open_cache());
}
END_TEST

/* Each of these and its target belongs to this user, or to another one. */
START_TEST(follows_own_links_only)
{
	char link[TEMPORARY_PATH_SIZE + 32], target[TEMPORARY_PATH_SIZE + 32];
	struct name_cache *cache;

	snprintf(link, sizeof(link), "%s/link", base);
	snprintf(target, sizeof(target), "%s/target", base);
	snprintf(directory, sizeof(directory), "%s/link/names", base);
	ck_assert_int_eq(mkdir(target, 0700), 0);
	for (unsigned i = 0; i < 2; i++) { /* absolute, and relative */
		ck_assert_int_eq(symlink(i ? "./target/..//target" : target, link), 0);
		cache = open_cache();
		ck_assert_ptr_nonnull(cache);
		name_cache_close(cache);
		ck_assert_int_eq(rmdir(directory), 0);
		if (geteuid() == 0) {
			ck_assert_int_eq(lchown(link, 12345, (gid_t)-1), 0);
			ck_assert_ptr_null(open_cache());
			ck_assert_int_eq(access(directory, F_OK), -1);
		}
		ck_assert_int_eq(unlink(link), 0);
	}
	ck_assert_int_eq(symlink(link, link), 0);
	ck_assert_ptr_null(open_cache());
}
END_TEST

START_TEST(refuses_directories_of_another_user)
{
	char inner[TEMPORARY_PATH_SIZE + 64];

	if (geteuid() != 0)
		SKIP_TEST("it needs root");
	snprintf(directory, sizeof(directory), "%s/theirs", base);
	snprintf(inner, sizeof(inner), "%s/ours", directory);
	ck_assert_int_eq(mkdir(directory, 0755), 0);
	ck_assert_int_eq(mkdir(inner, 0700), 0);
	ck_assert_int_eq(chown(directory, 12345, (gid_t)-1), 0);
	snprintf(directory, sizeof(directory), "%s/theirs/ours/names", base);
	ck_assert_ptr_null(open_cache());
	snprintf(directory, sizeof(directory), "%s/theirs/../above/names", base);
	ck_assert_ptr_null(open_cache());
	ck_assert_int_eq(access(directory, F_OK), -1);
}
END_TEST

static void use_at(const char *name, time_t when)
{
	struct timespec times[] = {{.tv_sec = when}, {.tv_sec = when}};
	char path[TEMPORARY_PATH_SIZE + 160];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(stays_below_its_limit)
{
	static uint8_t content[1000];
	struct name_cache *cache = name_cache_open(directory, 3 * 4096);
	struct name_cache_key keys[] = {make_key(0x10), make_key(0x11), make_key(0x12), make_key(0x13)};

	ck_assert_ptr_nonnull(cache);
	for (size_t i = 0; i < 3; i++)
		keep(cache, &keys[i], content, sizeof(content));
	ck_assert_uint_eq(count_files(), 3);
	use_at("1001020300000000000000000000000000000000.names", 2000);
	use_at("1101020300000000000000000000000000000000.names", 1000); /* unused for the longest time */
	use_at("1201020300000000000000000000000000000000.names", 3000);
	keep(cache, &keys[3], content, sizeof(content));
	ck_assert_uint_eq(count_files(), 3);
	for (size_t i = 0; i < 4; i++) {
		uint8_t *data = NULL;
		size_t size;

		ck_assert(!name_cache_read(cache, &keys[i], &data, &size) == (i == 1));
		free(data);
	}
	name_cache_close(cache);
}
END_TEST

/* A file of a few bytes uses one disk block. */
START_TEST(number_of_small_files_is_limited)
{
	struct name_cache *cache = name_cache_open(directory, 4 * 4096);

	for (uint8_t i = 0; i < 50; i++) {
		struct name_cache_key key = make_key(i);

		keep(cache, &key, "content", 7);
		ck_assert_uint_le(count_files(), 4);
		if (i < 4)
			ck_assert_uint_eq(count_files(), i + 1u);
	}
	name_cache_close(cache);
}
END_TEST

START_TEST(a_file_above_the_limit_removes_no_other)
{
	static uint8_t content[8192];
	struct name_cache_key key = make_key(7), other = make_key(8);
	struct name_cache *cache = name_cache_open(directory, 8192);

	keep(cache, &key, "content", 7);
	keep(cache, &other, content, sizeof(content));
	ck_assert_uint_eq(count_files(), 1);
	ck_assert(has(cache, &key, "content"));
	name_cache_close(cache);
}
END_TEST

#define WRITERS 4
#define SHARED_BYTES 300000

/* Every reader finds the complete content of one writer. */
static void write_and_read(uint8_t letter)
{
	static uint8_t content[SHARED_BYTES + WRITERS];
	struct name_cache_key key = make_key(7);
	struct name_cache *cache = name_cache_open(directory, 1u << 24);

	memset(content, letter, sizeof(content));
	for (int i = 0; i < 50; i++) {
		uint8_t *data = NULL;
		const uint8_t *found;
		size_t size = 0;

		keep(cache, &key, content, (size_t)SHARED_BYTES + letter);
		found = name_cache_read(cache, &key, &data, &size);
		if (!found || size != (size_t)SHARED_BYTES + *found || memcmp(found, found + 1, size - 1) != 0)
			_exit(EXIT_FAILURE);
		free(data);
	}
	name_cache_close(cache);
	_exit(EXIT_SUCCESS);
}

START_TEST(concurrent_writers_do_not_mix)
{
	for (uint8_t i = 0; i < WRITERS; i++) {
		pid_t child = fork();

		ck_assert_int_ge(child, 0);
		if (child == 0)
			write_and_read(i);
	}
	for (int i = 0; i < WRITERS; i++) {
		int status;

		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_uint_eq(count_files(), 1);
}
END_TEST

/* Like a full disk: a part can be written. The earlier file stays. */
START_TEST(full_disk_keeps_the_earlier_file)
{
	static uint8_t content[100000];
	struct name_cache_key key = make_key(7), other = make_key(8);
	struct name_cache *cache = open_cache();
	struct rlimit before, small;

	keep(cache, &key, "content", 7);
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	keep(cache, &key, content, sizeof(content));
	keep(cache, &other, content, sizeof(content));
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	ck_assert_uint_eq(count_files(), 1);
	ck_assert(has(cache, &key, "content"));
	name_cache_close(cache);
}
END_TEST

/* Names stored there are found nevertheless. */
START_TEST(read_only_cache_is_still_read)
{
	struct name_cache_key key = make_key(7), other = make_key(8);
	struct name_cache *cache = open_cache();
	char path[TEMPORARY_PATH_SIZE + 160];
	struct stat status;

	keep(cache, &key, "content", 7);
	name_cache_close(cache);
	if (geteuid() == 0) { /* nothing keeps root from writing */
		int fd = open_file(path, O_RDONLY);

		ck_assert_int_eq(fchown(fd, 12345, (gid_t)-1), 0);
		close(fd);
		ck_assert_int_eq(chown(directory, 12345, (gid_t)-1), 0);
		snprintf(path, sizeof(path), "%s/..", directory);
		ck_assert_int_eq(chmod(path, 0755), 0);
		for (int i = 0; i < 2; i++) {
			strcat(path, "/..");
			ck_assert_int_eq(chmod(path, 0755), 0);
		}
	}
	ck_assert_int_eq(chmod(directory, 0500), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(12345), 0);
	if (getuid() == 0 && stat(directory, &status) < 0 && errno == EACCES) {
		ck_assert_int_eq(seteuid(0), 0);
		SKIP_TEST("TMPDIR is below a directory that only root may enter");
	}
	cache = open_cache();
	ck_assert_ptr_nonnull(cache);
	ck_assert(has(cache, &key, "content"));
	keep(cache, &other, "another", 7);
	keep(cache, &key, "another", 7);
	ck_assert_uint_eq(count_files(), 1);
	ck_assert(has(cache, &key, "content"));
	name_cache_close(cache);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(directory, 0700), 0);
}
END_TEST

START_TEST(removes_temporary_files_of_killed_reports)
{
	struct name_cache_key key = make_key(7);
	struct name_cache *cache = open_cache();
	char path[TEMPORARY_PATH_SIZE + 160];

	snprintf(path, sizeof(path), "%s/0700.names.new.1.2", directory);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	snprintf(path, sizeof(path), "%s/0800.names.new.3.4", directory);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	use_at("0700.names.new.1.2", 1000);
	keep(cache, &key, "content", 7);
	ck_assert_uint_eq(count_files(), 2); /* the younger one may still be written */
	ck_assert(has(cache, &key, "content"));
	name_cache_close(cache);
}
END_TEST

static struct known_names make_names(void)
{
	const struct module_frame inlined[] = {
	    {.function = "inner()",
	     .raw_function = "_Z5innerv",
	     .source_file = "/a.c",
	     .source_line = 7,
	     .inlined = true},
	    {.function = "outer", .raw_function = "outer", .source_file = "/a.c", .source_line = 9},
	};
	struct known_names names = {0};

	known_names_put(&names, 0x1000, inlined, 2);
	known_names_put(&names, 0x2000, &(struct module_frame){0}, 1);
	return names;
}

START_TEST(stored_names_equal_the_originals)
{
	struct module_frame expected[MODULE_INLINE_MAX], found[MODULE_INLINE_MAX];
	struct known_names names = make_names(), read = {0};
	struct buffer buffer;
	struct bytes bytes;

	buffer_init(&buffer, 4096);
	ck_assert(known_names_encode(&names, &buffer));
	ck_assert_ptr_null(buffer_finish(&buffer));
	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert(known_names_decode(&bytes, &read));
	ck_assert_uint_eq(known_names_get(&read, 0x3000, found), 0);
	ck_assert_uint_eq(known_names_get(&read, 0x1000, found), 2);
	ck_assert_uint_eq(known_names_get(&names, 0x1000, expected), 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_str_eq(found[i].function, expected[i].function);
		ck_assert_str_eq(found[i].raw_function, expected[i].raw_function);
		ck_assert_str_eq(found[i].source_file, expected[i].source_file);
		ck_assert_uint_eq(found[i].source_line, expected[i].source_line);
		ck_assert_int_eq(found[i].inlined, expected[i].inlined);
	}
	ck_assert_uint_eq(known_names_get(&read, 0x2000, found), 1);
	ck_assert_ptr_null(found[0].function);
	ck_assert_ptr_null(found[0].source_file);
	known_names_deinit(&read);
	known_names_deinit(&names);
	buffer_deinit(&buffer);
}
END_TEST

/* The reader does not rely on the checksum to reject damaged bytes. */
START_TEST(damaged_bytes_are_refused_or_harmless)
{
	struct known_names names = make_names();
	struct buffer buffer;
	size_t refused = 0;

	buffer_init(&buffer, 4096);
	ck_assert(known_names_encode(&names, &buffer));
	ck_assert_ptr_null(buffer_finish(&buffer));
	for (size_t i = 0; i < buffer.size * 8; i++) {
		struct bytes bytes = bytes_over(buffer.data, buffer.size);
		struct module_frame frames[MODULE_INLINE_MAX];
		struct known_names read = {0};

		buffer.data[i / 8] ^= (uint8_t)(1 << i % 8);
		refused += !known_names_decode(&bytes, &read);
		(void)known_names_get(&read, 0x1000, frames);
		known_names_deinit(&read);
		buffer.data[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t size = 0; size < buffer.size; size++) {
		struct bytes bytes = bytes_over(buffer.data, size);
		struct known_names read = {0};

		ck_assert(!known_names_decode(&bytes, &read));
		ck_assert_uint_eq(read.found.count, 0);
	}
	ck_assert_uint_gt(refused, 100);
	known_names_deinit(&names);
	buffer_deinit(&buffer);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("name-cache");
	TCase *files = add_tcase(suite, "files"), *bytes = add_tcase(suite, "bytes");

	tcase_add_checked_fixture(files, begin, end);
	tcase_add_tests(files, finds_cached_names_of_the_same_file, caches_nothing_without_a_build_id,
			ignores_damaged_files, trusts_only_private_files, creates_no_directory_in_shared_ones,
			follows_own_links_only, refuses_directories_of_another_user, stays_below_its_limit,
			number_of_small_files_is_limited, a_file_above_the_limit_removes_no_other,
			concurrent_writers_do_not_mix, full_disk_keeps_the_earlier_file, read_only_cache_is_still_read,
			removes_temporary_files_of_killed_reports);
	tcase_add_tests(bytes, stored_names_equal_the_originals, damaged_bytes_are_refused_or_harmless);
	return suite;
}
