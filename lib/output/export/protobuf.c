// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/export/protobuf.h"

#include "output/escape.h"

enum wire_type { WIRE_VARINT = 0, WIRE_LENGTH_DELIMITED = 2 };

void protobuf_varint(struct buffer *buffer, uint64_t value)
{
	while (value >= 0x80) {
		buffer_put_u8(buffer, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	buffer_put_u8(buffer, (uint8_t)value);
}

void protobuf_number(struct buffer *buffer, uint32_t field, uint64_t value)
{
	protobuf_varint(buffer, field << 3 | WIRE_VARINT);
	protobuf_varint(buffer, value);
}

void protobuf_bytes(struct buffer *buffer, uint32_t field, const void *data, size_t size)
{
	protobuf_varint(buffer, field << 3 | WIRE_LENGTH_DELIMITED);
	protobuf_varint(buffer, size);
	buffer_put(buffer, data, size);
}

void protobuf_string(struct buffer *buffer, uint32_t field, const char *text)
{
	struct escape_piece piece;
	const char *position = text;
	size_t size = 0;

	while (escape_next(&position, ESCAPE_FOR_TERMINAL, &piece))
		size += piece.size;
	protobuf_varint(buffer, field << 3 | WIRE_LENGTH_DELIMITED);
	protobuf_varint(buffer, size);
	for (position = text; escape_next(&position, ESCAPE_FOR_TERMINAL, &piece);)
		buffer_put(buffer, piece.text, piece.size);
}

void protobuf_message(struct buffer *buffer, uint32_t field, struct buffer *message)
{
	protobuf_bytes(buffer, field, message->data, message->size);
	buffer_clear(message);
}
