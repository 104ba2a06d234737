/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Files that a test makes. They lie in a directory of the program's own, which goes when the program has ended, also
 * when a test failed, aborted or was killed, and with it the whole program: a process outside it waits for that.
 * TMPDIR, or /tmp, is where the directory lies; while it is there TMPDIR is its path. Whatever fails ends the test.
 */
#ifndef SUPPORT_TEMPORARY_H
#define SUPPORT_TEMPORARY_H

enum { TEMPORARY_PATH_SIZE = 256 };

/* Before the first test and after the last one: run_suite() calls them. */
void temporary_begin(void);
void temporary_end(void);

/* A new directory. */
void temporary_directory(char path[TEMPORARY_PATH_SIZE]);

/* The name of a file that is not there yet, in a new directory. */
void temporary_name(char path[TEMPORARY_PATH_SIZE]);

/* The file, or the directory with all that is in it; at the end they go by themselves. */
void temporary_remove(const char *path);

#endif
