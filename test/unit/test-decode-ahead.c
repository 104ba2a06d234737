// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decoding ahead gives the same result as the decoder, also for a damaged record. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/syscall-table.h"
#include "support/recording-builder.h"
#include "support/suite.h"
#include "support/temporary.h"
#include "trace/read/decode.h"
#include "trace/read/readahead.h"
#include "trace/read/metadata.h"

#define CALLS 600
#define DAMAGES 10 /* of each record */
#define CHAIN_MAX 20

static struct recording_file *file;
static struct metadata metadata;
static struct layouts layouts;
static struct decoder *decoder;
static struct readahead *readahead;
static struct callchain_numbers *numbers;
static uint64_t state;
static bool has_dumps;

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (state >> 33) % below;
}

static void write_call(struct recording_builder *builder, uint64_t time_ns)
{
	uint64_t chain[CHAIN_MAX], words[BUILDER_STACK_BYTES / sizeof(uint64_t)];
	struct builder_call call = {.call = (enum call)draw(CALL_KINDS),
				    .dump = has_dumps && draw(4) == 0,
				    .time_ns = time_ns,
				    .pid = 1000,
				    .tid = 1000 + (int32_t)draw(5),
				    .cpu = (uint32_t)draw(4),
				    .result = draw(2)	? 0
					      : draw(2) ? (int64_t)draw(1ULL << 30)
							: -(int64_t)draw(200),
				    .callchain = chain,
				    .callchain_count = draw(CHAIN_MAX),
				    .instruction_pointer = draw(1ULL << 30),
				    .stack_pointer = draw(1ULL << 30),
				    .frame_pointer = draw(1ULL << 30),
				    .stack = words,
				    .stack_size = draw(3) * sizeof(uint64_t)};

	call.dump = call.dump && !call_describe(call.call)->at_entry;
	for (size_t i = 0; i < CHAIN_MAX; i++)
		chain[i] = 0x1000 + draw(3);
	/* One of the kernel's context markers in between. */
	if (draw(16) == 0)
		chain[draw(CHAIN_MAX)] = (uint64_t)PERF_CONTEXT_KERNEL;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = draw(1ULL << 30);
	for (size_t i = 0; i < 6; i++)
		call.arguments[i] = draw(1ULL << 30);
	builder_call(builder, &call);
}

static void open_recording(struct recording_builder *(*create)(const char *path))
{
	struct recording_builder *builder;
	char path[TEMPORARY_PATH_SIZE];

	temporary_name(path);
	state = 1;
	has_dumps = create == builder_create;
	builder = create(path);
	for (uint64_t i = 0; i < CALLS; i++)
		write_call(builder, 1000 + i);
	builder_comm(builder, 5000, 1000, 1000, "name");
	builder_round(builder);
	builder_finish(builder, 6000);
	ck_assert_ptr_null(recording_file_open(path, &file));
	metadata = (struct metadata){0};
	ck_assert_ptr_null(metadata_load(&metadata, file));
	ck_assert_ptr_null(layouts_create(file, &layouts));
	ck_assert_ptr_null(decoder_create(file, &layouts, &metadata.values, &decoder));
	ck_assert_ptr_null(readahead_create(file, &layouts, NULL, READAHEAD_WHOLE, &readahead));
	ck_assert_ptr_null(callchain_numbers_create(&numbers));
}

static void set_up(void)
{
	open_recording(builder_create);
}

static void set_up_without_stacks(void)
{
	open_recording(builder_create_without_stacks);
}

static void tear_down(void)
{
	callchain_numbers_destroy(numbers);
	readahead_destroy(readahead);
	decoder_destroy(decoder);
	layouts_deinit(&layouts);
	metadata_deinit(&metadata);
	recording_file_close(file);
}

/* Registers are omitted if there is neither a callchain nor a stack dump, and if neither a dump was requested nor
 * one has to be matched by its registers. */
static void compare_stacks(const struct event_stack *ahead, const struct event_stack *usual)
{
	bool need_registers = !decoder->only_used_stacks || (has_dumps && (usual->callchain || usual->bytes));

	ck_assert_uint_eq(ahead->time_ns, usual->time_ns);
	ck_assert_uint_eq(ahead->resolved, usual->resolved);
	ck_assert_ptr_eq(ahead->callchain, usual->callchain);
	ck_assert_uint_eq(ahead->callchain_count, usual->callchain_count);
	ck_assert_int_eq(ahead->callchain_full, usual->callchain_full);
	ck_assert_ptr_eq(ahead->bytes, usual->bytes);
	ck_assert_uint_eq(ahead->byte_count, usual->byte_count);
	ck_assert_uint_eq(ahead->bytes_wanted, usual->bytes_wanted);
	ck_assert_uint_eq(ahead->registers.known, need_registers ? usual->registers.known : 0);
	for (unsigned i = 0; i < REGISTER_NUMBERS; i++) {
		if (ahead->registers.known >> i & 1)
			ck_assert_uint_eq(ahead->registers.values[i], usual->registers.values[i]);
	}
}

static void compare(const struct event *ahead, const struct event *usual)
{
	ck_assert_int_eq(ahead->kind, usual->kind);
	ck_assert_uint_eq(ahead->time_ns, usual->time_ns);
	ck_assert_int_eq(ahead->pid, usual->pid);
	ck_assert_int_eq(ahead->tid, usual->tid);
	ck_assert_int_eq(ahead->cpu, usual->cpu);
	ck_assert_uint_eq(ahead->attribute, usual->attribute);
	ck_assert_uint_eq(ahead->record_type, usual->record_type);
	ck_assert_uint_eq(ahead->record_size, usual->record_size);
	ck_assert_int_eq(ahead->call.call, usual->call.call);
	ck_assert_int_eq(ahead->call.has_arguments, usual->call.has_arguments);
	ck_assert_mem_eq(ahead->call.arguments, usual->call.arguments, sizeof(usual->call.arguments));
	ck_assert_int_eq(ahead->call.result, usual->call.result);
	compare_stacks(&ahead->call.stack, &usual->call.stack);
}

/* Whether it was decoded ahead. */
static bool check_item(const struct reorder_item *item)
{
	struct record_identity identity;
	struct perf_event_header header;
	struct event ahead, usual;
	struct ahead_call call;
	struct bytes bytes;

	decode_ahead(decoder, numbers, item, 1, &call);
	if (!call.ready)
		return false;
	memcpy(&header, item->record, sizeof(header));
	layouts_read(&layouts, &header, item->record, item->attribute, &identity);
	ck_assert_uint_eq(call.id, identity.id);
	ck_assert(decoder_decode(decoder, &header, item->record, &identity, &usual, &bytes));
	decode_ahead_expand(decoder, item, &call, &ahead);
	compare(&ahead, &usual);
	return true;
}

static void check_all(bool damage)
{
	size_t ready = 0, all = 0;
	struct readahead_batch *batch;

	do {
		batch = readahead_next(readahead);
		for (size_t i = 0; i < batch->count; i++) {
			const struct reorder_item *item = &batch->items[i];
			struct perf_event_header header;

			memcpy(&header, item->record, sizeof(header));
			all += header.type == PERF_RECORD_SAMPLE;
			ready += check_item(item);
			for (unsigned j = 0; damage && j < DAMAGES; j++) {
				uint64_t copy[UINT16_MAX / sizeof(uint64_t)];
				struct reorder_item damaged = *item;

				memcpy(copy, item->record, item->size);
				((uint8_t *)copy)[sizeof(header) + draw(item->size - sizeof(header))] =
				    draw(2) ? 0xff : (uint8_t)draw(256);
				damaged.record = (const uint8_t *)copy;
				(void)check_item(&damaged);
			}
		}
	} while (!batch->last);
	ck_assert_uint_eq(all, CALLS);
	/* Not for calls recorded at their entry, or whose callchain has a marker. */
	ck_assert_uint_gt(ready, CALLS / 2);
	ck_assert_uint_lt(ready, CALLS);
}

START_TEST(test_same_as_the_decoder)
{
	check_all(false);
}
END_TEST

START_TEST(test_unused_stacks)
{
	decoder->only_used_stacks = true;
	check_all(false);
}
END_TEST

START_TEST(test_damaged)
{
	decoder->only_used_stacks = _i;
	check_all(true);
}
END_TEST

Suite *test_suite(void)
{
	Suite *suite = suite_create("decode-ahead");
	TCase *tests = add_tcase(suite, "decode-ahead");
	TCase *without_stacks = add_tcase(suite, "without stacks");

	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_checked_fixture(without_stacks, set_up_without_stacks, tear_down);
	tcase_set_timeout(tests, 600);
	tcase_add_tests(tests, test_same_as_the_decoder, test_unused_stacks);
	tcase_add_loop_test(tests, test_damaged, 0, 2);
	tcase_add_tests(without_stacks, test_same_as_the_decoder, test_unused_stacks);
	tcase_add_loop_test(without_stacks, test_damaged, 0, 2);
	tcase_set_timeout(without_stacks, 600);
	return suite;
}
