// SPDX-License-Identifier: LGPL-2.1-or-later
/* Random calls, witnesses and snapshots: the space stays valid, and every byte born is released once. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "model/space.h"

#define PAGE 4096ULL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Modulo 2^64: bytes set aside and bytes mapped may be more together. */
struct balance {
	uint64_t live;
};

static void on_born(void *context, const struct space_interval *interval)
{
	((struct balance *)context)->live += interval->end - interval->start;
}

static void on_released(void *context, const struct space_interval *interval, uint64_t bytes,
			const struct space_call *by)
{
	struct balance *balance = context;

	(void)by;
	if (interval->end - interval->start != bytes)
		abort();
	balance->live -= bytes;
}

/* Mostly small page numbers, so that ranges meet; sometimes any number. */
static uint64_t take_address(struct bytes *input)
{
	uint8_t page = bytes_u8(input);

	return page == 255 ? bytes_u64(input) : page * PAGE;
}

static struct space_attributes take_attributes(struct bytes *input)
{
	uint8_t bits = bytes_u8(input), file = bytes_u8(input);

	return (struct space_attributes){.protection = bits & 7,
					 .shared = bits & 8,
					 .heap = bits & 16,
					 .stack = bits & 32,
					 .shm = bits & 64,
					 .inode = file & 3,
					 .file_offset = file & 3 ? (file >> 2) * PAGE : 0};
}

static struct space_witness take_witness(struct bytes *input)
{
	struct space_witness witness = {.start = take_address(input), .end = take_address(input)};

	witness.attributes = take_attributes(input);
	return witness;
}

static struct mmt_error *apply_call(struct space *space, struct bytes *input, uint8_t kind, uint64_t *now_ns,
				    uint32_t *birth)
{
	struct space_witness witnesses[2];
	struct space_call call = {.kind = kind, .witnesses = witnesses, .birth = ++*birth};
	uint8_t shape = bytes_u8(input);

	call.thread = shape & 3;
	call.witness_count = shape >> 2 & 1;
	call.arguments[0] = take_address(input);
	call.arguments[1] = take_address(input);
	call.arguments[2] = kind == SPACE_MMAP || kind == SPACE_MPROTECT ? bytes_u8(input) & 7 : take_address(input);
	call.arguments[3] = bytes_u8(input) | (shape & 8 ? 0x40000U : 0) | (shape & 16 ? 0x100000U : 0);
	call.arguments[4] = take_address(input);
	call.arguments[5] = take_address(input);
	call.result = shape & 32 ? -(int64_t)bytes_u8(input) : (int64_t)take_address(input);
	for (size_t i = 0; i < call.witness_count; i++)
		witnesses[i] = take_witness(input);
	*now_ns += shape & 64 ? 300000000 : 1000;
	call.time_ns = *now_ns;
	return space_apply(space, &call);
}

static struct mmt_error *tell_line(struct space *space, struct bytes *input, uint64_t now_ns)
{
	uint64_t start = take_address(input), end = take_address(input);
	struct space_attributes attributes = take_attributes(input);
	uint64_t before = bytes_u8(input) * 1000ULL;

	return space_snapshot_line(space, now_ns > before ? now_ns - before : 0, start, end, &attributes);
}

static struct mmt_error *step(struct space *space, struct bytes *input, uint64_t *now_ns, uint32_t *birth)
{
	uint8_t kind = bytes_u8(input) % 18;
	struct space_witness witness;
	struct space *copy = NULL;
	struct mmt_error *error;

	if (kind <= SPACE_IO_DESTROY)
		return apply_call(space, input, kind, now_ns, birth);
	switch (kind) {
	case 9:
		witness = take_witness(input);
		return space_witness(space, &witness);
	case 10:
		return space_snapshot_begin(space, SPACE_SNAPSHOT_DEFINE, bytes_u8(input) % BIRTH_FIRST, *now_ns);
	case 11:
		return space_snapshot_begin(space, SPACE_SNAPSHOT_CHECK, 0, *now_ns);
	case 12:
		return space_snapshot_end(space, *now_ns);
	case 13:
		space_exec(space);
		return NULL;
	case 14:
		error = space_fork(space, &copy);
		space_destroy(copy);
		return error;
	default:
		return tell_line(space, input, *now_ns);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes input = bytes_over(data, size);
	struct balance balance = {0};
	const struct space_observer observer = {.born = on_born, .released = on_released, .context = &balance};
	struct space *space;
	uint64_t now_ns = 1000000;
	uint32_t birth = BIRTH_FIRST;
	const char *why = "";

	mmt_error_destroy(space_create(&observer, PAGE, &space));
	while (bytes_left(&input)) {
		mmt_error_destroy(step(space, &input, &now_ns, &birth));
		if (!space_valid(space, &why)) {
			fprintf(stderr, "%s\n", why);
			abort();
		}
	}
	space_destroy(space);
	if (balance.live)
		abort();
	return 0;
}
