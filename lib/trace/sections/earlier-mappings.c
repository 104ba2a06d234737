// SPDX-License-Identifier: LGPL-2.1-or-later
#include "trace/sections/sections.h"

#include "base/limits.h"

#define ACCOUNT_BYTES (24 + 8 * EARLIER_POINTS)
#define RANGE_BYTES 36
#define READING_BYTES 32

static void earlier_mappings_deinit(void *value)
{
	struct earlier_mappings *earlier = value;

	vector_deinit(&earlier->accounts);
	vector_deinit(&earlier->ranges);
	vector_deinit(&earlier->readings);
	*earlier = (struct earlier_mappings){0};
}

static void code_bytes(struct codec *codec, uint64_t *bytes)
{
	codec_u64(codec, *bytes);
	if (*bytes > LIMIT_RESIDENT_BYTES)
		codec_fail(codec, "more bytes than processes have");
}

static void code_range(struct codec *codec, const struct earlier_mappings *earlier, struct earlier_range *range)
{
	codec_u64(codec, range->start);
	codec_u64(codec, range->end);
	codec_u64(codec, range->time_ns);
	codec_u32(codec, range->call);
	codec_u32(codec, range->account);
	codec_u32(codec, range->commit);
	if (range->start >= range->end || range->end > LIMIT_RESIDENT_BYTES)
		codec_fail(codec, "addresses that no process has");
	if (range->account > earlier->accounts.count || range->commit > earlier->accounts.count ||
	    (!range->account && !range->commit))
		codec_fail(codec, "number of an account that does not exist");
	if (range->time_ns < earlier->began_ns || range->time_ns > earlier->end_ns)
		codec_fail(codec, "a call outside the earlier recordings");
}

static void code_earlier(struct codec *codec, void *value)
{
	struct earlier_mappings *earlier = value;
	struct earlier_account *account;
	struct earlier_range *range;
	struct earlier_reading *reading;
	uint64_t count;

	codec_u64(codec, earlier->began_ns);
	codec_u64(codec, earlier->began_realtime_ns);
	codec_u64(codec, earlier->end_ns);
	codec_u64(codec, earlier->step_ns);
	if (!earlier->step_ns || earlier->step_ns > LIMIT_RESIDENT_BYTES)
		codec_fail(codec, "steps of no length, or of years");
	codec_u32(codec, earlier->recordings);
	count = codec_count(codec, earlier->accounts.count, ACCOUNT_BYTES, UINT32_MAX - 1);
	codec_each(codec, &earlier->accounts, count, account) {
		codec_u32(codec, account->pid);
		codec_u32(codec, account->stack);
		code_bytes(codec, &account->freed_bytes);
		code_bytes(codec, &account->freed_count);
		for (unsigned i = 0; i < EARLIER_POINTS; i++)
			code_bytes(codec, &account->points[i]);
	}
	count = codec_count(codec, earlier->ranges.count, RANGE_BYTES, UINT32_MAX);
	codec_each(codec, &earlier->ranges, count, range)
		code_range(codec, earlier, range);
	count = codec_count(codec, earlier->readings.count, READING_BYTES, LIMIT_READING_POINTS);
	codec_each(codec, &earlier->readings, count, reading) {
		codec_u32(codec, reading->pid);
		codec_u32(codec, reading->number);
		codec_u64(codec, reading->time_ns);
		codec_u64(codec, reading->resident_bytes);
		codec_u64(codec, reading->swapped_bytes);
	}
}

const struct section_kind section_earlier = {
    "section of earlier mappings", 1, 1, LIMIT_SECTION_BYTES, sizeof(struct earlier_mappings), code_earlier,
    earlier_mappings_deinit};
