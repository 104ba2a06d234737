// SPDX-License-Identifier: LGPL-2.1-or-later
/* The place of a record is found the same way whether or not its event was seen before. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/run-suite.h"
#include "trace/format/format.h"
#include "trace/format/sample-layout.h"

#define ATTRIBUTES 3
#define IDS (2 * LAYOUTS_RECENT) /* of each attribute: some have the same place among the recent ones */
#define RECORDS 200000
#define RECORD_BYTES_MAX 96

static struct recording_file file;
static struct layouts layouts;
static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static void add_attribute(uint64_t sample_type)
{
	struct file_attribute *attribute = vector_append(&file.attributes);

	ck_assert_ptr_nonnull(attribute);
	attribute->attr.sample_type = sample_type;
	attribute->attr.sample_id_all = 1;
	for (uint64_t i = 0; i < IDS; i++)
		ck_assert(vector_push(&attribute->ids, 1 + ATTRIBUTES * i + file.attributes.count));
}

static void set_up(void)
{
	state = 7;
	file = (struct recording_file){0};
	add_attribute(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME);
	add_attribute(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
		      PERF_SAMPLE_CPU);
	add_attribute(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_CPU);
	ck_assert_ptr_null(layouts_create(&file, &layouts));
}

static void tear_down(void)
{
	layouts_deinit(&layouts);
	for (size_t i = 0; i < file.attributes.count; i++)
		vector_deinit(&file.attributes.items[i].ids);
	vector_deinit(&file.attributes);
}

/* Of any length, of a known event mostly. */
static struct perf_event_header make_record(uint64_t *words)
{
	static const uint32_t types[] = {PERF_RECORD_SAMPLE, PERF_RECORD_SAMPLE,    PERF_RECORD_SAMPLE,
					 PERF_RECORD_MMAP2,  RECORD_FINISHED_ROUND, PERF_RECORD_COMM};
	struct perf_event_header header = {.type = types[draw(sizeof(types) / sizeof(types[0]))]};
	size_t count = RECORD_BYTES_MAX / sizeof(*words);

	header.size = (uint16_t)(sizeof(header) + draw(RECORD_BYTES_MAX - sizeof(header)));
	for (size_t i = 1; i < count; i++)
		words[i] = draw(1ULL << 31);
	memcpy(words, &header, sizeof(header));
	words[1] = draw(ATTRIBUTES * IDS + 4);
	if (header.type != PERF_RECORD_SAMPLE && header.size >= 2 * sizeof(uint64_t))
		memcpy((uint8_t *)words + header.size - sizeof(uint64_t), &words[1], sizeof(uint64_t));
	return header;
}

START_TEST(test_recent)
{
	struct layouts_recent recent = {0};
	unsigned accepted = 0, refused = 0;

	for (unsigned i = 0; i < RECORDS; i++) {
		uint64_t words[RECORD_BYTES_MAX / sizeof(uint64_t)];
		struct perf_event_header header = make_record(words);
		const uint8_t *record = (const uint8_t *)words;
		struct record_identity identity;
		struct record_place place;
		bool whole = layouts_identify(&layouts, &header, record, &identity);

		ck_assert_int_eq(layouts_find_place(&layouts, &recent, &header, record, &place), whole);
		accepted += whole;
		refused += !whole;
		if (!whole)
			continue;
		ck_assert_uint_eq(place.attribute, identity.attribute);
		ck_assert_uint_eq(place.stream, identity.stream);
		ck_assert_uint_eq(place.time_ns, identity.time_ns);
	}
	ck_assert_uint_gt(accepted, RECORDS / 4);
	ck_assert_uint_gt(refused, RECORDS / 8);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sample-layout");
	TCase *tests = tcase_create("layout");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, test_recent);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
