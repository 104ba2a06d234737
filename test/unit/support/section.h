/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "trace/sections/section-codec.h"

/* Compresses bytes, which need not be a valid content, as a section of any version. Takes the content of `plain`. */
static inline struct mmt_error *pack_section(struct buffer *plain, uint32_t version, struct buffer *packed)
{
	struct section_packing packing;
	struct mmt_error *error = packing_begin(&packing, version, packed);

	packing.plain = *plain;
	*plain = (struct buffer){0};
	return packing_end(&packing, error);
}
