// SPDX-License-Identifier: LGPL-2.1-or-later
#include "output/escape.h"

#include <mmtrace/output.h>
#include <wchar.h>

size_t escape_decode(const char *at, uint32_t *character_ret)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *text = (const unsigned char *)at;
	uint32_t character;
	size_t size;

	if (text[0] < 0x80) {
		*character_ret = text[0];
		return 1;
	}
	if (text[0] >= 0xf8 || text[0] < 0xc0)
		return 0;
	size = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
	character = text[0] & (0x7fu >> size);
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3fu);
	}
	if (character < smallest[size] || character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
		return 0;
	*character_ret = character;
	return size;
}

static bool must_escape(uint32_t character, enum escape_mode mode)
{
	bool is_quote = character == '"' || character == '\\';
	/* Control characters, and characters that change the direction of the text around them. */
	bool is_hostile = character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
			  (character >= 0x200b && character <= 0x200f) ||
			  (character >= 0x2028 && character <= 0x202e) ||
			  (character >= 0x2060 && character <= 0x206f) || character == 0xfeff;

	return is_hostile || (mode == ESCAPE_FOR_ASCII && character >= 0x80) ||
	       (mode == ESCAPE_FOR_QUOTES && is_quote) || (mode == ESCAPE_FOR_WORD && (is_quote || character == ' '));
}

bool escape_next(const char **position, enum escape_mode mode, struct escape_piece *piece_ret)
{
	const unsigned char *text = (const unsigned char *)*position;
	uint32_t character = 0;
	size_t size;
	int columns;

	if (!*text)
		return false;
	size = escape_decode(*position, &character);
	if (size && !must_escape(character, mode)) {
		memcpy(piece_ret->text, text, size);
		piece_ret->text[size] = '\0';
		if (mode == ESCAPE_FOR_STACK && character == ';')
			*piece_ret->text = ':';
		piece_ret->size = size;
		columns = character < 0x80 ? 1 : wcwidth((wchar_t)character);
		piece_ret->columns = columns < 0 ? 1 : (unsigned)columns;
		*position += size;
		return true;
	}
	if (!size)
		size = 1;
	for (size_t i = 0; i < size; i++)
		snprintf(piece_ret->text + 4 * i, 5, "\\x%02x", text[i]);
	piece_ret->size = 4 * size;
	piece_ret->columns = (unsigned)piece_ret->size;
	*position += size;
	return true;
}

void escape_write(const char *text, enum escape_mode mode, FILE *stream)
{
	struct escape_piece piece;

	while (escape_next(&text, mode, &piece))
		fwrite(piece.text, 1, piece.size, stream);
}

void escape_put(const char *text, enum escape_mode mode, struct buffer *buffer)
{
	struct escape_piece piece;

	while (escape_next(&text, mode, &piece))
		buffer_put(buffer, piece.text, piece.size);
}

void mmt_write_escaped(const char *text, FILE *stream)
{
	escape_write(text, ESCAPE_FOR_TERMINAL, stream);
}
