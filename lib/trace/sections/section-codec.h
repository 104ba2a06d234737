/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads and writes sections. One function names the fields of a section, for both directions. */
#pragma once

#include "base/compression.h"
#include "base/vector.h"

/* Read the version of a section. An error: it is older or newer than the known ones. */
struct mmt_error *section_version(struct bytes *bytes, uint32_t oldest, uint32_t newest, const char *what,
				  uint32_t *version_ret) MMT_MUST_CHECK;

/* A compressed section while it is encoded: u32 version, u32 zero, then zstd frames. */
struct section_packing {
	struct compressor compressor;
	struct buffer plain;   /* not compressed yet */
	struct buffer *packed; /* the section */
};

/* Call packing_end() after an error, too. */
struct mmt_error *packing_begin(struct section_packing *packing, uint32_t version,
				struct buffer *packed) MMT_MUST_CHECK;
/* Compress what is in `plain` as a frame. */
struct mmt_error *packing_flush(struct section_packing *packing) MMT_MUST_CHECK;
/* Returns `error`, or one of the last frame. */
struct mmt_error *packing_end(struct section_packing *packing, struct mmt_error *error) MMT_MUST_CHECK;

/* Decompress a section behind its version. The size is limited by `limit` and by `*room`, from which it is subtracted,
 * so that a small file cannot decompress to more than that in total. Call buffer_deinit() after an error, too. */
struct mmt_error *section_unpack(struct bytes *packed, const char *what, size_t limit, size_t *room,
				 struct buffer *plain_ret) MMT_MUST_CHECK;

/* The fields of a section, on their way from or to a value. Writing does not change the value. */
struct codec {
	struct buffer *to; /* NULL: read */
	struct bytes *from;
	struct buffer *plain; /* of a compressed section that is read: a decoder that keeps the content takes it */
	uint32_t version;     /* of the section; the newest one is written */
	struct mmt_error *error;
	struct section_packing *packing; /* of a compressed section that is written */
};

struct section_kind {
	const char *what;
	uint32_t oldest, version; /* the versions that are read; the newest is written */
	size_t limit;		  /* of the decompressed size; 0: it is not compressed */
	size_t value_bytes;
	void (*code)(struct codec *codec, void *value);
	void (*deinit)(void *value);
};

struct mmt_error *section_write(const struct section_kind *kind, const void *value,
				struct buffer *buffer) MMT_MUST_CHECK;
/* On error the value is deinitialised. An unknown version is MMT_ERROR_UNSUPPORTED. `room`: see section_unpack();
 * NULL if the section is not compressed. */
struct mmt_error *section_read(const struct section_kind *kind, struct bytes *bytes, size_t *room,
			       void *value_ret) MMT_MUST_CHECK;

static inline uint32_t codec_word(const struct codec *codec, uint32_t value)
{
	if (!codec->to)
		return bytes_u32(codec->from);
	buffer_put_u32(codec->to, value);
	return value;
}

static inline uint64_t codec_long_word(const struct codec *codec, uint64_t value)
{
	if (!codec->to)
		return bytes_u64(codec->from);
	buffer_put_u64(codec->to, value);
	return value;
}

/* A number of any type, in 32 or 64 bits. */
#define codec_u32(codec, place) codec_number(codec, place, codec_word(codec, (uint32_t)(place)))
#define codec_u64(codec, place) codec_number(codec, place, codec_long_word(codec, (uint64_t)(place)))
#define codec_number(codec, place, word)                                                                               \
	do {                                                                                                           \
		__typeof__(place) value_ = (__typeof__(place))(word);                                                  \
                                                                                                                       \
		if (!(codec)->to)                                                                                      \
			(place) = value_;                                                                              \
	} while (0)

/* Bytes as they are. */
static inline void codec_bytes(const struct codec *codec, void *data, size_t size)
{
	const void *bytes = codec->to ? NULL : bytes_take(codec->from, size);

	if (codec->to)
		buffer_put(codec->to, data, size);
	else if (bytes)
		memcpy(data, bytes, size);
}

/* What was read is wrong: see bytes_fail(). */
static inline void codec_fail(const struct codec *codec, const char *what)
{
	if (!codec->to)
		bytes_fail(codec->from, what);
}

static inline bool codec_ok(const struct codec *codec)
{
	return !codec->error && (codec->to || bytes_ok(codec->from));
}

/* Check the number of items that follow, of at least `item_bytes` each: see bytes_count() and bytes_at_most(). */
static inline uint64_t codec_check(const struct codec *codec, uint64_t count, size_t item_bytes, uint64_t limit)
{
	return codec->to ? count : bytes_at_most(codec->from, bytes_count(codec->from, count, item_bytes), limit);
}

/* A number of items, in 32 bits. */
static inline uint64_t codec_count(const struct codec *codec, uint64_t count, size_t item_bytes, uint64_t limit)
{
	return codec_check(codec, codec_word(codec, (uint32_t)count), item_bytes, limit);
}

/* Iterate over the items of a vector, which are appended to it if they are read. `item`_index is the place. */
#define codec_each(codec, vector, count, item)                                                                         \
	for (size_t item##_index = 0; item##_index < (count) && codec_ok(codec) &&                                     \
				      ((item) = (codec)->to ? &(vector)->items[item##_index] : vector_append(vector),  \
				      codec_is_item(codec, item));                                                     \
	     item##_index++)

static inline bool codec_is_item(struct codec *codec, const void *item)
{
	if (!item)
		codec->error = &error_no_memory;
	return item;
}

/* The next flags[i] is bit i of a word. */
void codec_flags(struct codec *codec, bool *const flags[], unsigned count);

/* A text; NULL is written as "". What is read is allocated. */
void codec_text(struct codec *codec, char **text);

/* As many bytes as *size says, in a compressed section. What is read is allocated. What is written may be zstd frames
 * of `packed_size` bytes; 0: it is plain. */
void codec_content(struct codec *codec, uint8_t **data, size_t *size, size_t packed_size);
