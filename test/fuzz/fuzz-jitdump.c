// SPDX-License-Identifier: LGPL-2.1-or-later
/* Any bytes are a jitdump: parse it, then find name, line, rows and code of every address that it mentions. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/jit/code-timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(struct jitdump *dump, uint64_t address, uint64_t time_ns, const uint8_t *data, size_t size)
{
	uint32_t number = jitdump_find(dump, address, time_ns), line;
	struct named_code code;
	const char *file;

	if (number == CODE_TIMELINE_NONE)
		return;
	code = jitdump_code(dump, number);
	if (address < code.start || address - code.start >= code.size)
		abort();
	if (code.bytes && (code.bytes < data || code.size > (size_t)(data + size - code.bytes)))
		abort();
	if ((const uint8_t *)code.name < data || (const uint8_t *)code.name + strlen(code.name) >= data + size)
		abort();
	if (jitdump_line(dump, number, address, &file, &line) && strlen(file) > size)
		abort();
	(void)jitdump_cfi(dump, number, address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump *dump = NULL;
	struct mmt_error *error = jitdump_create(data, size, size % 2 ? UINT64_MAX : 1000, &dump);

	if (error) {
		mmt_error_destroy(error);
		return 0;
	}
	for (size_t i = 0; i + 8 <= size; i += 4) {
		uint64_t address;

		memcpy(&address, data + i, sizeof(address));
		look_up(dump, address, i * 10, data, size);
		look_up(dump, address + 1, UINT64_MAX, data, size);
	}
	jitdump_destroy(dump);
	return 0;
}
