// SPDX-License-Identifier: LGPL-2.1-or-later
#include <check.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "support/suite.h"
#include "trace/format/sample-layout.h"

#define SECRET 0x5ec2e75ec2e75ec2ULL
#define REGISTERS_ALL 0xff07ffULL /* those of x86-64 below the segments */

/* As the kernel writes a call's exit: every register and the stack contain the secret, arguments count from 1. */
static void make_sample_with(const struct perf_event_attr *attr, const uint64_t arguments[7], struct buffer *buffer)
{
	static const int argument_of[64] = {[5] = 1, [4] = 2, [3] = 3, [18] = 4, [16] = 5, [17] = 6};

	buffer_init(buffer, 65536);
	buffer_put_u32(buffer, PERF_RECORD_SAMPLE);
	buffer_put_u16(buffer, PERF_RECORD_MISC_USER);
	buffer_put_u16(buffer, 0);
	buffer_put_u64(buffer, 71);		 /* identifier */
	buffer_put_u64(buffer, 0x2000000020ULL); /* process and thread */
	buffer_put_u64(buffer, 123456789);	 /* time */
	buffer_put_u64(buffer, 3);		 /* callchain */
	buffer_put_u64(buffer, (uint64_t)PERF_CONTEXT_USER);
	buffer_put_u64(buffer, 0x401000);
	buffer_put_u64(buffer, SECRET);
	buffer_put_u32(buffer, 20); /* raw */
	buffer_put(buffer, "result and the like", 20);
	buffer_put_u64(buffer, PERF_SAMPLE_REGS_ABI_64);
	for (unsigned i = 0; i < 64; i++) {
		if (attr->sample_regs_user >> i & 1)
			buffer_put_u64(buffer, argument_of[i] ? arguments[argument_of[i]] : SECRET);
	}
	buffer_put_u64(buffer, 16); /* stack */
	buffer_put_u64(buffer, SECRET);
	buffer_put_u64(buffer, SECRET);
	buffer_put_u64(buffer, 16);
	buffer_patch(buffer, 6, buffer->size, sizeof(uint16_t));
	ck_assert_ptr_null(buffer->error);
}

static void make_sample(const struct perf_event_attr *attr, struct buffer *buffer)
{
	make_sample_with(attr, (const uint64_t[7]){0, 1, 2, 3, 4, 5, 6}, buffer);
}

static struct perf_event_attr make_attribute(void)
{
	return (struct perf_event_attr){.type = PERF_TYPE_TRACEPOINT,
					.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						       PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |
						       PERF_SAMPLE_STACK_USER,
					.sample_regs_user = REGISTERS_ALL,
					.sample_stack_user = 16};
}

static bool holds_secret(const struct buffer *buffer)
{
	const uint64_t secret = SECRET;

	return memmem(buffer->data, buffer->size, &secret, sizeof(secret)) != NULL;
}

START_TEST(arguments_of_a_call_are_kept)
{
	const uint64_t chain[] = {0x401000, 0x402000};
	const struct stripped_stack stack = {.number = 9, .callchain = chain, .callchain_count = 2};
	const struct perf_event_attr attr = make_attribute();
	const struct perf_event_attr stripped = strip_attribute(&attr, &architecture_x86_64, true);
	struct buffer sample, buffer;
	struct bytes bytes;

	make_sample(&attr, &sample);
	ck_assert(holds_secret(&sample));
	buffer_init(&buffer, 65536);
	ck_assert_ptr_null(strip_sample(&attr, &architecture_x86_64, sample.data, CALL_MUNMAP, &stack, &buffer));
	ck_assert(!holds_secret(&buffer));
	ck_assert_uint_eq(stripped.sample_type, PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
						    PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |
						    PERF_SAMPLE_WEIGHT);
	ck_assert_uint_eq(stripped.sample_stack_user, 0);
	ck_assert_int_eq(__builtin_popcountll(stripped.sample_regs_user), 6);

	bytes = bytes_over(buffer.data, buffer.size);
	ck_assert_uint_eq(bytes_u32(&bytes), PERF_RECORD_SAMPLE);
	ck_assert_uint_eq(bytes_u16(&bytes), PERF_RECORD_MISC_USER);
	ck_assert_uint_eq(bytes_u16(&bytes), buffer.size);
	ck_assert_uint_eq(buffer.size % 8, 0);
	ck_assert_uint_eq(bytes_u64(&bytes), 71);
	ck_assert_uint_eq(bytes_u64(&bytes), 0x2000000020ULL);
	ck_assert_uint_eq(bytes_u64(&bytes), 123456789);
	ck_assert_uint_eq(bytes_u64(&bytes), 3);
	ck_assert_uint_eq(bytes_u64(&bytes), (uint64_t)PERF_CONTEXT_USER);
	ck_assert_uint_eq(bytes_u64(&bytes), chain[0]);
	ck_assert_uint_eq(bytes_u64(&bytes), chain[1]);
	ck_assert_uint_eq(bytes_u32(&bytes), 20);
	ck_assert_str_eq(bytes_take(&bytes, 20), "result and the like");
	ck_assert_uint_eq(bytes_u64(&bytes), PERF_SAMPLE_REGS_ABI_64);
	/* dx, si, di, r8, r9, r10: munmap has two arguments, the rest is zero. */
	ck_assert_uint_eq(bytes_u64(&bytes), 0);
	ck_assert_uint_eq(bytes_u64(&bytes), 2);
	ck_assert_uint_eq(bytes_u64(&bytes), 1);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(bytes_u64(&bytes), 0);
	ck_assert_uint_eq(bytes_u64(&bytes), 9);
	ck_assert(bytes_ok(&bytes));
	ck_assert_uint_eq(bytes_left(&bytes), 0);
	buffer_deinit(&buffer);
	buffer_deinit(&sample);
}
END_TEST

/* mremap() reads its new address only with these flags: without them the register may hold anything. */
START_TEST(new_address_of_mremap_is_kept_if_used)
{
	static const struct {
		uint64_t flags;
		bool kept;
	} cases[] = {{0, false},
		     {MREMAP_MAYMOVE, false},
		     {MREMAP_MAYMOVE | MREMAP_FIXED, true},
		     {MREMAP_MAYMOVE | MREMAP_DONTUNMAP, true}};
	const struct stripped_stack stack = {.number = 9};
	const struct perf_event_attr attr = make_attribute();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint64_t arguments[7] = {0, 0x1000, 0x2000, 0x3000, cases[i].flags, SECRET, 6};
		struct buffer sample, buffer;

		make_sample_with(&attr, arguments, &sample);
		buffer_init(&buffer, 65536);
		ck_assert_ptr_null(
		    strip_sample(&attr, &architecture_x86_64, sample.data, CALL_MREMAP, &stack, &buffer));
		ck_assert_int_eq(holds_secret(&buffer), cases[i].kept);
		buffer_deinit(&buffer);
		buffer_deinit(&sample);
	}
}
END_TEST

/* The same where the entry of the call has its arguments. */
START_TEST(new_address_in_an_entry_is_kept_if_used)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
					     .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_RAW};

	for (unsigned fixed = 0; fixed < 2; fixed++) {
		const uint64_t raw[] = {1, 2, 0x1000, 0x2000, 0x3000, fixed ? MREMAP_FIXED : 0, SECRET};
		struct buffer sample, buffer;

		buffer_init(&sample, 65536);
		buffer_init(&buffer, 65536);
		buffer_put_u32(&sample, PERF_RECORD_SAMPLE);
		buffer_put_u16(&sample, PERF_RECORD_MISC_USER);
		buffer_put_u16(&sample, 8 + 8 + 4 + sizeof(raw) + 4);
		buffer_put_u64(&sample, 71);
		buffer_put_u32(&sample, sizeof(raw) + 4);
		buffer_put(&sample, raw, sizeof(raw));
		buffer_put_u32(&sample, 0);
		ck_assert_ptr_null(strip_sample(&attr, &architecture_x86_64, sample.data, CALL_MREMAP, NULL, &buffer));
		ck_assert_uint_eq(buffer.size, sample.size);
		ck_assert_int_eq(holds_secret(&buffer), fixed);
		ck_assert(fixed == !memcmp(buffer.data, sample.data, sample.size));
		buffer_deinit(&buffer);
		buffer_deinit(&sample);
	}
}
END_TEST

/* A dump, or a sample of another event: only time and raw data. */
START_TEST(other_samples_keep_only_time_and_raw_data)
{
	const struct perf_event_attr attr = make_attribute();
	const struct perf_event_attr stripped = strip_attribute(&attr, &architecture_x86_64, false);
	struct buffer sample, buffer;

	make_sample(&attr, &sample);
	buffer_init(&buffer, 65536);
	ck_assert_ptr_null(strip_sample(&attr, &architecture_x86_64, sample.data, CALL_MMAP, NULL, &buffer));
	ck_assert(!holds_secret(&buffer));
	ck_assert_uint_eq(buffer.size, 8 + 3 * 8 + 24);
	ck_assert_uint_eq(stripped.sample_type,
			  PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW);
	ck_assert_uint_eq(stripped.sample_regs_user, 0);
	buffer_deinit(&buffer);
	buffer_deinit(&sample);
}
END_TEST

/* Stripping again changes nothing. */
START_TEST(stripping_twice_changes_nothing)
{
	const uint64_t chain[] = {0x401000};
	const struct stripped_stack stack = {.number = 9, .callchain = chain, .callchain_count = 1};
	const struct perf_event_attr attr = make_attribute();
	const struct perf_event_attr once = strip_attribute(&attr, &architecture_x86_64, true);
	const struct perf_event_attr twice_stripped = strip_attribute(&once, &architecture_x86_64, true);
	const struct stripped_stack kept = {.number = 9, .keep_callchain = true};
	struct buffer sample, first, second;

	make_sample(&attr, &sample);
	buffer_init(&first, 65536);
	buffer_init(&second, 65536);
	ck_assert_ptr_null(strip_sample(&attr, &architecture_x86_64, sample.data, CALL_MMAP, &stack, &first));
	ck_assert_ptr_null(strip_sample(&once, &architecture_x86_64, first.data, CALL_MMAP, &kept, &second));
	ck_assert_uint_eq(first.size, second.size);
	ck_assert_mem_eq(first.data, second.data, first.size);
	ck_assert_mem_eq(&once, &twice_stripped, sizeof(once));
	buffer_deinit(&second);
	buffer_deinit(&first);
	buffer_deinit(&sample);
}
END_TEST

/* Fields that cannot be stripped. */
START_TEST(unknown_fields)
{
	struct perf_event_attr attr = make_attribute();
	struct buffer sample, buffer;
	struct mmt_error *error;

	make_sample(&attr, &sample);
	attr.sample_type |= PERF_SAMPLE_REGS_INTR;
	buffer_init(&buffer, 65536);
	error = strip_sample(&attr, &architecture_x86_64, sample.data, CALL_MMAP, NULL, &buffer);
	ck_assert_ptr_nonnull(error);
	ck_assert_int_eq(error->code, MMT_ERROR_UNSUPPORTED);
	mmt_error_destroy(error);
	buffer_deinit(&buffer);
	buffer_deinit(&sample);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("strip-sample");
	TCase *tests = add_tcase(suite, "strip-sample");

	tcase_add_tests(tests, arguments_of_a_call_are_kept, new_address_of_mremap_is_kept_if_used,
			new_address_in_an_entry_is_kept_if_used, other_samples_keep_only_time_and_raw_data,
			stripping_twice_changes_nothing, unknown_fields);
	return suite;
}
