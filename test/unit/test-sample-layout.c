// SPDX-License-Identifier: LGPL-2.1-or-later
/* The offset of a record's field is found the same way whether or not its event was seen before. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "support/suite.h"
#include "trace/format/format.h"
#include "trace/format/sample-layout.h"

#define ATTRIBUTES 3
#define IDS 32 /* of each attribute */
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

/* Of any length, mostly of a known event. */
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

START_TEST(test_the_identity_of_a_record)
{
	unsigned accepted = 0, refused = 0;

	for (unsigned i = 0; i < RECORDS; i++) {
		uint64_t words[RECORD_BYTES_MAX / sizeof(uint64_t)];
		struct perf_event_header header = make_record(words);
		const uint8_t *record = (const uint8_t *)words;
		struct record_identity identity, again;
		bool whole = layouts_identify(&layouts, &header, record, &identity);

		accepted += whole;
		refused += !whole;
		if (!whole)
			continue;
		layouts_read(&layouts, &header, record, identity.attribute, &again);
		ck_assert_uint_eq(again.id, identity.id);
		ck_assert_uint_eq(again.time_ns, identity.time_ns);
		ck_assert_int_eq(again.pid, identity.pid);
		ck_assert_int_eq(again.tid, identity.tid);
		ck_assert_int_eq(again.cpu, identity.cpu);
	}
	ck_assert_uint_gt(accepted, RECORDS / 4);
	ck_assert_uint_gt(refused, RECORDS / 8);
}
END_TEST

/* Every part that the kernel writes, in its order (perf_event_open(2)): the walk finds each part, and fails if it is
 * truncated. */
START_TEST(test_every_part_is_found)
{
	const struct perf_event_attr attr = {
	    .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ |
			   PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
			   PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT,
	    .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_ID,
	    .sample_regs_user = 0x103};
	struct sample_shape shape = sample_shape_of(&attr);
	struct sample_parts parts;
	struct buffer buffer;
	struct bytes bytes;

	ck_assert_uint_eq(shape.fixed_bytes, 24);
	ck_assert_uint_eq(shape.registers, 3);
	buffer_init(&buffer, UINT16_MAX);
	for (uint64_t fixed = 0; fixed < 3; fixed++)
		buffer_put_u64(&buffer, fixed);
	buffer_put_u64(&buffer, 2); /* read: members, time, {value, id} each */
	for (uint64_t i = 0; i < 5; i++)
		buffer_put_u64(&buffer, 1000 + i);
	buffer_put_u64(&buffer, 2); /* callchain */
	buffer_put_u64(&buffer, (uint64_t)PERF_CONTEXT_USER);
	buffer_put_u64(&buffer, 0x401000);
	buffer_put_u32(&buffer, 4); /* raw */
	buffer_put_u32(&buffer, 77);
	buffer_put_u64(&buffer, 1); /* branches, of 3 words */
	for (uint64_t i = 0; i < 3; i++)
		buffer_put_u64(&buffer, 2000 + i);
	buffer_put_u64(&buffer, PERF_SAMPLE_REGS_ABI_64);
	for (uint64_t i = 0; i < 3; i++)
		buffer_put_u64(&buffer, 3000 + i);
	buffer_put_u64(&buffer, 16); /* stack: of two words one was copied */
	buffer_put_u64(&buffer, 4000);
	buffer_put_u64(&buffer, 0);
	buffer_put_u64(&buffer, 8);
	buffer_put_u64(&buffer, 5); /* weight */
	bytes = bytes_over(buffer.data, buffer.size);
	parts = sample_walk(&shape, &bytes);
	ck_assert(bytes_ok(&bytes));
	ck_assert_uint_eq(bytes_left(&bytes), 0);
	ck_assert_uint_eq(parts.callchain_count, 2);
	ck_assert_uint_eq(layout_word(parts.callchain, 8), 0x401000);
	ck_assert_uint_eq(parts.raw_bytes, 4);
	ck_assert_uint_eq(*parts.raw, 77);
	ck_assert_uint_eq(parts.abi, PERF_SAMPLE_REGS_ABI_64);
	ck_assert_uint_eq(layout_word(parts.registers, 16), 3002);
	ck_assert_uint_eq(parts.stack_bytes, 16);
	ck_assert_uint_eq(parts.copied_bytes, 8);
	ck_assert_uint_eq(layout_word(parts.stack, 0), 4000);
	ck_assert_uint_eq(parts.weight, 5);
	for (size_t size = 0; size < buffer.size; size++) {
		bytes = bytes_over(buffer.data, size);
		parts = sample_walk(&shape, &bytes);
		ck_assert(!bytes_ok(&bytes));
	}
	buffer_deinit(&buffer);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("sample-layout");
	TCase *tests = add_tcase(suite, "layout");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_tests(tests, test_the_identity_of_a_record, test_every_part_is_found);
	return suite;
}
