/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tool does when memory cannot be allocated. libmmtrace returns an error then, but libraries that it uses
 * crash, end the process with a status of their own, or leave out without a word what they cannot store. A report must
 * do none of these, so the first failing allocation ends the tool with a message and EXIT_UNUSABLE, whoever asked for it.
 */
#ifndef CMD_OUT_OF_MEMORY_H
#define CMD_OUT_OF_MEMORY_H

/* From here on; the text, which must stay, says what that means. Does nothing in a build with AddressSanitizer, which has
 * allocation functions of its own. */
void out_of_memory_ends(const char *text);

/* From here on callers get NULL as usual: a recording must be finished whatever happens. */
void out_of_memory_returns(void);

#endif
