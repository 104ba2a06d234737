/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Handles failing allocations. libmmtrace returns an error, but the libraries that it uses may crash, exit with another
 * status, or silently drop data. To prevent that in reports, the first failing allocation anywhere ends the tool with a
 * message and EXIT_UNUSABLE. */
#ifndef CLI_OUT_OF_MEMORY_H
#define CLI_OUT_OF_MEMORY_H

/* From now on a failing allocation prints `text`, which must stay valid, and ends the tool. NULL: it returns NULL as
 * usual, because a recording must be finished in any case. Does nothing in a build with AddressSanitizer, which
 * replaces the allocation functions itself. */
void out_of_memory_ends(const char *text);

#endif
