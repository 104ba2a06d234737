/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes rights from a program before it reads what others wrote: recordings, ELF files and debug information. */
#pragma once

#include <stddef.h>

#include <mmtrace/error.h>

/*
 * From now on the calling thread, and the threads and processes that it creates, cannot execute programs, connect to
 * others or trace them, and open files only for reading. Of capabilities only CAP_DAC_READ_SEARCH remains. What is open
 * already stays usable. There is no way back, and other threads keep their rights: call this in a program that only
 * reads recordings from then on, before it has threads. The library never calls it by itself.
 *
 * If one of the recordings `inputs` ("-": standard input) comes from a pipe, files may be written in $TMPDIR, or in
 * /var/tmp. If `output` is neither NULL nor "-", it may be written with mmt_write_file(), with the capabilities that
 * this needs. In both cases all of that directory can be written, and only Landlock (Linux 5.13) prevents that files
 * elsewhere are.
 *
 * The mechanisms are no_new_privs, capabilities, Landlock and seccomp, each where the kernel has it. With
 * $DEBUGINFOD_URLS set, connections are possible as before, and the cache of libdebuginfod can be written; without
 * Landlock, other files, too.
 */
MMT_PUBLIC void mmt_confine(const char *const *inputs, size_t input_count, const char *output);
