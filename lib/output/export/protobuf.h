/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages in the encoding of Protocol Buffers, field by field. */
#ifndef OUTPUT_EXPORT_PROTOBUF_H
#define OUTPUT_EXPORT_PROTOBUF_H

#include <stdint.h>

#include "base/bytes.h"

/* A number without a field, for packed fields. */
void protobuf_varint(struct buffer *buffer, uint64_t value);

/* Fields of type uint64, int64, uint32, bool and enum. */
void protobuf_number(struct buffer *buffer, uint32_t field, uint64_t value);

void protobuf_bytes(struct buffer *buffer, uint32_t field, const void *data, size_t size);

/* Safe to print: see export_put_escaped(). */
void protobuf_string(struct buffer *buffer, uint32_t field, const char *text);

/* An inner message or packed numbers, from `message`, which is cleared. */
void protobuf_message(struct buffer *buffer, uint32_t field, struct buffer *message);

#endif
