// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads and writes sections: versions, compression, and the fields that sections have in common. */
#include "trace/sections/section-codec.h"

#include "base/limits.h"

struct mmt_error *section_version(struct bytes *bytes, uint32_t oldest, uint32_t newest, const char *what,
				  uint32_t *version_ret)
{
	uint32_t version = *version_ret = bytes_u32(bytes);

	if (version == 0)
		bytes_fail(bytes, "version 0");
	if (version == 0 || (version >= oldest && version <= newest))
		return NULL;
	return error_create(MMT_ERROR_UNSUPPORTED,
			    "%s of version %u: written by %s version of mmtrace; use that version", what, version,
			    version > newest ? "a newer" : "an older");
}

#define LARGE_BYTES (1u << 20)

struct mmt_error *packing_begin(struct section_packing *packing, uint32_t version, struct buffer *packed)
{
	*packing = (struct section_packing){.packed = packed};
	buffer_init(&packing->plain, LIMIT_SECTION_BYTES);
	buffer_put_u32(packed, version);
	buffer_put_u32(packed, 0);
	return compressor_init(&packing->compressor);
}

struct mmt_error *packing_flush(struct section_packing *packing)
{
	struct buffer *plain = &packing->plain;
	struct mmt_error *error = buffer_finish(plain);

	for (size_t offset = 0; !error && offset < plain->size; offset += LARGE_BYTES)
		error = compressor_frame(&packing->compressor, plain->data + offset,
					 smaller_of(plain->size - offset, LARGE_BYTES), packing->packed);
	buffer_clear(plain);
	return error;
}

struct mmt_error *packing_end(struct section_packing *packing, struct mmt_error *error)
{
	error = error ?: packing_flush(packing);
	compressor_deinit(&packing->compressor);
	buffer_deinit(&packing->plain);
	return error;
}

struct mmt_error *section_unpack(struct bytes *packed, const char *what, size_t limit, size_t *room,
				 struct buffer *plain_ret)
{
	struct decompressor decompressor = {0};
	struct mmt_error *error;
	size_t size;

	buffer_init(plain_ret, limit < *room ? limit : *room);
	bytes_u32(packed); /* zero */
	error = bytes_finish(packed, what) ?: decompressor_init(&decompressor);
	if (!error) {
		size = bytes_left(packed);
		error = decompressor_feed(&decompressor, bytes_take(packed, size), size, plain_ret);
	}
	if (!error && decompressor.inside)
		error = error_create(MMT_ERROR_FORMAT, "zstd: the last frame is incomplete");
	*room -= plain_ret->size;
	decompressor_deinit(&decompressor);
	return error_context(error, "%s", what);
}

void codec_content(struct codec *codec, uint8_t **data, size_t *size, size_t packed_size)
{
	const void *bytes;
	uint64_t wanted = *size;

	if (codec->to && !codec->error && !packed_size && *size < LARGE_BYTES) {
		buffer_put(codec->to, *data, *size);
		return;
	}
	if (codec->to && !codec->error) {
		/* Large contents have a frame of their own, so that they are in memory only once. */
		codec->error = packing_flush(codec->packing);
		if (!codec->error && packed_size)
			buffer_put(codec->packing->packed, *data, packed_size);
		else if (!codec->error)
			codec->error =
			    compressor_frame(&codec->packing->compressor, *data, *size, codec->packing->packed);
	}
	if (codec->to)
		return;
	bytes = bytes_take(codec->from, bytes_count(codec->from, wanted, 1));
	*data = malloc(bytes && wanted ? wanted : 1);
	*size = *data && bytes ? wanted : 0;
	if (*size)
		memcpy(*data, bytes, *size);
	if (!*data)
		codec->error = &error_no_memory;
}

void codec_flags(struct codec *codec, bool *const flags[], unsigned count)
{
	uint32_t word = 0;

	for (unsigned i = 0; i < count; i++)
		word |= *flags[i] ? 1u << i : 0;
	codec_u32(codec, word);
	for (unsigned i = 0; i < count && !codec->to; i++)
		*flags[i] = word >> i & 1;
}

void codec_text(struct codec *codec, char **text)
{
	if (codec->to) {
		buffer_put_string(codec->to, *text ? *text : "");
		return;
	}
	*text = strdup(bytes_string(codec->from));
	if (!*text)
		codec->error = &error_no_memory;
}

struct mmt_error *section_write(const struct section_kind *kind, const void *value, struct buffer *buffer)
{
	struct codec codec = {.to = buffer, .version = kind->version};
	struct section_packing packing;

	if (!kind->limit) {
		buffer_put_u32(buffer, kind->version);
		kind->code(&codec, (void *)(uintptr_t)value);
		return codec.error;
	}
	codec.error = packing_begin(&packing, kind->version, buffer);
	codec.to = &packing.plain;
	codec.packing = &packing;
	kind->code(&codec, (void *)(uintptr_t)value);
	return packing_end(&packing, codec.error);
}

struct mmt_error *section_read(const struct section_kind *kind, struct bytes *bytes, size_t *room, void *value_ret)
{
	CLEANUP(buffer) struct buffer plain = {0};
	struct bytes content;
	struct codec codec = {.from = &content, .plain = &plain};
	struct mmt_error *error = section_version(bytes, kind->oldest, kind->version, kind->what, &codec.version);

	memset(value_ret, 0, kind->value_bytes);
	if (!error && kind->limit)
		error = section_unpack(bytes, kind->what, kind->limit, room, &plain);
	content = kind->limit ? bytes_over(plain.data, plain.size) : *bytes;
	if (!error)
		kind->code(&codec, value_ret);
	error = error ?: codec.error ?: bytes_finish(&content, kind->what);
	if (error)
		kind->deinit(value_ret);
	return error;
}
