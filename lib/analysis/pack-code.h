/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The instructions around the places of frames, for packed recordings. */
#ifndef ANALYSIS_PACK_CODE_H
#define ANALYSIS_PACK_CODE_H

#include <stdint.h>

#include "analysis/code-view.h"
#include "trace/resolved-stacks.h"

/* What an annotation of a frame shows, the lines of the source included: its number plus 1, 0: it shows nothing. */
struct mmt_error *pack_code(struct resolved_stacks *resolved, struct code_view *code, uint32_t frame,
			    uint32_t *code_ret) MMT_MUST_CHECK;

#endif
