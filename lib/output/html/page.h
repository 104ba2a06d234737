/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The page around the data: page/page.html with the style sheet and the scripts inserted. embed-page.cmake generates it
 * at build time. */
#pragma once

#include <stddef.h>

extern const unsigned char page_head[]; /* before the data */
extern const unsigned char page_tail[];
/* Style and script of an SVG flame graph. */
extern const unsigned char page_boxes[];
extern const size_t page_head_size, page_tail_size, page_boxes_size;
