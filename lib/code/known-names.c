// SPDX-License-Identifier: LGPL-2.1-or-later
#include "code/known-names.h"

#include <string.h>

#define ANSWERS_MAX (1u << 22)
#define TEXTS_MAX (1u << 22)
#define ANSWER_BYTES 12 /* u64 address, u32 frames */
#define FRAME_BYTES 20	/* u32 function, raw function, source file: number of the text + 1; line; inlined */

void known_names_deinit(struct known_names *names)
{
	map_deinit(&names->answers);
	vector_deinit(&names->found);
	vector_deinit(&names->frames);
}

size_t known_names_get(const struct known_names *names, uint64_t address,
		       struct program_frame frames_ret[PROGRAM_INLINE_MAX])
{
	const uint64_t *place = map_get(&names->answers, address);
	const struct known_answer *answer;

	if (!place)
		return 0;
	answer = &names->found.items[*place];
	memcpy(frames_ret, names->frames.items + answer->start, answer->count * sizeof(*frames_ret));
	return answer->count;
}

void known_names_put(struct known_names *names, uint64_t address, const struct program_frame *frames, size_t count)
{
	struct known_answer answer = {.address = address, .start = names->frames.count, .count = count};

	for (size_t i = 0; i < count; i++) {
		if (!vector_push(&names->frames, frames[i]))
			return;
	}
	if (vector_push(&names->found, answer))
		(void)map_put(&names->answers, address, names->found.count - 1);
}

/* ---- as bytes ---- */

static void put_text(struct intern *texts, const char *text, struct buffer *buffer)
{
	uint32_t number = text ? intern_put_string(texts, text) : INTERN_NONE;

	buffer_put_u32(buffer, number + 1); /* 0: none */
}

static void encode_answers(const struct known_names *names, struct intern *texts, struct buffer *buffer)
{
	buffer_put_u32(buffer, (uint32_t)names->found.count);
	for (size_t i = 0; i < names->found.count; i++) {
		const struct known_answer *answer = &names->found.items[i];

		buffer_put_u64(buffer, answer->address);
		buffer_put_u32(buffer, (uint32_t)answer->count);
		for (size_t j = 0; j < answer->count; j++) {
			const struct program_frame *frame = &names->frames.items[answer->start + j];

			put_text(texts, frame->function, buffer);
			put_text(texts, frame->raw_function, buffer);
			put_text(texts, frame->source_file, buffer);
			buffer_put_u32(buffer, frame->source_line);
			buffer_put_u32(buffer, frame->inlined);
		}
	}
}

void known_names_encode(const struct known_names *names, struct buffer *buffer)
{
	struct intern texts = {0};
	struct buffer answers;

	buffer_init(&answers, buffer->maximum);
	encode_answers(names, &texts, &answers);
	buffer_put_u32(buffer, (uint32_t)texts.count);
	for (uint32_t i = 0; i < texts.count; i++)
		buffer_put_string(buffer, intern_get(&texts, i, NULL));
	buffer_put(buffer, answers.data, answers.size);
	if (!buffer->error)
		buffer->error = buffer_finish(&answers);
	buffer_deinit(&answers);
	intern_deinit(&texts);
}

struct texts {
	VECTOR(const char *) items;
};

static const char *take_text(struct bytes *bytes, const struct texts *texts)
{
	uint32_t number = bytes_u32(bytes);

	if (number > texts->items.count)
		bytes_fail(bytes, "text that does not exist");
	return number && number <= texts->items.count ? texts->items.items[number - 1] : NULL;
}

static void decode_answer(struct bytes *bytes, const struct texts *texts, struct known_names *names)
{
	struct program_frame frames[PROGRAM_INLINE_MAX];
	uint64_t address = bytes_u64(bytes);
	size_t count = bytes_u32(bytes);

	if (count == 0 || count > PROGRAM_INLINE_MAX)
		bytes_fail(bytes, "impossible number of frames");
	for (size_t i = 0; bytes_ok(bytes) && i < count; i++) {
		frames[i].function = take_text(bytes, texts);
		frames[i].raw_function = take_text(bytes, texts);
		frames[i].source_file = take_text(bytes, texts);
		frames[i].source_line = bytes_u32(bytes);
		frames[i].inlined = bytes_u32(bytes) != 0;
	}
	if (bytes_ok(bytes))
		known_names_put(names, address, frames, count);
}

bool known_names_decode(struct bytes *bytes, struct known_names *names)
{
	uint64_t count = bytes_count(bytes, bytes_u32(bytes), 1, TEXTS_MAX);
	struct texts texts = {0};

	for (uint64_t i = 0; bytes_ok(bytes) && i < count; i++) {
		if (!vector_push(&texts.items, bytes_string(bytes)))
			bytes_fail(bytes, "no memory");
	}
	count = bytes_count(bytes, bytes_u32(bytes), ANSWER_BYTES + FRAME_BYTES, ANSWERS_MAX);
	for (uint64_t i = 0; bytes_ok(bytes) && i < count; i++)
		decode_answer(bytes, &texts, names);
	if (bytes_left(bytes))
		bytes_fail(bytes, "bytes behind the end");
	vector_deinit(&texts.items);
	if (bytes_ok(bytes))
		return true;
	known_names_deinit(names);
	*names = (struct known_names){0};
	return false;
}
