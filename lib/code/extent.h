/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How far a function goes of which only the beginning is known: as far as its instructions lead on. */
#ifndef CODE_EXTENT_H
#define CODE_EXTENT_H

#include "code/disassembly.h"
#include "code/epilogue.h"

#define EXTENT_MAX 65536

/* Where instructions do not tell, a function is no longer than this. */
#define EXTENT_GUESSED 4096

/*
 * The end of the function at `start`, at most `limit`: behind an instruction after which nothing runs, when no branch
 * before it leads further.
 */
uint64_t extent_find(struct disassembly *disassembly, const struct epilogue_code *code, uint64_t start, uint64_t limit);

#endif
