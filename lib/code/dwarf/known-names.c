// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/dwarf/known-names.h"

#include <stdlib.h>

#include "base/cleanup.h"

#define ANSWERS_MAX (1u << 22)
#define TEXTS_MAX (1u << 22)
#define FRAMES_MAX UINT32_MAX
#define ANSWER_BYTES 12 /* u64 address, u32 frames */
#define FRAME_BYTES 20	/* u32 function, raw function, source file: number of the text + 1; line; inlined */

void known_names_deinit(struct known_names *names)
{
	id_table_deinit(&names->by_address);
	vector_deinit(&names->found);
	vector_deinit(&names->frames);
	id_table_deinit(&names->by_place);
	vector_deinit(&names->texts);
}

/* Where its frames are, and how many. */
static size_t frames_of(const struct known_names *names, size_t place, const struct known_frame **frames_ret)
{
	const struct known_answer *answer = &names->found.items[place];
	size_t end = place + 1 < names->found.count ? answer[1].start : names->frames.count;

	*frames_ret = names->frames.items + answer->start;
	return end - answer->start;
}

static const char *text_at(const struct known_names *names, uint32_t number)
{
	return number ? names->texts.items[number - 1] : NULL;
}

size_t known_names_get(struct known_names *names, uint64_t address, struct program_frame frames_ret[PROGRAM_INLINE_MAX])
{
	uint64_t hash = id_table_hash(&names->by_address, &address, sizeof(address));
	const struct known_frame *frames;
	size_t position = 0, count;
	uint32_t place;

	do {
		place = id_table_next(&names->by_address, hash, &position);
		if (place == ID_NONE)
			return 0;
	} while (names->found.items[place].address != address);
	count = frames_of(names, place, &frames);
	for (size_t i = 0; i < count; i++) {
		frames_ret[i] = (struct program_frame){.function = text_at(names, frames[i].function),
						       .raw_function = text_at(names, frames[i].raw_function),
						       .source_file = text_at(names, frames[i].source_file),
						       .source_line = frames[i].source_line,
						       .inlined = frames[i].inlined};
	}
	return count;
}

static bool add_text(struct known_names *names, const char *text, uint64_t hash)
{
	if (names->texts.count >= TEXTS_MAX || !vector_push(&names->texts, text))
		return false;
	if (id_table_add(&names->by_place, hash) != ID_NONE)
		return true;
	names->texts.count--;
	return false;
}

static uint64_t hash_place(struct known_names *names, const char *text)
{
	return id_table_hash(&names->by_place, &text, sizeof(text));
}

/* `*number_ret` is 0 for NULL; false: there is no memory for it, or too many have come. */
static bool number_text(struct known_names *names, const char *text, uint32_t *number_ret)
{
	uint64_t hash = hash_place(names, text);
	size_t position = 0;
	uint32_t place;

	*number_ret = 0;
	if (!text)
		return true;
	do {
		place = id_table_next(&names->by_place, hash, &position);
	} while (place != ID_NONE && names->texts.items[place] != text);
	if (place == ID_NONE) {
		place = (uint32_t)names->texts.count;
		if (!add_text(names, text, hash))
			return false;
	}
	*number_ret = place + 1;
	return true;
}

static bool add_frame(struct known_names *names, const struct program_frame *frame)
{
	uint32_t function, raw_function, source_file;

	return number_text(names, frame->function, &function) &&
	       number_text(names, frame->raw_function, &raw_function) &&
	       number_text(names, frame->source_file, &source_file) &&
	       vector_push(&names->frames, ((struct known_frame){.function = function,
								 .inlined = frame->inlined,
								 .raw_function = raw_function,
								 .source_file = source_file,
								 .source_line = frame->source_line}));
}

/* What was added to the frames since `start` is what is known of the address, or goes. */
static void end_answer(struct known_names *names, uint64_t address, size_t start, bool complete)
{
	uint64_t hash = id_table_hash(&names->by_address, &address, sizeof(address));

	if (complete && vector_push(&names->found, ((struct known_answer){address, (uint32_t)start}))) {
		if (id_table_add(&names->by_address, hash) != ID_NONE)
			return;
		names->found.count--;
	}
	names->frames.count = start;
}

void known_names_put(struct known_names *names, uint64_t address, const struct program_frame *frames, size_t count)
{
	size_t start = names->frames.count, added = 0;

	while (added < count && start + count <= FRAMES_MAX && add_frame(names, &frames[added]))
		added++;
	end_answer(names, address, start, added == count);
}

/* ---- as bytes ---- */

/* A number in the file for each text: those of equal texts, and of one that came from a file, are the same. */
static bool put_texts(const struct known_names *names, uint32_t *numbers, struct buffer *buffer)
{
	struct intern texts = {0};
	bool complete = true;

	for (size_t i = 0; i < names->texts.count && complete; i++) {
		numbers[i] = intern_put_string(&texts, names->texts.items[i]) + 1;
		complete = numbers[i] != INTERN_NONE + 1;
	}
	buffer_put_u32(buffer, (uint32_t)texts.count);
	for (uint32_t i = 0; i < texts.count; i++)
		buffer_put_string(buffer, intern_get(&texts, i, NULL));
	intern_deinit(&texts);
	return complete;
}

static void put_frame(const struct known_frame *frame, const uint32_t *numbers, struct buffer *buffer)
{
	buffer_put_u32(buffer, frame->function ? numbers[frame->function - 1] : 0);
	buffer_put_u32(buffer, frame->raw_function ? numbers[frame->raw_function - 1] : 0);
	buffer_put_u32(buffer, frame->source_file ? numbers[frame->source_file - 1] : 0);
	buffer_put_u32(buffer, frame->source_line);
	buffer_put_u32(buffer, frame->inlined);
}

static void put_answers(const struct known_names *names, const uint32_t *numbers, struct buffer *buffer)
{
	buffer_put_u32(buffer, (uint32_t)names->found.count);
	for (size_t i = 0; i < names->found.count; i++) {
		const struct known_frame *frames;
		size_t count = frames_of(names, i, &frames);

		buffer_put_u64(buffer, names->found.items[i].address);
		buffer_put_u32(buffer, (uint32_t)count);
		for (size_t j = 0; j < count; j++)
			put_frame(&frames[j], numbers, buffer);
	}
}

bool known_names_encode(const struct known_names *names, struct buffer *buffer)
{
	CLEANUP(free) uint32_t *numbers = calloc(names->texts.count + 1, sizeof(*numbers));

	if (!numbers || !put_texts(names, numbers, buffer))
		return false;
	put_answers(names, numbers, buffer);
	return true;
}

static uint32_t take_text(struct bytes *bytes, const struct known_names *names)
{
	uint32_t number = bytes_u32(bytes);

	if (number > names->texts.count)
		bytes_fail(bytes, "text that does not exist");
	return bytes_ok(bytes) ? number : 0;
}

static void decode_answer(struct bytes *bytes, struct known_names *names)
{
	size_t start = names->frames.count;
	uint64_t address = bytes_u64(bytes);
	size_t count = bytes_u32(bytes);

	if (count == 0 || count > PROGRAM_INLINE_MAX)
		bytes_fail(bytes, "impossible number of frames");
	for (size_t i = 0; bytes_ok(bytes) && i < count; i++) {
		uint32_t function = take_text(bytes, names), raw_function = take_text(bytes, names);
		uint32_t source_file = take_text(bytes, names), line = bytes_u32(bytes), inlined = bytes_u32(bytes);

		if (!vector_push(&names->frames, ((struct known_frame){.function = function,
								       .inlined = inlined != 0,
								       .raw_function = raw_function,
								       .source_file = source_file,
								       .source_line = line})))
			bytes_fail(bytes, "no memory");
	}
	end_answer(names, address, start, bytes_ok(bytes));
}

bool known_names_decode(struct bytes *bytes, struct known_names *names)
{
	uint64_t count = bytes_count(bytes, bytes_u32(bytes), 1, TEXTS_MAX);

	for (uint64_t i = 0; bytes_ok(bytes) && i < count; i++) {
		const char *text = bytes_string(bytes);

		if (!add_text(names, text, hash_place(names, text)))
			bytes_fail(bytes, "no memory");
	}
	count = bytes_count(bytes, bytes_u32(bytes), ANSWER_BYTES + FRAME_BYTES, ANSWERS_MAX);
	for (uint64_t i = 0; bytes_ok(bytes) && i < count; i++)
		decode_answer(bytes, names);
	if (bytes_left(bytes))
		bytes_fail(bytes, "bytes behind the end");
	if (bytes_ok(bytes))
		return true;
	known_names_deinit(names);
	*names = (struct known_names){0};
	return false;
}
