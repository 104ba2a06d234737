// SPDX-License-Identifier: LGPL-2.1-or-later
/* Following a recording that grows gives the report of what has been written, however the pieces are cut. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mmtrace/output.h>
#include <mmtrace/report.h>

#include "support/suite.h"
#include "support/temporary.h"

#define DATA_SECTION 40 /* offset of the place and size of the data in the header */

static const char *const recordings[] = {"aarch64", "freed", "heap", "leak", "more", "troubled"};
static const unsigned pieces[] = {1, 7, 23};
#define RECORDINGS (int)(sizeof(recordings) / sizeof(*recordings))
#define PIECES (int)(sizeof(pieces) / sizeof(*pieces))

static char *make_json(const struct mmt_report_options *options)
{
	struct mmt_text_options text = {0};
	struct mmt_report *report;
	char *json = NULL;
	size_t size;
	FILE *stream = open_memstream(&json, &size);

	ck_assert_ptr_null(mmt_report_create(options, &report));
	ck_assert_ptr_null(mmt_report_write_json(report, &text, stream));
	mmt_report_destroy(report);
	ck_assert_int_eq(fclose(stream), 0);
	return json;
}

struct growth {
	const char *path;
	uint8_t bytes[1 << 22];
	uint64_t written, end, size;
	unsigned pieces; /* still to come, before what follows the data */
	pid_t parent;
	bool new_names;
};

static void grow(struct growth *growth, uint64_t to)
{
	int fd = open(growth->path, O_WRONLY | O_APPEND | O_CREAT, 0600);

	ck_assert_int_eq(write(fd, growth->bytes + growth->written, to - growth->written), to - growth->written);
	ck_assert_int_eq(close(fd), 0);
	growth->written = to;
}

/* In a child: end, and compare. In the parent: let the file grow and go on. */
static bool follow(void *context, bool new_names)
{
	struct growth *growth = context;
	int status;
	pid_t child;

	growth->new_names = new_names;
	child = fork();
	if (child == 0)
		return false;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	if (growth->written == growth->size)
		return false;
	if (growth->pieces)
		grow(growth, growth->written + (growth->end - growth->written) / growth->pieces--);
	else
		grow(growth, growth->size);
	return true;
}

START_TEST(growing)
{
	static struct growth growth;
	char path[TEMPORARY_PATH_SIZE];
	struct mmt_report_options options;
	char *source, *followed, *expected;
	uint64_t section[2] = {0};
	FILE *file;

	temporary_name(path);
	ck_assert_int_gt(asprintf(&source, "data/%s.data", recordings[_i % RECORDINGS]), 0);
	file = fopen(source, "rb");
	ck_assert_ptr_nonnull(file);
	growth.size = fread(growth.bytes, 1, sizeof(growth.bytes), file);
	ck_assert_uint_lt(growth.size, sizeof(growth.bytes));
	growth.pieces = pieces[_i / RECORDINGS];
	fclose(file);
	memcpy(section, growth.bytes + DATA_SECTION, sizeof(section));
	growth.end = section[0] + section[1];
	/* As the recorder leaves it until it ends. */
	memset(growth.bytes + DATA_SECTION + sizeof(uint64_t), 0, sizeof(uint64_t));
	growth.path = path;
	growth.parent = getpid();
	grow(&growth, section[0]);
	mmt_report_options_init(&options);
	options.input = path;
	options.follow = follow;
	options.follow_context = &growth;
	followed = make_json(&options);
	options.follow = NULL;
	expected = make_json(&options);
	/* Names that came later are only in the report of the file. */
	if (!growth.new_names && strcmp(followed, expected) != 0) {
		fprintf(stderr, "%s, before piece -%u: expected: %s\nfollowed: %s\n", source, growth.pieces, expected,
			followed);
		_exit(1);
	}
	if (getpid() != growth.parent)
		_exit(0);
	ck_assert_uint_eq(growth.written, growth.size);
	ck_assert_ptr_null(strstr(followed, "damage\": \""));
	free(followed);
	free(expected);
	free(source);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("follow");

	tcase_add_loop_test(add_tcase(suite, "follow"), growing, 0, RECORDINGS * PIECES);
	return suite;
}
