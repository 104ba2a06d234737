/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page around the data: page/page.html with the style sheet and the scripts inserted. embed-page.cmake generates it
 * at build time. */
#pragma once

#include <stddef.h>

extern const unsigned char page_head[]; /* before the data */
extern const unsigned char page_tail[];
extern const size_t page_head_size, page_tail_size;
