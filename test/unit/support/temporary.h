/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Temporary files of a test, in a directory that is removed when the program has ended, even if a test failed,
 * aborted or was killed with the whole program: a separate process waits for that. The directory is in TMPDIR, or
 * /tmp, and TMPDIR is its path while it exists. Any failure ends the test. */
#pragma once

enum { TEMPORARY_PATH_SIZE = 256 };

/* Before the first test and after the last one: main() calls them. */
void temporary_begin(void);
void temporary_end(void);

/* A new directory. */
void temporary_directory(char path[TEMPORARY_PATH_SIZE]);

/* The name of a file that does not exist yet, in a new directory. */
void temporary_name(char path[TEMPORARY_PATH_SIZE]);

/* The file, or the directory with everything in it; otherwise they are removed at the end. */
void temporary_remove(const char *path);
